"""StartupTimes: how long the pods of each workload took to become ready, as a dump shows it.

A pod that is Ready took from the condition PodScheduled, or its creation, to the condition Ready.
The time of a workload is the median over its pods. Pods whose containers were restarted and times
over an hour are left out, because there the Ready condition changed later than at the start.

    scheduled 10:00:00, Ready 10:00:40 │ scheduled 10:00:05, Ready 10:00:47 │ ...    ->   41 s
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition, is_static, is_terminal, is_terminating
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import POD
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.kubelet.config import START_DELAY_DEFAULT
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.snapshot.manifest import Manifest

LONGEST: Final = seconds(3600)


@dataclass(frozen=True, slots=True)
class StartupTimes:
    """The startup time of each workload that has one; a function of a pod, for kubelets."""

    by_workload: Mapping[WorkloadRef, DurationNs] = field(default_factory=dict)

    def __call__(self, pod: Pod) -> DurationNs | None:
        """Return the time from binding until `pod` is ready, None if unknown."""
        return self.by_workload.get(workload_of(pod))

    @property
    def longest(self) -> DurationNs:
        """The longest time; 0 without any."""
        return max(self.by_workload.values(), default=0)

    @property
    def words(self) -> str:
        """Return the times as a sentence.

        "" if they are the kubelets' default or there are none.
        """
        times = sorted(self.by_workload.values())
        if self.longest <= START_DELAY_DEFAULT:
            return ""
        shortest, middle, longest = times[0], median_low(times), times[-1]
        span = for_readers(shortest)
        if shortest != longest:
            span = f"{span} to {for_readers(longest)}, median {for_readers(middle)}, by workload"
        return f"Pods become ready as long after they are scheduled as in the dump ({span})."


def startup_times(manifests: Iterable[Manifest]) -> StartupTimes:
    """Return the startup times that the pods among `manifests` show."""
    found: dict[WorkloadRef, list[DurationNs]] = defaultdict(list)
    for manifest in manifests:
        if manifest.kind is not POD:
            continue
        pod = manifest.pod
        took = _startup_time(pod)
        if took is not None:
            found[workload_of(pod)].append(took)
    return StartupTimes({ref: median_low(times) for ref, times in sorted(found.items())})


def _startup_time(pod: Pod) -> DurationNs | None:
    """Return how long `pod` took from being scheduled to Ready, None if it does not show."""
    if is_terminal(pod) or is_terminating(pod) or is_static(pod):
        return None
    if any(one.restart_count for one in pod.status.container_statuses):
        return None
    ready, scheduled = condition(pod, "Ready"), condition(pod, "PodScheduled")
    if ready is None or ready.status != "True" or not ready.last_transition_time:
        return None
    starts = (
        scheduled.last_transition_time if scheduled is not None else "",
        pod.metadata.creation_timestamp,
    )
    try:
        end = parse_timestamp(ready.last_transition_time)
        for text in starts:
            if text and (took := end - parse_timestamp(text)) >= 0:
                # timestamps are whole seconds
                return max(took, START_DELAY_DEFAULT) if took <= LONGEST else None
    except ValueError:
        pass  # a malformed timestamp is refused when the object is loaded
    return None
