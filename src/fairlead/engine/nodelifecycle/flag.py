"""Options by the names and in the forms of kube-controller-manager's flags.

    --node-monitor-grace-period=40s --feature-gates=TaintBasedEvictions=false

A flag that the version of the profile does not have is refused, as that version would.

upstream: cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go, podgccontroller.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.api.timestamp import parse_duration
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.profile import V1_36, Profile

FEATURE_GATES: Final = "feature-gates"
INT32_MAX: Final = 2**31 - 1
FLOAT32_MAX: Final = float.fromhex("0x1.fffffep+127")


class FlagError(ValueError):
    """A flag that there is not, or whose value is none; carries the evidence."""

    def __init__(self, flag: str, problem: str) -> None:
        """`flag` is a name without dashes."""
        super().__init__(f"--{flag}: {problem}")
        self.flag = flag
        self.problem = problem


@dataclass(frozen=True, slots=True)
class _Flag:
    """`parse` raises ValueError for what is no value; `is_old`: there only beside pod eviction."""

    field: str
    parse: Callable[[str], Any]
    is_old: bool = False


def _duration(text: str) -> int:
    duration = parse_duration(text)
    if duration < 0:
        raise ValueError(f"{text} is negative")
    return duration


def _period(text: str) -> int:
    duration = _duration(text)
    if duration == 0:
        raise ValueError("must be longer than 0")
    return duration


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 <= rate <= FLOAT32_MAX:
        raise ValueError(f"{text} is no number of nodes per second")
    return rate


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise ValueError(f"{text} is not from 0 to 1")
    return share


def _count(text: str) -> int:
    count = int(text)
    if not -INT32_MAX <= count <= INT32_MAX:
        raise ValueError(f"{text} does not fit 32 bits")
    return count


def _switch(text: str) -> bool:
    values = {"true": True, "false": False}
    if text.lower() not in values:
        raise ValueError(f"{text!r} is neither true nor false")
    return values[text.lower()]


FLAGS: Final[Mapping[str, _Flag]] = {
    "node-monitor-period": _Flag("node_monitor_period", _period),
    "node-startup-grace-period": _Flag("node_startup_grace_period", _duration),
    "node-monitor-grace-period": _Flag("node_monitor_grace_period", _duration),
    "pod-eviction-timeout": _Flag("pod_eviction_timeout", _duration, is_old=True),
    "node-eviction-rate": _Flag("node_eviction_rate", _rate),
    "secondary-node-eviction-rate": _Flag("secondary_node_eviction_rate", _rate),
    "large-cluster-size-threshold": _Flag("large_cluster_size_threshold", _count),
    "unhealthy-zone-threshold": _Flag("unhealthy_zone_threshold", _share),
    "enable-taint-manager": _Flag("enable_taint_manager", _switch, is_old=True),
    "terminated-pod-gc-threshold": _Flag("terminated_pod_gc_threshold", _count),
}
# The gates of 1.16 that change what happens here, all of them settled long ago.
GATES: Final = ("TaintBasedEvictions", "NodeDisruptionExclusion", "LegacyNodeRoleBehavior")


def config_of_flags(flags: Mapping[str, str], profile: Profile = V1_36) -> NodeLifecycleConfig:
    """The configuration that `flags` (names without dashes) ask for, over the defaults.

    Raises FlagError.
    """
    values = {
        _known(name).field: _parsed(name, text, profile)
        for name, text in flags.items()
        if name != FEATURE_GATES
    }
    gates = _gates(flags.get(FEATURE_GATES, ""), profile)
    profile = replace(
        profile,
        excludes_labelled=gates.get("NodeDisruptionExclusion", profile.excludes_labelled),
        excludes_masters=gates.get("LegacyNodeRoleBehavior", profile.excludes_masters),
    )
    tainting = gates.get("TaintBasedEvictions", True)
    return NodeLifecycleConfig(profile=profile, taint_based_evictions=tainting, **values)


def _known(name: str) -> _Flag:
    if name not in FLAGS:
        raise FlagError(name, f"is none of {', '.join((*FLAGS, FEATURE_GATES))}")
    return FLAGS[name]


def _parsed(name: str, text: str, profile: Profile) -> Any:
    flag = FLAGS[name]
    if flag.is_old and not profile.has_pod_eviction:
        raise FlagError(name, f"Kubernetes {profile.version} no longer has this flag")
    try:
        return flag.parse(text)
    except ValueError as cause:
        raise FlagError(name, str(cause)) from None


def _gates(text: str, profile: Profile) -> dict[str, bool]:
    gates: dict[str, bool] = {}
    for entry in filter(None, text.split(",")):
        name, _, value = entry.partition("=")
        if name not in GATES or not profile.has_pod_eviction:
            raise FlagError(FEATURE_GATES, f"{name} changes nothing that is simulated")
        try:
            gates[name] = _switch(value)
        except ValueError as cause:
            raise FlagError(FEATURE_GATES, f"{name}: {cause}") from None
    return gates
