"""The condition EvictionInProgress: how many pods and devices a DeviceTaintRule affects.

The condition is written when the rule is created or its spec changes. When the eviction of a pod is
scheduled or done because of the rule, the condition is written again STATUS_PERIOD later. Apart
from writes after changes of the spec, the condition is written at most once per STATUS_PERIOD. If
the rule's taint has the effect "None", the condition contains the number of pods that the effect
NoExecute would evict.

upstream: pkg/controller/devicetainteviction/device_taint_eviction.go: maybeUpdateRuleStatus
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import DeviceTaintRule, DeviceTaintRuleCondition
from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.engine.core.command import ApplyStatus, ObjectRef
from fairlead.engine.core.instant import DurationNs, Instant, seconds

STATUS_PERIOD: Final[DurationNs] = seconds(10)
CONDITION: Final = "EvictionInProgress"
_ONCE: Final = (
    "if the effect was NoExecute. This information will not be updated again. Recreate the"
    " DeviceTaintRule to trigger an update."
)
_OTHER: Final = "Eviction only happens for the NoExecute effect."


class RuleEffect(Struct, frozen=True, kw_only=True):
    """The numbers of pods and devices that a rule affects."""

    pending_pods: int = 0  # pods that are still to be evicted
    pending_namespaces: int = 0  # the namespaces of `pending_pods`
    published_devices: int = 0  # devices in slices that the rule selects
    allocated_devices: int = 0  # devices that the rule selects and that are allocated to claims
    evicted_pods: int = 0  # pods already evicted


def status_due(rule: DeviceTaintRule, now: Instant) -> Instant | None:
    """Return the earliest time of the next status write; None if a write is allowed now."""
    known = _known(rule)
    if known is None or known.observed_generation != rule.metadata.generation:
        return None
    if not known.last_transition_time:
        return None
    due = parse_timestamp(known.last_transition_time) + STATUS_PERIOD
    return due if due > now else None


def status_update(
    rule: DeviceTaintRule, effect: RuleEffect, manager: str, now: Instant
) -> list[ApplyStatus]:
    """Return the status update by the field manager `manager`, [] if nothing changes."""
    status, reason, message = _content(rule.spec.taint.effect, effect)
    evicted = f"{_count(effect.evicted_pods, 'pod', 'pods')} evicted since starting the controller."
    wanted = DeviceTaintRuleCondition(
        type=CONDITION,
        status=status,
        reason=reason,
        message=" ".join(filter(None, (message, evicted if effect.evicted_pods else ""))),
        observed_generation=rule.metadata.generation,
    )
    known = _known(rule)
    if known is not None and replace(known, last_transition_time="") == wanted:
        return []
    condition = {
        "type": CONDITION,
        "status": wanted.status,
        "observedGeneration": wanted.observed_generation,
        "lastTransitionTime": format_timestamp(now),
        "reason": wanted.reason,
        "message": wanted.message,
    }
    target = ObjectRef("DeviceTaintRule", "", rule.metadata.name, rule.metadata.uid)
    return [ApplyStatus(target, {"conditions": [condition]}, manager)]


def _known(rule: DeviceTaintRule) -> DeviceTaintRuleCondition | None:
    return next((one for one in rule.status.conditions if one.type == CONDITION), None)


def _content(taint_effect: str, effect: RuleEffect) -> tuple[str, str, str]:
    """Return (status, reason, message) of the condition, without the number of evicted pods."""
    match taint_effect:
        case "NoExecute" if effect.pending_pods:
            verb = "needs" if effect.pending_pods == 1 else "need"
            where = _count(effect.pending_namespaces, "namespace", "different namespaces")
            pods = _count(effect.pending_pods, "pod", "pods")
            return "True", "PodsPendingEviction", f"{pods} {verb} to be evicted in {where}."
        case "NoExecute":
            return "False", "Completed" if effect.evicted_pods else "NotStarted", ""
        case "None":
            published = _count(effect.published_devices, "published device", "published devices")
            allocated = _count(effect.allocated_devices, "allocated device", "allocated devices")
            pods = _count(effect.pending_pods, "pod", "pods")
            where = _count(effect.pending_namespaces, "namespace", "different namespaces")
            would = (
                f"{published} selected. {allocated} selected. {pods} would be evicted in {where}"
            )
            return "False", "NoEffect", f"{would} {_ONCE}"
        case _:
            return "False", "OtherEffect", _OTHER


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
