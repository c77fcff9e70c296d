"""StaticAutoscaler: the main loop of Cluster Autoscaler.

    1. list nodes and pods, build the snapshot and the templates, update the cluster state
    2. repair: old unregistered instances, unhealthy cluster, create errors, wrong sizes
    3. place pending pods on existing or upcoming nodes; scale up for the other pods
    4. scale down

upstream: core/static_autoscaler.go: RunOnce
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import ApiObject, DaemonSet, Node, Pod
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    CloudProvider,
    NodeGroup,
)
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.node_readiness import (
    is_ready_and_schedulable,
    with_starting_nodes_unready,
)
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.registry import (
    ClusterStateRegistry,
)
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.event import WARNING, EventLog
from fairlead.engine.autoscaling.cluster_autoscaler.expander.chain import Choice
from fairlead.engine.autoscaling.cluster_autoscaler.fleet_repair import FleetRepair, RepairError
from fairlead.engine.autoscaling.cluster_autoscaler.lister import Listers
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.actuation.actuator import Actuator
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.drainability import DrainRules
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.planner import ScaleDownPlanner
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.scale_down import ScaleDown
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.status import (
    ScaleDownResult,
    ScaleDownStatus,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.equivalence import build_pod_groups
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.orchestrator import ScaleUpOrchestrator
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.pod_list import (
    PodList,
    are_all_new,
    without_young,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.status import (
    NoScaleUpInfo,
    ScaleUpResult,
    ScaleUpStatus,
    send_events,
)
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.cluster_snapshot import ClusterSnapshot
from fairlead.engine.autoscaling.cluster_autoscaler.taint import (
    TaintConfig,
    deletion_candidate_since,
)
from fairlead.engine.autoscaling.cluster_autoscaler.template import Template, TemplateProvider
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.state.pod_info import PodInfo

_CALLED: Final = frozenset(
    {ScaleUpResult.SUCCESSFUL, ScaleUpResult.ERROR, ScaleUpResult.NO_OPTIONS_AVAILABLE}
)


class LoopRecord(Struct):
    """The input and the decisions of one autoscaler loop."""

    at: Instant
    templates: Mapping[str, Template] | None = None
    # The pending pods of the loop; None if the loop ended before scale-up.
    unschedulable: Sequence[Pod] | None = None
    # The pods that need a new node: pending pods, and pods that a drain in progress will evict.
    to_help: Sequence[Pod] = ()
    choices: Sequence[Choice] = ()
    scale_ups: list[ScaleUpStatus] = field(default_factory=list)
    scale_down: ScaleDownStatus = field(default_factory=ScaleDownStatus)
    sleep_time: DurationNs = 0  # the time in ns that upstream would have slept in the loop
    error: str = ""  # the text of the error that ended the loop, or ""


class StaticAutoscaler:
    """Cluster Autoscaler: `put` and `remove` update its input, and `run_once` runs a loop.

    Commands are appended to `commands`, from which the caller takes them.
    """

    def __init__(
        self,
        provider: CloudProvider,
        options: AutoscalingOptions,
        pick: Callable[[int], int] | None = None,
        priorities: Callable[[], str | None] | None = None,
    ) -> None:
        """Create the autoscaler. `pick(n)` chooses one of n equal options and returns its index.

        `priorities()` returns the text of the priority expander's ConfigMap; None if there is no
        ConfigMap.
        """
        self.commands: list[Command] = []
        events = EventLog(self.commands, options.namespace, options.status_config_map_name)
        listers = Listers(options)
        self.context = AutoscalingContext(
            options,
            provider,
            listers,
            ClusterSnapshot(listers),
            self.commands,
            events,
            ClusterStateRegistry(provider, options, events),
        )
        if pick is not None:
            self.context.pick = pick
        if priorities is not None:
            self.context.priorities = priorities
        self._taints = TaintConfig(options)
        rules = DrainRules(options)
        context = self.context
        self.planner = ScaleDownPlanner(context, rules)
        self.actuator = Actuator(context, rules)
        self.orchestrator = ScaleUpOrchestrator(context)
        self._templates = TemplateProvider(provider, context.snapshot, options, self._taints)
        self._pods = PodList(context)
        self._repair = FleetRepair(context)
        self.scale_down = ScaleDown(context, self.planner, self.actuator)
        self._is_initialized = False
        # The nodes of the last loop by name: (stored node, node as `_listed_nodes` returns it).
        self._listed: dict[str, tuple[Node, Node]] = {}

    # --- changes of the cluster ------------------------------------------------------------

    def put(self, changed: ApiObject) -> None:
        """Pass a new or changed object to the listers and the snapshot."""
        self.context.listers.put(changed)
        self.context.snapshot.put(changed)

    def put_unread(self, changed: ApiObject) -> None:
        """Store an object that changed only in parts that no loop reads."""
        self.context.listers.put(changed)
        if not isinstance(changed, Pod):
            self.context.snapshot.put(changed)

    def remove(self, gone: ApiObject) -> None:
        """Remove a deleted object from the listers and the snapshot."""
        self.context.listers.remove(gone)
        self.context.snapshot.remove(gone)

    # --- the loop --------------------------------------------------------------------------

    def run_once(self, now: Instant) -> LoopRecord:
        """Run one loop and return its record."""
        record = LoopRecord(now)
        self._loop(record, now)
        record.choices = self.orchestrator.choices
        record.scale_down.delete_results = self.actuator.tracker.take_results(now)
        return record

    def _loop(self, record: LoopRecord, now: Instant) -> None:
        self._clean_up_once(now)
        listers = self.context.listers
        nodes = self._listed_nodes()
        self.context.placeholders.clear()
        self.orchestrator.choices = []
        deletions = self.actuator.tracker.in_progress()
        with self.context.snapshot.loop(listers.nodes):
            for node in nodes:
                if node is not listers.nodes[node.metadata.name]:
                    self.context.snapshot.replace_node(node)
            templates = self._templates.process(nodes, listers.all_of(DaemonSet), now)
            record.templates = templates
            self.context.registry.update_nodes(nodes, frozenset(templates), now)
            try:
                if self._has_repaired(now):
                    record.scale_ups.append(ScaleUpStatus(ScaleUpResult.NOT_TRIED))
                    return
            except RepairError as failure:
                record.error = str(failure)
                record.scale_ups.append(ScaleUpStatus(ScaleUpResult.NOT_TRIED))
                return
            nodes = self._add_upcoming(nodes, templates, now)
            enforces_min_size = self.context.options.enforce_node_group_min_size
            # The nodes before scale-up. With --salvo-scale-up, scale-up adds new nodes to the
            # snapshot.
            present = self.context.nodes_with_group() if enforces_min_size else []
            may_scale_down = self._scale_up(record, nodes, templates, deletions.drained, now)
            if record.scale_ups[-1].result is ScaleUpResult.SUCCESSFUL:
                record.scale_down.result = ScaleDownResult.IN_COOLDOWN
            if self.context.options.scale_down_enabled:
                self.scale_down.run(
                    record.scale_down, nodes, deletions, now, is_forbidden=not may_scale_down
                )
                record.sleep_time = self.scale_down.sleep_time
            if enforces_min_size:
                self._enforce_min_size(record, templates, present, now)

    def _listed_nodes(self) -> list[Node]:
        """Return the listed nodes in order; nodes that are still starting are marked unready."""
        taints, gpu_label = self._taints, self.context.provider.gpu_label
        before, self._listed = self._listed, {}
        for name, node in self.context.listers.nodes.items():
            known = before.get(name)
            if known is None or known[0] is not node:
                known = node, with_starting_nodes_unready(node, taints, gpu_label)
            self._listed[name] = known
        return [listed for _, listed in self._listed.values()]

    def _clean_up_once(self, now: Instant) -> None:
        """Remove taints that an earlier process may have left. Only the first call does this.

        The flag --node-deletion-candidate-ttl, which Cluster Autoscaler 1.34 added, keeps the soft
        taints that are not older than its value. The node of such a taint then counts as unneeded
        since the time in the taint.

        upstream: core/scaledown/unneeded/nodes.go: LoadFromExistingTaints
        """
        if self._is_initialized:
            return
        self._is_initialized = True
        options, writer = self.context.options, self.actuator.writer
        for name, node in list(self.context.listers.nodes.items()):
            if self.context.group_of(node) is not None:
                self._take_over(writer.clean_to_be_deleted(name))
            since, ttl = deletion_candidate_since(node), options.node_deletion_candidate_ttl
            if ttl and since is not None and since + ttl >= now:
                self.planner.resume({name: since})
            elif not options.max_bulk_soft_taint_count:
                self._take_over(writer.clean_deletion_candidate(name))

    def _take_over(self, node: Node | None) -> None:
        """Store `node`, the result of the patch that was just sent; do nothing if it is None."""
        if node is not None:
            self.put(node)

    def _has_repaired(self, now: Instant) -> bool:
        """Repair instances and target sizes; return whether the autoscaler loop must end early.

        Raises RepairError if the provider refuses to lower a target size.
        """
        context, registry = self.context, self.context.registry
        self._repair.remove_old_unregistered(now)
        if not registry.is_cluster_healthy():
            self.planner.unneeded.clear()
            context.events.on_status(WARNING, "ClusterUnhealthy", "Cluster is unhealthy")
            return True
        self._repair.delete_failed_instances(now)
        return self._repair.fix_sizes(now)

    def _add_upcoming(
        self, nodes: Sequence[Node], templates: Mapping[str, Template], now: Instant
    ) -> list[Node]:
        """Add a placeholder to the snapshot for each upcoming node.

        The upcoming nodes of a group include its registered nodes that are still starting. So these
        nodes are removed from the snapshot. Returns `nodes` without the starting nodes.
        """
        context, starting = self.context, set()
        for group, count in sorted(context.registry.upcoming_nodes(now).items()):
            starting |= set(context.registry.not_started(group))
            template = templates.get(group)
            for index in range(count if template is not None else 0):
                assert template is not None
                name = f"{template.node.metadata.name}-upcoming-{index}"
                template.add_to(context.snapshot, name)
                context.placeholders[name] = group
        for name in sorted(starting):
            context.snapshot.remove_node(name)
        return [node for node in nodes if node.metadata.name not in starting]

    def suitable_groups(
        self, pods: Iterable[Pod], now: Instant
    ) -> dict[str, tuple[NodeGroup, ...]]:
        """Return {pod key: groups whose new nodes would suit the pod} for `pods`.

        Groups at their maximum size are included, although scale-up does not compare pods with
        these groups. Pods without suitable groups are left out.
        """
        context, found = self.context, dict[str, tuple[NodeGroup, ...]]()
        nodes = self._listed_nodes()
        with context.snapshot.loop(context.listers.nodes):
            templates = self._templates.process(nodes, context.listers.all_of(DaemonSet), now)
            samples = build_pod_groups([context.snapshot.pod_info(pod) for pod in pods])
            for group in context.provider.node_groups():
                template = templates.get(group.id)
                if template is None:
                    continue
                with context.snapshot.fork():
                    template.add_to(context.snapshot)
                    for alike in samples:
                        name = template.node.metadata.name
                        if context.snapshot.rejection(alike.first, name) is None:
                            for pod in alike.pods:
                                found[pod.key] = (*found.get(pod.key, ()), group)
        return found

    # --- scale-up --------------------------------------------------------------------------

    def _scale_up(
        self,
        record: LoopRecord,
        nodes: Sequence[Node],
        templates: Mapping[str, Template],
        drained: Collection[str],
        now: Instant,
    ) -> bool:
        """Scale up for the pods that fit no node. Return False if scale-down has to wait.

        `drained` are the names of the nodes that are being drained.
        """
        options = self.context.options
        record.unschedulable = self.context.listers.unschedulable_pods()
        pods = self._pods.process(record.unschedulable, drained)
        record.to_help = [pod.pod for pod in pods]
        pods = without_young(pods, options.new_pod_scale_up_delay, now)
        if not pods:
            self._report(record, ScaleUpStatus(ScaleUpResult.NOT_NEEDED))
        elif 0 < options.max_nodes_total <= sum(map(is_ready_and_schedulable, nodes)):
            message = f"Max total nodes in cluster reached: {options.max_nodes_total}"
            self.context.events.on_status(WARNING, "MaxNodesTotalReached", message)
            remain = [NoScaleUpInfo(pod.pod, {}, {}) for pod in pods]
            limited = ScaleUpStatus(ScaleUpResult.LIMITED_BY_MAX_NODES_TOTAL, remain=remain)
            self._report(record, limited)
        elif not options.bypassed_scheduler_names and are_all_new(pods, now):
            self._report(record, ScaleUpStatus(ScaleUpResult.IN_COOLDOWN))
            return False
        else:
            self._attempts(record, pods, templates, now)
        return True

    def _attempts(
        self,
        record: LoopRecord,
        pods: Sequence[PodInfo],
        templates: Mapping[str, Template],
        now: Instant,
    ) -> None:
        """Try to scale up for `pods`.

        By default, there is one attempt. If --salvo-scale-up is set, attempts are repeated until an
        attempt fails or no pods remain. The attempts also end if a pod does not fit the nodes that
        an attempt added for the pod.

        upstream: static_autoscaler.go: runScaleUpSalvo
        """
        while pods:
            status = self.orchestrator.scale_up(pods, templates, now)
            self._report(record, status)
            if status.result is not ScaleUpResult.SUCCESSFUL:
                return
            self.scale_down.last_scale_up = now
            if not self.context.options.salvo_scale_up:
                return
            by_key = {pod.key: pod for pod in pods}
            helped = [by_key.pop(pod.key) for pod in status.triggered]
            pods = list(by_key.values())
            # If no pods are left, no later attempt needs the new nodes. Upstream then does not add
            # them to the snapshot.
            if pods and not self._add_scale_up(helped, status, templates):
                return

    def _add_scale_up(
        self,
        helped: Sequence[PodInfo],
        status: ScaleUpStatus,
        templates: Mapping[str, Template],
    ) -> bool:
        """Add the new nodes of a scale-up to the snapshot, and place the `helped` pods on them.

        `helped` must be in the order in which the estimation packed the pods. Stops and returns
        False at the first pod that fits no new node.
        upstream: static_autoscaler.go: addLatestScaleUpResultsToClusterSnapshot
        """
        snapshot = self.context.snapshot
        first = len(snapshot.node_names)
        for info in sorted(status.infos, key=lambda one: one.group):
            template = templates[info.group]
            for index in range(info.new - info.current):
                name = f"{template.node.metadata.name}-salvo-{first}-{index}"
                template.add_to(snapshot, name)
                self.context.placeholders[name] = info.group
        for pod in helped:
            name_found = snapshot.find_place(pod, first=first)
            if name_found is None:
                return False
            snapshot.add_pod(pod, name_found)
        return True

    def _report(self, record: LoopRecord, status: ScaleUpStatus) -> None:
        record.scale_ups.append(status)
        send_events(status, self.context.events)

    def _enforce_min_size(
        self,
        record: LoopRecord,
        templates: Mapping[str, Template],
        present: Sequence[tuple[Node, str | None]],
        now: Instant,
    ) -> None:
        status = self.orchestrator.scale_up_to_min_size(templates, present, now)
        # Upstream keeps only one status per loop. It processes the status after each attempt to
        # scale up, or at the end of the loop if there was no attempt. So the new status replaces a
        # status that only states why no attempt was made.
        record.scale_ups = [one for one in record.scale_ups if one.result in _CALLED]
        record.scale_ups.append(status)
        send_events(status, self.context.events)
        if status.result is ScaleUpResult.SUCCESSFUL:
            self.scale_down.last_scale_up = now
