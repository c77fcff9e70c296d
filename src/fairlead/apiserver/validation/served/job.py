"""Jobs and CronJobs: how many pods, when they have failed or done enough, and at which times.

upstream: pkg/apis/batch/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, Final

from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.change_text import internal_of
from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import dns_label_problems
from fairlead.apiserver.validation.repetition import repeated_places
from fairlead.apiserver.validation.served.form import (
    check_at_least,
    check_domain_path,
    check_one_of,
    check_qualified_name,
    too_long,
    too_many,
)
from fairlead.apiserver.validation.served.index_interval import IndexTextError, index_intervals
from fairlead.apiserver.validation.served.pod import check_template
from fairlead.apiserver.validation.served.schedule import schedule_problem, time_zone_problem
from fairlead.apiserver.validation.workload import check_any_template

Json = dict[str, Any]

CONCURRENCY: Final = ("Allow", "Forbid", "Replace")
MODES: Final = ("NonIndexed", "Indexed")
ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS: Final = ("In", "NotIn")
STATUSES: Final = ("False", "True", "Unknown")
REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
NAME_MAX: Final = 52
MANAGER_MAX: Final = 63
RULES_MAX: Final = 20
EXIT_CODES_MAX: Final = 255
INDEXED_MAX: Final = 100_000
MANY_COMPLETIONS: Final = 100_000
FEW_PARALLEL: Final = 10_000
INDEXES_TEXT_MAX: Final = 64 * 1024
_NOT_NEGATIVE: Final = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
    "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
# Of Jobs themselves looked at where schedulers read them, see validation/workload.py.
_SEEN_BEFORE: Final = ("parallelism", "completions", "backoffLimit")
_ONLY_INDEXED: Final = "requires indexed completion mode"


def check_job(obj: Json) -> Causes:
    """A Job."""
    spec = obj["spec"]
    yield from check_job_spec("spec", spec)
    name, completions = obj["metadata"].get("name", ""), spec.get("completions") or 0
    if spec.get("completionMode") == "Indexed" and completions > 0:
        last = f"{name}-{completions - 1}"
        if dns_label_problems(last):
            why = f"will not able to create pod with invalid DNS label: {last}"
            yield invalid("metadata.name", name, why)


def check_job_spec(field: str, spec: Json) -> Causes:
    """The spec of a Job; `field` is where it stands."""
    for key in _NOT_NEGATIVE:
        if field != "spec" or key not in _SEEN_BEFORE:
            yield from check_at_least(f"{field}.{key}", spec.get(key), 0)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{field}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    manager = spec.get("managedBy")
    if manager is not None:
        yield from check_domain_path(f"{field}.managedBy", manager)
        if len(manager) > MANAGER_MAX:
            yield too_long(f"{field}.managedBy", MANAGER_MAX)
    yield from _check_mode(field, spec)
    yield from _check_failure_policy(f"{field}.podFailurePolicy", spec)
    yield from _check_success_policy(f"{field}.successPolicy", spec)
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        known = REPLACEMENTS[:1] if spec.get("podFailurePolicy") is not None else REPLACEMENTS
        yield from check_one_of(f"{field}.podReplacementPolicy", replacement, known)
    yield from check_template(f"{field}.template", spec["template"])
    yield from _check_restart(f"{field}.template.spec.restartPolicy", spec)


def _check_restart(field: str, spec: Json) -> Causes:
    policy = spec["template"]["spec"].get("restartPolicy", "")
    if policy in ("", "Always"):  # of Jobs themselves looked at in validation/workload.py
        if field != "spec.template.spec.restartPolicy":
            yield required(field, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(field, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid(field, policy, why)


def _check_mode(field: str, spec: Json) -> Causes:
    mode = spec.get("completionMode")
    if mode is not None and mode not in MODES:
        yield not_supported(f"{field}.completionMode", mode, MODES)
    if mode == "Indexed":
        yield from _check_indexed(field, spec)
    if mode in (None, "NonIndexed"):
        for key in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(key) is not None:
                yield invalid(f"{field}.{key}", spec[key], _ONLY_INDEXED)


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


def _check_failure_policy(field: str, spec: Json) -> Causes:
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or []
    if len(rules) > RULES_MAX:
        yield too_many(f"{field}.rules", len(rules), RULES_MAX)
    names = _container_names(spec["template"]["spec"]) if rules else set()
    for place, rule in enumerate(rules):
        where = f"{field}.rules[{place}]"
        yield from _check_action(f"{where}.action", rule.get("action", ""), spec)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            yield from _check_codes(f"{where}.onExitCodes", codes, names)
        yield from _check_conditions(f"{where}.onPodConditions", conditions)
        if codes is not None and conditions:
            yield _bare(where, "specifying both OnExitCodes and OnPodConditions is not supported")
        elif codes is None and not conditions:
            yield _bare(where, "specifying one of OnExitCodes and OnPodConditions is required")


def _check_action(field: str, action: str, spec: Json) -> Causes:
    if not action:
        yield required(field, f"valid values: {_quoted(ACTIONS)}")
    elif action not in ACTIONS:
        yield not_supported(field, action, ACTIONS)
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        yield invalid(field, action, "requires the backoffLimitPerIndex to be set")


def _quoted(words: tuple[str, ...]) -> str:
    """As Go shows a list of texts."""
    return "[" + " ".join(f'"{word}"' for word in words) + "]"


def _container_names(template: Json) -> set[str]:
    both = [*(template.get("containers") or ()), *(template.get("initContainers") or ())]
    return {container.get("name", "") for container in both}


def _check_codes(field: str, codes: Json, names: AbstractSet[str]) -> Causes:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    if not operator:
        yield required(f"{field}.operator", f"valid values: {_quoted(OPERATORS)}")
    elif operator not in OPERATORS:
        yield not_supported(f"{field}.operator", operator, OPERATORS)
    name = codes.get("containerName")
    if name is not None and name not in names:
        why = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{field}.containerName", name, why)
    if not values:
        yield invalid(f"{field}.values", codes.get("values"), "at least one value is required")
    elif len(values) > EXIT_CODES_MAX:
        yield too_many(f"{field}.values", len(values), EXIT_CODES_MAX)
    again = repeated_places(values)
    for place, value in enumerate(values):
        if operator == "In" and value == 0:
            why = "must not be 0 for the In operator"
            yield invalid(f"{field}.values[{place}]", value, why)
        if place in again:
            yield duplicate(f"{field}.values[{place}]", value)
    if values != sorted(values):
        yield invalid(f"{field}.values", values, "must be ordered")


def _check_conditions(field: str, conditions: list[Json]) -> Causes:
    if len(conditions) > RULES_MAX:
        yield too_many(field, len(conditions), RULES_MAX)
    for place, pattern in enumerate(conditions):
        where = f"{field}[{place}]"
        yield from check_qualified_name(f"{where}.type", pattern.get("type", ""))
        status = pattern.get("status", "")
        if not status:
            yield required(f"{where}.status", f"valid values: {_quoted(STATUSES)}")
        elif status not in STATUSES:
            yield not_supported(f"{where}.status", status, STATUSES)


def _bare(field: str, why: str) -> Cause:
    """Without the value: upstream omits this one."""
    return Cause("FieldValueInvalid", f"Invalid value: {why}", field)


def _check_success_policy(field: str, spec: Json) -> Causes:
    policy = spec.get("successPolicy")
    if policy is None:
        return
    rules = policy.get("rules") or []
    if spec.get("completionMode") != "Indexed":
        shown = internal_of("batch.v1.SuccessPolicy", policy)
        for rule, given in zip(shown["Rules"] or (), rules, strict=False):
            rule["SucceededIndexes"] = given.get("succeededIndexes")  # a pointer
        yield invalid(field, shown, _ONLY_INDEXED)
        return
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{field}.rules", why)
    if len(rules) > RULES_MAX:
        yield too_many(f"{field}.rules", len(rules), RULES_MAX)
    for place, rule in enumerate(rules):
        yield from _check_success(f"{field}.rules[{place}]", rule, spec.get("completions") or 0)


def _check_success(field: str, rule: Json, completions: int) -> Causes:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        why = "at least one of succeededCount or succeededIndexes must be specified"
        yield required(field, why)
    total = 0
    if indexes is not None:
        if len(indexes) > INDEXES_TEXT_MAX:
            yield too_long(f"{field}.succeededIndexes", INDEXES_TEXT_MAX)
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


def check_new_cron_job(obj: Json) -> Causes:
    """A new CronJob, whose Jobs get eleven more characters to their names."""
    yield from check_cron_job(obj)
    name = obj["metadata"].get("name", "")
    if len(name) > NAME_MAX:
        yield invalid("metadata.name", name, f"must be no more than {NAME_MAX} characters")


def check_cron_job(obj: Json) -> Causes:
    """A CronJob."""
    spec = obj["spec"]
    yield from _check_schedule("spec.schedule", spec.get("schedule", ""))
    deadline_s = spec.get("startingDeadlineSeconds")
    yield from check_at_least("spec.startingDeadlineSeconds", deadline_s, 0)
    zone = spec.get("timeZone")
    if zone is not None and (problem := time_zone_problem(zone)):
        yield invalid("spec.timeZone", zone, problem)
    policy = spec.get("concurrencyPolicy", "")
    yield from check_one_of("spec.concurrencyPolicy", policy, CONCURRENCY)
    field, job = "spec.jobTemplate.spec", spec["jobTemplate"]["spec"]
    yield from check_any_template(f"{field}.template", job["template"])
    yield from check_job_spec(field, job)
    if job.get("selector") is not None:
        yield invalid(f"{field}.selector", job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield not_supported(f"{field}.manualSelector", job["manualSelector"], ("nil", "false"))
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from check_at_least(f"spec.{key}", spec.get(key), 0)


def _check_schedule(field: str, text: str) -> Causes:
    if not text:
        yield required(field)
    elif "TZ" in text:
        why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid(field, text, why)
    elif problem := schedule_problem(text):
        yield invalid(field, text, problem)
