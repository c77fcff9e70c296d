"""Workloads: how they update, and what of them never changes.

upstream: pkg/apis/{apps,batch}/validation/validation.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.field import (
    Causes,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import check_labels
from fairlead.apiserver.validation.served.form import (
    check_at_least,
    check_not_beyond_all,
    check_one_of,
    check_share,
    is_nothing,
)
from fairlead.apiserver.validation.served.pod import check_template as check_pod_template
from fairlead.apiserver.validation.workload import check_any_template

ONLY_THESE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
_CHANGEABLE: Final = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_SHARES: Final = ("maxUnavailable", "maxSurge")


def check_template(obj: Json) -> Causes:
    """The template of the pods that any workload makes."""
    template = obj["spec"].get("template")
    if template is not None:
        yield from check_pod_template("spec.template", template)


def _check_shares(field: str, rolling: Json) -> Causes:
    for key in _SHARES:
        if rolling.get(key) is not None:
            yield from check_share(f"{field}.{key}", rolling[key])


def check_deployment(obj: Json) -> Causes:
    """A Deployment."""
    spec = obj["spec"]
    yield from check_template(obj)
    yield from _check_strategy(spec.get("strategy") or {})
    yield from check_at_least("spec.minReadySeconds", spec.get("minReadySeconds"), 0)
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
            yield from _check_shares(field, rolling or {})
            unavailable, surge = ((rolling or {}).get(key) for key in _SHARES)
            where = f"{field}.maxUnavailable"
            if is_nothing(unavailable) and is_nothing(surge):
                yield invalid(where, unavailable, "may not be 0 when `maxSurge` is 0")
            if unavailable is not None:
                yield from check_not_beyond_all(where, unavailable)
        case other:
            shown = {"Type": other or "", "RollingUpdate": rolling}
            yield not_supported("spec.strategy", shown, ("Recreate", "RollingUpdate"))


def check_replica_set(obj: Json) -> Causes:
    """A ReplicaSet or ReplicationController."""
    spec = obj["spec"]
    yield from check_at_least("spec.minReadySeconds", spec.get("minReadySeconds"), 0)
    yield from check_template(obj)


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
            yield from _check_partition("spec.updateStrategy.rollingUpdate", rolling or {})
        case "OnDelete":
            if rolling is not None:
                why = "only allowed for updateStrategy 'RollingUpdate'"
                shown = {
                    "Partition": rolling.get("partition", 0),
                    "MaxUnavailable": rolling.get("maxUnavailable"),
                }
                yield invalid("spec.updateStrategy.rollingUpdate", shown, why)
        case other:
            shown = {"Type": other or "", "RollingUpdate": rolling}
            yield invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'")
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for key in ("whenDeleted", "whenScaled"):
        if key in retention:
            where = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
            yield from check_one_of(where, retention[key], ("Retain", "Delete"))
    yield from check_at_least("spec.minReadySeconds", spec.get("minReadySeconds"), 0)
    yield from check_at_least("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"), 0)
    # upstream looks at these twice
    labels = spec["template"]["metadata"].get("labels") or {}
    yield from check_labels("spec.template.labels", labels)
    yield from _check_claimed_template(spec)


def _check_partition(field: str, rolling: Json) -> Causes:
    """Which pods wait, and how many of the others may be missing at a time."""
    yield from check_at_least(f"{field}.partition", rolling.get("partition"), 0)
    unavailable = rolling.get("maxUnavailable")
    if unavailable is None:
        return
    where = f"{field}.maxUnavailable"
    yield from check_share(where, unavailable)
    if is_nothing(unavailable):
        yield invalid(where, unavailable, "cannot be 0")
    yield from check_not_beyond_all(where, unavailable)


def _check_claimed_template(spec: Json) -> Causes:
    """Pods of a StatefulSet also have a volume for each of its claims."""
    template = spec["template"]["spec"]
    claims = [one["metadata"].get("name") for one in spec.get("volumeClaimTemplates") or ()]
    claimed = [{"name": name, "emptyDir": {}} for name in claims]
    names = [volume.get("name") for volume in template.get("volumes") or ()]
    more = [volume for volume in claimed if volume["name"] not in names]
    complete = {**template, "volumes": [*(template.get("volumes") or []), *more]}
    yield from check_pod_template("spec.template", {**spec["template"], "spec": complete})


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
    match update.get("type"):
        case "RollingUpdate":
            rolling = update.get("rollingUpdate") or {}
            yield from _check_replacement("spec.updateStrategy.rollingUpdate", rolling)
        case "OnDelete":
            pass
        case other:
            shown = {"Type": other or "", "RollingUpdate": update.get("rollingUpdate")}
            yield not_supported("spec.updateStrategy", shown, ("RollingUpdate", "OnDelete"))
    yield from check_at_least("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"), 0)


def _check_replacement(field: str, rolling: Json) -> Causes:
    """On each node the old pod goes first, or the new one comes first; one of both."""
    yield from _check_shares(field, rolling)
    for key in _SHARES:
        if rolling.get(key) is not None:
            yield from check_not_beyond_all(f"{field}.{key}", rolling[key])
    unavailable, surge = (rolling.get(key) for key in _SHARES)
    if is_nothing(unavailable) and is_nothing(surge):
        yield required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif not is_nothing(unavailable) and not is_nothing(surge):
        why = "may not be set when maxUnavailable is non-zero"
        yield invalid(f"{field}.maxSurge", surge, why)


def check_revision(obj: Json) -> Causes:
    """A ControllerRevision."""
    if obj.get("data") is None:
        yield required("data", "data is mandatory")
    yield from check_at_least("revision", obj.get("revision"), 0)


def check_new_pod_template(obj: Json) -> Causes:
    """A PodTemplate."""
    yield from check_any_template("template", obj["template"])
    yield from check_pod_template("template", obj["template"])
