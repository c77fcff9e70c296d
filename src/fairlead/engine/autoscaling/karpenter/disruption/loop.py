"""DisruptionLoop: runs the methods in order until one acts.

    emptiness, static drift, drift, multi-node and single-node consolidation

A decision of consolidation or emptiness is validated after a wait. If it is no longer valid, the
next method runs in the same loop, on the cluster at that time.

upstream: pkg/controllers/disruption/controller.go
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.autoscaling.karpenter.disruption.budget import allowed_disruptions
from fairlead.engine.autoscaling.karpenter.disruption.candidate import Candidates, TypesOfPool
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.drift import Drift
from fairlead.engine.autoscaling.karpenter.disruption.emptiness import Emptiness
from fairlead.engine.autoscaling.karpenter.disruption.method import (
    DisruptionContext,
    DisruptionMethod,
)
from fairlead.engine.autoscaling.karpenter.disruption.multinodeconsolidation import (
    MultiNodeConsolidation,
)
from fairlead.engine.autoscaling.karpenter.disruption.queue import DisruptionQueue
from fairlead.engine.autoscaling.karpenter.disruption.singlenodeconsolidation import (
    SingleNodeConsolidation,
)
from fairlead.engine.autoscaling.karpenter.disruption.staticdrift import StaticDrift
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.core.instant import DurationNs, Instant

LOOP_PERIOD_NS: Final[DurationNs] = 10 * NANOSECONDS_PER_SECOND
AT_ONCE_NS: Final[DurationNs] = 1
UNSYNCED_RETRY_NS: Final[DurationNs] = NANOSECONDS_PER_SECOND


@dataclass(frozen=True, slots=True)
class LoopResult:
    """The result of a loop, and the time (ns) until the next one."""

    commands: tuple[DisruptionCommand, ...]
    requeue_ns: DurationNs


class DisruptionLoop:
    """The methods, with the command queue and the memory that they share."""

    def __init__(
        self,
        cluster: KarpenterCluster,
        provisioner: Provisioner,
        types_of: TypesOfPool,
        queue: DisruptionQueue,
        options: KarpenterOptions,
    ) -> None:
        """Commands are started on `queue`."""
        self._cluster = cluster
        memory = cluster.memory
        candidates = Candidates(cluster, types_of, queue.keys, options.well_known_labels)
        self.context = DisruptionContext(cluster, provisioner, candidates, options)
        self.emptiness = Emptiness(self.context, memory)
        self.static_drift = StaticDrift(self.context, queue.replaced_claims)
        self.drift = Drift(self.context)
        self.multi = MultiNodeConsolidation(self.context, memory)
        self.single = SingleNodeConsolidation(self.context, memory)

    @property
    def methods(self) -> tuple[DisruptionMethod, ...]:
        """The methods in the order in which they run."""
        return self.emptiness, self.static_drift, self.drift, self.multi, self.single

    def run(
        self, now: Instant, start: Callable[[DisruptionCommand, Instant], None]
    ) -> Generator[DurationNs, Instant, LoopResult]:
        """Run one loop, beginning at `now`.

        It yields how long to wait, and continues with the time sent to it. `start` executes a
        command.
        """
        if not self._cluster.is_synced():
            return LoopResult((), UNSYNCED_RETRY_NS)
        self.context.rejected.clear()
        self.context.notes.clear()
        for method in self.methods:
            if self._cluster.memory.still_holds(method.name, now):
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
            if commands:
                for command in commands:
                    start(command, now)
                return LoopResult(tuple(commands), AT_ONCE_NS)
        return LoopResult((), LOOP_PERIOD_NS)
