"""Requirements: amounts that any set of new nodes must supply, whatever the pods' placement is.

    resources    the sum of the pods' requests, for each resource
    numbers      the number of nodes: 10 cores need 3 nodes of 4 cores each, and pods that exclude
                 each other need a node each

There are requirements for all pods. Because of node selectors, tolerations or sizes, some pods can
run on only some of the offers. Each group of such pods has its own requirements. For example, if
the pods with nodeSelector `disk: ssd` need 30 cores, the nodes with this label must supply 30
cores, regardless of the number of other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct

from fairlead.api.nodes.node_selector import required_node_affinity_matches
from fairlead.api.nodes.taint import find_untolerated
from fairlead.engine.framework.interface import Mask
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.cluster_size.node_offer import NodeOffer
from fairlead.whatif.planner.node.node_bound import (
    PODS_PER_NODE,
    most_exclusive,
    taint_effects,
)

# Only the groups with the most pods get requirements of their own.
_GROUPS_MAX: Final = 12

Offers = frozenset[int]  # the indexes of offers

_encode: Final = msgspec.msgpack.Encoder(order="sorted").encode


class Requirement(Struct, frozen=True):
    """The nodes must supply `amount`; each node of the k-th offer supplies `supplies[k]`.

    An offer is a kind of node that can be added. `cause` tells the user where the requirement comes
    from.
    """

    cause: str
    amount: float
    supplies: tuple[float, ...]


class NodeSetRequirements:
    """Finds the amounts that new nodes must supply to run pods; `offers` are the kinds of nodes."""

    def __init__(
        self, model: ClusterModel, offers: Sequence[NodeOffer], rooms: Sequence[Sequence[float]]
    ) -> None:
        """`rooms[k]` is the result of `NodeOffer.room` for offer k."""
        self._model = model
        self._offers = offers
        self._rooms = rooms
        self._nodes = [offer.node("new").node for offer in offers]
        self._room = np.array(rooms, np.float64)
        self._allowed: dict[bytes, Mask] = {}
        self._names = (*model.table.resources.names, PODS_PER_NODE)

    def of(
        self,
        pods: Sequence[PodInfo],
        free: Sequence[float],
        kept: int,
        demand_of: Callable[[Sequence[PodInfo]], Sequence[float]],
    ) -> Iterator[Requirement]:
        """Yield the requirements of `pods`.

        `kept` is the number of existing nodes that the cluster keeps. `free` are the free amounts
        on these nodes. `demand_of` returns the sum of the requests of pods. `free` and the result
        of `demand_of` contain an amount for each resource, followed by a number of pods.
        """
        if not self._offers:
            return
        groups: dict[Offers, list[PodInfo]] = {}
        known: dict[tuple[int, str], Offers] = {}
        for pod in pods:
            key = id(pod.shape), pod.pod.spec.scheduler_name
            if key not in known:
                known[key] = self._usable(pod)
            groups.setdefault(known[key], []).append(pod)
        every = frozenset(range(len(self._offers)))
        restricted = sorted(groups.keys() - {every, frozenset()}, key=sorted)
        restricted.sort(key=lambda one: -len(groups[one]))
        for usable in (every, *restricted[:_GROUPS_MAX]):
            inside = [pod for group, some in groups.items() if group <= usable for pod in some]
            where = "" if usable == every else f" on {self._title(usable)}"
            demand = demand_of(inside)
            wanted = [max(0.0, amount - room) for amount, room in zip(demand, free, strict=True)]
            yield from self._sums(wanted, usable, where)
            yield from self._numbers(inside, wanted, usable, kept, where)

    def _sums(self, wanted: Sequence[float], usable: Offers, where: str) -> Iterator[Requirement]:
        for column, amount in enumerate(wanted):
            if amount > 0:
                supplies = tuple(
                    room[column] if at in usable else 0.0 for at, room in enumerate(self._rooms)
                )
                yield Requirement(f"{self._names[column]}{where}", amount, supplies)

    def _numbers(
        self,
        pods: Sequence[PodInfo],
        wanted: Sequence[float],
        usable: Offers,
        kept: int,
        where: str,
    ) -> Iterator[Requirement]:
        """Yield the number of new nodes that `pods` need, if it is more than 0.

        `wanted` contains the amount of each resource that must fit on new nodes. The pods can run
        on nodes of the offers `usable`, and on `kept` nodes that stay. In the cause of the result,
        `where` follows the name of the resource.
        """
        workload, exclusive = most_exclusive(pods)
        found = [(exclusive - kept, f"the pods of {workload} exclude each other on a node")]
        for column, amount in enumerate(wanted):
            largest = max((self._rooms[at][column] for at in usable), default=0.0)
            if amount > 0 and largest > 0:
                found.append((ceil(amount / largest - 1e-9), f"{self._names[column]}{where}"))
        number, cause = max(found, key=lambda one: one[0])
        if number > 0:
            supplies = tuple(1.0 if at in usable else 0.0 for at in range(len(self._offers)))
            yield Requirement(cause, number, supplies)

    def _usable(self, pod: PodInfo) -> Offers:
        """Return the offers whose nodes could run `pod` if they were empty."""
        is_usable = self._is_allowed(pod)
        for column, amount in self._model.countable(pod.shape.wanted):
            is_usable = is_usable & (self._room[:, column] >= amount)
        return frozenset(np.flatnonzero(is_usable).tolist())

    def _is_allowed(self, pod: PodInfo) -> Mask:
        """Return, for each offer, whether node selectors and taints allow `pod` on its nodes."""
        spec = pod.shape.spec
        node_affinity = None if spec.affinity is None else spec.affinity.node_affinity
        effects = taint_effects(self._model, pod)
        key = _encode((spec.node_selector, node_affinity, spec.tolerations, effects))
        if key not in self._allowed:
            self._allowed[key] = np.array(
                [
                    required_node_affinity_matches(spec, one.metadata.labels, one.metadata.name)
                    and find_untolerated(one.spec.taints, spec.tolerations, effects) is None
                    for one in self._nodes
                ],
                np.bool_,
            )
        return self._allowed[key]

    def _title(self, usable: Offers) -> str:
        """Return words for the offers in `usable`: their pools, types or zones."""
        for kind, names in (
            ("", [offer.pool for offer in self._offers]),
            ("type ", [offer.node_type for offer in self._offers]),
            ("zone ", [offer.zone for offer in self._offers]),
        ):
            inside = {names[at] for at in usable}
            if "" not in inside and all(
                (name in inside) == (at in usable) for at, name in enumerate(names)
            ):
                return f"{kind}{' or '.join(sorted(inside))}"
        return f"{len(usable)} of {len(self._offers)} kinds of nodes"
