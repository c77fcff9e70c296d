"""NodeSets: the sets of N nodes whose loss a search tries.

If there are few sets of N nodes, the loss of each set is tried. Otherwise, the nodes are divided
into classes. Two new nodes are in one class if they are copies of the same kind and run equal pods.
Sets with the same number of nodes of each class are equivalent, and only one of them is tried. If
there are still too many sets, only the sets whose loss is hardest to survive are tried.

Example: of 5 nodes, 3 are equal, and the 2 others differ from all other nodes. There are 10 sets of
2 nodes. If 10 sets are too many, 4 sets are tried: two equal nodes, an equal node and the first
other node, an equal node and the second other node, and both other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from math import comb, prod
from typing import Final

from msgspec import Struct

from fairlead.api.pods.facts import is_daemon_pod, is_static
from fairlead.api.well_known_label import ZONE
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.planner.cluster_size.node_offer import NodeOffer

SETS_MAX: Final = 300

# What makes the loss of a node hard to survive: its pods, then its size.
_AMOUNTS: Final[tuple[Callable[[NodeInfo], int], ...]] = (
    lambda info: info.requested[0],
    lambda info: info.requested[1],
    lambda info: len(info.pods),
    lambda info: info.allocatable[0],
    lambda info: info.allocatable[1],
)


class NodeSets(Struct, frozen=True):
    """The `sets` of nodes, as names, whose loss the search tries.

    The first `hardest` sets are the sets whose loss is hardest to survive. `covered` is the number
    of sets that are in `sets`, or equivalent to a set in `sets`. `total` is the number of all sets.
    """

    sets: tuple[tuple[str, ...], ...]
    hardest: int
    covered: int
    total: int


def sets_to_try(infos: Sequence[NodeInfo], offers: Mapping[str, NodeOffer], count: int) -> NodeSets:
    """Return the sets of `count` nodes whose loss the search must try; `infos` are all nodes.

    `offers` contains the offers of the new nodes by name. If there are more than SETS_MAX sets,
    only one of several sets with equal nodes is tried. A node without an offer is not equal to any
    other node. If there are at most `count` nodes, the only set contains all nodes.
    """
    if len(infos) <= count:
        return NodeSets((tuple(info.name for info in infos),), 1, 1, 1)
    total = comb(len(infos), count)
    kinds = [info.name if total <= SETS_MAX else _kind(info, offers) for info in infos]
    classes: dict[Hashable, list[str]] = {}
    for kind, info in zip(kinds, infos, strict=True):
        classes.setdefault(kind, []).append(info.name)
    members = list(classes.values())
    class_of = {name: at for at, names in enumerate(members) for name in names}
    found: dict[tuple[tuple[int, int], ...], tuple[str, ...]] = {}
    for names in _hardest(infos, offers, count):
        found.setdefault(_signature([class_of[name] for name in names]), names)
        if len(found) >= SETS_MAX:
            break
    hardest = len(found)
    sizes = [len(names) for names in members]
    if _choices(sizes, count) <= SETS_MAX:
        for taken in _chosen(sizes, count):
            names = tuple(name for at, number in taken for name in members[at][:number])
            found.setdefault(taken, names)
    covered = sum(prod(comb(sizes[at], number) for at, number in taken) for taken in found)
    return NodeSets(tuple(found.values()), hardest, covered, total)


def _kind(info: NodeInfo, offers: Mapping[str, NodeOffer]) -> Hashable:
    """Return a key: if two nodes have the same key, they and their pods differ only in names."""
    offer = offers.get(info.name)
    if offer is None:
        return info.name
    # Equal offers have equal pods of DaemonSets and equal static pods.
    pods: dict[Hashable, int] = {}
    for pod in info.pods.values():
        if not (is_daemon_pod(pod.pod) or is_static(pod.pod)):
            kind = _pod_kind(pod)
            pods[kind] = pods.get(kind, 0) + 1
    return offer.pool, offer.node_type, offer.zone, id(offer), frozenset(pods.items())


def _pod_kind(pod: PodInfo) -> Hashable:
    """Return a value that two pods share only if the scheduler treats both in the same way."""
    if pod.shape.has_volumes or pod.pod.spec.resource_claims:
        return pod.id
    owners = tuple(owner.uid for owner in pod.pod.metadata.owner_references)
    labels = frozenset(pod.labels.items())
    return pod.namespace, pod.shape.id, labels, pod.priority, owners


def _hardest(
    infos: Sequence[NodeInfo], offers: Mapping[str, NodeOffer], count: int
) -> Iterator[tuple[str, ...]]:
    """Yield sets of `count` nodes whose loss is hard to survive; a set can occur several times.

    Five lists contain all nodes. Each list is sorted by another amount, highest first: requested
    cpu, requested memory, number of pods, allocatable cpu, or allocatable memory. The first five
    sets are the first `count` nodes of each list.

    Each pool, each zone, and each pool within a zone is a group. For each group, every list yields
    one more set: the first `count` nodes in the list that belong to the group. If the group has
    fewer nodes, the first nodes in the list from outside the group are added. Small groups come
    first. Nodes that are not in `offers` are existing nodes that the plan keeps. These kept nodes
    form a pool.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for info in infos:
        zone = info.labels.get(ZONE, "")
        offer = offers.get(info.name)
        pool = "kept" if offer is None else f"pool {offer.pool}"
        for key in dict.fromkeys(((pool, ""), ("", zone), (pool, zone))):
            if key != ("", ""):
                groups.setdefault(key, []).append(info.name)
    by_size = sorted(groups.items(), key=lambda item: (len(item[1]), item[0]))
    orders = [
        [info.name for info in sorted(infos, key=lambda info: (-amount(info), info.name))]
        for amount in _AMOUNTS
    ]
    for order in orders:
        yield tuple(order[:count])
    for _, members in by_size:
        inside = set(members)
        for order in orders:
            first = [name for name in order if name in inside][:count]
            others = [name for name in order if name not in inside]
            yield (*first, *others[: count - len(first)])


def _signature(classes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the number of nodes of each class, as (class, number), in the order of the classes."""
    return tuple((at, classes.count(at)) for at in sorted(set(classes)))


def _choices(sizes: Sequence[int], count: int) -> int:
    """Return the number of ways to take `count` nodes from classes with these `sizes`."""
    ways = [1] + [0] * count
    for size in sizes:
        ways = [sum(ways[max(0, at - size) : at + 1]) for at in range(count + 1)]
    return ways[count]


def _chosen(sizes: Sequence[int], count: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield each way to take `count` nodes from classes with these `sizes`.

    A way is a tuple of (class, number of nodes taken from it).
    """
    after = [0]  # after[-1 - at] is the number of nodes of the classes from `at` on
    for size in reversed(sizes):
        after.append(after[-1] + size)

    def take(at: int, left: int) -> Iterator[tuple[tuple[int, int], ...]]:
        if not left:
            yield ()
            return
        for number in range(min(sizes[at], left), -1, -1):
            if left - number > after[len(sizes) - at - 1]:
                return
            for rest in take(at + 1, left - number):
                yield ((at, number), *rest) if number else rest

    yield from take(0, count)
