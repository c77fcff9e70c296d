"""Karpenter: the controllers of Karpenter as one controller of the engine.

    provisioning  a pass for pending pods and for pods on Nodes that are being removed; the Batcher
                  decides when it runs (provisioning/batcher)
    NodeClaims    launch, conditions, drain and removal (nodeclaim/lifecycle)
    disruption    a loop every ten seconds, if something has changed (disruption/loop)
    static pools  launches and removals; the number of nodes stays spec.replicas (static/controller)

If `serves_resources` is configured, NodePools and NodeClaims are custom resources of the API server
(module served_resources). Otherwise they are in the configuration, and NodeClaims that Karpenter
creates exist only in this controller.
"""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec.structs import replace

from fairlead.api.nodes.autoscaler_taint import DISRUPTED_TAINT
from fairlead.api.objects import ApiObject, Node, Pod, PodDisruptionBudget, Unstructured
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.autoscaling.capacity_outage import CapacityOutage
from fairlead.engine.autoscaling.eviction_reporter import EvictionReporter
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim, NodeOverlay, NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.unavailable_offerings import (
    UnavailableOfferings,
)
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.autoscaling.karpenter.context import KarpenterContext, pod_ref
from fairlead.engine.autoscaling.karpenter.disruption.loop import DisruptionController
from fairlead.engine.autoscaling.karpenter.history import KarpenterHistory, LimitedUse
from fairlead.engine.autoscaling.karpenter.nodeclaim.lifecycle import NodeClaimLifecycle
from fairlead.engine.autoscaling.karpenter.nodeclaim.lifetime import is_pod_event, last_event_at
from fairlead.engine.autoscaling.karpenter.overlay import OverlaidTypes
from fairlead.engine.autoscaling.karpenter.pod import (
    is_owned_by,
    is_provisionable,
    is_unschedulable,
)
from fairlead.engine.autoscaling.karpenter.provisioning.batcher import Batcher
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.autoscaling.karpenter.provisioning.reached_limit import reached_limits
from fairlead.engine.autoscaling.karpenter.served_resources import (
    OWN_KINDS,
    ServedResources,
    karpenter_view,
)
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster, KarpenterObject
from fairlead.engine.autoscaling.karpenter.state.pool_count import limited_use
from fairlead.engine.autoscaling.karpenter.static.controller import StaticPools
from fairlead.engine.autoscaling.karpenter.template_hash import hash_of, template_hash, with_hash
from fairlead.engine.autoscaling.reached_limit import ReachedLimit
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    DeleteObject,
    EvictPod,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest, WritesTo
from fairlead.engine.core.issuer import KARPENTER, Issuer
from fairlead.engine.core.reporter import Reporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)

_PROVISIONED: Final = "Provisioned"
_IGNORED: Final = "pods of DaemonSets trigger no scale-up"


class Karpenter:
    """Karpenter as one controller of the engine; `history` records its actions."""

    issuer: ClassVar[Issuer] = KARPENTER
    interest: ClassVar[Interest] = Interest(
        succeeded=(EvictPod, WritesTo(DeleteObject, ("Pod",))),
        failed=(CreateObject, PatchObject, PatchStatus, DeleteObject, EvictPod),
    )

    def __init__(
        self, config: KarpenterConfig, reporter: Reporter, *, seed: int, start: Instant
    ) -> None:
        """Create the controller. Its first disruption loop runs one period after `start`.

        The controller reports evictions to `reporter`. `seed` determines the names and provision
        times of machines.
        """
        self._evictions = EvictionReporter(reporter)
        self._options = config.options
        self.cluster = KarpenterCluster(config.options.nomination)
        claims = (_with_creation_time(one, start) for one in config.claims)
        objects: tuple[KarpenterObject, ...] = (*config.pools, *claims, *config.overlays)
        for one in objects:
            self.cluster.put(one, start)
        well_known = config.options.well_known_labels
        offerings = UnavailableOfferings(config.types, well_known, config.class_types)

        def types_of(pool: NodePool) -> InstanceTypeTable:
            return offerings.table_of(pool.spec.template.spec.node_class_ref)

        overlaid = OverlaidTypes(self.cluster, types_of, config.options)
        served = ServedResources(self.cluster) if config.serves_resources else None
        self._context = KarpenterContext(
            self.cluster, offerings, overlaid.table, served, self._change_claims
        )
        self._provisioner = Provisioner(self.cluster, overlaid.table, config.options)
        self._claims = NodeClaimLifecycle(self._context, config, seed=seed, start=start)
        self._disruption = DisruptionController(
            self._context, self._claims, self._provisioner, config.options, start=start
        )
        self._static = StaticPools(
            self._context, self._claims, self._disruption.replaced_claims, config.options
        )
        self._batcher = Batcher(config.options)

    @property
    def history(self) -> KarpenterHistory:
        """The actions of Karpenter so far."""
        return self._context.history

    def price_of(self, claim: NodeClaim) -> float:
        """Return the hourly price of the NodeClaim's machine; 0 if its offering is unknown."""
        return self._claims.price_of(claim)

    def add_outage(self, outage: CapacityOutage) -> None:
        """Add an outage of the simulated provider."""
        self._claims.add_outage(outage)

    def pods_without_node(self) -> dict[str, str]:
        """Return the pods for which Karpenter creates no node, each with the reason.

        Pods that still have a node are left out. Upstream publishes an event about such a pod, too,
        if its node is being deleted and no other node can be created for the pod. The result also
        contains `ignored_pods`.
        """
        placed = {pod.key for pod in self.cluster.pods.values() if pod.spec.node_name}
        errors = {key: why for key, why in self.history.errors.items() if key not in placed}
        return errors | self.ignored_pods()

    def ignored_pods(self) -> dict[str, str]:
        """Return the unschedulable pods of DaemonSets, about which upstream publishes no event."""
        return {
            pod.key: _IGNORED
            for pod in self.cluster.pods.values()
            if is_unschedulable(pod) and is_owned_by(pod, "DaemonSet")
        }

    def reached_limits(self, now: Instant) -> dict[str, tuple[ReachedLimit, ...]]:
        """Return the NodePool limits that keep pods from getting nodes, by pod key."""
        return reached_limits(self._provisioner, self.cluster, self.pods_without_node(), now)

    def pools_without_types(self) -> dict[str, str]:
        """Return the NodePools that no instance type matches, each with upstream's event text."""
        return self._provisioner.pools_without_types()

    def limited_use(self, since: Instant, now: Instant) -> dict[str, dict[str, int]]:
        """Return the greatest capacity that the nodes of each NodePool had from `since` to `now`.

        The result contains only NodePools with limits. The result maps each NodePool to a mapping:
        {resource that the NodePool limits: greatest amount}. The limits must allow these amounts,
        even if Karpenter removes nodes later.
        """
        pools = self.cluster.node_pools.values()
        found = {one.name: limited_use(self.cluster, one, now) for one in pools if one.spec.limits}
        for one in self.history.uses:
            most = found.get(one.pool, {}) if one.at >= since else {}
            for name in most:
                most[name] = max(most[name], one.amounts.get(name, 0))
        return found

    def kept_nodes(self, now: Instant) -> dict[str, str]:
        """Return the nodes and NodeClaims that Karpenter keeps, each with upstream's reason.

        A reason that applies now replaces a reason that an earlier disruption loop found.
        """
        return self._disruption.kept_nodes(now)

    def drifted_nodes(self, now: Instant) -> dict[str, str]:
        """Return the drifted nodes that are not being deleted, each with the reason.

        See `DisruptionController.drifted_nodes`.
        """
        return self._disruption.drifted_nodes(now)

    def awaited_budgets(self, now: Instant) -> tuple[list[str], Instant] | None:
        """Return the nodes whose disruption a budget forbids, and when a budget next changes.

        See `DisruptionController.awaited_budgets`.
        """
        return self._disruption.awaited_budgets(now)

    # --- stimuli -----------------------------------------------------------------------------

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Apply a change of the cluster and return commands."""
        match stimulus:
            case ObjectsLoaded(objects):
                # NodePools and NodeClaims come first, because each Node is joined with its
                # NodeClaim.
                for one in sorted(objects, key=lambda one: not isinstance(one, Unstructured)):
                    # If `served` is None, custom resources come from the configuration.
                    if self._context.served is not None or not isinstance(one, Unstructured):
                        self._observe(one, now)
                self._claims.continue_configured(now)
                self._claims.garbage_collect(now)
                self._static.change(now)
            case ObjectChanged(changed):
                self._observe(changed, now)
            case ObjectDeleted(gone):
                self._forget(gone, now)
            case CommandFailed():
                self._observe_failure(stimulus, now)
            case CommandSucceeded(EvictPod() | DeleteObject() as command):
                self._evictions.succeeded(command, now)
                return []
            case _:
                return []
        return self._take_commands()

    def _observe_failure(self, failure: CommandFailed, now: Instant) -> None:
        """Schedule a retry of a failed command, or remove the command's NodeClaim."""
        match failure:
            case CommandFailed(CreateObject() as command, reason, message):
                self._claims.observe_failed_creation(command, reason, message, now)
            case CommandFailed(PatchObject() | DeleteObject() as command, reason) if (
                command.target.kind == "Node"
            ):
                if reason is not FailureReason.NOT_FOUND:
                    self._claims.observe_failed_write(command, now)
            case CommandFailed(EvictPod() as command):
                pod = self.cluster.pods.get(command.pod.key)
                if pod is not None:
                    self._claims.observe_refused_eviction(pod, now)
            case CommandFailed(PatchObject() | PatchStatus() | DeleteObject() as command):
                if self._context.served is not None and command.target.kind in OWN_KINDS:
                    self._context.served.failed(command, now)
            case _:
                pass

    def _observe(self, obj: ApiObject, now: Instant) -> None:
        if isinstance(obj, Pod):
            self._observe_pod(obj, now)
        elif isinstance(obj, Node):
            self._observe_node(obj, now)
        elif isinstance(obj, PodDisruptionBudget):
            self._observe_budget(obj, now)
        elif isinstance(obj, Unstructured):
            self._observe_resource(obj, now)
        else:
            self.cluster.put(obj, now)

    def _observe_resource(self, obj: Unstructured, now: Instant) -> None:
        """Apply a change of one of Karpenter's custom resources."""
        match karpenter_view(obj):
            case NodePool() as pool:
                self._observe_pool(pool, now)
            case NodeClaim() as claim:
                if self._context.served is not None:
                    self._claims.observe_claim(claim, self._context.served, now)
                elif claim.metadata.deletion_timestamp:
                    self._delete_claim(claim.name, now)
                # The initial NodeClaims come from the configuration, so this one is a user's.
                elif claim.name not in self.cluster.node_claims and not claim.status.provider_id:
                    self._claims.launch_standalone(claim, now)
            case NodeOverlay() as overlay:
                self.cluster.put(overlay, now)
                self._change(now)

    def _observe_pool(self, pool: NodePool, now: Instant) -> None:
        old = self.cluster.node_pools.get(pool.name)
        if self._context.served is None and old is not None:
            pool = self._with_comparable_hash(pool, old, now)
        self.cluster.put(pool, now)
        if old is None or (old.spec, old.metadata.uid) != (pool.spec, pool.metadata.uid):
            if self._context.served is not None:
                self._context.served.pool_changed(pool.name)
            self._claims.check_conditions(now)
            self._static.retry(now)
            self._change(now)

    def _with_comparable_hash(self, pool: NodePool, old: NodePool, now: Instant) -> NodePool:
        """Return `pool`, the new version of `old`, with the hash that its NodeClaims must match.

        If the templates of both versions are equal, the result has the hash of `old`. The real
        Karpenter may have written that hash, and Fairlead would compute a different one. If the
        template has changed, `pool` is returned unchanged. NodeClaims of the pool that have no hash
        then get the hash of the old template, so that they count as drifted.
        """
        if template_hash(pool) == template_hash(old):
            return with_hash(pool, hash_of(old))
        for claim in list(self.cluster.node_claims.values()):
            if claim.node_pool == pool.name and not hash_of(claim):
                self.cluster.put(with_hash(claim, template_hash(old)), now)
        return pool

    def _delete_claim(self, name: str, now: Instant) -> None:
        claim = self.cluster.node_claims.get(name)
        if claim is not None:
            self._claims.delete(claim, "Deleted", now)

    def _observe_pod(self, pod: Pod, now: Instant) -> None:
        old = self.cluster.pods.get(pod.key)
        self.cluster.put(pod, now)
        was_refused = self._claims.refused_evictions.forget(pod)
        if is_pod_event(old, pod):
            # A restarted Karpenter counts every pod that it receives as a new one. In a simulation,
            # Karpenter has been running before the start.
            is_older = old is None and self._context.served is None
            at = last_event_at(pod, now) if is_older else now
            self._claims.note_pod_event(pod.spec.node_name, at, now)
        if is_provisionable(pod):
            self._batcher.add(pod.key, now)
        else:
            self._discard_trigger(pod.key, now)
        if old is None or _read_of_pod(old) != _read_of_pod(pod):
            self._change(now)
            was_refused = True
        if was_refused:
            self._claims.continue_drain(pod.spec.node_name, now)

    def _observe_node(self, node: Node, now: Instant) -> None:
        old = self.cluster.node_objects.get(node.metadata.name)
        self._claims.observe_node(node, now)
        self._observe_taints(node, now)
        if old is not None and _read_of_node(old) != _read_of_node(node):
            self._change(now)

    def _observe_budget(self, budget: PodDisruptionBudget, now: Instant) -> None:
        old = self.cluster.budgets.get(budget.key)
        self.cluster.put(budget, now)
        if old is None or _read_of_budget(old) != _read_of_budget(budget):
            self._change(now)
        if old is not None and _eviction_conditions(old) != _eviction_conditions(budget):
            self._release_evictions(now, old, budget)

    def _release_evictions(self, now: Instant, *versions: PodDisruptionBudget) -> None:
        """Repeat the refused evictions of the pods that a changed or deleted budget selects.

        `versions` are the budget before and after the change. If the budget was deleted, `versions`
        contains only its last version. The eviction of a pod is repeated if any version selects the
        pod.
        """
        for pod in self._claims.refused_evictions.release(*versions):
            self._claims.continue_drain(pod.spec.node_name, now)

    def _observe_taints(self, node: Node, now: Instant) -> None:
        """Let the Node trigger provisioning passes as long as it has the disruption taint."""
        # upstream: provisioning/controller.go:NodeController.Reconcile
        if any(taint.key == DISRUPTED_TAINT for taint in node.spec.taints):
            self._batcher.add(node.metadata.name, now)
        else:
            self._discard_trigger(node.metadata.name, now)

    def _discard_trigger(self, trigger: str, now: Instant) -> None:
        """Remove a trigger of provisioning passes.

        While there are triggers, each pass renews the nominations of nodes, so the nominations do
        not end. If the last trigger is removed, no pass follows. So this method sets the time at
        which the nominations end.
        """
        if self._batcher.discard(trigger):
            self.cluster.release_nominations(self._batcher.renewed(now))
            self._disruption.change(now)

    def _forget(self, obj: ApiObject, now: Instant) -> None:
        if isinstance(obj, Unstructured):
            self._forget_resource(obj, now)
            return
        self.cluster.remove(obj, now)
        if isinstance(obj, Pod):
            self._discard_trigger(obj.key, now)
            self._claims.refused_evictions.forget(obj)
            self._claims.continue_drain(obj.spec.node_name, now)
        if isinstance(obj, PodDisruptionBudget):
            self._release_evictions(now, obj)
        if isinstance(obj, Node):
            self._discard_trigger(obj.metadata.name, now)
            self._claims.observe_deleted_node(obj, now)
        self._change(now)

    def _forget_resource(self, obj: Unstructured, now: Instant) -> None:
        served = self._context.served
        match karpenter_view(obj):
            case NodePool() | NodeOverlay() as gone:
                self.cluster.remove(gone, now)
                if served is not None:
                    served.pool_changed(gone.name)
                elif isinstance(gone, NodePool):
                    self._delete_claims_of(gone.name, now)
                self._change(now)
            case NodeClaim() as gone:
                if served is not None:
                    served.gone(gone.name)
                self._delete_claim(gone.name, now)  # in case a user removed the finalizer

    def _delete_claims_of(self, pool: str, now: Instant) -> None:
        """Delete the NodeClaims of a deleted NodePool, as the garbage collector does.

        Call this if `serves_resources` is False, because the garbage collector then cannot see all
        NodeClaims.
        """
        for claim in list(self.cluster.node_claims.values()):
            if claim.node_pool == pool:
                self._claims.delete(claim, "Deleted", now)

    def _change(self, now: Instant) -> None:
        """Record a change of the cluster.

        The disruption loop and provisioning passes then run again.
        """
        self._disruption.change(now)
        self._batcher.change(now)

    def _change_claims(self, now: Instant) -> None:
        """Record a change by Karpenter, as `_change` does; also have static NodePools checked."""
        self._static.change(now)
        self._change(now)

    # --- deadlines -----------------------------------------------------------------------------

    def next_deadline(self) -> Instant | None:
        """Return the time at which a part of Karpenter next has work, or None."""
        due = (
            self._claims.next_due(),
            self._batcher.due(),
            self._context.offerings.next_expiry(),
            self._disruption.next_due(),
            self._static.next_due(),
            None if self._context.served is None else self._context.served.next_due(),
        )
        return min((one for one in due if one is not None), default=None)

    @property
    def removal_times(self) -> tuple[Instant, ...]:
        """The times at which nodes may be removed because the wait for consolidateAfter ends."""
        return self._claims.consolidation_times

    def is_working(self) -> bool:
        """Return whether work in progress will change the cluster.

        A pod that waits for an unavailable offering counts as work in progress if the provider will
        be able to deliver the offering later. A node that waits for consolidateAfter does not count
        as work in progress.
        """
        # A pass that changes nothing schedules no further pass, so idle triggers do not count.
        return (
            self._claims.is_working()
            or self._batcher.due() is not None
            or self._disruption.is_waiting()
            or self._static.is_waiting()
            or (self._batcher.has_triggers and self._context.offerings.has_temporary)
        )

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Do all work that is due at `now`."""
        if self._context.offerings.expire(now):
            self._static.retry(now)
            self._change(now)
        if self._context.served is not None:
            self._context.commands.extend(self._context.served.repeated(now))
        self._claims.repeat_failed_writes(now)
        self._claims.create_ready_nodes(now)
        batch_due = self._batcher.due()
        if batch_due is not None and batch_due <= now:
            self._provision(now)
        self._claims.update_conditions(now)
        self._disruption.process_queue(now)
        self._static.reconcile(now)
        self._claims.drain(now)
        self._disruption.disrupt(now)
        return self._take_commands()

    def _take_commands(self) -> list[Command]:
        commands = self._context.take_commands()
        self._evictions.sent(commands, self.cluster.pods.get)
        return commands

    # --- provisioning ----------------------------------------------------------------------------

    def _provision(self, now: Instant) -> None:
        if self.cluster.release_nominations(self._batcher.renewed(now)):
            self._disruption.change(now)
        self._batcher.start_pass(now)
        result = self._provisioner.provision(now)
        nominated = [node.state.key for node in result.existing if node.pods]
        for key in nominated:
            self.cluster.nominate(key, now)
        if self._batcher.has_triggers:
            self.cluster.hold_nominations(nominated)
        for request in sorted(result.requests, key=lambda one: min(one.pods)):
            name = self._claims.create(request, _PROVISIONED, now)
            for key in request.pods:
                note = f"Pod should schedule on: nodeclaim/{name}"
                self._context.record_event(pod_ref(key), "Normal", "Nominated", note)
        for pool in {one.pool.name: one.pool for one in result.requests}.values():
            if pool.spec.limits:
                use = LimitedUse(now, pool.name, limited_use(self.cluster, pool, now))
                self.history.uses.append(use)
        problems = {**result.ignored, **result.errors}
        for key, text in problems.items():
            if text and self.history.errors.get(key) != text:
                note = text if key in result.ignored else f"Failed to schedule pod, {text}"
                self._context.record_event(pod_ref(key), "Warning", "FailedScheduling", note)
        self.history.errors = {key: text for key, text in problems.items() if text}
        self.history.refusals.update(self.history.errors, now)


def _with_creation_time(claim: NodeClaim, start: Instant) -> NodeClaim:
    """Return `claim`. If it has no creation time, return a copy that was created at `start`.

    A NodeClaim in a handwritten file may have no creation time.
    """
    if claim.metadata.creation_timestamp:
        return claim
    created = format_timestamp(start)
    return replace(claim, metadata=replace(claim.metadata, creation_timestamp=created))


# --- the parts of objects that the loops read ----------------------------------------------------


def _read_of_pod(pod: Pod) -> tuple[object, ...]:
    return pod.spec, pod.status.phase, pod.metadata.annotations


def _read_of_node(node: Node) -> tuple[object, ...]:
    ready = next((one.status for one in node.status.conditions if one.type == "Ready"), "")
    meta = node.metadata
    return meta.labels, meta.annotations, node.spec.taints, node.status.allocatable, ready


def _eviction_conditions(budget: PodDisruptionBudget) -> tuple[object, ...]:
    """Return the parts of `budget` that decide whether it refuses an eviction."""
    # upstream: pkg/registry/core/pod/storage/eviction.go:Create
    status = budget.status
    spares_unready = status.current_healthy >= status.desired_healthy > 0
    return budget.spec, status.disruptions_allowed == 0, spares_unready


def _read_of_budget(budget: PodDisruptionBudget) -> tuple[object, ...]:
    return budget.spec, budget.status.disruptions_allowed == 0
