"""Notes about pods that may be added to a cluster later; the search for nodes ignores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead.api.objects import ApiObject, CronJob, HorizontalPodAutoscaler
from fairlead.api.pods.facts import controller_of
from fairlead.api.text.count import counted
from fairlead.engine.workloads.horizontal_pod_autoscaler.scale_target import (
    ScaleError,
    ScaleTargets,
    is_scale_target,
)


def later_pod_notes(objects: Iterable[ApiObject]) -> Iterator[str]:
    """Yield a note about the pods that HorizontalPodAutoscalers and CronJobs may add later.

    `objects` are the objects of the cluster. CronJobs that are suspended, or that run a Job now, do
    not count.
    """
    objects = list(objects)
    targets = ScaleTargets()
    for one in objects:
        if is_scale_target(one):
            targets.observe(one)
    growing, added, idle = 0, 0, 0
    for one in objects:
        if isinstance(one, HorizontalPodAutoscaler):
            more = _added_later(one, targets)
            growing += more > 0
            added += more
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


def _added_later(autoscaler: HorizontalPodAutoscaler, targets: ScaleTargets) -> int:
    """Return the number of pods that `autoscaler` can add to its target.

    The status of the autoscaler states the replicas of a target that `targets` does not contain,
    such as a custom resource. An autoscaler whose target has 0 replicas is off if its minReplicas
    is more than 0. The result is then 0. But if another object controls the autoscaler, the
    autoscaler is not considered off: a ScaledObject of KEDA scales the target from 0.

    upstream: pkg/controller/podautoscaler/horizontal.go: reconcileAutoscaler (ScalingDisabled)
    """
    spec = autoscaler.spec
    try:
        now = targets.find(spec.scale_target_ref, autoscaler.metadata.namespace).replicas
    except ScaleError:
        now = autoscaler.status.get("currentReplicas", spec.min_replicas)
    if not now and spec.min_replicas and controller_of(autoscaler.metadata) is None:
        return 0
    return max(0, spec.max_replicas - now)
