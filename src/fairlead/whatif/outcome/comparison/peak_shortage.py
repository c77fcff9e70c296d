"""Finds workloads that lack ready pods while an autoscaler wants more pods than at the end.

For example, a HorizontalPodAutoscaler wants ten pods at the peak of a load, and three at the end.
If four pods are lost at the peak, there are always at least three ready pods, but too few for the
peak. So this module compares the ready pods with the number that is wanted at the same instant.

    load rises    wanted 3 -> 10,  ready 3 -> 10    no shortage while the new pods start
    node fails    wanted 10,       ready 10 -> 6    shortage: 6 of 10
    load rises    wanted 10 -> 20, ready 6 -> 16    shortage: 16 of 20, also while 10 new pods start
    load falls    wanted 20 -> 3,  ready 16 -> 3    no shortage

There is a shortage if fewer pods are ready than earlier, or if pods wait for a node. New pods that
have a node are only starting, so they are not a shortage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from msgspec import Struct

from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import LONGER, ReplicaChange
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.outcome.workload import WorkloadRef


class Level(Struct, frozen=True):
    """Numbers of pods at an instant: `wanted` pods, of which `ready` are ready or starting."""

    ready: int
    wanted: int


def peak_shortages(
    effect: Effect, is_short: Callable[[Level], bool]
) -> Iterator[tuple[WorkloadRef, Level]]:
    """Yield (workload, worst level) for each workload that is short of pods because of the change.

    The levels for which `is_short` is true last longer in total with the change than without it, by
    at least `LONGER`. Only workloads that a HorizontalPodAutoscaler scales during the run are
    considered.
    """
    before = _shortages(effect.without)
    for workload, levels in sorted(_shortages(effect.changed).items()):
        short = [level for level in levels if is_short(level)]
        known = before.get(workload, {})
        lasted = sum(levels[level] for level in short)
        lasted -= sum(time for level, time in known.items() if is_short(level))
        if lasted >= LONGER:
            yield workload, min(short, key=lambda one: (one.ready / one.wanted, one.ready))


def _shortages(run: RunOutcome) -> dict[WorkloadRef, Mapping[Level, DurationNs]]:
    """Return, for each autoscaled workload, the levels during its shortages.

    Each level is mapped to its total time. A workload is left out if no autoscaler changes its
    number of replicas.
    """
    return {
        one.workload: _levels(run, one.workload, one.changes)
        for one in run.pod_autoscalers
        if one.changes and one.workload in run.workloads
    }


def _levels(
    run: RunOutcome, workload: WorkloadRef, changes: tuple[ReplicaChange, ...]
) -> Mapping[Level, DurationNs]:
    ready_at = dict(run.workloads[workload].history)
    wanted_at = {one.at: one.after for one in changes}
    waiting_at = _waiting_changes(run, workload)
    found: Counter[Level] = Counter()
    ready = highest = run.workloads[workload].before
    wanted, waiting = changes[0].before, 0
    instants = sorted({run.started_at, *ready_at, *wanted_at, *waiting_at, run.ended_at})
    for at, until in pairwise(instants):
        ready, wanted = ready_at.get(at, ready), wanted_at.get(at, wanted)
        waiting += waiting_at[at]
        # After a scale-down, the pods that a later scale-up adds count as new, not as lost.
        highest = min(max(highest, ready), wanted)
        # Of the missing pods, those that wait or were ready earlier are short. They may be the same
        # pods: a failed pod's replacement can wait. The others are starting, and count as ready.
        available = max(ready, wanted - max(highest - ready, waiting))
        if available < wanted:
            found[Level(available, wanted)] += until - at
    return found


def _waiting_changes(run: RunOutcome, workload: WorkloadRef) -> Counter[Instant]:
    """Return, by instant, the change of the number of pods of `workload` that wait for a node."""
    found: Counter[Instant] = Counter()
    waits = [(one.since, one.until) for one in run.waits if one.workload == workload]
    waits += [
        (one.pod.since, one.at)
        for one in run.deleted_after_wait
        if one.pod.workload == workload and not one.pod.node
    ]
    for since, until in waits:
        found[max(since, run.started_at)] += 1
        found[run.ended_at if until is None else until] -= 1
    return found
