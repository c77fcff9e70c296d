"""LatePods: a pod that reaches an unready node learns so when it gets there.

What counts is the health that the last pass found; nodes no pass has seen are left alone, and a
pod on a node that is gone is looked at again after growing waits, should the node come back.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:podUpdated, processPod
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Pod
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.nodelifecycle.node_pods import NodePods
from fairlead.engine.nodelifecycle.pod_marking import PodMarking
from fairlead.engine.nodelifecycle.watch_list import WatchList
from fairlead.engine.nodelifecycle.well_known import TRUE

# upstream: client-go/util/workqueue/default_rate_limiters.go:DefaultTypedControllerRateLimiter
WAIT_INITIAL: Final[DurationNs] = seconds(0.005)
WAIT_MAX: Final[DurationNs] = seconds(1_000)
DOUBLINGS_MAX: Final = WAIT_MAX.bit_length()


class LatePods:
    """Marks pods that were bound to nodes after those had become unready."""

    def __init__(self, nodes: WatchList, pods: NodePods, marking: PodMarking) -> None:
        """Nothing waits."""
        self._nodes = nodes
        self._pods = pods
        self._marking = marking
        self._waits: TimerQueue[tuple[str, int]] = TimerQueue()  # pod key, waits so far

    def see(self, pod: Pod, now: Instant, waits: int = 0) -> list[Command]:
        """`pod` has a node that it did not have before."""
        node = pod.spec.node_name
        health = self._nodes.health_of(node)
        if health is None:
            return []
        if self._nodes.find(node) is None:
            wait = min(WAIT_INITIAL << min(waits, DOUBLINGS_MAX), WAIT_MAX)
            self._waits.add(now + wait, (pod.key, waits + 1))
            return []
        return self._marking.mark([pod]) if health.ready not in ("", TRUE) else []

    def next_due(self) -> Instant | None:
        """When a pod is looked at again."""
        return self._waits.next_due()

    def look_again(self, now: Instant) -> list[Command]:
        """Look at the pods whose wait is over."""
        commands: list[Command] = []
        for key, waits in self._waits.pop_due(now):
            pod = self._pods.get(key)
            if pod is not None:
                commands += self.see(pod, now, waits)
        return commands
