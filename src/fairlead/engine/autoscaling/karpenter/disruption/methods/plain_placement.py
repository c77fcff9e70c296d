"""PlainPlacement: computes on which existing nodes Karpenter places plain pods, by counting them.

Karpenter simulates the scheduling of the pods of nodes that it may remove. One simulation is a
*pass*. The pods cannot be placed on the nodes that are removed.

A plain pod has no spread constraints, affinity to pods, volumes, ports or preferences. So only its
requests, tolerations and required labels matter. A pass takes pods by size (cpu, then memory) and
places each on the first node with room for it. A `PodFacts` object contains the facts that the pass
reads from a spec. Pods with equal specs share one such object: they "have the same facts". Such
pods are interchangeable, so they are placed by count:

    for each size, largest first:
        for each node in order: place as many pods as fit, until no pod is left

The result is the same as if the pods were placed one by one, because free resources only shrink. A
node without room for a pod has no room for later pods with the same requests. The queue orders pods
of one size by age, then uid. If pods of one size have different facts, they can alternate in the
queue. All pods are then placed one by one.

    free: 1 core on node-3, 2 cores on node-7; five pods of 1 core
    by count     -> node-3 takes 1, node-7 takes 2, two pods are left
    one by one   -> node-3, node-7, node-7, left, left

The result of a placement by count is stored until the cluster changes. A later pass uses this
result if two conditions hold. Firstly, both passes have the same number of pods of each size, and
these pods have the same facts. Secondly, both passes remove the same nodes, apart from nodes
without room for any of these pods. So hundreds of candidates with equal pods share one result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import Amounts
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import (
    PendingPod,
    PodFacts,
)
from fairlead.engine.autoscaling.karpenter.scheduling.taints import untolerated
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode
from fairlead.engine.autoscaling.karpenter.state.usage import PodsOnNode

PodOrder = tuple[int, int, int, str]
"""A pod's position in the queue: minus cpu, minus memory, time of creation, uid."""

Size = tuple[int, int]
"""The first two parts of a `PodOrder`."""


class PlainPod(Struct, frozen=True):
    """A plain pod (see the module docstring) and the pod's position in the queue."""

    pod: Pod
    pending: PendingPod
    order: PodOrder


class PlainPods(Struct, frozen=True):
    """Plain pods (see the module docstring), in the order of the queue.

    `sizes` maps each `Size` to a pair: the `PodFacts` that all pods of this size share, and the
    number of these pods. `sizes` is None if two pods of equal size have different PodFacts.
    """

    pods: tuple[PlainPod, ...]
    sizes: Mapping[Size, tuple[PodFacts, int]] | None


_BY_ORDER = attrgetter("order")


def plain_pods(pods: Iterable[PlainPod]) -> PlainPods:
    """Return `pods`, sorted as in Karpenter's queue, and the number of pods of each size."""
    ordered = tuple(sorted(pods, key=_BY_ORDER))
    sizes: dict[Size, tuple[PodFacts, int]] = {}
    for one in ordered:
        facts, size = one.pending.facts, one.order[:2]
        known, count = sizes.get(size, (facts, 0))
        if known is not facts:
            return PlainPods(ordered, None)
        sizes[size] = known, count + 1
    return PlainPods(ordered, sizes)


class NodeRoom(Struct):
    """An existing node with its free resources.

    `accepts` caches whether the node accepts pods with certain facts. The keys are the Python ids
    of PodFacts objects.
    """

    state: StateNode
    on_node: PodsOnNode
    free: Amounts
    accepts: dict[int, bool] = field(default_factory=dict)

    def accepts_facts(self, facts: PodFacts) -> bool:
        """Return whether the node's labels and taints admit a pod with `facts`."""
        found = self.accepts.get(id(facts))
        if found is None:
            found = self.accepts[id(facts)] = untolerated(
                self.state.taints, facts.tolerations
            ) is None and self.state.requirements.compatible(facts.requirements)
        return found


class PlacementResult(Struct, frozen=True):
    """The result of a placement: pods without a node, and pods on nodes that are still starting.

    A range (size, first, end) states the positions of pods from `first` to `end` - 1. The size of a
    pod is (minus cpu, minus memory), and a position is an index in the queue of the pods of this
    size. If the size is None, a position is an index in the queue of all pods.
    """

    # The pods without a node, as (facts, number of pods), in the order of the queue.
    left: tuple[tuple[PodFacts, int], ...]
    left_places: tuple[tuple[Size | None, int, int], ...]  # the positions of the same pods
    # (size, first, end, node) for each range of pods on a node that is not initialized.
    starting: tuple[tuple[Size | None, int, int, StateNode], ...]


class PlainPlacement:
    """Places plain pods (see the module docstring) on the nodes of one cluster state.

    Each call of `place` starts anew: the pods of earlier calls do not use resources.
    """

    def __init__(self, rows: Sequence[NodeRoom], common: PlainPods) -> None:
        """Prepare placements on `rows`, the nodes in the order in which they are tried.

        Every placement includes the pods `common`.
        """
        self._rows = rows
        self._common = common
        self._by_facts: dict[int, list[NodeRoom]] = {}
        self._with_room: set[str] = set()
        self._known: dict[object, PlacementResult] = {}
        self._common_orders: dict[Size | None, list[PodOrder]] = {}

    def place(self, own: Sequence[PlainPods], leaving: set[str]) -> PlacementResult:
        """Place the pods `common` (see the constructor), and the pods in `own`.

        Nodes whose keys are in `leaving` take no pods.
        """
        sizes = self._sizes(own)
        if sizes is None:
            return self._place_each(self.pods(own, None), leaving)
        for facts, _ in sizes.values():
            self._rows_for(facts)
        ordered = sorted(sizes.items())
        counts = tuple((size, id(facts), count) for size, (facts, count) in ordered)
        key = counts, frozenset(leaving & self._with_room)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._place_counts(ordered, leaving)
        return found

    def pods(self, own: Sequence[PlainPods], size: Size | None) -> list[PlainPod]:
        """Return the pods of `own` and the pods `common` (see the constructor), in queue order.

        If `size` is not None, only pods of this size are returned.
        """
        found = [
            one
            for group in (self._common, *own)
            for one in group.pods
            if size is None or one.order[:2] == size
        ]
        return sorted(found, key=_BY_ORDER)

    def places(self, own: Sequence[PlainPods], size: Size | None) -> Iterator[tuple[int, str]]:
        """Yield (position, pod key) for each pod of `own`.

        If `size` is not None, only pods of this size are included. The position is the index of the
        pod in `pods(own, size)`.
        """
        orders = self._common_orders.get(size)
        if orders is None:
            orders = self._common_orders[size] = [one.order for one in self.pods((), size)]
        mine = [one for group in own for one in group.pods if size is None or one.order[:2] == size]
        if len(own) > 1:
            mine.sort(key=_BY_ORDER)
        for number, one in enumerate(mine):
            yield number + bisect_left(orders, one.order), one.pod.key

    def _sizes(self, own: Sequence[PlainPods]) -> dict[Size, tuple[PodFacts, int]] | None:
        """Return {size: (facts of the pods of this size, number of these pods)}.

        Returns None if two pods of the same size have different facts.
        """
        if self._common.sizes is None:
            return None
        total = dict(self._common.sizes)
        for group in own:
            if group.sizes is None:
                return None
            for size, (facts, count) in group.sizes.items():
                known, before = total.get(size, (facts, 0))
                if known is not facts:
                    return None
                total[size] = facts, before + count
        return total

    def _rows_for(self, facts: PodFacts) -> list[NodeRoom]:
        """Return the nodes that accept a pod with `facts` and have room for it.

        Pods that were placed during the provisioning pass are ignored.
        """
        found = self._by_facts.get(id(facts))
        if found is None:
            found = self._by_facts[id(facts)] = [
                row
                for row in self._rows
                if _fitting(row.free, facts, 1) and row.accepts_facts(facts)
            ]
            self._with_room.update(row.state.key for row in found)
        return found

    def _place_counts(
        self, sizes: Sequence[tuple[Size, tuple[PodFacts, int]]], leaving: set[str]
    ) -> PlacementResult:
        left: list[tuple[PodFacts, int]] = []
        left_places: list[tuple[Size | None, int, int]] = []
        starting: list[tuple[Size | None, int, int, StateNode]] = []
        free: dict[str, Amounts] = {}
        for size, (facts, count) in sizes:
            # Invariant: the first `done` pods of this size are on nodes before the current one.
            done = 0
            for row in self._rows_for(facts):
                if done == count:
                    break
                state = row.state
                if state.key in leaving:
                    continue
                before = free.get(state.key, row.free)
                taken = _fitting(before, facts, count - done)
                if taken:
                    free[state.key] = _without(before, facts, taken)
                    if not state.initialized:
                        starting.append((size, done, done + taken, state))
                    done += taken
            if done < count:
                left.append((facts, count - done))
                left_places.append((size, done, count))
        return PlacementResult(tuple(left), tuple(left_places), tuple(starting))

    def _place_each(self, pods: Sequence[PlainPod], leaving: set[str]) -> PlacementResult:
        """Place pods one by one, which is necessary if pods of one size have different facts."""
        left: list[tuple[PodFacts, int]] = []
        left_places: list[tuple[Size | None, int, int]] = []
        starting: list[tuple[Size | None, int, int, StateNode]] = []
        free: dict[str, Amounts] = {}
        rooms: dict[int, list[NodeRoom]] = {}  # by id of the facts, in reverse order
        for place, one in enumerate(pods):
            facts = one.pending.facts
            if id(facts) not in rooms:
                found = self._rows_for(facts)
                rooms[id(facts)] = [row for row in reversed(found) if row.state.key not in leaving]
            room = rooms[id(facts)]
            while room and not _fitting(free.get(room[-1].state.key, room[-1].free), facts, 1):
                room.pop()
            if room:
                state = room[-1].state
                free[state.key] = _without(free.get(state.key, room[-1].free), facts, 1)
                if not state.initialized:
                    starting.append((None, place, place + 1, state))
                continue
            if left and left[-1][0] is facts:
                left[-1] = facts, left[-1][1] + 1
            else:
                left.append((facts, 1))
            left_places.append((None, place, place + 1))
        return PlacementResult(tuple(left), tuple(left_places), tuple(starting))


def _fitting(free: Amounts, facts: PodFacts, limit: int) -> int:
    """Return how many equal pods with `facts` fit the `free` resources, but at most `limit`."""
    for name, amount in facts.requests.items():
        if amount > 0:
            limit = min(limit, free.get(name, 0) // amount)
    return limit


def _without(free: Amounts, facts: PodFacts, count: int) -> Amounts:
    requests = facts.requests
    return {name: amount - count * requests.get(name, 0) for name, amount in free.items()}
