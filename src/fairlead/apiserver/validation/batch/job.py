"""Validates Jobs and CronJobs.

upstream: pkg/apis/batch/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Final

from fairlead.api.codec import DecodeError, decode_as, without_nulls
from fairlead.api.facts import values_of
from fairlead.api.json import Json
from fairlead.api.objects import CronJob, Job, Pod
from fairlead.api.selector import selector_matches
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.apps.workload import (
    MISMATCH,
    check_new_template,
    check_scheduled_template,
)
from fairlead.apiserver.validation.batch.index_interval import IndexTextError, index_intervals
from fairlead.apiserver.validation.batch.schedule import schedule_problem, time_zone_problem
from fairlead.apiserver.validation.core.pod.spec import check_template, template_view
from fairlead.apiserver.validation.meta.change_text import internal_of
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    invalid,
    non_negative,
    not_supported,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    IMMUTABLE,
    check_at_least,
    check_domain_path,
    check_one_of,
    check_qualified_name,
    check_unchanged,
    dns_label_problems,
    label_selector,
)
from fairlead.apiserver.validation.view_facts import check_view_facts

_CRON_JOB: Final = "batch.v1.CronJobSpec"
_JOB_TEMPLATE: Final = "spec.jobTemplate"
REPLACEMENTS: Final = values_of("batch.v1.JobSpec", "podReplacementPolicy")
RESTART_POLICY_REQUIRED: Final = 'valid values: "OnFailure", "Never"'
NAME_MAX: Final = 52
INDEXED_MAX: Final = 100_000
MANY_COMPLETIONS: Final = 100_000
FEW_PARALLEL: Final = 10_000
_NOT_NEGATIVE: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
    "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip


def check_job(obj: Json, _: Job) -> Causes:
    """Yield the errors of a Job."""
    spec = obj["spec"]
    yield from check_job_spec("spec", spec)
    name, completions = obj["metadata"].get("name", ""), spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        last = f"{name}-{completions - 1}"
        if dns_label_problems(last):
            why = f"will not able to create pod with invalid DNS label: {last}"
            yield invalid("metadata.name", name, why)


def check_scheduled_job(job: Job | CronJob) -> Causes:
    """Yield the errors in those fields of a Job that its controller or the scheduler reads.

    The rules apply to new and to stored Jobs, and to the template of a CronJob.
    """
    if isinstance(job, CronJob):
        yield from _check_scheduled_job_template(job.spec.job_template)
        return
    yield from non_negative("spec.parallelism", job.spec.parallelism)
    if job.spec.completions is not None:
        yield from non_negative("spec.completions", job.spec.completions)
    if job.spec.backoff_limit is not None:
        yield from non_negative("spec.backoffLimit", job.spec.backoff_limit)
    yield from check_scheduled_template(job.spec.template)


def _check_scheduled_job_template(template: Json) -> Causes:
    job = _job_template_view(template)
    if isinstance(job, Cause):
        yield job
        return
    for wrong in chain(check_scheduled_job(job), check_view_facts(job)):
        yield Cause(wrong.reason, wrong.message, f"{_JOB_TEMPLATE}.{wrong.field}")


def _job_template_view(template: Json) -> Job | Cause:
    """Return the typed view of a CronJob's jobTemplate, or why it cannot be decoded."""
    try:
        return decode_as(Job, without_nulls(template))
    except DecodeError as cause:
        return Cause("FieldValueInvalid", cause.problem, f"{_JOB_TEMPLATE}.{cause.field}")


def check_new_scheduled_job(job: Job) -> Causes:
    """Check the rules that apply only to new Jobs; yield the errors.

    The selector is not checked, because the server generates it.
    """
    template = job.spec.template
    pod = template_view("spec.template", template)
    if isinstance(pod, Pod) and pod.spec.restart_policy == "Always":
        yield required("spec.template.spec.restartPolicy", RESTART_POLICY_REQUIRED)
    yield from check_new_template(template)


def check_new_scheduled_cron_job(obj: Json, cron_job: CronJob) -> Causes:
    """Check the rules that apply only to new CronJobs; yield the errors.

    `cron_job` is the typed view of `obj`.
    """
    yield from _check_schedule("spec.schedule", cron_job.spec.schedule)
    yield from _check_time_zone(obj["spec"].get("timeZone"))
    job = _job_template_view(cron_job.spec.job_template)
    if isinstance(job, Job):  # else `check_scheduled_job` yields the error
        for wrong in check_new_scheduled_job(job):
            yield Cause(wrong.reason, wrong.message, f"{_JOB_TEMPLATE}.{wrong.field}")


def check_job_spec(field: str, spec: Json) -> Causes:
    """Yield the errors of a Job's spec; `field` is its path."""
    yield from check_fields(field, "batch.v1.JobSpec", spec, *_NOT_NEGATIVE)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{field}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    manager = spec.get("managedBy")
    if manager is not None:
        yield from check_domain_path(f"{field}.managedBy", manager)
        yield from check_fields(field, "batch.v1.JobSpec", spec, "managedBy")
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
    """Yield the errors of a new CronJob.

    Its name is limited to NAME_MAX characters. The controller appends a suffix of up to eleven
    characters to make the names of Jobs.
    """
    yield from check_cron_job(obj)
    name = obj["metadata"].get("name", "")
    if len(name) > NAME_MAX:
        yield invalid("metadata.name", name, f"must be no more than {NAME_MAX} characters")


def check_cron_job(obj: Json) -> Causes:
    """Yield the errors of a CronJob."""
    spec = obj["spec"]
    yield from _check_schedule("spec.schedule", spec.get("schedule", ""))
    yield from check_fields("spec", _CRON_JOB, spec, "startingDeadlineSeconds")
    yield from _check_time_zone(spec.get("timeZone"))
    yield from check_fields("spec", _CRON_JOB, spec, "concurrencyPolicy")
    field, job = "spec.jobTemplate.spec", spec["jobTemplate"]["spec"]
    yield from check_job_spec(field, job)
    if job.get("selector") is not None:
        yield invalid(f"{field}.selector", job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield not_supported(f"{field}.manualSelector", job["manualSelector"], ("nil", "false"))
    limits = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    yield from check_fields("spec", _CRON_JOB, spec, *limits)


def _check_time_zone(zone: str | None) -> Causes:
    if zone is not None and (problem := time_zone_problem(zone)):
        yield invalid("spec.timeZone", zone, problem)


def _check_schedule(field: str, text: str) -> Causes:
    if not text:
        yield required(field)
    elif "TZ" in text:
        why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid(field, text, why)
    elif problem := schedule_problem(text):
        yield invalid(field, text, problem)


# --- failure and success policies ----------------------------------------------------------------

# upstream: pkg/apis/batch/validation/validation.go:validatePodFailurePolicy, validateSuccessPolicy

ONLY_INDEXED: Final = "requires indexed completion mode"


def check_failure_policy(field: str, spec: Json) -> Causes:
    """Yield the errors of the podFailurePolicy of `spec`."""
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or []
    policy = spec.get("podFailurePolicy") or {}
    yield from check_fields(field, "batch.v1.PodFailurePolicy", policy, "rules")
    names = _container_names(spec["template"]["spec"]) if rules else set()
    for index, rule in enumerate(rules):
        where = f"{field}.rules[{index}]"
        yield from check_fields(where, "batch.v1.PodFailurePolicyRule", rule, "action")
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            why = "requires the backoffLimitPerIndex to be set"
            yield invalid(f"{where}.action", "FailIndex", why)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            yield from _check_codes(f"{where}.onExitCodes", codes, names)
        yield from check_fields(where, "batch.v1.PodFailurePolicyRule", rule, "onPodConditions")
        yield from _check_conditions(f"{where}.onPodConditions", conditions)
        if codes is not None and conditions:
            yield _bare(where, "specifying both OnExitCodes and OnPodConditions is not supported")
        elif codes is None and not conditions:
            yield _bare(where, "specifying one of OnExitCodes and OnPodConditions is required")


def _container_names(template: Json) -> set[str]:
    both = [*(template.get("containers") or ()), *(template.get("initContainers") or ())]
    return {container.get("name", "") for container in both}


def _check_codes(field: str, codes: Json, names: AbstractSet[str]) -> Causes:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    kind = "batch.v1.PodFailurePolicyOnExitCodesRequirement"
    yield from check_fields(field, kind, codes, "operator")
    name = codes.get("containerName")
    if name is not None and name not in names:
        why = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{field}.containerName", name, why)
    if not values:
        yield invalid(f"{field}.values", codes.get("values"), "at least one value is required")
    yield from check_fields(field, kind, codes, "values")
    again = repeated_indexes(values)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            why = "must not be 0 for the In operator"
            yield invalid(f"{field}.values[{index}]", value, why)
        if index in again:
            yield duplicate(f"{field}.values[{index}]", value)
    if values != sorted(values):
        yield invalid(f"{field}.values", values, "must be ordered")


def _check_conditions(field: str, conditions: list[Json]) -> Causes:
    for index, pattern in enumerate(conditions):
        where = f"{field}[{index}]"
        yield from check_qualified_name(f"{where}.type", pattern.get("type", ""))
        kind = "batch.v1.PodFailurePolicyOnPodConditionsPattern"
        yield from check_fields(where, kind, pattern, "status")


def _bare(field: str, why: str) -> Cause:
    """Return an "Invalid value" error that does not quote the value of the field."""
    return Cause("FieldValueInvalid", f"Invalid value: {why}", field)


def check_success_policy(field: str, spec: Json) -> Causes:
    """Yield the errors of the successPolicy of `spec`."""
    policy = spec.get("successPolicy")
    if policy is None:
        return
    rules = policy.get("rules") or []
    if spec.get("completionMode") != "Indexed":
        shown = internal_of("batch.v1.SuccessPolicy", policy)
        for rule, given in zip(shown["Rules"] or (), rules, strict=False):
            # The Go field is a pointer, so an absent value prints as null.
            rule["SucceededIndexes"] = given.get("succeededIndexes")
        yield invalid(field, shown, ONLY_INDEXED)
        return
    yield from check_fields(field, "batch.v1.SuccessPolicy", policy, "rules")
    for index, rule in enumerate(rules):
        yield from _check_success(f"{field}.rules[{index}]", rule, spec.get("completions") or 0)


def _check_success(field: str, rule: Json, completions: int) -> Causes:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        why = "at least one of succeededCount or succeededIndexes must be specified"
        yield required(field, why)
    total = 0
    if indexes is not None:
        yield from check_fields(field, "batch.v1.SuccessPolicyRule", rule, "succeededIndexes")
        try:
            intervals = index_intervals(indexes, completions)
            total = sum(last - first + 1 for first, last in intervals)
        except IndexTextError as cause:
            why = f"error parsing succeededIndexes: {cause}"
            yield invalid(f"{field}.succeededIndexes", indexes, why)
    if count is None:
        return
    where = f"{field}.succeededCount"
    yield from check_at_least(where, count, 0)
    bound = "must be less than or equal to {} (the number of {})"
    if count > completions:
        yield invalid(where, count, bound.format(completions, "specified completions"))
    if indexes is not None and count > total:
        what = "indexes in the specified succeededIndexes field"
        yield invalid(where, count, bound.format(total, what))


# --- updates -------------------------------------------------------------------------------------

# upstream: pkg/apis/batch/validation/validation.go:ValidateJobSpecUpdate

IN_TANDEM: Final = "can only be modified in tandem with spec.parallelism"
# The immutable fields of a Job's spec, and the type of their values if errors print Go structs.
_FIXED_OF_JOB: Final = (
    ("completionMode", ""),
    ("podFailurePolicy", "batch.v1.PodFailurePolicy"),
    ("backoffLimitPerIndex", ""),
    ("managedBy", ""),
    ("successPolicy", "batch.v1.SuccessPolicy"),
)


def check_job_selector(spec: Json) -> Causes:
    """Yield an error if the selector is missing or does not match the template's labels."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    if selector is None:
        yield required("spec.selector")
    if not selector_matches(label_selector(selector), labels or {}):
        yield invalid("spec.template.metadata.labels", labels, MISMATCH)


def check_job_update(old: Json, new: Json) -> Causes:
    """Yield the errors of an update of a Job."""
    # upstream: pkg/apis/batch/validation/validation.go:ValidateJobSpecUpdate
    if old["spec"].get("selector") is not None or new["spec"].get("selector") is not None:
        wrong = list(check_job_selector(new["spec"]))
        yield from (*wrong, *wrong)  # Upstream checks the selector twice.
    # Otherwise, a user has written the Job into a snapshot. A server gives each Job a selector.
    yield from check_job_changes(old, new)


def check_job_changes(old: Json, new: Json) -> Causes:
    """Yield errors if an update changes immutable fields of a Job."""
    before, after = old["spec"], new["spec"]
    yield from _check_completions(before, after)
    yield from check_unchanged("spec.selector", before.get("selector"), after.get("selector"))
    old_template, template = before["template"], after["template"]
    if _is_waiting(old):
        old_template = _with_resources(
            _with_scheduling_directives(old_template, template), template
        )
    shape = "core.v1.PodTemplateSpec"
    if internal_of(shape, old_template) != internal_of(shape, template):
        yield invalid("spec.template", internal_of(shape, template), IMMUTABLE)
    for key, shape in _FIXED_OF_JOB:
        yield from check_unchanged(f"spec.{key}", before.get(key), after.get(key), shape)


def _check_completions(before: Json, after: Json) -> Causes:
    had, wants = before.get("completions"), after.get("completions")
    if after.get("completionMode") != "Indexed":
        yield from check_unchanged("spec.completions", had, wants)
    elif wants not in (had, None, after.get("parallelism")):
        yield invalid("spec.completions", wants, IN_TANDEM)


def _is_waiting(job: Json) -> bool:
    """Return whether updates may change resources and scheduling directives in the pod template.

    The result is True if `job` is suspended and has no active pods. In addition, its status must
    have no startTime, or the condition Suspended must be True.
    """
    # upstream: pkg/registry/batch/job/strategy.go:validationOptionsForJob, with
    # MutableSchedulingDirectivesForSuspendedJobs and MutablePodResourcesForSuspendedJobs
    status = job.get("status") or {}
    is_stopped = "startTime" not in status or any(
        one.get("type") == "Suspended" and one.get("status") == "True"
        for one in status.get("conditions") or ()
    )
    return bool(job["spec"].get("suspend")) and not status.get("active") and is_stopped


def _with_resources(old_template: Json, template: Json) -> Json:
    """Return `old_template` with the container resources of the new `template`."""
    spec, wanted = dict(old_template["spec"]), template["spec"]
    for kind in ("initContainers", "containers"):
        had, wants = spec.get(kind) or [], wanted.get(kind) or []
        if had and len(had) == len(wants):
            pairs = zip(had, wants, strict=True)
            spec[kind] = [{**one, "resources": new.get("resources")} for one, new in pairs]
    return {**old_template, "spec": spec}


def _with_scheduling_directives(old_template: Json, template: Json) -> Json:
    """Return `old_template` with scheduling directives, labels and annotations from `template`."""
    # upstream: validation.go:validatePodTemplateUpdate
    spec, wanted = dict(old_template["spec"]), template["spec"]
    for key in ("nodeSelector", "tolerations", "schedulingGates"):
        spec[key] = wanted.get(key)
    affinity = dict(spec.get("affinity") or {})
    affinity["nodeAffinity"] = (wanted.get("affinity") or {}).get("nodeAffinity")
    if any(affinity.values()) or wanted.get("affinity") is not None:
        spec["affinity"] = affinity
    else:
        spec["affinity"] = None
    meta, wanted_meta = dict(old_template.get("metadata") or {}), template.get("metadata") or {}
    for key in ("labels", "annotations"):
        meta.pop(key, None)
        if wanted_meta.get(key) is not None:
            meta[key] = wanted_meta[key]
    return {**old_template, "metadata": meta, "spec": spec}
