"""Karpenter: the controllers of Karpenter as one controller of the engine.

    batch        a pod becomes unschedulable; after a quiet second, or ten at most, a pass runs
    machines     NodeClaims are launched at once, their Nodes appear after the provision time
    conditions   Consolidatable, Drifted; expired NodeClaims are deleted
    disruption   a loop every ten seconds, as long as something has changed since the last one
    queue        commands wait for their replacements, then their candidates are deleted
    termination  the nodes of deleted NodeClaims are drained and removed

In a served cluster, NodePools and NodeClaims are custom resources (module served_resources).
Otherwise NodeClaims exist here and not in the API server.

Without a change, a loop would have the result of the last one, so it does not run, and idle hours
cost nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from heapq import heappop, heappush
from typing import ClassVar, Final

from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.objects import ApiObject, Node, Pod, Taint, Unstructured
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import INSTANCE_TYPE, ZONE
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim, NodeOverlay, NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    InstanceType,
    Offering,
)
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.loop import (
    LOOP_PERIOD_NS,
    DisruptionLoop,
    LoopResult,
)
from fairlead.engine.autoscaling.karpenter.disruption.queue import (
    RETRY_NS,
    CommandProgress,
    DisruptionQueue,
    QueuedCommand,
)
from fairlead.engine.autoscaling.karpenter.history import KarpenterHistory, KarpenterNodeChange
from fairlead.engine.autoscaling.karpenter.labels import CAPACITY_TYPE, DISRUPTED_TAINT, NODE_POOL
from fairlead.engine.autoscaling.karpenter.machines import (
    Machines,
    adopted_claim,
    initialized,
    node_of,
)
from fairlead.engine.autoscaling.karpenter.nodeclaim.conditions import ClaimConditions
from fairlead.engine.autoscaling.karpenter.nodeclaim.lifetime import (
    expires_at,
    is_pod_event,
    with_pod_event,
)
from fairlead.engine.autoscaling.karpenter.overlay import OverlaidTypes
from fairlead.engine.autoscaling.karpenter.pod import is_provisionable
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import label_requirements
from fairlead.engine.autoscaling.karpenter.served_resources import (
    ServedResources,
    karpenter_view,
)
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster, KarpenterObject
from fairlead.engine.autoscaling.karpenter.termination import RETRY_NS as DRAIN_RETRY_NS
from fairlead.engine.autoscaling.karpenter.termination import drain_step
from fairlead.engine.autoscaling.karpenter.unavailable_offerings import UnavailableOfferings
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    RecordEvent,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.issuer import KARPENTER, Issuer
from fairlead.engine.core.stimulus import (
    CommandFailed,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)

_RETRIGGER_NS: Final[DurationNs] = seconds(10)
_DISRUPTED: Final = Taint(key=DISRUPTED_TAINT, effect="NoSchedule")
_PROVISIONED: Final = "Provisioned"
_CREATED_BY_USER: Final = "Created by a user"
_EXPIRED: Final = "Expired"
_NO_CAPACITY: Final = (
    "insufficient capacity, all requested instance types were unavailable during launch"
)


class Karpenter:
    """See the module's docstring; `history` records its actions."""

    issuer: ClassVar[Issuer] = KARPENTER

    def __init__(self, config: KarpenterConfig, *, seed: int, start: Instant) -> None:
        """Start; the first disruption loop runs one period after `start`."""
        self._config = config
        self.cluster = KarpenterCluster()
        objects: tuple[KarpenterObject, ...] = (*config.pools, *config.claims, *config.overlays)
        for one in objects:
            self.cluster.put(one, start)
        self._offerings = UnavailableOfferings(config.types, config.options.well_known_labels)
        overlaid = OverlaidTypes(self.cluster, lambda _: self._offerings.table, config.options)
        self._types_of = overlaid.table
        self._provisioner = Provisioner(self.cluster, overlaid.table, config.options)
        self._conditions = ClaimConditions(overlaid.table, lambda _: "")
        self._queue = DisruptionQueue(self.cluster)
        self._loop = DisruptionLoop(
            self.cluster, self._provisioner, overlaid.table, self._queue, config.options
        )
        self._machines = Machines(config, self._offerings, seed=seed, start=start)
        self.history = KarpenterHistory()
        self._served = ServedResources(self.cluster) if config.serves_resources else None
        # when the first and the last new pod arrived
        self._batch: tuple[Instant, Instant] | None = None
        self._retry_at: Instant | None = None
        self._running: Generator[DurationNs, Instant, LoopResult] | None = None
        self._resume_at: Instant | None = None
        self._configured = config.claims
        self._loop_at: Instant | None = start + LOOP_PERIOD_NS
        self._last_loop: Instant = start
        self._conditions_at: Instant | None = start
        self._checks: dict[str, Instant] = {}  # when a NodeClaim's conditions may change
        self._check_times: list[tuple[Instant, str]] = []  # a heap that contains `_checks`
        self._ripening: set[str] = set()  # NodeClaims that become Consolidatable as time passes
        self._queue_at: Instant | None = None
        self._draining: dict[str, Instant] = {}
        self._reasons: dict[str, str] = {}
        self._pending: set[str] = set()
        self._out: list[Command] = []

    # --- what happens ------------------------------------------------------------------------

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Apply a change of the cluster."""
        self._out = []
        match stimulus:
            case ObjectsLoaded(objects):
                # NodePools and NodeClaims first, because Nodes are joined with them.
                for one in sorted(objects, key=lambda one: not isinstance(one, Unstructured)):
                    self._see(one, now)
                self._continue_launches(now)
            case ObjectChanged(changed):
                self._see(changed, now)
            case ObjectDeleted(gone):
                self._forget(gone, now)
            case CommandFailed(CreateObject() as command, _, message):
                self._lose_machine(command.target.name, message, now)
            case _:
                return []
        return self._commands()

    def _commands(self) -> list[Command]:
        """Return what was decided, and the writes that show it in the API server."""
        if self._served is not None:
            self._out += self._served.commands()
        return self._out

    def _continue_launches(self, now: Instant) -> None:
        """Launch the configured NodeClaims that have not been, and start the others' machines."""
        configured, self._configured = self._configured, ()
        for claim in configured:
            known = self.cluster.node_claims.get(claim.name)
            if known is None or known.status.node_name or known.metadata.deletion_timestamp:
                continue
            if known.status.provider_id:
                self._machines.resume(known, now)
            else:
                self._launch_standalone(known, now)

    def _lose_machine(self, name: str, message: str, now: Instant) -> None:
        """Remove the machine whose Node was rejected."""
        claim = self.cluster.node_claims.get(name)
        if claim is not None and name not in self.cluster.node_objects:
            self._reasons[name] = f"RegistrationFailed: {message}"
            self._finish(claim, now)

    def _see(self, obj: ApiObject, now: Instant) -> None:
        if isinstance(obj, Pod):
            self._see_pod(obj, now)
        elif isinstance(obj, Node):
            self._see_node(obj, now)
        elif isinstance(obj, Unstructured):
            self._see_resource(obj, now)
        else:
            self.cluster.put(obj, now)

    def _see_resource(self, obj: Unstructured, now: Instant) -> None:
        """Apply a user's change of a custom resource."""
        if self._served is None:
            return
        match karpenter_view(obj):
            case NodePool() as pool:
                old = self.cluster.node_pools.get(pool.name)
                self.cluster.put(pool, now)
                if old is None or (old.spec, old.metadata.uid) != (pool.spec, pool.metadata.uid):
                    self._served.pool_changed(pool.name)
                    self._conditions_at = now
                    self._change(now)
            case NodeClaim() as claim:
                self._see_claim(claim, self._served, now)
            case NodeOverlay() as overlay:
                self.cluster.put(overlay, now)
                self._change(now)

    def _see_claim(self, claim: NodeClaim, served: ServedResources, now: Instant) -> None:
        """Adopt a NodeClaim of an earlier process, launch a user's, start a requested deletion."""
        if served.is_removed(claim.name):
            return
        served.stored(claim)
        known = self.cluster.node_claims.get(claim.name)
        if known is not None:
            if claim.metadata.deletion_timestamp:
                self._delete_claim(known, "Deleted", now)
        elif claim.status.provider_id:
            self.cluster.put(claim, now)
            if claim.metadata.deletion_timestamp:
                self._draining[claim.name] = now
            elif not claim.status.node_name:
                self._machines.resume(claim, now)
        elif not claim.metadata.deletion_timestamp:
            self._launch_standalone(claim, now)

    def _launch_standalone(self, claim: NodeClaim, now: Instant) -> None:
        """Launch a NodeClaim that a user created; without capacity it is deleted."""
        launched = self._machines.launch_standalone(claim, now)
        self._offerings.publish()
        if launched is None:
            self._report_no_capacity(claim.name)
            self.cluster.remove(claim, now)
        else:
            self.cluster.put(launched[0], now)
            self._note(*launched, _CREATED_BY_USER, now)
        self._change(now)

    def _report_no_capacity(self, name: str) -> None:
        note = f"NodeClaim {name} event: {_NO_CAPACITY}"
        ref = ObjectRef("NodeClaim", "", name)
        self._record_event(ref, "Warning", "InsufficientCapacityError", note)

    def _see_pod(self, pod: Pod, now: Instant) -> None:
        old = self.cluster.pods.get(pod.key)
        self.cluster.put(pod, now)
        if is_pod_event(old, pod):
            self._note_pod_event(pod.spec.node_name, now)
        if is_provisionable(pod):
            if pod.key not in self._pending:
                self._pending.add(pod.key)
                first = self._batch[0] if self._batch is not None else now
                self._batch = first, now
        else:
            self._pending.discard(pod.key)
        if old is None or old.spec != pod.spec or old.status.phase != pod.status.phase:
            self._change(now)

    def _note_pod_event(self, node_name: str, now: Instant) -> None:
        claim = self._claim_on(node_name)
        if claim is not None:
            self.cluster.put(with_pod_event(claim, now), now)
            self._conditions_at = now

    def _claim_on(self, node_name: str) -> NodeClaim | None:
        found = self.cluster.node_claims.get(node_name)
        if found is not None and found.status.node_name == node_name:
            return found
        claims = self.cluster.node_claims.values()
        return next((one for one in claims if one.status.node_name == node_name), None)

    def _see_node(self, node: Node, now: Instant) -> None:
        """Register a Node with its NodeClaim; a pool's node without one gets a new NodeClaim."""
        name = node.metadata.name
        if not node.spec.provider_id:
            node = replace(node, spec=replace(node.spec, provider_id=f"fairlead:///{name}"))
        is_new = name not in self.cluster.node_objects
        self.cluster.put(node, now)
        if not is_new:
            return
        provider_id = node.spec.provider_id
        claims = self.cluster.node_claims.values()
        claim = next((one for one in claims if one.status.provider_id == provider_id), None)
        pool = self.cluster.node_pools.get(node.metadata.labels.get(NODE_POOL, ""))
        if claim is not None:
            self.cluster.put(initialized(claim, name, now), now)
        elif pool is not None:
            self.cluster.put(adopted_claim(node, pool, now), now)
        self._conditions_at = now
        self._change(now)

    def _forget(self, obj: ApiObject, now: Instant) -> None:
        if isinstance(obj, Unstructured):
            self._forget_resource(obj, now)
            return
        self.cluster.remove(obj, now)
        if isinstance(obj, Pod):
            self._pending.discard(obj.key)
            self._note_pod_event(obj.spec.node_name, now)
        if isinstance(obj, Node):
            claim = self._claim_on(obj.metadata.name)
            if claim is not None:
                self._finish(claim, now)
        self._change(now)

    def _forget_resource(self, obj: Unstructured, now: Instant) -> None:
        if self._served is None:
            return
        match karpenter_view(obj):
            case NodePool() | NodeOverlay() as gone:
                self.cluster.remove(gone, now)
                self._served.pool_changed(gone.name)
                self._change(now)
            case NodeClaim() as gone:
                self._served.gone(gone.name)
                claim = self.cluster.node_claims.get(gone.name)
                if claim is not None:  # a user removed the finalizer
                    self._delete_claim(claim, "Deleted", now)

    def _change(self, now: Instant) -> None:
        """Record a change, so that the loops run again."""
        if self._loop_at is None:
            self._loop_at = max(now, self._last_loop + LOOP_PERIOD_NS)
        if self._pending and self._retry_at is None and self._batch is None:
            self._retry_at = now + _RETRIGGER_NS
        if len(self._queue):
            self._queue_at = now
        for name in self._draining:
            self._draining[name] = min(self._draining[name], now)

    # --- when ----------------------------------------------------------------------------------

    def next_deadline(self) -> Instant | None:
        """Return when the next part has work."""
        return min(self._deadlines(), default=None)

    def _deadlines(self) -> Iterator[Instant]:
        for due in (
            self._machines.next_due(),
            self._batch_due(),
            self._offerings.next_expiry(),
            self._conditions_at,
            self._queue_at,
            self._resume_at if self._running is not None else self._loop_at,
            min(self._draining.values(), default=None),
        ):
            if due is not None:
                yield due

    def _batch_due(self) -> Instant | None:
        """Return when the batch window closes, or pods that are still pending are retried."""
        if self._batch is None:
            return self._retry_at
        first, last = self._batch
        options = self._config.options
        return min(last + seconds(options.batch_idle_s), first + seconds(options.batch_max_s))

    def is_waiting(self) -> bool:
        """Return whether work in progress will change the cluster."""
        return (
            self._machines.is_waiting()
            or self._batch is not None
            or self._running is not None
            or len(self._queue) > 0
            or bool(self._draining)
            or self._loop_at is not None
            or bool(self._ripening)
        )

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Do the work that is due, machines first."""
        self._out = []
        if self._offerings.expire(now):
            self._change(now)
        for name in self._machines.ready(now):
            claim = self.cluster.node_claims.get(name)
            if claim is not None:
                self._out.append(node_of(claim, now))
        batch_due = self._batch_due()
        if batch_due is not None and batch_due <= now:
            self._provision(now)
        if self._conditions_at is not None and self._conditions_at <= now:
            self._update_conditions(now)
        if self._queue_at is not None and self._queue_at <= now:
            self._process_queue(now)
        for name in sorted(name for name, due in self._draining.items() if due <= now):
            self._drain(name, now)
        self._disrupt(now)
        return self._commands()

    # --- provisioning ----------------------------------------------------------------------------

    def _provision(self, now: Instant) -> None:
        self._batch = self._retry_at = None
        result = self._provisioner.provision(now)
        for node in result.existing:
            if node.pods:
                self.cluster.nominate(node.state.key, now)
        for request in sorted(result.requests, key=lambda one: min(one.pods)):
            name = self._create(request, _PROVISIONED, now)
            for key in request.pods:
                note = f"Pod should schedule on: nodeclaim/{name}"
                self._record_event(_pod_ref(key), "Normal", "Nominated", note)
        problems = {**result.ignored, **result.errors}
        for key, text in problems.items():
            if text and self.history.errors.get(key) != text:
                note = text if key in result.ignored else f"Failed to schedule pod, {text}"
                self._record_event(_pod_ref(key), "Warning", "FailedScheduling", note)
        self.history.errors = {key: text for key, text in problems.items() if text}

    def _create(self, request: NodeClaimRequest, reason: str, now: Instant) -> str:
        """Launch a NodeClaim and return its name.

        A NodeClaim that fails for lack of capacity is deleted at once, and its pods are tried
        again.
        """
        # upstream: pkg/controllers/nodeclaim/lifecycle/launch.go:launchNodeClaim
        launched = self._machines.launch(request, self.cluster.node_claims, now)
        self._offerings.publish()
        if isinstance(launched, str):
            failed = self.history.undelivered
            failed[request.pool.name] = failed.get(request.pool.name, 0) + 1
            self._report_no_capacity(launched)
            self._change(now)
            return launched
        claim, instance_type, offering = launched
        self.cluster.put(claim, now)
        self._note(claim, instance_type, offering, reason, now)
        self._change(now)
        return claim.name

    def _note(
        self,
        claim: NodeClaim,
        instance_type: InstanceType,
        offering: Offering,
        reason: str,
        now: Instant,
    ) -> None:
        self.history.changes.append(
            KarpenterNodeChange(
                at=now,
                added=True,
                node=claim.name,
                pool=claim.node_pool,
                instance_type=instance_type.name,
                capacity_type=offering.capacity_type,
                zone=offering.zone,
                price=offering.price,
                reason=reason,
            )
        )

    # --- NodeClaims ------------------------------------------------------------------------------

    def _update_conditions(self, now: Instant) -> None:
        """Set conditions and delete expired NodeClaims; schedule the next check.

        Only NodeClaims that changed, or whose time has come, are checked.
        """
        names = self.cluster.take_changed_claims()
        while (due := self._next_check()) is not None and due <= now:
            name = heappop(self._check_times)[1]
            del self._checks[name]
            names.add(name)
        for name in sorted(names):
            self._checks.pop(name, None)
            self._ripening.discard(name)
            claim = self.cluster.node_claims.get(name)
            if claim is not None:
                self._check(claim, now)
        self._conditions_at = self._next_check()

    def _next_check(self) -> Instant | None:
        """Return the first time in `_checks`, after dropping what the heap has too much."""
        times = self._check_times
        while times and self._checks.get(times[0][1]) != times[0][0]:
            heappop(times)
        return times[0][0] if times else None

    def _check(self, claim: NodeClaim, now: Instant) -> None:
        """Update the conditions of a NodeClaim, and note when they could change as time passes."""
        pool = self.cluster.node_pools.get(claim.node_pool)
        updated, requeue = self._conditions.updated(claim, pool, now)
        if updated is not claim:
            self.cluster.put(updated, now)
            self._change(now)
        expiry = expires_at(updated)
        if expiry is not None and expiry <= now:
            self._delete_claim(updated, _EXPIRED, now)
            return
        due = [] if expiry is None else [expiry]
        if requeue is not None and not updated.metadata.deletion_timestamp:
            ripens = self._conditions.ripens_in(updated, pool, now)
            if ripens is not None:
                self._ripening.add(claim.name)
                due.append(now + ripens)
            # All else that makes a node drift comes with a change.
            due.append(self._conditions.type_check_at(updated))
        due = [one for one in due if one > now]
        if due:
            self._checks[claim.name] = min(due)
            heappush(self._check_times, (min(due), claim.name))

    def _delete_claim(self, claim: NodeClaim, reason: str, now: Instant) -> None:
        if claim.metadata.deletion_timestamp:
            return
        meta = replace(claim.metadata, deletion_timestamp=format_timestamp(now))
        self.cluster.put(replace(claim, metadata=meta), now)
        self._reasons[claim.name] = reason
        self._machines.forget(claim.name)
        self._set_tainted(claim, tainted=True)
        self._draining[claim.name] = now
        self._change(now)

    def _set_tainted(self, claim: NodeClaim, *, tainted: bool) -> None:
        node = self.cluster.node_objects.get(claim.status.node_name)
        if node is None:
            return
        kept = tuple(one for one in node.spec.taints if one.key != DISRUPTED_TAINT)
        taints = (*kept, _DISRUPTED) if tainted else kept
        if taints != node.spec.taints:
            patch = {"spec": {"taints": [as_json(one) for one in taints]}}
            self._out.append(PatchObject(_node_ref(node.metadata.name), patch))

    def _drain(self, name: str, now: Instant) -> None:
        claim = self.cluster.node_claims.get(name)
        node_name = "" if claim is None else claim.status.node_name
        if claim is None or node_name not in self.cluster.node_objects:
            self._draining.pop(name, None)
            if claim is not None:
                self._finish(claim, now)
            return
        step = drain_step(claim, self.cluster.pods_on(node_name), now)
        self._out += step.commands
        if step.remains:
            self._draining[name] = now + DRAIN_RETRY_NS
        else:
            del self._draining[name]
            self._out.append(DeleteObject(_node_ref(node_name), why="karpenter"))

    def _finish(self, claim: NodeClaim, now: Instant) -> None:
        """Remove a NodeClaim whose machine is gone, and record that."""
        if claim.name not in self.cluster.node_claims:
            return
        self.cluster.remove(claim, now)
        self._draining.pop(claim.name, None)
        labels = claim.metadata.labels
        self.history.changes.append(
            KarpenterNodeChange(
                at=now,
                added=False,
                node=claim.status.node_name or claim.name,
                pool=claim.node_pool,
                instance_type=labels.get(INSTANCE_TYPE, ""),
                capacity_type=labels.get(CAPACITY_TYPE, ""),
                zone=labels.get(ZONE, ""),
                price=self.price_of(claim),
                reason=self._reasons.pop(claim.name, "Deleted"),
            )
        )
        self._change(now)

    def price_of(self, claim: NodeClaim) -> float:
        """Return the hourly price of the NodeClaim's machine; 0 if its offering is unknown."""
        pool = self.cluster.node_pools.get(claim.node_pool)
        labels = claim.metadata.labels
        table = self._types_of(pool) if pool is not None else self._offerings.table
        index = table.index.get(labels.get(INSTANCE_TYPE, ""))
        if index is None:
            return 0.0
        offerings = table.types[index].compatible_offerings(
            label_requirements(labels), table.well_known
        )
        return min((one.price for one in offerings), default=0.0)

    # --- disruption ------------------------------------------------------------------------------

    def _disrupt(self, now: Instant) -> None:
        if self._running is None:
            if self._loop_at is None or self._loop_at > now:
                return
            self._loop_at = None
            self._last_loop = now
            self._running = self._loop.run(now, self._start)
            self._advance(None, now)
        elif self._resume_at is not None and self._resume_at <= now:
            self._advance(now, now)

    def _advance(self, sent: Instant | None, now: Instant) -> None:
        """Continue the loop until it waits or ends."""
        if self._running is None:
            return
        try:
            delay = next(self._running) if sent is None else self._running.send(sent)
            self._resume_at = now + delay
        except StopIteration as done:
            result: LoopResult = done.value
            self._running = self._resume_at = None
            self._last_loop = now
            self.history.unconsolidatable |= self._loop.context.notes
            if result.commands:
                self._loop_at = now + RETRY_NS
            else:
                self._loop_at = self._next_look(now)

    def _next_look(self, now: Instant) -> Instant | None:
        """Return when a loop could have a new result without a change: nominations have ended."""
        later = [due for due in self.cluster.nominated_until.values() if due > now]
        return max(min(later), now + LOOP_PERIOD_NS) if later else None

    def _start(self, command: DisruptionCommand, now: Instant) -> None:
        """Taint the candidates, launch the replacements, wait for them."""
        names = [self._create(one, command.reason, now) for one in command.replacements]
        for one in command.candidates:
            self._set_tainted(one.claim, tainted=True)
            self._reasons[one.claim.name] = command.reason
            note = f"Disrupting Node: {command.reason}/{command.decision.capitalize()}"
            ref = _node_ref(one.node.node_name)
            self._record_event(ref, "Normal", "DisruptionTerminating", note)
            if self._served is not None:
                ref = ObjectRef("NodeClaim", "", one.claim.name)
                note = note.replace("Node", "NodeClaim", 1)
                self._record_event(ref, "Normal", "DisruptionTerminating", note)
        self._queue.add(command, names, now)
        self._queue_at = now

    def _process_queue(self, now: Instant) -> None:
        self._queue_at = None
        for queued in self._queue.commands:
            progress = self._queue.progress(queued, now)
            if progress is CommandProgress.WAITING:
                continue
            if self._queue.is_ready(queued):
                self._delete_candidates(queued, now)
            failed = progress is CommandProgress.FAILED
            self._queue.remove(queued, failed=failed)
            for one in queued.command.candidates if failed else ():
                self._set_tainted(one.claim, tainted=False)
            self._change(now)
        times = [self._queue.times_out_at(one) for one in self._queue.commands]
        self._queue_at = min(times, default=None)

    def _delete_candidates(self, queued: QueuedCommand, now: Instant) -> None:
        for one in queued.command.candidates:
            claim = self.cluster.node_claims.get(one.claim.name)
            if claim is not None:
                self._delete_claim(claim, queued.command.reason, now)

    def _record_event(self, about: ObjectRef, kind: str, reason: str, note: str) -> None:
        self._out.append(
            RecordEvent(
                regarding=about,
                type=kind,
                reason=reason,
                action=reason,
                note=note,
                reporting_controller="karpenter",
            )
        )


def _pod_ref(key: str) -> ObjectRef:
    namespace, _, name = key.rpartition("/")
    return ObjectRef("Pod", namespace, name)


def _node_ref(name: str) -> ObjectRef:
    return ObjectRef("Node", "", name)
