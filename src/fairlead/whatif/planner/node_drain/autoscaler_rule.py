"""AutoscalerRules: the pods and annotations that prevent an autoscaler from removing a node.

The rules are the rules of Cluster Autoscaler (with the flags in the snapshot, or the default flags)
and Karpenter's annotation do-not-disrupt. `BudgetRoom` checks disruption budgets.

Cluster Autoscaler does not manage the nodes of Karpenter. So three of its rules do not apply to
these nodes: the rules about local storage, pods of custom resources, and pods of kube-system.
Karpenter removes nodes with such pods. Annotations apply on all nodes, because a user has set them
to keep the pod. The rule about pods without a controller applies on all nodes, too, because such a
pod would be lost.

upstream: cluster-autoscaler/simulator/drainability/rules, karpenter pkg/utils/pod/scheduling.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec.structs import replace

from fairlead.api.objects import Node, Pod, PodDisruptionBudget, Volume
from fairlead.api.pods.facts import controller_of
from fairlead.engine.autoscaling.cluster_autoscaler.command_line import (
    flags_of_command_line,
    options_of_flags,
)
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import ANNOTATION_PREFIX
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.disruption_budget import (
    RemainingBudgets,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.drainability import DrainRules
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.eligibility import (
    has_no_scale_down_annotation,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.unremovable import BlockingReason
from fairlead.engine.autoscaling.karpenter.labels import DO_NOT_DISRUPT, NODE_POOL
from fairlead.engine.autoscaling.karpenter.pod import has_do_not_disrupt
from fairlead.engine.core.instant import Instant
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node_drain.drain_planner import BlockCause, Blocker
from fairlead.whatif.snapshot.installed_autoscaler import has_status, hosted_flags, installed_flags
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.served_kind import is_custom

SAFE: Final = f"{ANNOTATION_PREFIX}safe-to-evict"
SAFE_VOLUMES: Final = f"{ANNOTATION_PREFIX}safe-to-evict-local-volumes"
NO_SCALE_DOWN: Final = f"{ANNOTATION_PREFIX}scale-down-disabled"


class IgnoredRule(StrEnum):
    """A group of rules that a plan can ignore, as `kubectl drain` does."""

    ANNOTATIONS = "annotations"
    LOCAL_STORAGE = "local-storage"
    UNMANAGED = "unmanaged"
    SYSTEM_PODS = "system-pods"
    WAITING_GANGS = "waiting-gangs"


RULE_OF: Final = {
    BlockCause.ANNOTATION: IgnoredRule.ANNOTATIONS,
    BlockCause.LOCAL_STORAGE: IgnoredRule.LOCAL_STORAGE,
    BlockCause.NOT_REPLICATED: IgnoredRule.UNMANAGED,
    BlockCause.CUSTOM_CONTROLLER: IgnoredRule.UNMANAGED,
    BlockCause.SYSTEM_POD: IgnoredRule.SYSTEM_PODS,
    BlockCause.WAITING_GANG: IgnoredRule.WAITING_GANGS,
}


NOT_OF_KUBECTL: Final = frozenset(
    (BlockCause.LOCAL_STORAGE, BlockCause.CUSTOM_CONTROLLER, BlockCause.SYSTEM_POD)
)
"""The rules that a person who drains a node need not follow.

The others protect pods that nothing would create again, or that a user wants to keep.
"""


class AutoscalerRules:
    """Finds what prevents an autoscaler from removing a node; rules in `ignored` do not apply."""

    def __init__(
        self,
        options: AutoscalingOptions,
        budgets: Iterable[PodDisruptionBudget],
        now: Instant,
        ignored: Collection[IgnoredRule] = (),
        *,
        of_karpenter: Collection[str] = (),
        is_assumed: bool = False,
    ) -> None:
        """Use the flags in `options`; the rule about pods of kube-system needs `budgets`.

        `of_karpenter` are the names of the nodes that Karpenter manages. `is_assumed` is set if
        nothing shows that the cluster has a Cluster Autoscaler (`installed_rules`).
        """
        self.is_assumed = is_assumed
        self._rules = DrainRules(options)
        self._karpenter_rules = DrainRules(
            replace(
                options,
                skip_nodes_with_local_storage=False,
                skip_nodes_with_custom_controller_pods=False,
                skip_nodes_with_system_pods=False,
            )
        )
        self._of_karpenter = frozenset(of_karpenter)
        self._budgets = RemainingBudgets(budgets)
        self._now = now
        self._ignored = frozenset(ignored)

    def is_of_karpenter(self, node: str) -> bool:
        """Return whether Karpenter manages the node."""
        return node in self._of_karpenter

    def node_blockers(self, node: Node) -> Iterator[Blocker]:
        """Yield a blocker for each annotation on `node` that prevents its removal."""
        if IgnoredRule.ANNOTATIONS in self._ignored:
            return
        name, found = node.metadata.name, list[str]()
        if has_no_scale_down_annotation(node):
            found.append(NO_SCALE_DOWN)
        if node.metadata.annotations.get(DO_NOT_DISRUPT) == "true":
            found.append(DO_NOT_DISRUPT)
        for key in found:
            why = f"the node's annotation {key}"
            edit = f"kubectl annotate node {name} {key}-"
            yield Blocker(name, "", BlockCause.ANNOTATION, f"node/{name}", why, edit)

    def pod_blockers(self, node: str, pod: Pod) -> Iterator[Blocker]:
        """Yield the blockers with which `pod` prevents the removal of `node`.

        If several rules of Cluster Autoscaler apply, only the first one that it checks yields a
        blocker. Cluster Autoscaler itself checks no further rule. There is one exception: the
        annotation safe-to-evict=false always yields a blocker.
        """
        of_rule = self._scale_down_blocker(node, pod)
        is_unsafe = of_rule is not None and of_rule.cause is not BlockCause.ANNOTATION
        is_unsafe = is_unsafe and pod.metadata.annotations.get(SAFE) == "false"
        on_pod = _not_safe(node, pod) if is_unsafe else None
        for found in (self._do_not_disrupt(node, pod), of_rule, on_pod):
            if found is not None and RULE_OF.get(found.cause) not in self._ignored:
                yield found

    def pod_blocker(self, node: str, pod: Pod) -> Blocker | None:
        """Return the first of `pod_blockers`; None if `pod` allows the removal of `node`."""
        return next(self.pod_blockers(node, pod), None)

    def _do_not_disrupt(self, node: str, pod: Pod) -> Blocker | None:
        if not has_do_not_disrupt(pod, self._now):
            return None
        owner, why = str(workload_of(pod)), f"annotation {DO_NOT_DISRUPT} on its pods"
        edit = f"remove {DO_NOT_DISRUPT} from the pods of {owner}"
        return Blocker(node, pod.key, BlockCause.ANNOTATION, owner, why, edit, workload=owner)

    def _scale_down_blocker(self, node: str, pod: Pod) -> Blocker | None:
        key, owner = pod.key, str(workload_of(pod))
        is_of_karpenter = node in self._of_karpenter
        rules = self._karpenter_rules if is_of_karpenter else self._rules
        blocking = rules.pods_to_move([pod], self._now, None, self._budgets).blocking
        if blocking is None:
            return None
        match blocking.reason:
            case BlockingReason.NOT_ENOUGH_PDB:
                return None
            case BlockingReason.NOT_SAFE_TO_EVICT_ANNOTATION:
                return _not_safe(node, pod)
            case BlockingReason.LOCAL_STORAGE_REQUESTED:
                names = ",".join(one.name for one in pod.spec.volumes if _is_local(one))
                why = f"local volumes: {names}"
                edit = f"annotate the pods of {owner} with {SAFE_VOLUMES}={names}"
                return Blocker(
                    node, key, BlockCause.LOCAL_STORAGE, owner, why, edit, workload=owner
                )
            case BlockingReason.NOT_REPLICATED:
                return _not_replicated(node, pod, owner, is_of_karpenter=is_of_karpenter)
            case BlockingReason.UNMOVABLE_KUBE_SYSTEM_POD:
                why = "a pod of kube-system that no budget covers"
                edit = f"add a PodDisruptionBudget for {owner}"
                return Blocker(node, key, BlockCause.SYSTEM_POD, owner, why, edit, workload=owner)
            case reason:
                return Blocker(node, key, BlockCause.OTHER_RULE, owner, str(reason), workload=owner)


def installed_rules(
    model: ClusterModel, manifests: Sequence[Manifest], ignored: Collection[IgnoredRule] = ()
) -> AutoscalerRules:
    """Return the rules of the autoscalers of a cluster, except the rules in `ignored`.

    The rules have the flags of the Cluster Autoscaler in `manifests`. If `manifests` do not contain
    a Cluster Autoscaler, the rules have the flags of the Cluster Autoscaler that the cloud provider
    runs. If the provider runs no Cluster Autoscaler, the rules have the default flags.
    """
    installed, (provider, hosted) = installed_flags(manifests), hosted_flags(manifests)
    flags = flags_of_command_line(installed or hosted)
    budgets = [one for one in model.objects if isinstance(one, PodDisruptionBudget)]
    nodes = model.table.nodes()
    return AutoscalerRules(
        options_of_flags(flags),
        budgets,
        model.now,
        ignored,
        of_karpenter=[one.name for one in nodes if NODE_POOL in one.node.metadata.labels],
        is_assumed=installed is None and not provider and not has_status(manifests),
    )


def _not_safe(node: str, pod: Pod) -> Blocker:
    owner, why = str(workload_of(pod)), f"annotation {SAFE}=false on its pods"
    edit = f"remove {SAFE} from the pods of {owner}"
    return Blocker(node, pod.key, BlockCause.ANNOTATION, owner, why, edit, workload=owner)


def _not_replicated(node: str, pod: Pod, owner: str, *, is_of_karpenter: bool) -> Blocker:
    """Return the blocker for a `pod` that Cluster Autoscaler treats as a pod without a controller.

    Either the pod has no controller, or its controller is of a kind that Cluster Autoscaler does
    not accept. Cluster Autoscaler accepts neither custom resources, nor a Pod or a Deployment as
    the controller. Programs that create pods, such as Spark, set a Pod or a Deployment as the
    controller.
    """
    controller = controller_of(pod.metadata)
    if controller is None:
        why = "no controller would replace the pod"
        edit = f"annotate {owner} with {SAFE}=true, or give it a controller"
        if is_of_karpenter:
            edit = f"give {owner} a controller"
        return Blocker(node, pod.key, BlockCause.NOT_REPLICATED, owner, why, edit, workload=owner)
    which = "of custom resources"
    if not is_custom(controller.api_version):
        which = f"that a {controller.kind} controls"
    why = f"Cluster Autoscaler does not move pods {which}"
    edit = f"annotate the pods of {owner} with {SAFE}=true"
    return Blocker(node, pod.key, BlockCause.CUSTOM_CONTROLLER, owner, why, edit, workload=owner)


def _is_local(volume: Volume) -> bool:
    empty = volume.empty_dir
    return volume.host_path is not None or (empty is not None and empty.medium != "Memory")
