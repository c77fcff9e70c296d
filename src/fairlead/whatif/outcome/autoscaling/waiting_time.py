"""Times that pods waited for a node: median, 95th percentile and longest, in total and by workload.

A wait begins when the pod is created, or at the change if the pod is older. The wait ends when the
pod is bound. Pods of DaemonSets and static pods do not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.whatif.outcome.percentile import percentile
from fairlead.whatif.outcome.workload import WorkloadRef

WAITED_MIN: Final = seconds(60)
"""Shorter waits are not listed; unschedulable pods are retried after some seconds in any case."""


class PodWait(Struct, frozen=True):
    """A wait of a pod for a node."""

    pod: str  # if the waiting pod replaces another pod, the key of the replaced pod, else `key`
    workload: WorkloadRef
    since: Instant
    until: Instant | None  # None if the pod still waits
    group: str = ""  # the name of the pod's PodGroup, "" if the pod has none
    key: str = ""  # the key (`namespace/name`) of the pod that waits
    priority: int = 0


class WaitingTimes(Struct, frozen=True, kw_only=True):
    """The distribution of the waits that have ended.

    `bound` is the number of these waits, and `still_waiting` is the number of waits that have not
    ended. If no pod was bound, all times are 0, and `longest_pod` is "".
    """

    bound: int = 0
    still_waiting: int = 0
    median: DurationNs = 0
    p95: DurationNs = 0
    longest: DurationNs = 0
    longest_pod: str = ""


def waiting_times(waits: Iterable[PodWait]) -> WaitingTimes:
    """Return the distribution of `waits`."""
    found = list(waits)
    over = sorted((one.until - one.since, one.pod) for one in found if one.until is not None)
    if not over:
        return WaitingTimes(still_waiting=len(found))
    times = [time for time, _ in over]
    longest, pod = over[-1]
    return WaitingTimes(
        bound=len(over),
        still_waiting=len(found) - len(over),
        median=percentile(times, 50),
        p95=percentile(times, 95),
        longest=longest,
        longest_pod=pod,
    )


def waits_so_far(waits: Iterable[PodWait], end: Instant) -> list[DurationNs]:
    """Return the lengths of `waits`, ascending; a wait that is not over lasts until `end`.

    Pods with a negative priority are left out: they may wait, because they exist to give way.
    """
    return sorted(
        (end if one.until is None else one.until) - one.since for one in waits if one.priority >= 0
    )


def waiting_times_by_workload(
    waits: Iterable[PodWait],
) -> list[tuple[WorkloadRef, WaitingTimes]]:
    """Return the distribution of the waits of each workload whose pods had to wait.

    The workloads are sorted by the number of pods that still wait, then by their longest wait, both
    in descending order. The last sort key is the name.
    """
    groups: dict[WorkloadRef, list[PodWait]] = defaultdict(list)
    for one in waits:
        groups[one.workload].append(one)
    found = [(workload, waiting_times(group)) for workload, group in groups.items()]
    return sorted(
        (entry for entry in found if entry[1].longest or entry[1].still_waiting),
        key=lambda entry: (-entry[1].still_waiting, -entry[1].longest, str(entry[0])),
    )
