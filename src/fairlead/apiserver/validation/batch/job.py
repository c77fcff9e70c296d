"""Jobs and CronJobs.

upstream: pkg/apis/batch/validation/validation.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import Job
from fairlead.apiserver.validation.apps.workload import check_new_template, check_scheduled_template
from fairlead.apiserver.validation.batch.job_policy import (
    ONLY_INDEXED,
    check_failure_policy,
    check_success_policy,
)
from fairlead.apiserver.validation.batch.schedule import schedule_problem, time_zone_problem
from fairlead.apiserver.validation.core.pod.spec import check_template
from fairlead.apiserver.validation.meta.field import (
    Causes,
    invalid,
    non_negative,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_domain_path,
    check_one_of,
    dns_label_problems,
    too_long,
)

_CRON_JOB: Final = "batch.v1.CronJobSpec"
REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
RESTART_POLICY_REQUIRED: Final = 'valid values: "OnFailure", "Never"'
NAME_MAX: Final = 52
MANAGER_MAX: Final = 63
INDEXED_MAX: Final = 100_000
MANY_COMPLETIONS: Final = 100_000
FEW_PARALLEL: Final = 10_000
_NOT_NEGATIVE: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
    "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip


def check_job(obj: Json, _: Job) -> Causes:
    """A Job."""
    spec = obj["spec"]
    yield from check_job_spec("spec", spec)
    name, completions = obj["metadata"].get("name", ""), spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        last = f"{name}-{completions - 1}"
        if dns_label_problems(last):
            why = f"will not able to create pod with invalid DNS label: {last}"
            yield invalid("metadata.name", name, why)


def check_scheduled_job(job: Job) -> Causes:
    """What scheduling reads of a stored Job."""
    yield from non_negative("spec.parallelism", job.spec.parallelism)
    if job.spec.completions is not None:
        yield from non_negative("spec.completions", job.spec.completions)
    if job.spec.backoff_limit is not None:
        yield from non_negative("spec.backoffLimit", job.spec.backoff_limit)
    yield from check_scheduled_template(job.spec.template)


def check_new_scheduled_job(job: Job) -> Causes:
    """What scheduling also requires of a new one; the server generates its selector."""
    template = job.spec.template
    if template.get("spec", {}).get("restartPolicy", "Always") == "Always":
        yield required("spec.template.spec.restartPolicy", RESTART_POLICY_REQUIRED)
    yield from check_new_template(template)


def check_job_spec(field: str, spec: Json) -> Causes:
    """The spec of a Job; `field` is its path."""
    yield from check_fields(field, "batch.v1.JobSpec", spec, *_NOT_NEGATIVE)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{field}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    manager = spec.get("managedBy")
    if manager is not None:
        yield from check_domain_path(f"{field}.managedBy", manager)
        if len(manager) > MANAGER_MAX:
            yield too_long(f"{field}.managedBy", MANAGER_MAX)
    yield from _check_mode(field, spec)
    yield from check_failure_policy(f"{field}.podFailurePolicy", spec)
    yield from check_success_policy(f"{field}.successPolicy", spec)
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        known = REPLACEMENTS[:1] if spec.get("podFailurePolicy") is not None else REPLACEMENTS
        yield from check_one_of(f"{field}.podReplacementPolicy", replacement, known)
    yield from check_template(f"{field}.template", spec["template"])
    yield from _check_restart(f"{field}.template.spec.restartPolicy", spec)


def _check_restart(field: str, spec: Json) -> Causes:
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("", "Always"):
        yield required(field, RESTART_POLICY_REQUIRED)
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(field, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(field, policy, why)


def _check_mode(field: str, spec: Json) -> Causes:
    mode = spec.get("completionMode")
    yield from check_fields(field, "batch.v1.JobSpec", spec, "completionMode")
    if mode == "Indexed":
        yield from _check_indexed(field, spec)
    if mode in (None, "NonIndexed"):
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                yield invalid(f"{field}.{key}", spec[key], ONLY_INDEXED)


def _check_indexed(field: str, spec: Json) -> Causes:
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    failures = spec.get("maxFailedIndexes")
    if completions is None:
        yield required(f"{field}.completions", "when completion mode is Indexed")
    if parallelism > INDEXED_MAX:
        why = f"must be less than or equal to {INDEXED_MAX} when completion mode is Indexed"
        yield invalid(f"{field}.parallelism", parallelism, why)
    where = f"{field}.maxFailedIndexes"
    if completions is not None and failures is not None and failures > completions:
        yield invalid(where, failures, "must be less than or equal to completions")
    if failures is not None and failures > INDEXED_MAX:
        yield invalid(where, failures, f"must be less than or equal to {INDEXED_MAX}")
    if (completions or 0) <= MANY_COMPLETIONS or spec.get("backoffLimitPerIndex") is None:
        return
    if failures is None:
        why = f"must be specified when completions is above {MANY_COMPLETIONS}"
        yield required(where, why)
    for at, amount in ((f"{field}.parallelism", parallelism), (where, failures or 0)):
        if amount > FEW_PARALLEL:
            why = (
                f"must be less than or equal to {FEW_PARALLEL} when completions are above "
                f"{MANY_COMPLETIONS} and used with backoff limit per index"
            )
            yield invalid(at, amount, why)


def check_new_cron_job(obj: Json) -> Causes:
    """A new CronJob; its name leaves room for the eleven characters that its Jobs' names add."""
    yield from check_cron_job(obj)
    name = obj["metadata"].get("name", "")
    if len(name) > NAME_MAX:
        yield invalid("metadata.name", name, f"must be no more than {NAME_MAX} characters")


def check_cron_job(obj: Json) -> Causes:
    """A CronJob."""
    spec = obj["spec"]
    yield from _check_schedule("spec.schedule", spec.get("schedule", ""))
    yield from check_fields("spec", _CRON_JOB, spec, "startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and (problem := time_zone_problem(zone)):
        yield invalid("spec.timeZone", zone, problem)
    yield from check_fields("spec", _CRON_JOB, spec, "concurrencyPolicy")
    field, job = "spec.jobTemplate.spec", spec["jobTemplate"]["spec"]
    yield from check_job_spec(field, job)
    if job.get("selector") is not None:
        yield invalid(f"{field}.selector", job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield not_supported(f"{field}.manualSelector", job["manualSelector"], ("nil", "false"))
    limits = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    yield from check_fields("spec", _CRON_JOB, spec, *limits)


def _check_schedule(field: str, text: str) -> Causes:
    if not text:
        yield required(field)
    elif "TZ" in text:
        why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid(field, text, why)
    elif problem := schedule_problem(text):
        yield invalid(field, text, problem)
