"""Notes about pods that may be added to a cluster later; the search for nodes ignores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.api.objects import ApiObject, CronJob, HorizontalPodAutoscaler
from fairlead.api.text.count import counted


def later_pod_notes(objects: Iterable[ApiObject]) -> Iterator[str]:
    """Yield a note about the pods that HorizontalPodAutoscalers and CronJobs may add later.

    `objects` are the objects of the cluster. CronJobs that are suspended, or that run a Job now, do
    not count.
    """
    growing, added, idle = 0, 0, 0
    for one in objects:
        if isinstance(one, HorizontalPodAutoscaler):
            now = one.status.get("currentReplicas", one.spec.min_replicas)
            growing += one.spec.max_replicas > now
            added += max(0, one.spec.max_replicas - now)
        elif isinstance(one, CronJob):
            idle += not (one.spec.suspend or one.status.get("active"))
    parts = []
    if growing:
        can = f"{counted(growing, 'HorizontalPodAutoscaler')} can add {counted(added, 'pod')}"
        parts.append(f"{can} (maxReplicas)")
    if idle:
        parts.append(f"{counted(idle, 'CronJob')} {'runs' if idle == 1 else 'run'} no pod now")
    if parts:
        yield (
            f"The nodes have room for the pods of this moment: {', and '.join(parts)}. "
            "--headroom leaves room for more."
        )
