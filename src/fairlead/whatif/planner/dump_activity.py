"""Activity in progress when a dump was taken: rollouts, starting pods and due evictions.

During a rollout, and for a few seconds after a pod has moved, a workload has fewer ready pods than
at rest. So the budget of the workload may now refuse evictions which it will allow soon.

Activity that has lasted for longer than ten minutes does not count. For example, a pod may wait for
a volume that cannot be mounted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.nodes.taint import NO_EXECUTE
from fairlead.api.objects import DaemonSet, Deployment, Pod, StatefulSet
from fairlead.api.pods.facts import condition, is_static
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.kubelet.pod_lifecycle import fails_to_start
from fairlead.engine.nodelifecycle.eviction.taint_eviction import ENDLESS, tolerated_s
from fairlead.engine.nodelifecycle.well_known import NOT_READY, UNREACHABLE
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.whatif.outcome.workload import WorkloadRef, revision_of, workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node.readiness import takes_pods

# upstream: pkg/apis/apps/v1/defaults.go: SetDefaults_Deployment. After this time without progress,
# the Deployment controller says that a rollout does not progress.
_RECENT: Final = seconds(600)
_ROLLING: Final = "RollingUpdate"


class DumpActivity(Struct, frozen=True):
    """The activity in progress in a dump.

    `rollouts` are the workloads whose rollouts are in progress. `starting` are the starting pods of
    all other workloads.
    """

    rollouts: Sequence[WorkloadRef]
    starting: Sequence[Pod]

    def __bool__(self) -> bool:
        """Return whether there is any activity."""
        return bool(self.rollouts or self.starting)

    def of(self, workloads: Container[WorkloadRef]) -> DumpActivity:
        """Return the activity of `workloads` only."""
        return DumpActivity(
            [ref for ref in self.rollouts if ref in workloads],
            [pod for pod in self.starting if workload_of(pod) in workloads],
        )


def activity_of(model: ClusterModel) -> DumpActivity:
    """Return the rollouts and the starting pods of `model`."""
    rollouts = rollouts_in_progress(model)
    starting = [pod for pod in _starting_pods(model) if workload_of(pod) not in rollouts]
    return DumpActivity(rollouts, starting)


def rollouts_in_progress(model: ClusterModel) -> list[WorkloadRef]:
    """Return the workloads of `model` whose controllers are replacing pods of an old revision.

    A workload is left out if its update strategy keeps pods of several revisions. A workload is
    also left out if one of its pods has been waiting to start for longer than _RECENT.
    """
    pods: dict[WorkloadRef, list[Pod]] = defaultdict(list)
    for pod in model.pods():
        if not pod.terminating:
            pods[workload_of(pod.pod)].append(pod.pod)
    found = []
    for owner in model.objects:
        if not isinstance(owner, Deployment | StatefulSet | DaemonSet):
            continue
        ref = WorkloadRef(type(owner).__name__, owner.metadata.namespace, owner.metadata.name)
        updated = [pod for pod in pods[ref] if _is_updated(owner, pod)]
        never_starts = any(_is_waiting(pod) and not _is_recent(pod, model.now) for pod in updated)
        revisions = {revision_of(pod) for pod in updated} - {""}  # "": a pod that was adopted
        if len(revisions) > 1 and not never_starts:
            found.append(ref)
    return sorted(found)


def _starting_pods(model: ClusterModel) -> list[Pod]:
    """Return the pods of `model` whose containers are starting, sorted by key.

    A pod is returned only if it was scheduled shortly before the dump (`_is_recent`), and its node
    takes pods (`takes_pods`).
    """
    found = [
        pod.pod
        for node in model.table.nodes()
        if takes_pods(node.node)
        for pod in node.pods.values()
        if not pod.terminating and _is_waiting(pod.pod) and _is_recent(pod.pod, model.now)
    ]
    return sorted(found, key=lambda one: one.key)


def due_evictions(model: ClusterModel) -> list[Pod]:
    """Return the pods of `model` that the taint of a failed node evicts soon, sorted by key."""
    found = []
    for node in model.table.nodes():
        taints = tuple(
            one
            for one in node.node.spec.taints
            if one.effect == NO_EXECUTE and one.key in (NOT_READY, UNREACHABLE)
        )
        found += [
            pod.pod
            for pod in (node.pods.values() if taints else ())
            if not pod.terminating
            and not is_static(pod.pod)
            and tolerated_s(taints, pod.pod.spec.tolerations) is not ENDLESS
        ]
    return sorted(found, key=lambda one: one.key)


def _is_updated(owner: Deployment | StatefulSet | DaemonSet, pod: Pod) -> bool:
    """Return whether a rollout of `owner` includes `pod`.

    Return False if `owner` is paused, has the update strategy OnDelete, or excludes `pod` by a
    partition.
    """
    spec = owner.spec
    match owner:
        case Deployment():
            return not spec.paused
        case DaemonSet():
            return spec.update_strategy.type == _ROLLING
        case StatefulSet():
            # upstream: pkg/controller/statefulset/stateful_set_control.go: updateStatefulSet
            ordinal = ordinal_of(owner.metadata.name, pod.metadata.name)
            first = spec.ordinals.start + spec.update_strategy.rolling_update.partition
            is_rolling = spec.update_strategy.type == _ROLLING
            return is_rolling and ordinal is not None and ordinal >= first


def _is_waiting(pod: Pod) -> bool:
    """Return whether `pod` has a node, but its containers have not started.

    Return False if a container has failed to start, as in ImagePullBackOff.
    """
    is_bound = bool(pod.spec.node_name) and pod.status.phase == "Pending"
    return is_bound and not fails_to_start(pod)


def _is_recent(pod: Pod, now: Instant) -> bool:
    scheduled = condition(pod, "PodScheduled")
    text = scheduled.last_transition_time if scheduled is not None else ""
    text = text or pod.metadata.creation_timestamp
    return not text or now - parse_timestamp(text) <= _RECENT
