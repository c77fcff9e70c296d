"""RejectionRecorder: pods that kubelets reject and controllers create again.

A kubelet rejects a pod that does not fit its node (`engine.kubelet.pod_admission`). The scheduler's
configuration can disable a filter that the kubelet also checks. Then the replacement of the pod can
get the same node and be rejected, too. This can repeat without end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.api.pods.original import original_key
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import JOB
from fairlead.engine.core.instant import Instant
from fairlead.engine.kubelet.pod_admission import is_rejection
from fairlead.whatif.outcome.eviction import EVICTIONS_MAX
from fairlead.whatif.outcome.run_outcome import FAILED, REJECTIONS, Recurrence
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of


class _Rejection(Struct, frozen=True):
    at: Instant
    pod: str  # the original key
    node: str


class RejectionRecorder(Struct):
    """The rejections of a run, by workload and reason (such as OutOfcpu)."""

    _found: dict[tuple[WorkloadRef, str], list[_Rejection]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def observe_failed(self, pod: Pod, now: Instant) -> None:
        """Record `pod`, which failed at `now`, if a kubelet rejected it."""
        if pod.status.phase == FAILED and is_rejection(pod.status.reason):
            rejection = _Rejection(now, original_key(pod), pod.spec.node_name)
            self._found[workload_of(pod), pod.status.reason].append(rejection)

    def loops(self, since: Instant) -> Iterator[Recurrence]:
        """Yield a Recurrence for each (workload, reason) with repeated rejections from `since` on.

        Rejections are repeated if more than EVICTIONS_MAX of them concern the same pod or its
        replacements. Jobs are left out, because a Job fails after some rejections (backoffLimit).
        """
        for (workload, reason), all_found in self._found.items():
            if workload.kind == JOB.kind:
                continue
            found = [one for one in all_found if one.at >= since]
            times = Counter(one.pod for one in found)
            pods = {pod for pod, count in times.items() if count > EVICTIONS_MAX}
            if not pods:
                continue
            nodes = sorted({one.node for one in found if one.pod in pods})
            kubelets = f"the kubelet of {nodes[0]} refuses"
            if len(nodes) > 1:
                kubelets = f"the kubelets of {listed(nodes)} refuse"
            again = "it is" if len(pods) == 1 else "they are"
            message = (
                f"{kubelets} {counted(len(pods), 'pod')} of {workload} ({reason}), and {again} "
                "created again"
            )
            yield Recurrence(REJECTIONS, message, found[0].at, workload)
