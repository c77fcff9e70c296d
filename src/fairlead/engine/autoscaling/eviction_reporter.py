"""EvictionReporter: reports the pods that an autoscaler evicts from the nodes that it removes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminating
from fairlead.engine.core.command import Command, DeleteObject, EvictPod
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import PodEvicted, Reporter


class EvictionReporter:
    """Reports to `reporter` each successful eviction, with the node on which the pod ran."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._nodes: dict[Command, str] = {}  # the nodes of unfinished evictions

    def sent(self, commands: Iterable[Command], find: Callable[[str], Pod | None]) -> None:
        """Record the evictions in `commands`; `find(key)` returns a pod, or None.

        The eviction of a terminating pod is not recorded, because the pod has already been evicted
        or deleted.
        """
        for command in commands:
            if not isinstance(command, EvictPod | DeleteObject):
                continue
            ref = command.pod if isinstance(command, EvictPod) else command.target
            pod = find(ref.key) if ref.kind == "Pod" else None
            if pod is None or is_terminating(pod):
                self._nodes.pop(command, None)
            else:
                self._nodes[command] = pod.spec.node_name

    def succeeded(self, command: EvictPod | DeleteObject, now: Instant) -> None:
        """Report the eviction by `command`. Commands that `sent` did not record are ignored."""
        node = self._nodes.pop(command, None)
        if node is None:
            return
        pod = command.pod if isinstance(command, EvictPod) else command.target
        self._reporter.report(PodEvicted(pod, node, command.why, now))
