"""NewNodes: the number of new nodes that would hold the waiting pods, and the node that they copy.

New nodes are copies of an existing node. A node is suitable if each of the waiting pods would fit
there beside only the static pods and the pods of DaemonSets. Nodes that run pods of the same
workloads are preferred, because these pods also tolerate the node's taints and select its labels.
Among them, and among all other nodes, the smallest node is preferred. The pods are placed on copies
of that node, largest first, each on the first copy that fits. This is an estimate by requests
alone; a what-if with the new nodes is exact.

    3 pods of 2 CPU wait, and no node of 4 CPU has room        ->   2 nodes like that node
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef

Amounts = Mapping[str, int]


class NewNodes(Struct, frozen=True):
    """A number of new nodes: `count` nodes like the node `like`."""

    count: int
    like: str

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a what-if that adds these nodes."""
        return "--add-nodes", str(self.count), "--like", self.like


def new_nodes_for(
    pending: Collection[PodEnd], nodes: Iterable[NodeEnd], familiar: Iterable[NodeEnd] = ()
) -> NewNodes | None:
    """Return the new nodes that would hold the `pending` pods; None if no node is large enough.

    The new nodes are copies of one of `nodes`; `familiar` are the nodes of another run, in which
    pods of the same workloads may have a node.
    """
    nodes = list(nodes)
    needs = sorted((_with_pod(pod.requests) for pod in pending), key=_size, reverse=True)
    if not needs:
        return None
    homes = _homes({pod.workload for pod in pending}, (*nodes, *familiar))
    largest = _largest(needs)
    rooms = [(node.name, _room(node)) for node in nodes]
    suitable = [(name, room) for name, room in rooms if _fits(largest, room)]
    if not suitable:
        return None
    like, room = min(suitable, key=lambda one: (one[0] not in homes, _size(one[1]), one[0]))
    return NewNodes(_copies(needs, room), like)


def _homes(workloads: Collection[WorkloadRef], nodes: Iterable[NodeEnd]) -> set[str]:
    """Return the names of the nodes with a pod of one of `workloads`."""
    return {node.name for node in nodes if any(pod.workload in workloads for pod in node.pods)}


def _largest(needs: Iterable[Amounts]) -> Amounts:
    """Return the highest amount of each resource."""
    largest: Counter[str] = Counter()
    for need in needs:
        largest |= Counter(need)
    return largest


def _with_pod(requests: Amounts) -> Amounts:
    return {**requests, "pods": 1}


def _room(node: NodeEnd) -> Amounts:
    """Return the allocatable amounts without the requests of pods that belong to `node`."""
    room = Counter(node.allocatable)
    for pod in node.pods:
        if pod.belongs_to_node:
            room.subtract(_with_pod(pod.requests))
    return room


def _fits(need: Amounts, room: Amounts) -> bool:
    return all(amount <= room.get(name, 0) for name, amount in need.items() if amount)


def _size(amounts: Amounts) -> tuple[int, int]:
    return amounts.get("cpu", 0), amounts.get("memory", 0)


def _copies(needs: Sequence[Amounts], room: Amounts) -> int:
    """Return the number of nodes with `room` that hold `needs`, by the first-fit rule."""
    nodes: list[Counter[str]] = []
    for need in needs:
        node = next((one for one in nodes if _fits(need, one)), None)
        if node is None:
            nodes.append(node := Counter(room))
        node.subtract(need)
    return len(nodes)
