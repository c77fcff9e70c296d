"""Packing: measures of how tightly pods are placed, to compare placements of the same pods.

Virtual nodes are left out. Placements are compared by these measures:

    nodes in use             nodes with a pod that is neither static nor of a DaemonSet
    cpu, memory in use       the share of these nodes' cpu and memory that pods request; the same
                             for each other resource that a pod requests, such as nvidia.com/gpu
    room for largest pods    how many more pods would fit, each as large as the largest pod
    fragmentation            the share of the room that is lost because the free amounts are split
                             among nodes: 20 % if 150 of the largest pods would fit on one node
                             with all free amounts, but only 120 fit on the existing nodes
    spread: fullest node     the share of a workload's pods that are on one node, for the node that
                             has the most of them; averaged over the workloads with several pods
    spread: fullest zone     the same for zones
    price per hour           of the nodes in use, if all their types have a price
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.well_known_label import is_virtual
from fairlead.engine.core.float_sum import float_sum
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef

NODES_IN_USE: Final = "nodes in use"
ROOM: Final = "room for largest pods"
PRICE: Final = "price per hour"
_CPU: Final = "cpu"
_MEMORY: Final = "memory"
_PODS: Final = "pods"

Price = Callable[[NodeEnd], float | None]


class PackingRow(Struct, frozen=True):
    """Three values of one measure; a value is None if it is not known.

    `today` is the value in the dump. `without` and `changed` are the values at the end of the run
    without the change and of the run with the change. Shares are in percent.
    """

    measure: str
    today: float | None
    without: float | None
    changed: float | None


def packing(
    today: Sequence[NodeEnd],
    without: Sequence[NodeEnd],
    changed: Sequence[NodeEnd],
    price: Price,
) -> tuple[PackingRow, ...]:
    """Return the measures of three placements, except measures that are unknown for all three.

    The placements are the nodes in the dump (`today`), at the end of the run without the change
    (`without`), and at the end of the run with the change (`changed`). `price` returns the hourly
    price of a node, None if it is unknown. For all three placements, room is measured in pods as
    large as the largest pod of `without`.
    """
    placements = [
        [node for node in nodes if not is_virtual(node.labels)]
        for nodes in (today, without, changed)
    ]
    largest = _largest(placements[1])
    requested = {name for nodes in placements for node in nodes for name in _requested(node)}
    resources = [_CPU, _MEMORY, *sorted(requested - {_CPU, _MEMORY, _PODS})]
    columns = [_measures(nodes, resources, largest, price) for nodes in placements]
    names = [name for name in columns[0] if any(one[name] is not None for one in columns)]
    return tuple(PackingRow(name, *(one[name] for one in columns)) for name in names)


def _measures(
    nodes: Sequence[NodeEnd],
    resources: Iterable[str],
    largest: Mapping[str, int],
    price: Price,
) -> dict[str, float | None]:
    used = [node for node in nodes if any(not pod.belongs_to_node for pod in node.pods)]
    open_nodes = [node for node in nodes if node.is_ready and not node.unschedulable]
    free = [_free(node, (*largest, _PODS)) for node in open_nodes]
    room = sum(_times(amounts, largest) for amounts in free)
    whole = _times(_sum(free), largest)
    prices = [price(node) for node in used]
    known = [one for one in prices if one is not None]
    return {
        NODES_IN_USE: len(used),
        **{f"{name} in use (%)": _share(used, name) for name in resources},
        ROOM: room,
        "fragmentation (%)": round(100 * (1 - room / whole), 1) if whole else None,
        "spread: fullest node (%)": _fullest(used, lambda node: node.name),
        "spread: fullest zone (%)": _fullest(used, lambda node: node.zone),
        PRICE: round(float_sum(known), 4) if known and len(known) == len(prices) else None,
    }


def _share(nodes: Iterable[NodeEnd], resource: str) -> float | None:
    nodes = list(nodes)
    whole = sum(node.allocatable.get(resource, 0) for node in nodes)
    part = sum(node.requested.get(resource, 0) for node in nodes)
    return round(100 * part / whole, 1) if whole else None


def _fullest(nodes: Iterable[NodeEnd], place: Callable[[NodeEnd], str]) -> float | None:
    """Return how concentrated workloads are, as a percentage; None if no workload has several pods.

    `place` returns the place of a node, such as its zone. For each workload with several pods, the
    place with the most pods of the workload is found. The percentage is the share of the workload's
    pods that are at this place. The result is the average over these workloads.
    """
    found: dict[WorkloadRef, Counter[str]] = defaultdict(Counter)
    for node in nodes:
        for pod in node.pods:
            if not pod.belongs_to_node and place(node):
                found[pod.workload][place(node)] += 1
    shares = [max(one.values()) / one.total() for one in found.values() if one.total() > 1]
    return round(100 * float_sum(shares) / len(shares), 1) if shares else None


def _largest(nodes: Iterable[NodeEnd]) -> dict[str, int]:
    """Return the requests of the largest pod; {} if there is none.

    Pods are compared by their largest request, as a share of the total allocatable amount of the
    requested resource. Static pods and pods of DaemonSets do not count.
    """
    nodes = list(nodes)
    whole = _sum(node.allocatable for node in nodes)

    def share(pod: PodEnd) -> float:
        return max((amount / whole[name] for name, amount in pod.requests.items()
                    if name != _PODS and whole.get(name)), default=0)  # fmt: skip

    pods = [pod for node in nodes for pod in node.pods if not pod.belongs_to_node]
    if not pods:
        return {}
    requests = max(pods, key=lambda pod: (share(pod), pod.key)).requests
    return {name: amount for name, amount in requests.items() if amount and name != _PODS}


def _requested(node: NodeEnd) -> Iterator[str]:
    return (name for name, amount in node.requested.items() if amount)


def _free(node: NodeEnd, resources: Iterable[str]) -> dict[str, int]:
    return {
        name: max(0, node.allocatable.get(name, 0) - node.requested.get(name, 0))
        for name in resources
    }


def _times(free: Mapping[str, int], size: Mapping[str, int]) -> int:
    """Return the number of pods of `size` that fit into `free`."""
    if not size:
        return 0
    return min(free.get(_PODS, 0), *(free.get(name, 0) // part for name, part in size.items()))


def _sum(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = defaultdict(int)
    for each in amounts:
        for name, amount in each.items():
            total[name] += amount
    return dict(total)
