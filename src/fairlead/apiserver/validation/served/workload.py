"""Workloads: how they update, and what of them never changes.

upstream: pkg/apis/{apps,batch}/validation/validation.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.selector import selector_matches
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.change_text import internal_of
from fairlead.apiserver.validation.field import (
    Causes,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import check_labels
from fairlead.apiserver.validation.served.form import (
    IMMUTABLE,
    check_at_least,
    check_not_beyond_all,
    check_one_of,
    check_share,
    check_unchanged,
    is_nothing,
    label_selector,
)
from fairlead.apiserver.validation.served.pod import check_spec
from fairlead.apiserver.validation.served.pod import check_template as check_pod_template
from fairlead.apiserver.validation.served.schedule import schedule_problem, time_zone_problem
from fairlead.apiserver.validation.workload import MISMATCH

Json = dict[str, Any]

CONCURRENCY: Final = ("Allow", "Forbid", "Replace")
MODES: Final = ("Indexed", "NonIndexed")
ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
ONLY_THESE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
_CHANGEABLE: Final = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_TEMPLATE: Final = "spec.template.spec"
IN_TANDEM: Final = "can only be modified in tandem with spec.parallelism"
# What of a Job never changes, and what upstream calls the type of it.
_FIXED_OF_JOB: Final = (
    ("completionMode", ""),
    ("podFailurePolicy", "batch.v1.PodFailurePolicy"),
    ("backoffLimitPerIndex", ""),
    ("managedBy", ""),
    ("successPolicy", "batch.v1.SuccessPolicy"),
)


def check_template(obj: Json) -> Causes:
    """The template of the pods that any workload makes."""
    template = obj["spec"].get("template")
    if template is not None:
        yield from check_pod_template("spec.template", template)


def _check_rolling(field: str, rolling: Json) -> Causes:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    if unavailable is not None:
        yield from check_share(f"{field}.maxUnavailable", unavailable)
    if surge is not None:
        yield from check_share(f"{field}.maxSurge", surge)
    if unavailable is not None:
        yield from check_not_beyond_all(f"{field}.maxUnavailable", unavailable)


def check_deployment(obj: Json) -> Causes:
    """A Deployment."""
    spec = obj["spec"]
    yield from check_at_least("spec.minReadySeconds", spec.get("minReadySeconds"), 0)
    yield from check_template(obj)
    yield from _check_strategy(spec.get("strategy") or {})
    yield from check_at_least("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"), 0)
    deadline_s = spec.get("progressDeadlineSeconds")
    yield from check_at_least("spec.progressDeadlineSeconds", deadline_s, 0)
    if deadline_s is not None and deadline_s <= spec.get("minReadySeconds", 0):
        yield invalid(
            "spec.progressDeadlineSeconds", deadline_s, "must be greater than minReadySeconds"
        )


def _check_strategy(strategy: Json) -> Causes:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                why = "may not be specified when strategy `type` is 'Recreate'"
                yield forbidden("spec.strategy.rollingUpdate", why)
        case "RollingUpdate":
            field = "spec.strategy.rollingUpdate"
            yield from _check_rolling(field, rolling or {})
            shares = [(rolling or {}).get(key) for key in ("maxUnavailable", "maxSurge")]
            if all(is_nothing(share) for share in shares):
                why = "may not be 0 when `maxSurge` is 0"
                yield invalid(f"{field}.maxUnavailable", shares[0], why)
        case other:
            shown = {"Type": other or "", "RollingUpdate": rolling}
            yield not_supported("spec.strategy", shown, ("Recreate", "RollingUpdate"))


def check_replica_set(obj: Json) -> Causes:
    """A ReplicaSet or ReplicationController."""
    spec = obj["spec"]
    yield from check_at_least("spec.minReadySeconds", spec.get("minReadySeconds"), 0)
    yield from check_template(obj)


def check_selector_update(old: Json, new: Json) -> Causes:
    """A workload keeps to its pods."""
    yield from check_unchanged(
        "spec.selector", old["spec"].get("selector"), new["spec"].get("selector")
    )


def check_stateful_set(obj: Json) -> Causes:
    """A StatefulSet."""
    spec = obj["spec"]
    order = spec.get("podManagementPolicy", "")
    if order not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'" if order else ""
        where = "spec.podManagementPolicy"
        yield invalid(where, order, why) if order else required(where)
    update = spec.get("updateStrategy") or {}
    rolling = update.get("rollingUpdate")
    match update.get("type"):
        case "RollingUpdate":
            field = "spec.updateStrategy.rollingUpdate.partition"
            yield from check_at_least(field, (rolling or {}).get("partition"), 0)
        case "OnDelete":
            if rolling is not None:
                why = "only allowed for updateStrategy 'RollingUpdate'"
                yield invalid("spec.updateStrategy.rollingUpdate", rolling, why)
        case other:
            shown = {"Type": other or "", "RollingUpdate": rolling}
            yield invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")
    yield from check_at_least("spec.minReadySeconds", spec.get("minReadySeconds"), 0)
    # upstream looks at these twice
    labels = spec["template"]["metadata"].get("labels") or {}
    yield from check_labels("spec.template.labels", labels)
    yield from _check_claimed_template(spec)


def _check_claimed_template(spec: Json) -> Causes:
    """Pods of a StatefulSet also have a volume for each of its claims."""
    template = spec["template"]["spec"]
    claims = [one["metadata"].get("name") for one in spec.get("volumeClaimTemplates") or ()]
    claimed = [{"name": name, "emptyDir": {}} for name in claims]
    names = [volume.get("name") for volume in template.get("volumes") or ()]
    more = [volume for volume in claimed if volume["name"] not in names]
    yield from check_spec(
        _TEMPLATE, {**template, "volumes": [*(template.get("volumes") or []), *more]}
    )


def check_stateful_set_update(old: Json, new: Json) -> Causes:
    """Little may change while pods hold what they have."""
    before, after = (
        {key: value for key, value in obj["spec"].items() if key not in _CHANGEABLE}
        for obj in (old, new)
    )
    if before != after:
        yield forbidden("spec", ONLY_THESE)


def check_daemon_set(obj: Json) -> Causes:
    """A DaemonSet."""
    spec = obj["spec"]
    yield from check_template(obj)
    yield from check_at_least("spec.minReadySeconds", spec.get("minReadySeconds"), 0)
    update = spec.get("updateStrategy") or {}
    field = "spec.updateStrategy"
    match update.get("type"):
        case "RollingUpdate":
            rolling = update.get("rollingUpdate") or {}
            yield from _check_rolling(f"{field}.rollingUpdate", rolling)
            if all(is_nothing(rolling.get(key)) for key in ("maxUnavailable", "maxSurge")):
                where = f"{field}.rollingUpdate.maxUnavailable"
                yield required(where, "cannot be 0 when maxSurge is 0")
        case "OnDelete":
            pass
        case other:
            yield not_supported(f"{field}.type", other or "", ("OnDelete", "RollingUpdate"))
    yield from check_at_least("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"), 0)


def check_job(obj: Json) -> Causes:
    """A Job."""
    yield from check_job_spec("spec", obj["spec"])


def check_job_spec(field: str, spec: Json) -> Causes:
    """The spec of a Job; `field` is where it stands."""
    yield from check_at_least(
        f"{field}.activeDeadlineSeconds", spec.get("activeDeadlineSeconds"), 0
    )
    ttl_s = spec.get("ttlSecondsAfterFinished")
    yield from check_at_least(f"{field}.ttlSecondsAfterFinished", ttl_s, 0)
    mode = spec.get("completionMode")
    if mode is not None:
        yield from check_one_of(f"{field}.completionMode", mode, MODES)
    per_index = spec.get("backoffLimitPerIndex")
    yield from check_at_least(f"{field}.backoffLimitPerIndex", per_index, 0)
    if per_index is not None and mode != "Indexed":
        why = "requires indexed completion mode"
        yield invalid(f"{field}.backoffLimitPerIndex", per_index, why)
    yield from _check_failure_policy(f"{field}.podFailurePolicy", spec.get("podFailurePolicy"))
    yield from check_pod_template(f"{field}.template", spec["template"])


def _check_failure_policy(field: str, policy: Json | None) -> Causes:
    for place, rule in enumerate((policy or {}).get("rules") or ()):
        where = f"{field}.rules[{place}]"
        yield from check_one_of(f"{where}.action", rule.get("action", ""), ACTIONS)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if codes is None and not conditions:
            text = "Invalid value: specifying one of OnExitCodes and OnPodConditions is required"
            yield _bare(where, text)
        elif codes is not None and conditions:
            text = "Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"
            yield _bare(where, text)


def _bare(field: str, text: str) -> Cause:
    """Without the value: upstream omits this one."""
    return Cause("FieldValueInvalid", text, field)


def check_job_selector(spec: Json) -> Causes:
    """A Job finds the pods that it makes."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    if selector is None:
        yield required("spec.selector")
    if not selector_matches(label_selector(selector), labels or {}):
        yield invalid("spec.template.metadata.labels", labels, MISMATCH)


def check_job_update(old: Json, new: Json) -> Causes:
    """What a Job began, it ends."""
    # upstream: pkg/apis/batch/validation/validation.go:ValidateJobSpecUpdate
    before, after = old["spec"], new["spec"]
    wrong = list(check_job_selector(after))
    yield from (*wrong, *wrong)  # upstream looks twice
    yield from _check_completions(before, after)
    yield from check_unchanged("spec.selector", before.get("selector"), after.get("selector"))
    is_waiting = before.get("suspend") and "startTime" not in (old.get("status") or {})
    was, shall = before["template"], after["template"]
    if is_waiting:
        was = _with_directions(was, shall)
    shape = "core.v1.PodTemplateSpec"
    if internal_of(shape, was) != internal_of(shape, shall):
        yield invalid("spec.template", internal_of(shape, shall), IMMUTABLE)
    for key, shape in _FIXED_OF_JOB:
        yield from check_unchanged(f"spec.{key}", before.get(key), after.get(key), shape)


def _check_completions(before: Json, after: Json) -> Causes:
    had, wants = before.get("completions"), after.get("completions")
    if after.get("completionMode") != "Indexed":
        yield from check_unchanged("spec.completions", had, wants)
    elif wants not in (had, None, after.get("parallelism")):
        yield invalid("spec.completions", wants, IN_TANDEM)


def _with_directions(was: Json, shall: Json) -> Json:
    """`was`, the template of a Job that waits, with where the pods of `shall` may go."""
    # upstream: validation.go:validatePodTemplateUpdate
    spec, wanted = dict(was["spec"]), shall["spec"]
    for key in ("nodeSelector", "tolerations", "schedulingGates"):
        spec[key] = wanted.get(key)
    affinity = dict(spec.get("affinity") or {})
    affinity["nodeAffinity"] = (wanted.get("affinity") or {}).get("nodeAffinity")
    if any(affinity.values()) or wanted.get("affinity") is not None:
        spec["affinity"] = affinity
    else:
        spec["affinity"] = None
    meta = dict(was["metadata"])
    for key in ("labels", "annotations"):
        meta.pop(key, None)
        if shall["metadata"].get(key) is not None:
            meta[key] = shall["metadata"][key]
    return {**was, "metadata": meta, "spec": spec}


def check_cron_job(obj: Json) -> Causes:
    """A CronJob."""
    spec = obj["spec"]
    text = spec.get("schedule", "")
    if not text:
        yield required("spec.schedule")
    elif "TZ" in text:
        why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid("spec.schedule", text, why)
    else:
        problem = schedule_problem(text)
        if problem:
            yield invalid("spec.schedule", text, problem)
    deadline_s = spec.get("startingDeadlineSeconds")
    yield from check_at_least("spec.startingDeadlineSeconds", deadline_s, 0)
    zone = spec.get("timeZone")
    if zone is not None and (problem := time_zone_problem(zone)):
        yield invalid("spec.timeZone", zone, problem)
    policy = spec.get("concurrencyPolicy", "")
    yield from check_one_of("spec.concurrencyPolicy", policy, CONCURRENCY)
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from check_at_least(f"spec.{key}", spec.get(key), 0)
    yield from check_job_spec("spec.jobTemplate.spec", spec["jobTemplate"]["spec"])
    if len(obj["metadata"].get("name", "")) > 52:
        yield invalid(
            "metadata.name", obj["metadata"]["name"], "must be no more than 52 characters"
        )
