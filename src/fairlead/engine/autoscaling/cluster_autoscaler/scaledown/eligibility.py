"""EligibilityChecker: selects the nodes whose removal is worth simulating.

upstream: core/scaledown/eligibility/eligibility.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.nodes.autoscaler_taint import TO_BE_DELETED
from fairlead.api.objects import Node
from fairlead.api.pods.facts import is_terminating
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.node_readiness import (
    node_readiness,
)
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.gpu import has_gpu
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import ANNOTATION_PREFIX
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.device_utilization import (
    device_utilization,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.unremovable import (
    UnremovableNodes,
    UnremovableReason,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.utilization import (
    Utilization,
    UtilizationError,
    UtilizationRules,
    node_utilization,
)
from fairlead.engine.autoscaling.cluster_autoscaler.taint import has_taint, is_being_deleted
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.node_info import NodeInfo

SCALE_DOWN_DISABLED: Final = f"{ANNOTATION_PREFIX}scale-down-disabled"


def has_no_scale_down_annotation(node: Node) -> bool:
    """Return whether the node has the annotation that disables scale-down."""
    return node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true"


class EligibilityChecker:
    """Selects the nodes whose removal is worth simulating.

    `utilizations` contains the utilization of nodes by name, from the last call of
    `filter_out_unremovable`.
    """

    def __init__(self, context: AutoscalingContext, unremovable: UnremovableNodes) -> None:
        """Reasons for rejecting nodes are recorded in `unremovable`."""
        self._context = context
        self._unremovable = unremovable
        self.utilizations: dict[str, Utilization] = {}
        self._known: dict[str, tuple[tuple[UtilizationRules, int], Utilization]] = {}
        # The result of the last loop, by node. It is valid until the node or a pod on it changes.
        self._results: dict[str, tuple[Node, int, Utilization, UnremovableReason | None]] = {}

    def filter_out_unremovable(self, candidates: Sequence[Node], now: Instant) -> list[str]:
        """Return the names of `candidates` whose removal is worth simulating. Keeps their order."""
        self.utilizations = {}
        eligible = []
        revision, results = self._context.snapshot.revision, self._results
        for node in candidates:
            name = node.metadata.name
            known = results.get(name)
            if self._unremovable.is_recent(name):
                reason: UnremovableReason | None = UnremovableReason.RECENTLY_UNREMOVABLE
            elif known is not None and known[0] is node and known[1] == revision(name):
                self.utilizations[name], reason = known[2], known[3]
            else:
                reason = self._reason(node, now)
            if reason is None:
                eligible.append(name)
            else:
                self._unremovable.add(name, reason)
        return eligible

    def utilization(self, info: NodeInfo, now: Instant) -> Utilization:
        """Return the utilization of the node by the rules of its group.

        If the node has ResourceSlices and is not a GPU node, the result is the utilization of its
        devices. Raises UtilizationError if the utilization cannot be computed.
        """
        options, context = self._context.options, self._context
        rules = UtilizationRules(
            context.group_options(context.group_of(info.node)).ignore_daemonsets_utilization,
            options.ignore_mirror_pods_utilization,
            context.provider.gpu_label,
        )
        key = rules, context.snapshot.revision(info.name)
        known = self._known.get(info.name)
        if known is not None and known[0] == key:
            return known[1]
        pods = context.snapshot.pods_on(info)
        slices = context.snapshot.slices_of(info.name)
        if slices and not has_gpu(info.node, rules.gpu_label):
            claims = (claim for pod in pods for claim in context.snapshot.claims_of(pod.pod))
            resource, value = device_utilization(slices, claims)
            found = Utilization(devices=value, resource=resource, value=value)
        else:
            found = node_utilization(info, pods, rules, now)
        if not any(is_terminating(pod.pod) for pod in pods):
            self._known[info.name] = key, found
        return found

    def _reason(self, node: Node, now: Instant) -> UnremovableReason | None:
        context = self._context
        name = node.metadata.name
        revision = context.snapshot.revision(name)
        if is_being_deleted(node, now):
            return UnremovableReason.CURRENTLY_BEING_DELETED
        if has_no_scale_down_annotation(node):
            return UnremovableReason.SCALE_DOWN_DISABLED_ANNOTATION
        info = context.snapshot.node(node.metadata.name)
        if info is None:
            return UnremovableReason.UNEXPECTED_ERROR
        try:
            used = self.utilization(info, now)
        except UtilizationError:
            return UnremovableReason.UNEXPECTED_ERROR
        if not context.options.scale_down_unready_enabled and not node_readiness(node).is_ready:
            return UnremovableReason.SCALE_DOWN_UNREADY_DISABLED
        self.utilizations[info.name] = used
        group = context.group_options(context.group_of(node))
        threshold = group.scale_down_utilization_threshold
        if has_gpu(info.node, context.provider.gpu_label):
            threshold = group.scale_down_gpu_utilization_threshold
        reason = UnremovableReason.NOT_UNDERUTILIZED if used.value > threshold else None
        # If the node has a deletion taint or terminating pods, the result depends on the time. So
        # it is computed again in each loop.
        known = self._known.get(name)
        is_known = known is not None and known[0][1] == revision
        if is_known and not has_taint(node, TO_BE_DELETED):
            self._results[name] = node, revision, used, reason
        return reason
