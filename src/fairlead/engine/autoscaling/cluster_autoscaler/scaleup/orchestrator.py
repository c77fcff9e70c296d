"""ScaleUpOrchestrator: decides on and executes one scale-up.

    1. group equal pods; leave out node groups that must not grow
    2. for each node group, make an option: the pods that fit a new node, and the number of nodes
       that they need
    3. choose an option; limit its nodes; balance them over similar groups
    4. grow the groups

upstream: core/scaleup/orchestrator/orchestrator.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead.api.objects import Node
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import NodeGroup
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.estimator.binpacking import estimate
from fairlead.engine.autoscaling.cluster_autoscaler.event import WARNING
from fairlead.engine.autoscaling.cluster_autoscaler.expander.chain import Choice, choose
from fairlead.engine.autoscaling.cluster_autoscaler.expander.option import Filter, Option
from fairlead.engine.autoscaling.cluster_autoscaler.expander.price import Cheapest
from fairlead.engine.autoscaling.cluster_autoscaler.expander.priority import HighestPriority
from fairlead.engine.autoscaling.cluster_autoscaler.nodegroupset.balancing import (
    ScaleUpInfo,
    balance,
)
from fairlead.engine.autoscaling.cluster_autoscaler.nodegroupset.similarity import are_similar
from fairlead.engine.autoscaling.cluster_autoscaler.resource_quota import (
    GpuCountError,
    NodeResources,
    QuotaTracker,
    resource_limits,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.equivalence import (
    PodEquivalenceGroup,
    build_pod_groups,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.executor import (
    ExecutionError,
    execute_scale_ups,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.skipped_group import (
    skip_reason,
    unsafe_reason,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.status import (
    NoScaleUpInfo,
    ScaleUpResult,
    ScaleUpStatus,
)
from fairlead.engine.autoscaling.cluster_autoscaler.template import Template
from fairlead.engine.core.instant import Instant
from fairlead.engine.state.pod_info import PodInfo

FILTERED_OUT: Final = "expansion options filtered out and no longer considered"
EXECUTION_FAILED: Final = "scale-up execution failed"
_MAX_REACHED: Final = "max node total count already reached"
_TRANSIENT: Final = "transientError"
_INTERNAL: Final = "internalError"
Templates = Mapping[str, Template]
Reasons = dict[str, tuple[str, ...]]


class ScaleUpOrchestrator:
    """Decides which node groups grow and by how many nodes, and grows them.

    `choices` are the expander's choices since the list was last cleared.
    """

    def __init__(self, context: AutoscalingContext) -> None:
        self._context = context
        self.choices: list[Choice] = []

    def scale_up(
        self, pods: Sequence[PodInfo], templates: Templates, now: Instant
    ) -> ScaleUpStatus:
        """Grow node groups for `pods`, which fit no existing node. Return the result."""
        try:
            quota = _quota(self._context, self._context.nodes_with_group())
        except GpuCountError as problem:
            return _without_quota(problem)
        attempt = _Attempt(self._context, build_pod_groups(pods), templates, quota, now)
        options = attempt.options()
        if not options:
            return attempt.status(ScaleUpResult.NO_OPTIONS_AVAILABLE)
        choice = self._choose(options)
        if choice.best is None or choice.best.nodes <= 0:
            attempt.reject_accepted(FILTERED_OUT)
            return attempt.status(ScaleUpResult.NO_OPTIONS_AVAILABLE)
        return attempt.execute(choice.best)

    def _choose(self, options: Sequence[Option]) -> Choice:
        context = self._context
        names = context.options.expander
        filters: dict[str, Filter] = {}
        if "price" in names:
            filters["price"] = Cheapest(context.provider, len(context.listers.nodes))
        if "priority" in names:
            filters["priority"] = HighestPriority(
                context.priorities(), context.events, context.provider_names
            )
        choice = choose(names, filters, options, context.pick)
        self.choices.append(choice)
        return choice

    def scale_up_to_min_size(
        self, templates: Templates, nodes: Sequence[tuple[Node, str | None]], now: Instant
    ) -> ScaleUpStatus:
        """Grow the groups that are below their minimum size (--enforce-node-group-min-size).

        A group is left out if it must not grow now (`unsafe_reason`), has no template, or would
        exceed a limit.

        `nodes` contains a pair (node, group id) for each existing and each upcoming node. These
        nodes count towards the cluster-wide limits. The group id is None for a node that already
        exists.

        upstream: orchestrator.go: ScaleUpToNodeGroupMinSize
        """
        context = self._context
        try:
            quota = _quota(context, nodes)
        except GpuCountError as problem:
            return _without_quota(problem)
        infos = []
        for group in context.provider.node_groups():
            target, template = group.target_size(), templates.get(group.id)
            if target >= group.min_size or unsafe_reason(context, group, now) is not None:
                continue
            if template is None or quota.exceeded(group.id, template.node, 1):
                continue
            wanted = quota.allowed(group.id, template.node, group.min_size - target)
            # Upstream compares --max-nodes-total with the size of this group, not of the cluster.
            capped = _capped(context, wanted, target)
            if capped is not None:
                infos.append(ScaleUpInfo(group.id, target, target + capped, group.max_size))
        if not infos:
            return ScaleUpStatus(ScaleUpResult.NOT_NEEDED)
        try:
            execute_scale_ups(context, infos, now)
        except ExecutionError as failure:
            return _failed(failure)
        context.registry.recalculate()
        return ScaleUpStatus(ScaleUpResult.SUCCESSFUL, infos)


def _quota(context: AutoscalingContext, nodes: Sequence[tuple[Node, str | None]]) -> QuotaTracker:
    return QuotaTracker(resource_limits(context.options), NodeResources(context.provider), nodes)


def _without_quota(problem: GpuCountError) -> ScaleUpStatus:
    return ScaleUpStatus(
        ScaleUpResult.ERROR,
        error=f"could not create quotas tracker: failed to get custom resources: {problem}",
        error_type=_INTERNAL,
    )


def _capped(context: AutoscalingContext, wanted: int, present: int) -> int | None:
    """Return how many of the `wanted` nodes --max-nodes-total allows; None if it allows none.

    `present` is the number of existing nodes that count towards the limit.
    """
    limit = context.options.max_nodes_total
    if limit <= 0 or wanted + present <= limit:
        return wanted
    message = f"Max total nodes in cluster reached: {limit}"
    context.events.on_status(WARNING, "MaxNodesTotalReached", message)
    return limit - present if limit > present else None


def _failed(failure: ExecutionError) -> ScaleUpStatus:
    return ScaleUpStatus(
        ScaleUpResult.ERROR,
        failed_resize=(failure.group,),
        error=str(failure),
        error_type=failure.type,
    )


class _Attempt:
    """The intermediate results of one call of `scale_up`."""

    def __init__(
        self,
        context: AutoscalingContext,
        pod_groups: list[PodEquivalenceGroup],
        templates: Templates,
        quota: QuotaTracker,
        now: Instant,
    ) -> None:
        self._context = context
        self._pod_groups = pod_groups
        self._templates = templates
        self._now = now
        self._quota = quota
        self._groups = context.provider.node_groups()
        self._skipped: dict[str, str] = {}
        self._fitting: dict[str, list[PodEquivalenceGroup]] = {}

    # --- options ---------------------------------------------------------------------------

    def options(self) -> list[Option]:
        """Return an option for each node group that may grow.

        A node group gets no option if no pod fits the new nodes of the group.
        """
        for group in self._groups:
            reason = skip_reason(self._context, group, self._templates, self._quota, self._now)
            if reason is not None:
                self._skipped[group.id] = reason
        valid = [group for group in self._groups if group.id not in self._skipped]
        for group in valid:
            self._fitting[group.id] = self._fitting_pods(group.id)
        found = (self._option(group) for group in valid if self._fitting[group.id])
        return [option for option in found if option.pods and option.nodes]

    def _fitting_pods(self, group: str) -> list[PodEquivalenceGroup]:
        """Return the pod groups whose first pod fits a new node of the node group `group`.

        If the pod fits, `group` is added to the field `accepted` of its pod group. Otherwise, the
        reasons of the rejection are stored in the field `rejected`, under the key `group`.
        """
        template = self._templates[group]
        snapshot, fitting = self._context.snapshot, []
        with snapshot.fork():
            template.add_to(snapshot)
            for pods in self._pod_groups:
                status = snapshot.rejection(pods.first, template.node.metadata.name)
                if status is None:
                    pods.accepted.append(group)
                    fitting.append(pods)
                else:
                    pods.rejected[group] = status.reasons
        return fitting

    def _option(self, group: NodeGroup) -> Option:
        context, template = self._context, self._templates[group.id]
        similar = self._similar(group)
        found = estimate(
            context.snapshot,
            [pods.pods for pods in self._fitting[group.id]],
            template,
            self._node_limit(group, similar),
            fast_path=context.options.fastpath_binpacking_enabled,
        )
        nodes = found.nodes
        if nodes and context.group_options(group).zero_or_max_node_scaling:
            nodes = group.max_size
        return Option(group, nodes, found.pods, template, tuple(one.id for one in similar))

    def _node_limit(self, group: NodeGroup, similar: Sequence[NodeGroup]) -> int | None:
        """Return the number of nodes that the estimation for `group` may add; None for any number.

        `similar` are the groups over which the new nodes would be balanced.

        upstream: estimator/{static,sng_capacity,cluster_capacity}_threshold.go
        """
        options, limits = self._context.options, []
        limits.append(options.max_nodes_per_scaleup)
        limits.append(sum(max(one.max_size - one.target_size(), 0) for one in (group, *similar)))
        if options.max_nodes_total:
            left = options.max_nodes_total - len(self._context.snapshot.node_names)
            if left <= 0:
                return 0
            limits.append(left)
        return min((limit for limit in limits if limit > 0), default=None)

    def _similar(self, group: NodeGroup) -> list[NodeGroup]:
        """Return the other groups over which new nodes of `group` would be balanced."""
        context = self._context
        if not context.options.balance_similar_node_groups:
            return []
        if context.group_options(group).zero_or_max_node_scaling or not self._fitting[group.id]:
            return []
        return [one for one in self._groups if one.id != group.id and self._is_like(one, group)]

    def _is_like(self, other: NodeGroup, group: NodeGroup) -> bool:
        if other.id not in self._fitting or other.id not in self._templates:
            return False
        if unsafe_reason(self._context, other, self._now) is not None:
            return False
        fitting = {id(pods) for pods in self._fitting[other.id]}
        if not all(id(pods) in fitting for pods in self._fitting[group.id]):
            return False
        left, right = self._templates[group.id], self._templates[other.id]
        return are_similar(left, right, self._context.options)

    # --- execution -------------------------------------------------------------------------

    def execute(self, best: Option) -> ScaleUpStatus:
        """Grow the group of the option `best` and similar groups, and return the result."""
        context, triggered = self._context, [pod.pod for pod in best.pods]
        nodes = _capped(context, best.nodes, len(context.snapshot.node_names))
        if nodes is None:
            return ScaleUpStatus(
                ScaleUpResult.ERROR,
                triggered=triggered,
                error=_MAX_REACHED,
                error_type=_TRANSIENT,
            )
        nodes = self._quota.allowed(best.group.id, best.template.node, nodes)
        infos = self._balanced(best.group, nodes)
        try:
            execute_scale_ups(context, infos, self._now)
        except ExecutionError as failure:
            self._reject_failed(infos, failure.group)
            status = _failed(failure)
            status.triggered, status.remain = triggered, self._remain()
            return status
        context.registry.recalculate()
        status = self.status(ScaleUpResult.SUCCESSFUL)
        status.infos, status.triggered = infos, triggered
        status.await_evaluation = [
            pod.pod
            for pods in self._pod_groups
            if best.group.id not in pods.accepted and (pods.accepted or pods.fits_skipped)
            for pod in pods.pods
        ]
        return status

    def _balanced(self, group: NodeGroup, nodes: int) -> list[ScaleUpInfo]:
        """Distribute `nodes` new nodes over `group` and its similar groups; return the new sizes.

        If the quota allows a group fewer nodes than its share, the other groups do not get more.
        """
        targets = [group]
        for similar in self._similar(group):
            template = self._templates[similar.id]
            if not self._quota.exceeded(similar.id, template.node, 1):
                targets.append(similar)
        infos = []
        for info in balance(targets, nodes):
            node = self._templates[info.group].node
            allowed = self._quota.allowed(info.group, node, info.new - info.current)
            self._quota.subtract(info.group, node, allowed)
            if allowed > 0:
                new = info.current + allowed
                infos.append(ScaleUpInfo(info.group, info.current, new, info.maximum))
        return infos

    def _reject_failed(self, infos: Sequence[ScaleUpInfo], failed: str) -> None:
        """Record that the node groups that did not grow reject the pods that they had accepted.

        A group did not grow if its scale-up failed (`failed`), or if it comes after `failed` in
        `infos`.
        """
        names = [info.group for info in infos]
        lost = set(names[names.index(failed) :])
        for pods in self._pod_groups:
            for name in pods.accepted:
                if name in lost:
                    pods.rejected[name] = (EXECUTION_FAILED,)
            pods.accepted = [name for name in pods.accepted if name not in lost]

    # --- status ----------------------------------------------------------------------------

    def reject_accepted(self, reason: str) -> None:
        """Record that all node groups reject the pods that they had accepted, for `reason`."""
        for pods in self._pod_groups:
            pods.rejected |= dict.fromkeys(pods.accepted, (reason,))
            pods.accepted = []

    def status(self, result: ScaleUpResult) -> ScaleUpStatus:
        """Return a status with `result` and the pods that no node group accepts."""
        return ScaleUpStatus(result, remain=self._remain())

    def _remain(self) -> list[NoScaleUpInfo]:
        found = []
        for pods in self._pod_groups:
            if pods.accepted:
                continue
            skipped: Reasons = {name: (reason,) for name, reason in self._skipped.items()}
            rejected = dict(pods.rejected)
            if self._context.options.scaleup_simulation_for_skipped_node_groups_enabled:
                rejected |= self._rejected_by_skipped(pods)
                skipped = {name: why for name, why in skipped.items() if name not in rejected}
            found += [NoScaleUpInfo(pod.pod, rejected, skipped) for pod in pods.pods]
        return found

    def _rejected_by_skipped(self, pods: PodEquivalenceGroup) -> dict[str, tuple[str, ...]]:
        """Return {id of a skipped group: reasons why `pods` do not fit new nodes of the group}.

        If `pods` fit new nodes of a skipped group, the result leaves out this group, and the method
        sets `pods.fits_skipped`. As in upstream, the pods then await a later scale-up
        (GetPodsAwaitingEvaluation).
        """
        snapshot, found = self._context.snapshot, {}
        for name in self._skipped:
            template = self._templates.get(name)
            if template is None:
                continue
            with snapshot.fork():
                template.add_to(snapshot)
                status = snapshot.rejection(pods.first, template.node.metadata.name)
            if status is not None:
                found[name] = status.reasons
            else:
                pods.fits_skipped = True
        return found
