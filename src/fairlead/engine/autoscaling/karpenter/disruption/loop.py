"""DisruptionLoop: runs the disruption methods in order until one of them finds a command.

The order is: emptiness, static drift, drift, multi-node consolidation, single-node consolidation.

A command of emptiness or of a consolidation method is validated after a delay. If the command is no
longer valid, the next method runs in the same loop. That method sees the cluster as it is after the
delay.

DisruptionController runs a loop every ten seconds if something has changed since the last loop.
A command waits for its replacements, then its candidates are deleted.

upstream: pkg/controllers/disruption/controller.go, queue.go
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.autoscaling.karpenter.apis import DRIFTED
from fairlead.engine.autoscaling.karpenter.context import KarpenterContext, node_ref
from fairlead.engine.autoscaling.karpenter.disruption.budget import (
    EMPTY,
    UNDERUTILIZED,
    allowed_disruptions,
)
from fairlead.engine.autoscaling.karpenter.disruption.candidate import (
    Candidates,
    DisruptionClass,
    TypesOfPool,
)
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.method import (
    DisruptionContext,
    DisruptionMethod,
)
from fairlead.engine.autoscaling.karpenter.disruption.methods.drift import Drift
from fairlead.engine.autoscaling.karpenter.disruption.methods.emptiness import Emptiness
from fairlead.engine.autoscaling.karpenter.disruption.methods.multinodeconsolidation import (
    MultiNodeConsolidation,
)
from fairlead.engine.autoscaling.karpenter.disruption.methods.singlenodeconsolidation import (
    SingleNodeConsolidation,
)
from fairlead.engine.autoscaling.karpenter.disruption.methods.staticdrift import StaticDrift
from fairlead.engine.autoscaling.karpenter.disruption.queue import (
    RETRY_NS,
    CommandProgress,
    DisruptionQueue,
    QueuedCommand,
)
from fairlead.engine.autoscaling.karpenter.disruption.simulation import (
    KeepReason,
    NoNodePoolsError,
    Simulator,
)
from fairlead.engine.autoscaling.karpenter.disruption.time_change import (
    next_budget_change,
    next_time_change,
)
from fairlead.engine.autoscaling.karpenter.nodeclaim.lifecycle import NodeClaimLifecycle
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.pool_count import exceeds_limits
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import DurationNs, Instant

LOOP_PERIOD_NS: Final[DurationNs] = 10 * NANOSECONDS_PER_SECOND
AT_ONCE_NS: Final[DurationNs] = 1
UNSYNCED_RETRY_NS: Final[DurationNs] = NANOSECONDS_PER_SECOND
_NONE_ALLOWED: Final = "No allowed disruptions for disruption reason {} due to blocking budget"
_NOT_YET: Final = 'consolidateAfter ({}) of NodePool "{}" has not passed yet'


class LoopResult(Struct, frozen=True):
    """The commands of one loop, and the time in ns after which upstream runs the next loop."""

    commands: tuple[DisruptionCommand, ...]
    requeue_ns: DurationNs


class DisruptionLoop:
    """Runs the disruption methods in order. The methods share `context`."""

    def __init__(
        self,
        cluster: KarpenterCluster,
        provisioner: Provisioner,
        types_of: TypesOfPool,
        queue: DisruptionQueue,
        options: KarpenterOptions,
    ) -> None:
        """Create the loop. `provisioner` simulates replacements.

        Nodes that are already disrupted by a command in `queue` are not candidates.
        """
        self._cluster = cluster
        memory = cluster.memory
        candidates = Candidates(cluster, types_of, queue.keys, options.well_known_labels)
        simulator = Simulator(cluster, provisioner)
        self.context = DisruptionContext(cluster, provisioner, simulator, candidates, options)
        self.emptiness = Emptiness(self.context, memory)
        self.static_drift = StaticDrift(self.context, queue.replaced_claims)
        self.drift = Drift(self.context)
        self.multi = MultiNodeConsolidation(self.context, memory)
        self.single = SingleNodeConsolidation(self.context, memory)
        # Whether the last loop skipped a method. A method is skipped if it found nothing earlier
        # and the cluster has not changed since.
        self.has_skipped = False

    @property
    def methods(self) -> tuple[DisruptionMethod, ...]:
        """The methods in the order in which they run."""
        return self.emptiness, self.static_drift, self.drift, self.multi, self.single

    def undisruptable(self, now: Instant) -> dict[str, str]:
        """Return the nodes that neither emptiness nor consolidation examines now.

        The result maps each node to upstream's reason. If the time of consolidateAfter is not over,
        the result contains a reason in Fairlead's words. The result leaves out nodes without a
        NodeClaim and nodes that are being removed.
        """
        # upstream: types.go:NewCandidate, consolidation.go:ShouldDisrupt,
        # helpers.go:BuildDisruptionBudgetMapping; each publishes the reason as an event
        candidates, blocked = self.context.candidates.all(DisruptionClass.GRACEFUL, now)
        kept = {
            node.name: blocked[node.name][:1].upper() + blocked[node.name][1:]
            for node in self._cluster.nodes(now)
            if node.name in blocked and node.claim is not None and not node.marked_for_deletion
        }
        allowed = {
            reason: allowed_disruptions(self._cluster, reason, now)
            for reason in (EMPTY, UNDERUTILIZED)
        }
        for one in candidates:
            method: DisruptionMethod = self.single if one.pods else self.emptiness
            applies = method.should_disrupt(one)
            if isinstance(applies, str):
                kept[one.name] = applies
            elif applies and allowed[method.reason][one.pool.name] == 0:
                kept[one.name] = _NONE_ALLOWED.format(method.reason)
            elif not applies and not one.pool.is_static:
                # Upstream publishes nothing here.
                kept[one.name] = _NOT_YET.format(
                    one.pool.spec.disruption.consolidate_after, one.pool.name
                )
        return kept

    def drift_obstacles(self, names: Collection[str], now: Instant) -> dict[str, str]:
        """Return why the drifted nodes or NodeClaims `names` are not replaced now.

        The reasons are upstream's, or the first scheduling error of the pods. A node that could be
        replaced now is left out.
        """
        candidates, blocked = self.context.candidates.all(self.drift.disruption_class, now)
        found = {name: text[:1].upper() + text[1:] for name, text in blocked.items()}
        allowed = allowed_disruptions(self._cluster, self.drift.reason, now)
        for one in candidates:
            if one.name not in names or not self.drift.should_disrupt(one):
                continue
            if allowed[one.pool.name] == 0:
                found[one.name] = _NONE_ALLOWED.format(self.drift.reason)
            elif (reason := self.drift.obstacle(one, now)) is not None:
                found[one.name] = reason
        return {name: found[name] for name in names if name in found}

    def current_reasons(self, names: Collection[str], now: Instant) -> dict[str, KeepReason]:
        """Return the reasons why consolidation does not remove the nodes `names` now.

        The result leaves out nodes that consolidation could remove, and nodes that it would not
        examine.
        """
        candidates = self.context.candidates.all(DisruptionClass.GRACEFUL, now)[0]
        return self.single.reasons([one for one in candidates if one.name in names], now)

    def over_budget(self, now: Instant) -> dict[str, str]:
        """Return the nodes that a disruption method skips because a budget allows no disruption.

        The result maps the name of each node to the name of its NodePool.
        """
        found: dict[str, str] = {}
        for method in self.methods:
            allowed = allowed_disruptions(self._cluster, method.reason, now)
            candidates = self.context.candidates.of(
                method.disruption_class, method.should_disrupt, now
            )
            found |= {one.name: one.pool.name for one in candidates if not allowed[one.pool.name]}
        return found

    def run(
        self, now: Instant, start: Callable[[DisruptionCommand, Instant], None]
    ) -> Generator[DurationNs, Instant, LoopResult]:
        """Run one loop, beginning at `now`; return its result.

        The generator yields a time in ns to wait. After this time, the caller sends the current
        time to the generator. The loop calls `start` with each command and the current time.
        """
        if not self._cluster.is_synced():
            return LoopResult((), UNSYNCED_RETRY_NS)
        self.context.rejected.clear()
        self.context.notes.clear()
        self.has_skipped = False
        for method in self.methods:
            if self._cluster.memory.still_holds(method.name, now):
                self.has_skipped = True
                continue
            candidates = self.context.candidates.of(
                method.disruption_class, method.should_disrupt, now
            )
            if not candidates:
                continue
            allowed = allowed_disruptions(self._cluster, method.reason, now)
            waiting = method.commands(candidates, allowed, now)
            commands: list[DisruptionCommand] = []
            try:
                delay = next(waiting)
                while True:  # bounded by the method, which waits once
                    now = yield delay
                    delay = waiting.send(now)
            except StopIteration as done:
                commands = done.value
            except NoNodePoolsError:  # upstream: the loop ends with an error, and is repeated
                return LoopResult((), LOOP_PERIOD_NS)
            if commands:
                return self._started(commands, start, now)
        return LoopResult((), LOOP_PERIOD_NS)

    def _started(
        self,
        commands: Sequence[DisruptionCommand],
        start: Callable[[DisruptionCommand, Instant], None],
        now: Instant,
    ) -> LoopResult:
        """Start `commands`, except those whose replacements would exceed a NodePool's limits."""
        # upstream: queue.go:StartCommand, provisioner.go:Create; an error ends the loop
        possible = [
            command
            for command in commands
            if not any(exceeds_limits(self._cluster, one.pool, now) for one in command.replacements)
        ]
        for command in possible:
            start(command, now)
        has_all = len(possible) == len(commands)
        return LoopResult(tuple(possible), AT_ONCE_NS if has_all else LOOP_PERIOD_NS)


class DisruptionController:
    """Decides when disruption loops run, and executes their commands."""

    def __init__(
        self,
        context: KarpenterContext,
        claims: NodeClaimLifecycle,
        provisioner: Provisioner,
        options: KarpenterOptions,
        *,
        start: Instant,
    ) -> None:
        """Create the controller. Its first loop runs one period after `start`."""
        self._context = context
        self._claims = claims
        self._queue = DisruptionQueue(context.cluster)
        self._loop = DisruptionLoop(
            context.cluster, provisioner, context.types_of, self._queue, options
        )
        # The last reason that a loop found to keep a node, by the name of the node. For drift, the
        # keys are names of NodeClaims.
        self._kept: dict[str, KeepReason] = {}
        self._running: Generator[DurationNs, Instant, LoopResult] | None = None
        self._resume_at: Instant | None = None
        self._loop_at: Instant | None = start + LOOP_PERIOD_NS
        # The time at which a loop may have a new result without a change of the cluster. A loop
        # that is scheduled only for this time does not count as work in progress.
        self._revisit_at: Instant | None = None
        self._last_loop: Instant = start
        self._queue_at: Instant | None = None

    def next_due(self) -> Instant | None:
        """Return the time at which work is due next; None if no work is scheduled."""
        is_running = self._running is not None
        loops = (self._resume_at,) if is_running else (self._loop_at, self._revisit_at)
        return min((one for one in (*loops, self._queue_at) if one is not None), default=None)

    def kept_nodes(self, now: Instant) -> dict[str, str]:
        """Return {name: upstream's reason why the node or NodeClaim is not disrupted}.

        A reason that applies now replaces a reason that an earlier loop found. The reasons of
        earlier loops are examined again at `now`, and left out if they no longer hold.
        """
        cluster, simulator = self._context.cluster, self._loop.context.simulator
        existing = cluster.node_objects.keys() | cluster.node_claims.keys()
        undisruptable = self._loop.undisruptable(now)
        # Only texts are examined here. Other reasons are scheduling errors, which
        # `Simulator.text_of` examines.
        earlier = {
            name
            for name, reason in self._kept.items()
            if isinstance(reason, str) and name not in undisruptable
        }
        reasons: dict[str, KeepReason] = {
            **{name: reason for name, reason in self._kept.items() if name not in earlier},
            **self._loop.current_reasons(earlier, now),
            **undisruptable,
        }
        texts = {
            name: simulator.text_of(reason, now)
            for name, reason in reasons.items()
            if name in existing
        }
        return {name: text for name, text in texts.items() if text is not None}

    def drifted_nodes(self, now: Instant) -> dict[str, str]:
        """Return {name: why the drifted node is not replaced}, sorted by name.

        If the node of a NodeClaim does not exist yet, the key is the name of the NodeClaim. A node
        that is being deleted is left out. The reason is "" if the node could be replaced now.
        """
        names = sorted(
            claim.status.node_name or claim.name
            for claim in self._context.cluster.node_claims.values()
            if claim.is_true(DRIFTED) and not claim.metadata.deletion_timestamp
        )
        if not names:
            return {}
        return dict.fromkeys(names, "") | self._loop.drift_obstacles(names, now)

    def awaited_budgets(self, now: Instant) -> tuple[list[str], Instant] | None:
        """Return the nodes whose disruption a budget forbids, and when a budget next changes.

        The nodes are sorted by name. A budget changes when it starts or ends. Only the budgets of
        these nodes' NodePools are considered. Returns None if no budget forbids a disruption, or if
        the considered budgets never change.
        """
        waiting = self._loop.over_budget(now)
        pools = self._context.cluster.node_pools
        change = next_budget_change((pools[name] for name in set(waiting.values())), now)
        return None if change is None else (sorted(waiting), change)

    def replaced_claims(self) -> frozenset[str]:
        """Return the names of static NodePools' NodeClaims that are candidates of commands."""
        return self._queue.replaced_claims()

    def is_waiting(self) -> bool:
        """Return whether a loop or a command is in progress, or a loop is scheduled."""
        return self._running is not None or len(self._queue) > 0 or self._loop_at is not None

    def change(self, now: Instant) -> None:
        """Schedule the next loop and a check of the commands, because the cluster has changed."""
        due = max(now, self._last_loop + LOOP_PERIOD_NS)
        self._loop_at = due if self._loop_at is None else min(self._loop_at, due)
        if len(self._queue):
            self._queue_at = now

    def disrupt(self, now: Instant) -> None:
        """Start or continue the loop, if that is due at `now`."""
        if self._running is None:
            times = (self._loop_at, self._revisit_at)
            if not any(one is not None and one <= now for one in times):
                return
            self._loop_at = self._revisit_at = None
            self._last_loop = now
            self._claims.untaint_others()
            self._running = self._loop.run(now, self._start)
            self._advance(None, now)
        elif self._resume_at is not None and self._resume_at <= now:
            self._advance(now, now)

    def _advance(self, sent: Instant | None, now: Instant) -> None:
        """Run the loop until its next wait or its end.

        The loop is a generator. `sent` is the value to send to the generator: None to start the
        loop, or the current time to end a wait.
        """
        if self._running is None:
            return
        try:
            delay = next(self._running) if sent is None else self._running.send(sent)
            self._resume_at = now + delay
        except StopIteration as done:
            result: LoopResult = done.value
            self._running = self._resume_at = None
            self._last_loop = now
            self._kept |= self._loop.context.notes
            if result.commands:
                self._loop_at = now + RETRY_NS
            else:
                self._loop_at = self._next_check(now)
                change = next_time_change(self._context.cluster, now)
                self._revisit_at = None if change is None else max(change, now + LOOP_PERIOD_NS)

    def _next_check(self, now: Instant) -> Instant | None:
        """Return the time at which the next loop runs even if the cluster does not change.

        Returns None if no loop needs to run. Otherwise, the time is at least one period after
        `now`.
        """
        cluster = self._context.cluster
        later = [due for due in cluster.nominated_until.values() if due > now]
        if self._loop_at is not None:
            later.append(self._loop_at)
        if self._loop.has_skipped:
            later.append(cluster.memory.expires_at())
        return max(min(later), now + LOOP_PERIOD_NS) if later else None

    def _start(self, command: DisruptionCommand, now: Instant) -> None:
        """Taint the candidates of a command, launch its replacements, and queue the command."""
        names = [self._claims.create(one, command.reason, now) for one in command.replacements]
        for one in command.candidates:
            self._claims.set_tainted(one.claim, tainted=True)
            self._claims.reasons[one.claim.name] = command.reason
            note = f"Disrupting Node: {command.reason}/{command.decision.capitalize()}"
            ref = node_ref(one.node.node_name)
            self._context.record_event(ref, "Normal", "DisruptionTerminating", note)
            if self._context.served is not None:
                ref = ObjectRef("NodeClaim", "", one.claim.name)
                note = note.replace("Node", "NodeClaim", 1)
                self._context.record_event(ref, "Normal", "DisruptionTerminating", note)
        self._queue.add(command, names, now)
        self._queue_at = now

    def process_queue(self, now: Instant) -> None:
        """If a check of the queue is due, remove the completed and the failed commands.

        If the replacements of a removed command are ready, its candidates are deleted.
        """
        if self._queue_at is None or self._queue_at > now:
            return
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
                self._claims.set_tainted(one.claim, tainted=False)
            self._context.changed(now)
        times = [self._queue.times_out_at(one) for one in self._queue.commands]
        self._queue_at = min(times, default=None)

    def _delete_candidates(self, queued: QueuedCommand, now: Instant) -> None:
        for one in queued.command.candidates:
            claim = self._context.cluster.node_claims.get(one.claim.name)
            if claim is not None:
                self._claims.delete(claim, queued.command.reason, now)
