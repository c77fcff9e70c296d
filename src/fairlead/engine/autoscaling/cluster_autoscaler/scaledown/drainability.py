"""Decides which pods of a node must move, and which pod blocks the node's removal.

The rules are evaluated in order. The first rule that applies to a pod decides about it. The first
blocking pod ends the evaluation.

upstream: simulator/drainability/rules/rules.go, simulator/drain.go: GetPodsToMove
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import (
    ApiObject,
    DaemonSet,
    Job,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.pods.facts import is_terminating
from fairlead.engine.autoscaling.cluster_autoscaler.lister import Listers
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import (
    ANNOTATION_PREFIX,
    controller,
    created_at,
    is_daemon_set_pod,
    is_long_terminating,
    is_mirror_pod,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.disruption_budget import (
    RemainingBudgets,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.unremovable import (
    BlockingPod,
    BlockingReason,
)
from fairlead.engine.core.instant import Instant

SAFE_TO_EVICT: Final = f"{ANNOTATION_PREFIX}safe-to-evict"
SAFE_LOCAL_VOLUMES: Final = f"{ANNOTATION_PREFIX}safe-to-evict-local-volumes"
_ON_COMPLETION: Final = "on-completion"
_KUBE_SYSTEM: Final = "kube-system"
_REPLICATED: Final = ("ReplicationController", "ReplicaSet", "Job", "StatefulSet")
_KINDS: Final[dict[str, type[ApiObject]]] = {
    "ReplicationController": ReplicationController,
    "ReplicaSet": ReplicaSet,
    "Job": Job,
    "StatefulSet": StatefulSet,
    "DaemonSet": DaemonSet,
}
# An annotation can make a pod count as a DaemonSet pod although its controller is of another kind.
_LOOKED_UP_FOR_DAEMON_SET_PODS: Final = ("ReplicationController", "DaemonSet")
_APPS_ONLY: Final = ("StatefulSet", "DaemonSet")


class DrainDecision(Enum):
    """The decision about a pod that does not block the removal of its node."""

    MOVE = auto()
    SKIP = auto()  # mirror pods, and pods that should already be gone
    WAIT = auto()  # the node can be deleted when the pod has completed


Outcome = DrainDecision | BlockingReason | None


class PodsToMove(Struct, frozen=True):
    """The pods of a node, classified for the removal of the node.

    `pods` and `daemon_set_pods` are evicted. The pods in `on_completion` must complete first.
    `blocking` is the pod that prevents the removal. If `blocking` is not None, the lists are empty.
    """

    pods: list[Pod] = field(default_factory=list)
    daemon_set_pods: list[Pod] = field(default_factory=list)
    on_completion: list[Pod] = field(default_factory=list)
    blocking: BlockingPod | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no pod blocks the removal, and only DaemonSet pods are evicted."""
        return self.blocking is None and not self.pods


class DrainRules:
    """Classifies the pods of a node by upstream's drain rules."""

    def __init__(self, options: AutoscalingOptions) -> None:
        """`options` contains the flags that the rules read."""
        self._options = options

    def pods_to_move(
        self,
        pods: Iterable[Pod],
        now: Instant,
        listers: Listers | None = None,
        budgets: RemainingBudgets | None = None,
    ) -> PodsToMove:
        """Classify `pods`; if a pod blocks the removal of the node, return only the first such pod.

        If `listers` is None, controllers are not looked up. If `budgets` is None, no budget blocks.
        """
        context = _DrainContext(self._options, now, listers, budgets or RemainingBudgets())
        found = PodsToMove()
        for pod in pods:
            outcome = context.outcome(pod)
            if isinstance(outcome, BlockingReason):
                return PodsToMove(blocking=BlockingPod(pod, outcome))
            if outcome is DrainDecision.WAIT:
                found.on_completion.append(pod)
            elif outcome is not DrainDecision.SKIP:
                (found.daemon_set_pods if is_daemon_set_pod(pod) else found.pods).append(pod)
        return found

    def emptiness(self, pods: Iterable[Pod], now: Instant) -> tuple[tuple[bool, bool], bool]:
        """Return ((is empty, must wait), is lasting) for a node with `pods`.

        The node is empty if all pods that have to move are DaemonSet pods, and no pod blocks the
        removal. An empty node must wait if some pods must complete first. If `is lasting` is true,
        the first two values stay the same until `pods` change. Otherwise, they may also change with
        time. Controllers and budgets are not looked up.
        """
        context = _DrainContext(self._options, now, None, RemainingBudgets())
        waits, is_empty, is_lasting = False, True, True
        for pod in pods:
            outcome, varies = context.outcome(pod), depends_on_time(pod)
            is_lasting = is_lasting and not varies
            if outcome is DrainDecision.WAIT:
                waits = True
            elif outcome is not DrainDecision.SKIP and not _moves_with_node(outcome, pod):
                if not varies:
                    return (False, False), True
                is_empty = False
        return (is_empty, is_empty and waits), is_lasting


def _moves_with_node(outcome: Outcome, pod: Pod) -> bool:
    return outcome is DrainDecision.MOVE and is_daemon_set_pod(pod)


class _DrainContext(Struct, frozen=True):
    options: AutoscalingOptions
    now: Instant
    listers: Listers | None
    budgets: RemainingBudgets

    def outcome(self, pod: Pod) -> Outcome:
        """Return the decision or blocking reason of the first rule that applies to `pod`."""
        for rule in _RULES:
            outcome = rule(self, pod)
            if outcome is not None:
                return outcome
        return DrainDecision.MOVE

    # --- rules -----------------------------------------------------------------------------

    def mirror(self, pod: Pod) -> Outcome:
        return DrainDecision.SKIP if is_mirror_pod(pod) else None

    def long_terminating(self, pod: Pod) -> Outcome:
        return DrainDecision.SKIP if is_long_terminating(pod, self.now) else None

    def replica_count(self, pod: Pod) -> Outcome:
        owner = controller(pod)
        if not self.options.skip_nodes_with_custom_controller_pods or owner is None:
            return None
        kind = _KINDS.get(owner.kind)
        if kind is None or self.listers is None:
            return None
        if owner.kind in _APPS_ONLY and not owner.api_version.startswith("apps/"):
            return None
        if is_daemon_set_pod(pod) and owner.kind not in _LOOKED_UP_FOR_DAEMON_SET_PODS:
            return None
        found = self.listers.get(kind, f"{pod.metadata.namespace}/{owner.name}")
        if found is None:
            return BlockingReason.CONTROLLER_NOT_FOUND
        match found:
            case ReplicaSet() | ReplicationController():
                is_short = found.spec.replicas < self.options.min_replica_count
                return BlockingReason.MIN_REPLICAS_REACHED if is_short else None
            case _:
                return None

    def daemon_set(self, pod: Pod) -> Outcome:
        return DrainDecision.MOVE if is_daemon_set_pod(pod) else None

    def safe_to_evict(self, pod: Pod) -> Outcome:
        return DrainDecision.MOVE if pod.metadata.annotations.get(SAFE_TO_EVICT) == "true" else None

    def on_completion(self, pod: Pod) -> Outcome:
        waits = pod.metadata.annotations.get(SAFE_TO_EVICT) == _ON_COMPLETION
        return DrainDecision.WAIT if waits else None

    def replicated(self, pod: Pod) -> Outcome:
        owner = controller(pod)
        is_custom = owner is not None and owner.kind not in _REPLICATED
        if owner is None or (self.options.skip_nodes_with_custom_controller_pods and is_custom):
            return BlockingReason.NOT_REPLICATED
        return None

    def system(self, pod: Pod) -> Outcome:
        if not self.options.skip_nodes_with_system_pods or pod.metadata.namespace != _KUBE_SYSTEM:
            return None
        if self.budgets.matching(pod):
            return None
        age = self.now - created_at(pod)
        if age <= self.options.blocking_system_pod_distruption_timeout:
            return BlockingReason.UNMOVABLE_KUBE_SYSTEM_POD
        return DrainDecision.MOVE

    def not_safe_to_evict(self, pod: Pod) -> Outcome:
        if pod.metadata.annotations.get(SAFE_TO_EVICT) == "false":
            return BlockingReason.NOT_SAFE_TO_EVICT_ANNOTATION
        return None

    def local_storage(self, pod: Pod) -> Outcome:
        if not self.options.skip_nodes_with_local_storage:
            return None
        safe = pod.metadata.annotations.get(SAFE_LOCAL_VOLUMES, "").split(",")
        for volume in pod.spec.volumes:
            on_disk = volume.empty_dir is not None and volume.empty_dir.medium != "Memory"
            if (volume.host_path is not None or on_disk) and volume.name not in safe:
                return BlockingReason.LOCAL_STORAGE_REQUESTED
        return None

    def disruption_budget(self, pod: Pod) -> Outcome:
        return None if self.budgets.allows(pod) else BlockingReason.NOT_ENOUGH_PDB


def depends_on_time(pod: Pod) -> bool:
    """Return whether a rule compares the age or deletion time of `pod` with the clock."""
    if is_terminating(pod):
        return True
    return pod.metadata.namespace == _KUBE_SYSTEM and not is_daemon_set_pod(pod)


# In upstream's order. The controller is looked up before safe-to-evict is read, so a missing
# ReplicaSet always blocks. Succeeded and failed pods are not in the snapshot.
_RULES: Final[tuple[Callable[[_DrainContext, Pod], Outcome], ...]] = (
    _DrainContext.mirror,
    _DrainContext.long_terminating,
    _DrainContext.replica_count,
    _DrainContext.daemon_set,
    _DrainContext.safe_to_evict,
    _DrainContext.on_completion,
    _DrainContext.replicated,
    _DrainContext.system,
    _DrainContext.not_safe_to_evict,
    _DrainContext.local_storage,
    _DrainContext.disruption_budget,
)
