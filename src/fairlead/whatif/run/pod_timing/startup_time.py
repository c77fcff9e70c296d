"""StartupTimes: the times that the pods of each workload took to become ready, from a dump.

The startup time of a Ready pod is the time from the condition PodScheduled to the condition Ready.
If the condition PodScheduled is missing, the startup time begins at the pod's creation. The startup
time is at least `SHORTEST`. The startup time of a workload is the median over its pods. Pods with
restarted containers and pods with a time over an hour are left out, because their condition Ready
has probably changed since their start.

    scheduled 10:00:00, Ready 10:00:40 │ scheduled 10:00:05, Ready 10:00:47 │ ...    ->   41 s
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition, is_static, is_terminal, is_terminating
from fairlead.api.text.count import counted
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.dump.replicas import DumpedReplicas
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.kubelet.config import START_DELAY_DEFAULT
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.snapshot.manifest import Manifest, ReplicaManifests, entries_of

LONGEST: Final = seconds(3600)
# Timestamps have whole seconds, so a pod whose times are equal took up to one second.
SHORTEST: Final = seconds(1)


class StartupTimes(Struct, frozen=True):
    """The startup times of workloads.

    The object is used as `KubeletConfig.start_delays`, which kubelets call like a function.

    The kubelets use the startup time of a pod as its start delay (the time until it is Running).
    The time from Running to Ready is 0, unless an annotation of the pod sets it.
    """

    by_workload: Mapping[WorkloadRef, DurationNs] = field(default_factory=dict)

    def __call__(self, pod: Pod) -> DurationNs | None:
        """Return the time from the binding of `pod` until it is ready; None if unknown."""
        return self.by_workload.get(workload_of(pod))

    @property
    def longest(self) -> DurationNs:
        """The longest startup time; 0 if there is none."""
        return max(self.by_workload.values(), default=0)

    @property
    def words(self) -> str:
        """A sentence about all times; "" if no time is longer than the kubelets' default."""
        if self.longest <= START_DELAY_DEFAULT:
            return ""
        span = _span(sorted(self.by_workload.values()))
        return f"Pods become ready {span} after they are scheduled, as in the dump."

    def words_for(self, started: Collection[WorkloadRef], *, has_stages: bool = False) -> str:
        """Return a sentence about the startup times of the workloads `started`; "" if none started.

        If `has_stages` is set, KWOK Stages determine the times of the pods that they select.
        """
        pods = "Pods that no Stage selects" if has_stages else "Pods"
        times = sorted(self.by_workload[ref] for ref in started if ref in self.by_workload)
        assumed = sorted(ref for ref in started if ref not in self.by_workload)
        if not times and not assumed:
            return ""
        default, whose, rest = for_readers(START_DELAY_DEFAULT), "", len(assumed) - 1
        if assumed:
            more = f" and {counted(rest, 'more workload')}" if rest else ""
            whose = f"{assumed[0]}{more}"
        if not times:
            return (
                f"{pods} are assumed to become ready {default} after they are scheduled, because "
                f"the dump shows no startup times of {whose} (--startup-time)."
            )
        what = f"{pods} become ready {_span(times)} after they are scheduled, as in the dump"
        if assumed:
            what += f"; {default} is assumed for {whose}"
        return f"{what} (--startup-time)."


NO_TIMES: Final = StartupTimes()


def _span(times: Sequence[DurationNs]) -> str:
    """Return the range and the median of the sorted `times` as text."""
    shortest, middle, longest = times[0], _low_median(times), times[-1]
    if shortest == longest:
        return for_readers(shortest)
    return f"{for_readers(shortest)} to {for_readers(longest)} (median {for_readers(middle)})"


def _low_median(times: Sequence[DurationNs]) -> DurationNs:
    """Return the median of the sorted `times`; of two middle values, return the lower value."""
    return times[(len(times) - 1) // 2]


def startup_times(manifests: Iterable[Manifest]) -> StartupTimes:
    """Return the startup times that the pods among `manifests` show."""
    found: dict[WorkloadRef, list[DurationNs]] = defaultdict(list)
    before: Manifest | None = None
    # the times of the workload of `before`; None if `before` shows no time
    times: list[DurationNs] | None = None
    for entry in entries_of(manifests):
        if isinstance(entry, ReplicaManifests):
            before, first = None, entry.replicas[0]
            if _shows_time(first):
                found[workload_of(first)] += _times_of(entry.replicas)
            continue
        if entry.kind is not POD:
            continue
        pod = entry.pod
        if before is None or not entry.is_replica_of(before):
            before, times = entry, found[workload_of(pod)] if _shows_time(pod) else None
        if times is not None and (took := _startup_time(*_texts_of(pod))) is not None:
            times.append(took)
    found = {ref: times for ref, times in found.items() if times}
    return StartupTimes({ref: _low_median(sorted(times)) for ref, times in sorted(found.items())})


def _times_of(replicas: DumpedReplicas) -> list[DurationNs]:
    """Return the known startup times of `replicas`, computed from its columns."""
    types = [one.type for one in replicas[0].status.conditions]
    ready, scheduled = (
        replicas.column("status", "conditions", types.index(one), "last_transition_time")
        if one in types
        else repeat("", len(replicas))
        for one in ("Ready", "PodScheduled")
    )
    found: list[DurationNs] = []
    texts = zip(ready, scheduled, replicas.created, strict=True)
    for some, count in Counter(texts).items():
        if (took := _startup_time(*some)) is not None:
            found += [took] * count
    return found


def _shows_time(pod: Pod) -> bool:
    """Return whether the conditions of `pod` show how long its start took.

    The pod must be Ready, and its containers must not have been restarted. Static, terminating and
    completed pods do not count. The result is the same for all pods of one `Replicas` object.
    """
    if is_terminal(pod) or is_terminating(pod) or is_static(pod):
        return False
    if any(one.restart_count for one in pod.status.container_statuses):
        return False
    ready = condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def _texts_of(pod: Pod) -> tuple[str, str, str]:
    """Return the times of the readiness, scheduling and creation of `pod`; "" if unknown."""
    ready, scheduled = condition(pod, "Ready"), condition(pod, "PodScheduled")
    return (
        "" if ready is None else ready.last_transition_time,
        "" if scheduled is None else scheduled.last_transition_time,
        pod.metadata.creation_timestamp,
    )


def _startup_time(ready: str, scheduled: str, created: str) -> DurationNs | None:
    """Return the time from the scheduling of a pod until it was Ready.

    The time counts from the creation of the pod if the time of scheduling is unknown or later than
    `ready`. Return None if the result is unknown or exceeds `LONGEST`.
    """
    if not ready:
        return None
    try:
        end = parse_timestamp(ready)
        for text in (scheduled, created):
            if text and (took := end - parse_timestamp(text)) >= 0:
                return max(took, SHORTEST) if took <= LONGEST else None
    except ValueError:
        pass  # a malformed timestamp is refused when the object is loaded
    return None
