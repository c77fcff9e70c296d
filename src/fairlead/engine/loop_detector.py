"""LoopDetector: reports preemption loops, starving workloads and wasted nominations.

It stands between the controllers and the reporter and reads their records. Each finding becomes a
record of its own and a warning event, so that a long-running cluster shows it too.
"""

from __future__ import annotations

from typing import ClassVar

from fairlead.engine.core.command import Command, ObjectRef, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Component, Issuer
from fairlead.engine.core.reporter import (
    DisplacementCycle,
    NominationsWasted,
    PodPlaced,
    PodPreempting,
    Record,
    Reporter,
    WorkloadStarving,
)
from fairlead.engine.core.stimulus import Stimulus
from fairlead.engine.framework.preemption.recurrence import (
    Cycle,
    Displacement,
    DisplacementGraph,
    NominationLedger,
)

_COMPONENT = "fairlead-loop-watch"
STARVING_AFTER = 5
WASTED_AFTER = 3


class LoopDetector:
    """A Reporter that collects findings, and a Controller that records them as events."""

    issuer: ClassVar[Issuer] = Issuer(Component.CONTROLLER_MANAGER)

    def __init__(self, reporter: Reporter) -> None:
        """Pass all records and findings on to `reporter`."""
        self._reporter = reporter
        self._graph = DisplacementGraph(STARVING_AFTER)
        self._ledger = NominationLedger(WASTED_AFTER)
        self._warnings: list[Command] = []

    # --- Reporter --------------------------------------------------------------------------

    def report(self, record: Record) -> None:
        """Pass `record` on, followed by the findings it leads to."""
        self._reporter.report(record)
        match record:
            case PodPreempting():
                self._displaced(record)
                self._wasted(
                    record.pod, self._ledger.promised(record.pod.uid, record.node), record.at
                )
            case PodPlaced():
                self._wasted(
                    record.pod, self._ledger.placed(record.pod.uid, record.node), record.at
                )
            case _:
                pass

    def _displaced(self, record: PodPreempting) -> None:
        victims = zip(record.victims, record.victim_workloads, strict=True)
        for victim, workload in victims:
            found = self._graph.add(Displacement(record.workload, workload, record.rule, record.at))
            if found.cycle is not None:
                self._cycle(found.cycle, victim, record.at)
            if found.starving:
                self._starving(found.starving, found.displaced_times, victim, record.at)

    def _cycle(self, cycle: Cycle, victim: ObjectRef, at: Instant) -> None:
        rules = tuple(displacement.rule for displacement in cycle.displacements)
        record = DisplacementCycle(cycle.workloads, rules, cycle.times, victim, at)
        self._reporter.report(record)
        self._warn(victim, "PreemptionLoop", cycle_text(record))

    def _starving(self, workload: str, times: int, victim: ObjectRef, at: Instant) -> None:
        self._reporter.report(WorkloadStarving(workload, times, victim, at))
        self._warn(victim, "Starving", f"pods of {workload} have been displaced {times} times")

    def _wasted(self, pod: ObjectRef, times: int, at: Instant) -> None:
        if times:
            self._reporter.report(NominationsWasted(pod, times, at))
            note = f"room was made for this pod {times} times in a row and never used"
            self._warn(pod, "NominationsWasted", note)

    def _warn(self, regarding: ObjectRef, reason: str, note: str) -> None:
        self._warnings.append(
            RecordEvent(
                regarding=regarding,
                type="Warning",
                reason=reason,
                action="Watching",
                note=note,
                reporting_controller=_COMPONENT,
            )
        )

    # --- Controller ------------------------------------------------------------------------

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Nothing: findings come from records, not from stimuli."""
        return []

    def next_deadline(self) -> Instant | None:
        """At once while there are warnings."""
        return 0 if self._warnings else None

    def handle_deadline(self, now: Instant) -> list[Command]:
        """The warnings."""
        warnings, self._warnings = self._warnings, []
        return warnings


def cycle_text(cycle: DisplacementCycle) -> str:
    """`A pushes out B (rule), B pushes out A (rule): 2 times`."""
    workloads = cycle.workloads
    following = (*workloads[1:], workloads[0])
    steps = (
        f"{by} pushes out {victim} ({rule})"
        for by, victim, rule in zip(workloads, following, cycle.rules, strict=True)
    )
    times = "once" if cycle.times == 1 else f"{cycle.times} times"
    return f"{', '.join(steps)}: {times}"
