"""LoopDetector: reports preemption loops, starving workloads and wasted nominations.

The detector reads the records that the controllers send to the reporter. For each finding, the
reporter gets an additional record, and the cluster gets a warning event.

A displacement is a preemption, or an eviction in favour of another pod. If one decision displaces
several pods of a workload, such as the members of a gang, these count as one displacement.
Displacements form a graph of workloads. An edge leads from the workload that displaced pods to the
workload whose pods were displaced. A cycle means wasted work. For example, a pod of A displaces a
pod of B. The pod that replaces the pod of B displaces a pod of A, and so on. A breadth-first search
finds the smallest cycle that a new displacement closes. A displacement within one workload closes
no cycle. For example, after the value of a PriorityClass was raised, new pods of a workload can
displace its old pods, which have a lower priority.

A workload is *starving* if it was displaced more than STARVING_AFTER times. The detector reports
starving workloads. If the pods of a starving workload have a negative priority, the cluster gets no
warning event about the workload.

A nomination is *wasted* if the pod does not use it. The detector reports a pod after WASTED_AFTER
wasted nominations in a row.

Memory is bounded: the oldest edges and counts are dropped first.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import ClassVar, Final, TypeVar

from msgspec import Struct

from fairlead.engine.core.command import Command, ObjectRef, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
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

_COMPONENT = "fairlead-loop-detector"
STARVING_AFTER = 5
WASTED_AFTER = 3
Key = TypeVar("Key")
Value = TypeVar("Value")

_EDGES_MAX: Final = 10_000
_COUNTS_MAX: Final = 10_000


class LoopDetector:
    """Detects preemption loops, starving workloads and wasted nominations.

    The class is both a Reporter and a Controller. As a Reporter, it gets all records and reports
    its findings as further records. As a Controller, it returns warning events about findings.
    """

    issuer: ClassVar[Issuer] = Issuer(Component.CONTROLLER_MANAGER)
    interest: ClassVar[Interest] = Interest(
        changed=(), deleted=(), succeeded=(), failed=(), keeps_deadline=False
    )

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._graph = DisplacementGraph(STARVING_AFTER)
        self._nominations = NominationHistory(WASTED_AFTER)
        self._warnings: list[Command] = []
        # Keyed by uid: a terminating pod can be the victim of several preemptors, but counts once.
        self._leaving: dict[str, None] = {}

    # --- Reporter --------------------------------------------------------------------------

    def report(self, record: Record) -> None:
        """Report `record`, then report the findings that result from it."""
        self._reporter.report(record)
        if type(record) is PodPreempting:
            self._displaced(record)
            times = self._nominations.nominated(record.pod.uid, record.node)
            self._wasted(record.pod, times, record.at)
        elif type(record) is PodPlaced:
            times = self._nominations.placed(record.pod.uid, record.node)
            self._wasted(record.pod, times, record.at)

    def _displaced(self, record: PodPreempting) -> None:
        # The first new victim of each workload, with its priority.
        first: dict[str, tuple[ObjectRef, int]] = {}
        for victim, workload, priority in zip(
            record.victims, record.victim_workloads, record.victim_priorities, strict=True
        ):
            if victim.uid not in self._leaving:
                self._leaving[victim.uid] = None
                _bound(self._leaving, _COUNTS_MAX)
                first.setdefault(workload, (victim, priority))
        for workload, (victim, priority) in first.items():
            found = self._graph.add(Displacement(record.workload, workload, record.rule, record.at))
            if found.cycle is not None:
                self._cycle(found.cycle, victim, record.at)
            if found.starving:
                starving = WorkloadStarving(
                    found.starving, found.displaced_times, victim, priority, record.at
                )
                self._starving(starving)

    def _cycle(self, cycle: Cycle, victim: ObjectRef, at: Instant) -> None:
        rules = tuple(displacement.rule for displacement in cycle.displacements)
        record = DisplacementCycle(cycle.workloads, rules, cycle.times, victim, at)
        self._reporter.report(record)
        self._warn(victim, "PreemptionLoop", cycle_text(record))

    def _starving(self, record: WorkloadStarving) -> None:
        self._reporter.report(record)
        if causes_warning(record):
            note = f"pods of {record.workload} have been displaced {record.times} times"
            self._warn(record.pod, "Starving", note)

    def _wasted(self, pod: ObjectRef, times: int, at: Instant) -> None:
        if not times:
            return
        record = NominationsWasted(pod, times, at)
        self._reporter.report(record)
        if causes_warning(record):
            note = f"nominated {times} times in a row, but never placed on the nominated node"
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
        """Return no commands: findings result from records (see `report`), not from stimuli."""
        return []

    def next_deadline(self) -> Instant | None:
        """Return 0, a time in the past, while there are warnings to record, otherwise None."""
        return 0 if self._warnings else None

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return the warnings, as commands that record events."""
        warnings, self._warnings = self._warnings, []
        return warnings


def causes_warning(record: WorkloadStarving | NominationsWasted) -> bool:
    """Return whether `record` is the 1st, 2nd, 4th, 8th, … record of its class about its subject.

    The subject of a record is the starving workload or the nominated pod. The result is True after
    6, 11, 21, 41, … displacements of a starving workload, and after 3, 6, 12, 24, … wasted
    nominations of a pod. The field `times` of the record contains this number.

    Warnings about every record would flood the cluster in two cases. First, preemptions can
    displace thousands of pods of a large workload, one after another. Second, if the API server
    forbids the eviction of a pod's victims, the pod can be nominated again and again without a
    pause.

    Pods with a negative priority cause no warning: they exist to give way to other pods.
    """
    match record:
        case WorkloadStarving(priority=priority) if priority < 0:
            return False
        case WorkloadStarving(times=times):
            number = (times - 1) // STARVING_AFTER
        case NominationsWasted(times=times):
            number = times // WASTED_AFTER
    return number & (number - 1) == 0


def cycle_text(cycle: DisplacementCycle) -> str:
    """Return the cycle as text, such as `A displaces B (rule), B displaces A (rule): 2 times`."""
    workloads = cycle.workloads
    following = (*workloads[1:], workloads[0])
    steps = (
        f"{by} displaces {victim} ({rule})"
        for by, victim, rule in zip(workloads, following, cycle.rules, strict=True)
    )
    times = "once" if cycle.times == 1 else f"{cycle.times} times"
    return f"{', '.join(steps)}: {times}"


class Displacement(Struct, frozen=True):
    """Workload `by` displaced workload `victim` at the time `at`.

    `rule` is the field `rule` of the record `PodPreempting`.
    """

    by: str
    victim: str
    rule: str
    at: Instant


class Cycle(Struct, frozen=True):
    """A chain of displacements that ends at the workload with which it starts.

    The newest displacement, which closes the cycle, is last.
    """

    displacements: tuple[Displacement, ...]
    times: int

    @property
    def workloads(self) -> tuple[str, ...]:
        """The workloads in the cycle, in order."""
        return tuple(displacement.by for displacement in self.displacements)


class Findings(Struct, frozen=True):
    """The findings after one displacement: a cycle that it closed, and a workload that starves.

    `cycle` is None and `starving` is "" if there is nothing to report.
    """

    cycle: Cycle | None = None
    starving: str = ""
    displaced_times: int = 0


class DisplacementGraph:
    """The displacements so far, as a graph of workloads."""

    def __init__(self, starving_after: int) -> None:
        """A workload starves if it was displaced more than `starving_after` times."""
        self._starving_after = starving_after
        self._edges: dict[tuple[str, str], Displacement] = {}
        self._gains: dict[str, dict[str, None]] = {}
        self._times: dict[str, int] = {}
        self._cycles: dict[tuple[str, ...], int] = {}

    def add(self, displacement: Displacement) -> Findings:
        """Record `displacement`; return the findings that result from it.

        A cycle is reported when it is closed for the first time, and each time that its number of
        repetitions has doubled. A starving workload is reported each time that its number of
        displacements exceeds a multiple of `starving_after`.
        """
        cycle = self._find_cycle(displacement)
        self._remember(displacement)
        times = self._times.pop(displacement.victim, 0) + 1
        self._times[displacement.victim] = times
        _bound(self._times, _COUNTS_MAX)
        starving = times > self._starving_after and times % self._starving_after == 1
        victim = displacement.victim if starving else ""
        return Findings(cycle, victim, times)

    def _remember(self, displacement: Displacement) -> None:
        key = (displacement.by, displacement.victim)
        self._edges.pop(key, None)
        self._edges[key] = displacement
        self._gains.setdefault(displacement.by, {})[displacement.victim] = None
        while len(self._edges) > _EDGES_MAX:
            by, victim = next(iter(self._edges))
            del self._edges[by, victim]
            del self._gains[by][victim]
            if not self._gains[by]:
                del self._gains[by]

    def _find_cycle(self, newest: Displacement) -> Cycle | None:
        if newest.by == newest.victim:
            return None
        path = self._path(newest.victim, newest.by)
        if path is None:
            return None
        edges = tuple(self._edges[a, b] for a, b in pairwise(path))
        around = (*edges, newest)
        key = _rotated(tuple(edge.by for edge in around))
        times = self._cycles.get(key, 0) + 1
        self._cycles[key] = times
        _bound(self._cycles, _COUNTS_MAX)
        return Cycle(around, times) if times & (times - 1) == 0 else None

    def _path(self, start: str, end: str) -> list[str] | None:
        """Return the workloads in the shortest chain of displacements from `start` to `end`.

        Returns None if there is no such chain.
        """
        came_from: dict[str, str] = {start: ""}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            if here == end:
                return _traced(came_from, end)
            for there in self._gains.get(here, ()):
                if there not in came_from:
                    came_from[there] = here
                    waiting.append(there)
        return None


def _traced(came_from: dict[str, str], end: str) -> list[str]:
    path = [end]
    while came_from[path[-1]]:
        path.append(came_from[path[-1]])
    return path[::-1]


def _rotated(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the workloads of a cycle, rotated so that the alphabetically first one leads."""
    first = names.index(min(names))
    return names[first:] + names[:first]


def _bound(remembered: dict[Key, Value], most: int) -> None:
    while len(remembered) > most:
        del remembered[next(iter(remembered))]


class NominationHistory:
    """Counts, for each pod, the successive nominations that the pod did not use."""

    def __init__(self, wasted_after: int) -> None:
        """Start without nominations.

        The number of successive nominations that a pod did not use is reported whenever it is a
        multiple of `wasted_after`.
        """
        self._wasted_after = wasted_after
        self._nominated_to: dict[str, str] = {}
        self._wasted: dict[str, int] = {}

    def nominated(self, pod: str, node: str) -> int:
        """Record the nomination of `pod` to `node`.

        If the pod was already nominated, the earlier nomination is wasted. Return the number of
        successive wasted nominations if this number is a multiple of `wasted_after` and must
        therefore be reported. Otherwise return 0.
        """
        before = self._nominated_to.pop(pod, "")
        self._nominated_to[pod] = node
        _bound(self._nominated_to, _COUNTS_MAX)
        return self._count(pod) if before else 0

    def placed(self, pod: str, node: str) -> int:
        """Record the placement of `pod` on `node`.

        If the pod was nominated to another node, the nomination is wasted. Return the number of
        successive wasted nominations if this number is a multiple of `wasted_after` and must
        therefore be reported. Otherwise return 0.
        """
        before = self._nominated_to.pop(pod, node)
        if before == node:
            self._wasted.pop(pod, None)
            return 0
        return self._count(pod)

    def _count(self, pod: str) -> int:
        times = self._wasted.pop(pod, 0) + 1
        self._wasted[pod] = times
        _bound(self._wasted, _COUNTS_MAX)
        return times if times % self._wasted_after == 0 else 0
