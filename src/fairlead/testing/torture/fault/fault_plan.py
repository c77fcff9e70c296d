"""FaultPlan: decides which command gets which fault.

A fault depends on the seed, on the command's type and target, and on the number of earlier commands
of this type for the target. So most faults stay the same when a part of the scenario is removed.
Stable faults help to shrink a failing scenario.
"""

from __future__ import annotations

from collections import Counter
from typing import Final
from zlib import crc32

from fairlead.engine.core.command import (
    Bind,
    CallExtender,
    Command,
    DeleteCollection,
    EvictPod,
    ObjectRef,
    RecordEvent,
)
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.core.tie_break import splitmix64
from fairlead.testing.torture.scenario import Fault, FaultKind, TortureScenario

_REASONS: Final[tuple[FailureReason, ...]] = (
    FailureReason.INTERNAL_ERROR,
    FailureReason.TOO_MANY_REQUESTS,
)
# Commands that are never refused with a conflict. The server itself retries deletions and
# evictions after a conflict, and a Bind conflicts only with another Bind.
_WITHOUT_CONFLICTS: Final = ("Bind", "CreateObject", "DeleteObject", "EvictPod")
# The kinds of faults, with their weights. Killing the process is rare, because it costs the most
# time.
_WEIGHTS: Final = (
    (FaultKind.REFUSED, 30),
    (FaultKind.LATE, 20),
    (FaultKind.UNACKNOWLEDGED, 15),
    (FaultKind.SLOW_ANSWER, 10),
    (FaultKind.TWICE, 12),
    (FaultKind.TARGET_DELETED, 4),
    (FaultKind.TARGET_CHANGED, 7),
    (FaultKind.KILLED_BEFORE, 1),
    (FaultKind.KILLED_AFTER, 1),
)
_KINDS: Final = tuple(kind for kind, weight in _WEIGHTS for _ in range(weight))
_DELAYS_MS: Final = (0, 1, 40, 700, 3_000, 12_000)


class FaultPlan:
    """Chooses faults for commands; `injected` lists the chosen faults."""

    def __init__(self, scenario: TortureScenario) -> None:
        """Use the faults that `scenario` lists; if it has no list, draw faults from its seed."""
        listed = scenario.faults or ()
        self._listed = {(one.command, one.target, one.nth): one for one in listed}
        self._draws = scenario.faults is None
        self._seed = splitmix64(scenario.seed)
        self._every = scenario.fault_every
        self._seen: Counter[tuple[str, str]] = Counter()
        self.injected: list[Fault] = []

    def next_fault(self, command: Command) -> Fault | None:
        """Return the fault for `command`, which is about to be performed, or None for no fault."""
        if isinstance(command, RecordEvent):
            return None
        name, ref = type(command).__name__, target_of(command)
        target = f"{ref.kind} {ref.key}"
        self._seen[name, target] += 1
        nth = self._seen[name, target]
        fault = self._listed.get((name, target, nth))
        if self._draws:
            fault = self._drawn(name, target, nth)
        if fault is not None:
            self.injected.append(fault)
        return fault

    def _drawn(self, command: str, target: str, nth: int) -> Fault | None:
        key = crc32(f"{command} {target} {nth}".encode())
        number = splitmix64(self._seed ^ key)
        number, chosen = divmod(number, self._every)
        if chosen:
            return None
        number, index = divmod(number, len(_KINDS))
        kind = _KINDS[index]
        number, index = divmod(number, len(_DELAYS_MS))
        delay_ms = _DELAYS_MS[index] if kind in (FaultKind.LATE, FaultKind.SLOW_ANSWER) else 0
        reasons = _REASONS
        if command not in _WITHOUT_CONFLICTS:
            reasons = (*_REASONS, FailureReason.CONFLICT)
        reason = str(reasons[number % len(reasons)]) if kind is FaultKind.REFUSED else ""
        return Fault(
            command=command, target=target, nth=nth, kind=kind, reason=reason, delay_ms=delay_ms
        )


def target_of(command: Command) -> ObjectRef:
    """Return the object that `command` changes or concerns."""
    if isinstance(command, Bind | EvictPod | CallExtender):
        return command.pod
    if isinstance(command, DeleteCollection):
        return ObjectRef(command.kind or "Namespace", "", command.namespace)
    if isinstance(command, RecordEvent):
        return command.regarding
    return command.target
