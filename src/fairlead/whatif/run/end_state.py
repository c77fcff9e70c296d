"""EndState: the nodes and pods at the end of a run.

`keep` makes the NodeEnds and PodEnds of all nodes and pods before the process is forked. Both runs
of a what-if share these objects. A run makes new NodeEnds and PodEnds only for nodes and pods that
change later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairlead.api.objects import Node
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.run.capacity.allocation import nodes_at_end
from fairlead.whatif.run.recorders.recorder import Recorder
from fairlead.whatif.run.recorders.workload_recorder import count_workloads


class EndState:
    """The nodes and pods at the end of one run."""

    def __init__(self, recorder: Recorder) -> None:
        """Keep `recorder`; the methods read its nodes and pods."""
        self._recorder = recorder
        self._kept: dict[str, tuple[Node, NodeEnd]] = {}
        self._kept_names: frozenset[str] | None = None  # nodes with pods at the time of `keep`
        self._workloads_total = 0

    def keep(self) -> Sequence[object]:
        """Make the NodeEnds and PodEnds of the present nodes and pods, and keep them.

        Return the kept objects. For nodes and pods that do not change, later calls of `nodes` and
        `pods` return the kept objects.
        """
        listed, pods = self._recorder.keep_ends()
        self._kept_names = frozenset(pod.node for pod in pods)
        nodes = dict(self._recorder.outage.nodes)
        self._kept = {end.name: (nodes[end.name], end) for end in nodes_at_end(nodes, pods)}
        self._workloads_total = count_workloads(self._recorder.samples())
        return [listed, *pods, *(end for _, end in self._kept.values())]

    def nodes(self) -> tuple[NodeEnd, ...]:
        """Return the existing nodes, sorted by name, each with its pods."""
        nodes, kept = self._recorder.outage.nodes, self._kept
        changed = self._recorder.changed_nodes()
        anew = {
            name: node
            for name, node in nodes.items()
            if name not in kept or kept[name][0] is not node or name in changed
        }
        made = {end.name: end for end in nodes_at_end(anew, self._recorder.pods_on(anew))}
        return tuple(made[name] if name in made else kept[name][1] for name in sorted(nodes))

    def pods(self, nodes: Iterable[NodeEnd]) -> Mapping[str, PodEnd]:
        """Return the pods, sorted by key; a replacement has the key of the pod that it replaces.

        Pods on nodes that are not in `nodes` are left out.
        """
        ends = self._recorder.ends()
        if self._kept_names is None:
            occupied = {end.node for end in ends.values()}
        else:  # all nodes with pods now, and some nodes whose pods have left
            occupied = self._recorder.changed_nodes() | self._kept_names
        gone = occupied - {node.name for node in nodes}
        if gone <= {""}:
            return ends
        return {
            key: end for key, end in ends.items() if not end.occupies_node or end.node not in gone
        }

    def workloads_total(self) -> int:
        """Return the number of workloads of the existing pods."""
        if not self._recorder.has_changed():
            return self._workloads_total
        return count_workloads(self._recorder.samples())
