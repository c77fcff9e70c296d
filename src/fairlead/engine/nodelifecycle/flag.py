"""Parses kube-controller-manager's command-line flags for node lifecycle and pod GC.

    --node-monitor-grace-period=40s --feature-gates=TaintBasedEvictions=false

A flag is rejected if the Kubernetes version that the `VersionProfile` describes lacks this flag.

upstream: cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go, podgccontroller.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import nan
from typing import Any, Final

from msgspec import Struct

from fairlead.api.timestamp import parse_duration
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.profile import GATED_FIELDS, V1_36, VersionProfile, gated

FEATURE_GATES: Final = "feature-gates"
INT32_MAX: Final = 2**31 - 1
# The lowest accepted rate except 0: one node in 32 years. At much lower rates, the time between two
# tokens does not fit into a duration (rate.go: InfDuration).
_RATE_MIN: Final = 1e-9
FLOAT32_MAX: Final = float.fromhex("0x1.fffffep+127")


class FlagError(ValueError):
    """A flag of kube-controller-manager is unknown or has an invalid value."""

    def __init__(self, flag: str, problem: str) -> None:
        """`flag` is the name of the flag without dashes."""
        super().__init__(f"--{flag}: {problem}")
        self.flag = flag
        self.problem = problem


class _Flag(Struct, frozen=True):
    """The configuration field that a flag sets, and the parser of its value.

    `parse` raises ValueError for an invalid value. If `is_old` is set, the flag is accepted only if
    the profile's `has_pod_eviction` is set.
    """

    field: str
    parse: Callable[[str], Any]
    is_old: bool = False

    @property
    def is_duration(self) -> bool:
        """Whether the value is a duration in ns."""
        return self.parse in {_duration, _period}

    def value_in(self, config: NodeLifecycleConfig) -> Any:
        """Return the flag's value in `config`; if it is None, the default of the version."""
        value = getattr(config, self.field)
        # Only node_monitor_grace_period can be None; its default depends on the version.
        return config.monitor_grace if value is None else value


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
    rate = _number(text)
    if not 0 <= rate <= FLOAT32_MAX:
        raise ValueError(f"{text!r} is not a number of nodes per second, such as 0.1")
    if 0 < rate < _RATE_MIN:
        raise ValueError(f"{text!r} is neither 0 nor at least {_RATE_MIN:g} nodes per second")
    return rate


def _ratio(text: str) -> float:
    ratio = _number(text)
    if not 0 <= ratio <= 1:
        raise ValueError(f"{text!r} is not a number from 0 to 1, such as 0.55")
    return ratio


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


def _count(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an integer, such as 50") from None
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
    "unhealthy-zone-threshold": _Flag("unhealthy_zone_threshold", _ratio),
    "enable-taint-manager": _Flag("enable_taint_manager", _switch, is_old=True),
    "terminated-pod-gc-threshold": _Flag("terminated_pod_gc_threshold", _count),
}
# Feature gates of 1.16 that affect the node lifecycle controllers.
TAINT_BASED_EVICTIONS: Final = "TaintBasedEvictions"
GATES: Final = (TAINT_BASED_EVICTIONS, *GATED_FIELDS)


def config_of_flags(
    flags: Mapping[str, str], profile: VersionProfile = V1_36
) -> NodeLifecycleConfig:
    """Return the configuration that `flags` set, with defaults for the other options.

    `flags` maps names without leading dashes to values. Raises FlagError if a flag or feature gate
    is unknown in the version of `profile`, or if a value is invalid.
    """
    values = {
        _known(name).field: _parsed(name, text, profile)
        for name, text in flags.items()
        if name != FEATURE_GATES
    }
    gates = _gates(flags.get(FEATURE_GATES, ""), profile)
    tainting = gates.get(TAINT_BASED_EVICTIONS, True)
    return NodeLifecycleConfig(
        profile=gated(profile, gates), taint_based_evictions=tainting, **values
    )


def _known(name: str) -> _Flag:
    if name not in FLAGS:
        raise FlagError(name, f"is not one of {', '.join((*FLAGS, FEATURE_GATES))}")
    return FLAGS[name]


def _parsed(name: str, text: str, profile: VersionProfile) -> Any:
    flag = FLAGS[name]
    if flag.is_old and not profile.has_pod_eviction:
        raise FlagError(name, f"Kubernetes {profile.version} no longer has this flag")
    try:
        return flag.parse(text)
    except ValueError as cause:
        raise FlagError(name, str(cause)) from None


def _gates(text: str, profile: VersionProfile) -> dict[str, bool]:
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
