"""Finds the time at which the cluster came to rest, and the activity until then.

Only the run without the change is examined.

A cluster is at rest when no pod of its workloads starts, moves or ends any more. Pods of Jobs and
pods without a controller are ignored, because they can start and end at any time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.whatif.outcome.rest import AT_REST, Rest, WorkloadActivity
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.run.recorders.workload_recorder import PodTransition, Step

# The steps begin this long after the last transition, so that the two are not at the same instant.
PAUSE: Final = seconds(1)


def rest_of(
    transitions: Iterable[PodTransition],
    start: Instant,
    end: Instant,
    gap: DurationNs,
    *,
    settled: bool,
) -> Rest:
    """Return the time at which the cluster came to rest, and the activities until then.

    The cluster comes to rest at the first pause that is longer than `gap`. A pause is a time
    without transitions of pods. Pods that can end by themselves, such as pods of Jobs, are ignored.
    The last pause lasts until the run ends, at `end`. `settled` is True if the run ended because
    nothing changed any more. Such a run is at rest after its last transition, even if no pause was
    long enough.
    """
    episode: list[PodTransition] = []
    last = start
    for one in transitions:
        if not one.workload.is_permanent:
            continue
        if one.at - last > gap:
            is_over = True
            break
        episode.append(one)
        last = one.at
    else:
        is_over = settled or end - last > gap
    if not episode:
        return AT_REST
    after = last - start + PAUSE if is_over else None
    return Rest(after=after, activities=tuple(_activities(episode)))


def _activities(episode: Iterable[PodTransition]) -> list[WorkloadActivity]:
    steps: dict[WorkloadRef, Counter[Step]] = defaultdict(Counter)
    created: dict[WorkloadRef, set[str]] = defaultdict(set)
    left: dict[WorkloadRef, set[str]] = defaultdict(set)
    for one in episode:
        steps[one.workload][one.step] += 1
        if one.step in (Step.CREATED, Step.READY):
            created[one.workload].add(one.revision)
        elif one.step is Step.LEFT:
            left[one.workload].add(one.revision)
    return [
        WorkloadActivity(
            workload=ref,
            created=steps[ref][Step.CREATED],
            deleted=steps[ref][Step.LEFT],
            started=steps[ref][Step.READY],
            is_rollout=bool(left[ref] - created[ref]) and bool(created[ref]),
        )
        for ref in sorted(steps)
    ]
