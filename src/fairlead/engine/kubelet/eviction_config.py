"""EvictionConfig: the thresholds at which a kubelet evicts pods, set by the kubelet's flags.

    --eviction-hard=memory.available<100Mi,nodefs.available<10%
    --eviction-soft=memory.available<500Mi --eviction-soft-grace-period=memory.available=1m30s

memory.available, nodefs.available (ephemeral storage) and pid.available are simulated. Thresholds
for the kubelet's other signals have no effect.

upstream: pkg/kubelet/eviction/helpers.go:ParseThresholdConfig,
pkg/kubelet/eviction/defaults_linux.go, pkg/kubelet/apis/config/v1beta1/defaults.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.nodes.kubelet_behaviour import Report
from fairlead.api.quantity import QuantityError, whole_value
from fairlead.api.timestamp import parse_duration
from fairlead.engine.core.instant import DurationNs, seconds

SYNC_PERIOD: Final = seconds(10)  # upstream: pkg/kubelet/kubelet.go:evictionMonitoringPeriod
PRESSURE_TRANSITION_DEFAULT: Final = seconds(300)
NOT_SIMULATED: Final = (
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "allocatableMemory.available",
)


class Signal(StrEnum):
    """The simulated eviction signals, in the order in which a kubelet handles them."""

    # upstream: pkg/kubelet/eviction/helpers.go:byEvictionPriority puts memory first
    MEMORY = "memory.available"
    NODEFS = "nodefs.available"
    PID = "pid.available"


RESOURCE_OF: Final[Mapping[Signal, str]] = {
    Signal.MEMORY: "memory",
    Signal.NODEFS: "ephemeral-storage",
    Signal.PID: "pids",
}
REPORT_OF: Final[Mapping[Signal, Report]] = {
    Signal.MEMORY: Report.MEMORY_PRESSURE,
    Signal.NODEFS: Report.DISK_PRESSURE,
    Signal.PID: Report.PID_PRESSURE,
}


class Threshold(Struct, frozen=True):
    """An eviction threshold, which is crossed while too little of a resource is available.

    If `share` is None, the limit is `amount`. Otherwise the limit is `share` times the node's
    capacity. `grace` is the time in ns for which the threshold must be crossed before pods are
    evicted. `grace` is 0 if the threshold is hard. `reclaim` (upstream: minimum reclaim) is the
    amount that must be available beyond the limit before a shortage ends. Amounts are numbers of
    bytes or of process ids.
    """

    signal: Signal
    amount: int = 0
    share: float | None = None
    grace: DurationNs = 0
    reclaim: int = 0

    def value(self, capacity: int) -> int:
        """Return the limit for a node with the capacity `capacity` (bytes or process ids)."""
        return self.amount if self.share is None else int(capacity * self.share)


class EvictionConfig(Struct, frozen=True, kw_only=True):
    """The kubelet's eviction thresholds and their delays.

    `pressure_transition` is the time in ns for which a pressure is still reported after it was last
    observed. `max_pod_grace_s` limits the grace period (in seconds) of a pod that is evicted
    because of a soft threshold.
    """

    thresholds: tuple[Threshold, ...] = (
        Threshold(Signal.MEMORY, amount=100 * 1024 * 1024),
        Threshold(Signal.NODEFS, share=0.1),
    )
    pressure_transition: DurationNs = PRESSURE_TRANSITION_DEFAULT
    max_pod_grace_s: int = 0


class EvictionFlagError(ValueError):
    """A kubelet eviction flag is unknown or has an invalid value."""

    def __init__(self, flag: str, problem: str) -> None:
        """`flag` is the name of the flag without the leading dashes."""
        super().__init__(f"--{flag}: {problem}")
        self.flag = flag
        self.problem = problem


FLAGS: Final = (
    "eviction-hard",
    "eviction-soft",
    "eviction-soft-grace-period",
    "eviction-minimum-reclaim",
    "eviction-pressure-transition-period",
    "eviction-max-pod-grace-period",
)


def eviction_of_flags(flags: Mapping[str, str]) -> EvictionConfig:
    """Return the default configuration, changed by `flags` (names without leading dashes).

    Raises EvictionFlagError if a flag is unknown or has an invalid value.
    """
    for name in flags:
        if name not in FLAGS:
            raise EvictionFlagError(name, f"is not one of {', '.join(FLAGS)}")
    return _config(flags)


def _config(flags: Mapping[str, str]) -> EvictionConfig:
    hard: tuple[Threshold, ...] = EvictionConfig().thresholds
    if "eviction-hard" in flags:
        hard = tuple(_thresholds(flags, "eviction-hard"))
    graces = dict(_durations(flags, "eviction-soft-grace-period"))
    soft = []
    for threshold in _thresholds(flags, "eviction-soft"):
        if threshold.signal not in graces:
            problem = f"{threshold.signal} needs a grace period in --eviction-soft-grace-period"
            raise EvictionFlagError("eviction-soft", problem)
        soft.append(replace(threshold, grace=graces[threshold.signal]))
    reclaims = dict(_amounts(flags, "eviction-minimum-reclaim"))
    thresholds = tuple(replace(t, reclaim=reclaims.get(t.signal, 0)) for t in (*hard, *soft))
    return EvictionConfig(
        thresholds=thresholds,
        pressure_transition=_duration(flags, "eviction-pressure-transition-period"),
        max_pod_grace_s=_seconds(flags, "eviction-max-pod-grace-period"),
    )


def _thresholds(flags: Mapping[str, str], flag: str) -> Iterator[Threshold]:
    for signal, value in _pairs(flags, flag, "<"):
        if value.endswith("%"):
            try:
                share = float(value[:-1]) / 100
            except ValueError as cause:
                raise EvictionFlagError(flag, str(cause)) from None
            if not 0 < share < 1:
                raise EvictionFlagError(flag, f"{value} is not between 0% and 100%")
            yield Threshold(signal, share=share)
        else:
            yield Threshold(signal, amount=_amount(flag, value))


def _amounts(flags: Mapping[str, str], flag: str) -> Iterator[tuple[Signal, int]]:
    for signal, value in _pairs(flags, flag, "="):
        yield signal, _amount(flag, value)


def _durations(flags: Mapping[str, str], flag: str) -> Iterator[tuple[Signal, DurationNs]]:
    for signal, value in _pairs(flags, flag, "="):
        try:
            duration = parse_duration(value)
        except ValueError as cause:
            raise EvictionFlagError(flag, str(cause)) from None
        if duration <= 0:
            raise EvictionFlagError(flag, f"{value} is not longer than 0s")
        yield signal, duration


def _pairs(flags: Mapping[str, str], flag: str, sign: str) -> Iterator[tuple[Signal, str]]:
    """Yield (signal, value) for each part `signal<sign>value` of the flag.

    Skips signals that are not simulated. Raises EvictionFlagError if a part has another form or
    names an unknown signal.
    """
    for part in flags.get(flag, "").split(",") if flags.get(flag) else ():
        name, found, value = part.strip().partition(sign)
        if not found or not value:
            raise EvictionFlagError(flag, f"{part.strip()!r} is not of the form signal{sign}value")
        if name in NOT_SIMULATED:
            continue
        if name not in set(Signal):
            known = ", ".join((*Signal, *NOT_SIMULATED))
            raise EvictionFlagError(flag, f"{name!r} is not a signal; known: {known}")
        yield Signal(name), value


def _amount(flag: str, value: str) -> int:
    try:
        amount = whole_value(value)
    except QuantityError as cause:
        raise EvictionFlagError(flag, str(cause)) from None
    if amount < 0:
        raise EvictionFlagError(flag, f"{value} is negative")
    return amount


def _duration(flags: Mapping[str, str], flag: str) -> DurationNs:
    if flag not in flags:
        return PRESSURE_TRANSITION_DEFAULT
    try:
        duration = parse_duration(flags[flag])
    except ValueError as cause:
        raise EvictionFlagError(flag, str(cause)) from None
    if duration < 0:
        raise EvictionFlagError(flag, f"{flags[flag]} is negative")
    return duration


def _seconds(flags: Mapping[str, str], flag: str) -> int:
    text = flags.get(flag, "0")
    if not text.isdecimal():
        raise EvictionFlagError(flag, f"{text!r} is not a number of seconds")
    return int(text)
