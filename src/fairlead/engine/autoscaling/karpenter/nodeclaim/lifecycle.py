"""NodeClaimLifecycle: NodeClaims from their launch to the removal of their nodes.

    launch        the cheapest offering that the provider delivers; the NodeClaim fails if there is
                  no such offering
    registration  the Node appears just before the end of the provision time and is joined with its
                  NodeClaim
    readiness     the NodeClaim is initialized when pods can run on its Node
    conditions    Consolidatable and Drifted; expired NodeClaims are deleted
    termination   the node of a deleted NodeClaim is tainted, drained and removed

upstream: pkg/controllers/nodeclaim/lifecycle, expiration and disruption; node/termination
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Final

from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.finalizer import TERMINATION
from fairlead.api.json import Json
from fairlead.api.nodes.autoscaler_taint import DISRUPTED_TAINT
from fairlead.api.nodes.readiness import is_starting
from fairlead.api.objects import Node, Pod, Taint
from fairlead.api.pods.facts import condition
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import INSTANCE_TYPE, ZONE
from fairlead.engine.autoscaling.capacity_outage import CapacityOutage
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.autoscaling.karpenter.context import KarpenterContext, node_ref
from fairlead.engine.autoscaling.karpenter.history import KarpenterNodeChange
from fairlead.engine.autoscaling.karpenter.labels import (
    CAPACITY_TYPE,
    INITIALIZED,
    NODE_POOL,
    REGISTERED,
)
from fairlead.engine.autoscaling.karpenter.nodeclaim.conditions import ClaimConditions
from fairlead.engine.autoscaling.karpenter.nodeclaim.lifetime import expires_at, with_pod_event
from fairlead.engine.autoscaling.karpenter.nodeclaim.machines import (
    Machines,
    adopted_claim,
    initialized,
    node_of,
    registered,
)
from fairlead.engine.autoscaling.karpenter.nodeclaim.refused_eviction import RefusedEvictions
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import label_requirements
from fairlead.engine.autoscaling.karpenter.served_resources import ServedResources
from fairlead.engine.autoscaling.karpenter.state.statenode import is_ephemeral
from fairlead.engine.autoscaling.karpenter.termination import RETRY_NS as DRAIN_RETRY_NS
from fairlead.engine.autoscaling.karpenter.termination import drain_step
from fairlead.engine.autoscaling.node_dependents import DEPENDENT_KINDS, NodeDependents
from fairlead.engine.core.command import (
    CreateObject,
    DeleteObject,
    EvictPod,
    ObjectRef,
    PatchObject,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import FailureReason

_DISRUPTED: Final = Taint(key=DISRUPTED_TAINT, effect="NoSchedule")
_CREATED_BY_USER: Final = "Created by a user"
_NOT_REGISTERED: Final = "registration_timeout"
_EXPIRED: Final = "Expired"
_NO_CAPACITY: Final = (
    "insufficient capacity, all requested instance types were unavailable during launch"
)


class NodeClaimLifecycle:
    """Manages NodeClaims from launch to removal.

    `reasons` contains the reason for each removal in progress, by the name of the NodeClaim.
    """

    def __init__(
        self, context: KarpenterContext, config: KarpenterConfig, *, seed: int, start: Instant
    ) -> None:
        """Create the lifecycle. The conditions of all NodeClaims are first checked at `start`.

        `seed` determines the names and provision times of machines.
        """
        self._context = context
        self._conditions = ClaimConditions(context.types_of, lambda _: "")
        self._machines = Machines(config, context.offerings, seed=seed, start=start)
        self._node_info = config.node_info
        self._place_labels = config.place_labels
        self._dependents = config.dependents
        self._created_nodes: set[str] = set()  # the names of the Nodes that this object created
        self._starting: set[str] = set()  # the names of Nodes that are not initialized yet
        self._configured = config.claims
        self._has_loaded = False
        self.reasons: dict[str, str] = {}
        self._conditions_at: Instant | None = start
        self._checks: dict[str, Instant] = {}  # when a NodeClaim's conditions may change
        self._check_times: list[tuple[Instant, str]] = []  # a heap that contains `_checks`
        # When NodeClaims become Consolidatable as time passes.
        self._not_yet_consolidatable: dict[str, Instant] = {}
        self._draining: dict[str, Instant] = {}  # when the drain continues, by NodeClaim
        self.refused_evictions = RefusedEvictions()
        self._failed_taints: dict[str, Instant] = {}  # the time of the retry, by node

    # --- deadlines -----------------------------------------------------------------------------

    def next_due(self) -> Instant | None:
        """Return the time at which work is due next; None if no work is scheduled."""
        draining = min(self._draining.values(), default=None)
        failed = min(self._failed_taints.values(), default=None)
        due = (self._machines.next_due(), self._conditions_at, draining, failed)
        return min((one for one in due if one is not None), default=None)

    def is_working(self) -> bool:
        """Return whether a machine is starting or a node is being drained."""
        return self._machines.is_waiting() or bool(self._draining)

    @property
    def consolidation_times(self) -> tuple[Instant, ...]:
        """The times at which NodeClaims become Consolidatable, at the end of consolidateAfter."""
        return tuple(self._not_yet_consolidatable.values())

    def continue_drain(self, node: str, now: Instant) -> None:
        """Continue a drain of `node`, because a pod on it or a budget of a pod has changed."""
        claim = self._claim_on(node) if node and self._draining else None
        if claim is not None and claim.name in self._draining:
            self._draining[claim.name] = min(self._draining[claim.name], now)

    def check_conditions(self, now: Instant) -> None:
        """Make `update_conditions` check all changed NodeClaims at `now`."""
        self._conditions_at = now

    def add_outage(self, outage: CapacityOutage) -> None:
        """Add an outage of the simulated provider."""
        self._machines.add_outage(outage)

    # --- launch --------------------------------------------------------------------------------

    def continue_configured(self, now: Instant) -> None:
        """Continue the launches and removals of the NodeClaims in the configuration.

        Call this after the Nodes that exist at the start have been observed. If a Node of a
        NodePool appears after this call and has no NodeClaim, a NodeClaim is created for the Node,
        and the history records the Node as added.
        """
        self._has_loaded = True
        configured, self._configured = self._configured, ()
        for claim in configured:
            known = self._context.cluster.node_claims.get(claim.name)
            if known is not None and known.metadata.deletion_timestamp:
                self._draining[claim.name] = now
                continue
            if known is None or known.status.node_name:
                continue
            if known.status.provider_id:
                self._machines.resume(known, now)
            else:
                self.launch_standalone(known, now)

    def launch_standalone(self, claim: NodeClaim, now: Instant) -> None:
        """Launch a NodeClaim that a user created; delete it if there is no capacity."""
        launched = self._machines.launch_standalone(claim, now)
        self._context.offerings.publish()
        if launched is None:
            self._report_no_capacity(claim.name)
            self._context.cluster.remove(claim, now)
        else:
            self._context.cluster.put(launched[0], now)
            self._record(launched[0], _CREATED_BY_USER, now, added=True)
        self._context.changed(now)

    def create(self, request: NodeClaimRequest, reason: str, now: Instant) -> str:
        """Launch a NodeClaim for `request` and return its name.

        The history records `reason`. If there is no capacity, Karpenter deletes the NodeClaim
        immediately and tries again to place its pods.
        """
        # upstream: pkg/controllers/nodeclaim/lifecycle/launch.go:launchNodeClaim
        launched = self._machines.launch(request, self._context.cluster.node_claims, now)
        self._context.offerings.publish()
        if isinstance(launched, str):
            failed = self._context.history.undelivered
            failed[request.pool.name] = failed.get(request.pool.name, 0) + 1
            self._report_no_capacity(launched)
            self._context.changed(now)
            return launched
        claim, _, _ = launched
        self._context.cluster.put(claim, now)
        self._record(claim, reason, now, added=True)
        self._context.changed(now)
        return claim.name

    def _report_no_capacity(self, name: str) -> None:
        note = f"NodeClaim {name} event: {_NO_CAPACITY}"
        ref = ObjectRef("NodeClaim", "", name)
        self._context.record_event(ref, "Warning", "InsufficientCapacityError", note)

    def _record(self, claim: NodeClaim, reason: str, now: Instant, *, added: bool) -> None:
        """Record in the history that the node of `claim` was added or removed."""
        labels = claim.metadata.labels
        self._context.history.changes.append(
            KarpenterNodeChange(
                at=now,
                added=added,
                node=claim.status.node_name or claim.name,
                pool=claim.node_pool,
                instance_type=labels.get(INSTANCE_TYPE, ""),
                capacity_type=labels.get(CAPACITY_TYPE, ""),
                zone=labels.get(ZONE, ""),
                # The provider that launches a static NodeClaim knows no overlays.
                price=self.price_of(claim),
                reason=reason,
            )
        )

    def create_ready_nodes(self, now: Instant) -> None:
        """Create the Nodes of the machines that are ready at `now`."""
        for name in self._machines.ready(now):
            claim = self._context.cluster.node_claims.get(name)
            if claim is not None and not self._is_stopped(claim, now):
                labels = claim.metadata.labels
                place = self._place_labels.get(labels.get(ZONE, ""), {})
                self._context.commands.extend(self._dependents_of(labels).creations(name))
                self._context.commands.append(node_of(claim, now, self._node_info, place))
                self._created_nodes.add(name)

    def _is_stopped(self, claim: NodeClaim, now: Instant) -> bool:
        """Return whether an outage prevents the creation of the Node of `claim` at `now`.

        If so, this call postpones the creation to the end of the outage or to the registration
        timeout of the NodeClaim, whichever comes first. If the timeout has already been reached,
        the call removes the NodeClaim instead.
        """
        until = self._machines.stopped_until(claim, now)
        if until is None:
            return False
        if until > now:
            self._machines.register_at(claim.name, until)
        else:
            self.reasons[claim.name] = _NOT_REGISTERED
            self._finish(claim, now)
        return True

    def _dependents_of(self, labels: Mapping[str, str]) -> NodeDependents:
        return self._dependents.of(labels.get(NODE_POOL, ""), labels.get(INSTANCE_TYPE, ""))

    # --- registration --------------------------------------------------------------------------

    def observe_node(self, node: Node, now: Instant) -> None:
        """Store a Node. Join a new Node with its NodeClaim; drain a Node that is being deleted.

        When a starting Node can run pods, its NodeClaim becomes initialized.
        """
        name = node.metadata.name
        if not node.spec.provider_id:
            node = replace(node, spec=replace(node.spec, provider_id=f"fairlead:///{name}"))
        is_new = name not in self._context.cluster.node_objects
        self._context.cluster.put(node, now)
        if is_new:
            self._join(node, now)
        if name in self._starting and _can_run_pods(node):
            self._starting.discard(name)
            self._initialize(name, now)
        self._terminate(node, now)

    def _join(self, node: Node, now: Instant) -> None:
        """Join a new Node with its NodeClaim.

        If the Node has no NodeClaim but belongs to a NodePool, a NodeClaim is created for it.
        """
        name = node.metadata.name
        provider_id = node.spec.provider_id
        claims = self._context.cluster.node_claims.values()
        claim = next((one for one in claims if one.status.provider_id == provider_id), None)
        pool = self._context.cluster.node_pools.get(node.metadata.labels.get(NODE_POOL, ""))
        if claim is not None:
            self._context.cluster.put(registered(claim, name, now), now)
            if is_starting(node):
                self._starting.add(name)
            else:
                self._initialize(name, now)
        elif pool is not None:
            adopted = adopted_claim(node, pool, now)
            self._context.cluster.put(adopted, now)
            self._starting.add(name)
            if self._has_loaded:
                self._record(adopted, _CREATED_BY_USER, now, added=True)
        self._conditions_at = now
        self._context.changed(now)

    def _initialize(self, name: str, now: Instant) -> None:
        """Mark the NodeClaim of the Node `name` as initialized.

        If the Node lacks the label `karpenter.sh/initialized: "true"`, this method also sets this
        label and the label `karpenter.sh/registered` of the Node.
        """
        claim = self._claim_on(name)
        if claim is not None:
            self._context.cluster.put(initialized(claim, now), now)
            self._conditions_at = now
            self._context.changed(now)
        node = self._context.cluster.node_objects[name]
        if node.metadata.labels.get(INITIALIZED) != "true":
            # A node without a NodeClaim may lack the labels, and Karpenter disrupts only nodes with
            # them.
            # upstream: registration.go:syncNode, initialization.go:Reconcile
            labels = {"metadata": {"labels": {REGISTERED: "true", INITIALIZED: "true"}}}
            self._context.commands.append(PatchObject(node_ref(name), labels))

    def _terminate(self, node: Node, now: Instant) -> None:
        """If `node` is being deleted, start to drain it and to remove its NodeClaim."""
        # upstream: pkg/controllers/node/termination/controller.go:finalize
        if node.metadata.deletion_timestamp and TERMINATION in node.metadata.finalizers:
            claim = self._claim_on(node.metadata.name)
            if claim is not None:
                self.delete(claim, "Deleted", now)

    def observe_claim(self, claim: NodeClaim, served: ServedResources, now: Instant) -> None:
        """Apply a NodeClaim that was read from the API server.

        Adopts a NodeClaim of an earlier process. Launches a NodeClaim that a user created. Starts a
        deletion that a user requested.
        """
        if served.is_removed(claim.name):
            served.delete_again(claim.name, now)
            return
        served.stored(claim)
        known = self._context.cluster.node_claims.get(claim.name)
        if known is not None:
            if claim.metadata.deletion_timestamp:
                self.delete(known, "Deleted", now)
        elif claim.status.provider_id:
            self._context.cluster.put(claim, now)
            if claim.metadata.deletion_timestamp:
                self._draining[claim.name] = now
            elif not claim.status.node_name:
                self._machines.resume(claim, now)
        elif not claim.metadata.deletion_timestamp:
            self.launch_standalone(claim, now)

    def note_pod_event(self, node_name: str, at: Instant, now: Instant) -> None:
        """Postpone the consolidation of the node `node_name` after a pod event there, at `at`."""
        claim = self._claim_on(node_name)
        if claim is None:
            return
        noted = with_pod_event(claim, at)
        if noted is not claim or self._context.cluster.has_changed_claims:
            self._context.cluster.put(noted, now)
            self._conditions_at = now

    def _claim_on(self, node_name: str) -> NodeClaim | None:
        found = self._context.cluster.node_claims.get(node_name)
        if found is not None and found.status.node_name == node_name:
            return found
        claims = self._context.cluster.node_claims.values()
        return next((one for one in claims if one.status.node_name == node_name), None)

    def observe_deleted_node(self, node: Node, now: Instant) -> None:
        """Remove the NodeClaim of the deleted `node`.

        If the simulation created `node`, also delete the node's CSINode and ResourceSlices.
        """
        name = node.metadata.name
        claim = self._claim_on(name)
        self._starting.discard(name)
        if name in self._created_nodes:
            self._created_nodes.discard(name)
            self._context.commands.extend(self._dependents_of(node.metadata.labels).deletions(name))
        if claim is not None:
            self._finish(claim, now)

    def garbage_collect(self, now: Instant) -> None:
        """At the start, remove NodeClaims whose Nodes were deleted while Karpenter did not run."""
        # upstream: nodeclaim/garbagecollection/controller.go: Reconcile
        nodes = self._context.cluster.node_objects
        for claim in list(self._context.cluster.node_claims.values()):
            if claim.status.node_name and claim.status.node_name not in nodes:
                self._finish(claim, now)

    # --- failures ------------------------------------------------------------------------------

    def observe_failed_creation(
        self, command: CreateObject, reason: FailureReason, message: str, now: Instant
    ) -> None:
        """Handle the failed creation of an object; `message` is the API server's refusal.

        If the NodeClaim was refused, or the Node is invalid or forbidden, the NodeClaim and its
        machine are removed. If the creation of the Node failed for another reason, the Node is
        created again later. A refused CSINode or ResourceSlice is not created again. If the object
        already exists, nothing needs to be done: Karpenter's names are unique, so an earlier
        attempt of Karpenter must have created the object.
        """
        name, claims = command.target.name, self._context.cluster.node_claims
        if reason is FailureReason.ALREADY_EXISTS or command.target.kind in DEPENDENT_KINDS:
            return
        is_rejected = reason in (FailureReason.INVALID, FailureReason.FORBIDDEN)
        if command.target.kind != "Node" or is_rejected:
            self.delete_unregistered(name, message, now)
        elif name in claims and not claims[name].metadata.deletion_timestamp:
            self._machines.register_again(name, now)

    def observe_refused_eviction(self, pod: Pod, now: Instant) -> None:
        """Record that the eviction of `pod` was refused, so that it is not repeated in vain.

        Nothing is recorded if the budgets have changed since the refusal and now allow the
        eviction.
        """
        if self._context.cluster.pod_budgets.blocking(pod, now) is not None:
            self.refused_evictions.add(pod)

    def observe_failed_write(self, command: PatchObject | DeleteObject, now: Instant) -> None:
        """Schedule a retry of the failed taint patch or the failed removal of a Node."""
        name = command.target.name
        if isinstance(command, PatchObject) and "spec" in command.patch:
            self._failed_taints[name] = now + DRAIN_RETRY_NS
            return
        claim = self._claim_on(name)
        if claim is not None and claim.metadata.deletion_timestamp:
            self._draining[claim.name] = now + DRAIN_RETRY_NS

    def repeat_failed_writes(self, now: Instant) -> None:
        """Retry the failed writes of disruption taints that are due for a retry at `now`."""
        for name in sorted(name for name, due in self._failed_taints.items() if due <= now):
            del self._failed_taints[name]
            claim = self._claim_on(name)
            if claim is not None:
                self.set_tainted(claim, tainted=self._is_leaving(claim))

    def untaint_others(self) -> None:
        """Remove the disruption taint from nodes that are not being disrupted.

        An earlier process may have left the taint.
        """
        # upstream: pkg/controllers/disruption/controller.go: Reconcile
        for claim in self._context.cluster.node_claims.values():
            if claim.status.node_name and not self._is_leaving(claim):
                self.set_tainted(claim, tainted=False)

    def _is_leaving(self, claim: NodeClaim) -> bool:
        is_marked = self._context.cluster.is_marked(claim.status.provider_id)
        return bool(claim.metadata.deletion_timestamp) or is_marked

    def delete_unregistered(self, name: str, message: str, now: Instant) -> None:
        """Remove the NodeClaim `name` if it has no Node.

        Call this method if the API server refused to create the NodeClaim or its Node; `message`
        says why.
        """
        claim = self._context.cluster.node_claims.get(name)
        if claim is not None and name not in self._context.cluster.node_objects:
            self.reasons[name] = f"RegistrationFailed: {message}"
            self._finish(claim, now)

    # --- conditions ------------------------------------------------------------------------------

    def update_conditions(self, now: Instant) -> None:
        """Check conditions and expirations if a check is due; plan the next check."""
        if self._conditions_at is None or self._conditions_at > now:
            return
        names = self._context.cluster.take_changed_claims()
        while (due := self._next_check()) is not None and due <= now:
            name = heappop(self._check_times)[1]
            del self._checks[name]
            names.add(name)
        for name in sorted(names):
            self._checks.pop(name, None)
            self._not_yet_consolidatable.pop(name, None)
            claim = self._context.cluster.node_claims.get(name)
            if claim is not None:
                self._check(claim, now)
        self._conditions_at = self._next_check()

    def _next_check(self) -> Instant | None:
        """Return the time of the next check of a NodeClaim; None if no check is planned.

        Also drops entries of the heap `_check_times` that are not in `_checks` any more.
        """
        times = self._check_times
        while times and self._checks.get(times[0][1]) != times[0][0]:
            heappop(times)
        return times[0][0] if times else None

    def _check(self, claim: NodeClaim, now: Instant) -> None:
        """Update the conditions of a NodeClaim, and record when they could change next."""
        pool = self._context.cluster.node_pools.get(claim.node_pool)
        updated, requeue = self._conditions.updated(claim, pool, now)
        if updated is not claim:
            self._context.cluster.put(updated, now)
            self._context.changed(now)
        expiry = expires_at(updated)
        if expiry is not None and expiry <= now:
            self.delete(updated, _EXPIRED, now)
            return
        due = [] if expiry is None else [expiry]
        if requeue is not None and not updated.metadata.deletion_timestamp:
            wait = self._conditions.consolidatable_in(updated, pool, now)
            if wait is not None:
                self._not_yet_consolidatable[claim.name] = now + wait
                due.append(now + wait)
            # All other causes of drift change an object, and every change causes a check.
            due.append(self._conditions.type_check_at(updated))
        due = [one for one in due if one > now]
        if due:
            self._checks[claim.name] = min(due)
            heappush(self._check_times, (min(due), claim.name))

    # --- termination -----------------------------------------------------------------------------

    def delete(self, claim: NodeClaim, reason: str, now: Instant) -> None:
        """Start the removal of a NodeClaim: taint and drain its node. `reason` is recorded."""
        if claim.metadata.deletion_timestamp:
            return
        meta = replace(claim.metadata, deletion_timestamp=format_timestamp(now))
        self._context.cluster.put(replace(claim, metadata=meta), now)
        self.reasons[claim.name] = reason
        self._machines.forget(claim.name)
        self.set_tainted(claim, tainted=True)
        self._draining[claim.name] = now
        self._context.changed(now)

    def set_tainted(self, claim: NodeClaim, *, tainted: bool) -> None:
        """Add the disruption taint to the NodeClaim's node, or remove it if `tainted` is False."""
        node = self._context.cluster.node_objects.get(claim.status.node_name)
        if node is None:
            return
        kept = tuple(one for one in node.spec.taints if one.key != DISRUPTED_TAINT)
        taints = (*kept, _DISRUPTED) if tainted else kept
        if taints != node.spec.taints:
            patch: Json = {"spec": {"taints": [as_json(one) for one in taints]}}
            if node.metadata.resource_version:  # the patch must not replace newer taints
                patch["metadata"] = {"resourceVersion": node.metadata.resource_version}
            self._context.commands.append(PatchObject(node_ref(node.metadata.name), patch))

    def drain(self, now: Instant) -> None:
        """Continue the drains that are due."""
        for name in sorted(name for name, due in self._draining.items() if due <= now):
            self._drain(name, now)

    def _drain(self, name: str, now: Instant) -> None:
        claim = self._context.cluster.node_claims.get(name)
        node_name = "" if claim is None else claim.status.node_name
        if claim is None or node_name not in self._context.cluster.node_objects:
            self._draining.pop(name, None)
            if claim is not None:
                self._finish(claim, now)
            return
        if node_name not in self._failed_taints:
            self.set_tainted(claim, tainted=True)  # an earlier process may have ended before this
        step = drain_step(claim, self._context.cluster.pods_on(node_name), now)
        self._context.commands.extend(
            one
            for one in step.commands
            if not (isinstance(one, EvictPod) and self.refused_evictions.has(one.pod))
        )
        if step.remains:
            self._draining[name] = now + DRAIN_RETRY_NS
        else:
            del self._draining[name]
            self._remove_node(node_name)

    def _remove_node(self, name: str) -> None:
        """Delete the drained node, and remove the finalizer with which Karpenter protects it."""
        # upstream: pkg/controllers/node/termination/controller.go:removeFinalizer
        node, ref = self._context.cluster.node_objects[name], node_ref(name)
        if not node.metadata.deletion_timestamp:
            self._context.commands.append(DeleteObject(ref, why="karpenter"))
        if TERMINATION in node.metadata.finalizers:
            kept = [one for one in node.metadata.finalizers if one != TERMINATION]
            release = PatchObject(ref, {"metadata": {"finalizers": kept or None}})
            self._context.commands.append(release)

    def _finish(self, claim: NodeClaim, now: Instant) -> None:
        """Remove a NodeClaim whose machine is gone, and record the removal in the history."""
        if claim.name not in self._context.cluster.node_claims:
            return
        self._context.cluster.remove(claim, now)
        self._draining.pop(claim.name, None)
        self._record(claim, self.reasons.pop(claim.name, "Deleted"), now, added=False)
        self._context.changed(now)

    def price_of(self, claim: NodeClaim) -> float:
        """Return the hourly price of the NodeClaim's machine; 0 if its offering is unknown."""
        pool = self._context.cluster.node_pools.get(claim.node_pool)
        labels = claim.metadata.labels
        table = self._context.types_of(pool) if pool is not None else self._context.offerings.table
        index = table.index.get(labels.get(INSTANCE_TYPE, ""))
        if index is None:
            return 0.0
        offerings = table.types[index].compatible_offerings(
            label_requirements(labels), table.well_known
        )
        return min((one.price for one in offerings), default=0.0)


def _can_run_pods(node: Node) -> bool:
    """Return whether the Node is Ready and has no taints for which `is_ephemeral` is True."""
    # upstream: pkg/controllers/nodeclaim/lifecycle/initialization.go:Reconcile
    ready = condition(node, "Ready")
    is_ready = ready is not None and ready.status == "True"
    return is_ready and not any(map(is_ephemeral, node.spec.taints))
