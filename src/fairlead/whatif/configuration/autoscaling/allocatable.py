"""The resources that are allocatable on new nodes of an instance type.

A file of instance types states the sizes of machines. The kubelet reserves a part of each machine
for the system, so pods cannot use the whole machine. The existing nodes show how large this part
is. If a new node has the type of an existing node, both have the same allocatable amounts. On a new
node of another type, the same amount or the same share of the machine is reserved, whichever is
more:

    node m-1, type m:      capacity 4 cores, allocatable 3920m, so 80m or 2 % are reserved
    type l, 8 cores        160m (2 %) are reserved, 7840m are allocatable
    type s, 2 cores        80m are reserved, 1920m are allocatable

On a larger machine, a real kubelet reserves at least the same amount as on a smaller machine, but
at most the same share. So this rule reserves at least as much as real kubelets. Managed Kubernetes
services such as GKE publish a formula for the reserved memory. If the formula is right for the
existing node, it is used for new nodes, instead of this rule.

The reservation for a type comes from the newest existing node of the type. If there is no such
node, the reservation comes from the node whose memory is closest to the memory of the type. Nodes
in service are preferred.

The kubelet reports less memory than the machine has, because the hypervisor and the kernel keep a
part. If the file states the memory of the existing node's machine, the share of this memory that
the kubelet reports can be computed. The kubelet of a new node is assumed to report the same share.
If the new machine is smaller than the existing machine, the share is at most 92.5 %, as Karpenter
assumes.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import Node, QuantityText, ResourceList
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.text.name_list import listed
from fairlead.whatif.configuration.autoscaling.instance_type_file import (
    ALLOCATABLE_COLUMNS,
    OPTION,
    StatedType,
)
from fairlead.whatif.configuration.autoscaling.node_price import type_of_labels
from fairlead.whatif.configuration.autoscaling.published_reservation import (
    PublishedReservation,
    published_reservation,
)
from fairlead.whatif.snapshot.node_pool import copy_order, name_of_node

_SCALED: Final = ("cpu", "memory", "ephemeral-storage")
_AMOUNTS: Final = {"cpu", "memory"}
_PODS: Final = 110  # source: karpenter-provider-aws pkg/providers/instancetype/types.go: pods
_WORDS_MAX: Final = 2  # assumptions that a note names, as examples of all
# source: karpenter-provider-aws pkg/operator/options/options.go: VMMemoryOverheadPercent
_REPORTED_PER_MILLE: Final = 925
# A node reports at least this part of its machine's memory; the smallest machines report 90 %.
_REPORTED_MIN: Final = 0.8
_REPORTED_MAX: Final = 1.01


class Assumption(Struct, frozen=True):
    """A new node of the type `type_name` is assumed to reserve as much as a node of another type.

    `amounts` are the amounts that do not follow from a formula, as text. `service` is the provider
    whose formula states the memory, "" for none. `model` is the name and type of the other node.
    `leaves_nothing` is set if the new node would have no allocatable CPU or no allocatable memory.
    """

    type_name: str
    amounts: str
    service: str
    model: str
    leaves_nothing: bool


class SystemReservations:
    """The amounts that existing nodes reserve, and the allocatable amounts of new nodes."""

    def __init__(
        self,
        nodes: Iterable[Node],
        stated: Iterable[StatedType] = (),
        limited: Container[str] = (),
    ) -> None:
        """Find the amounts that `nodes` reserve; nodes without allocatable amounts are ignored.

        `stated` are the instance types of a file; the types of `nodes` may be among them. `limited`
        names the nodes whose node class limits the number of pods; this number is not used for new
        nodes.
        """
        self._stated = {one.name: one for one in stated}
        self._newest: dict[str, Node] = {}  # by instance type
        self._unlimited: dict[str, Node] = {}  # the newest node that is not in `limited`
        for node in sorted((one for one in nodes if one.status.allocatable), key=copy_order):
            self._newest[type_of_labels(node.metadata.labels)] = node
            if node.metadata.name not in limited:
                self._unlimited[type_of_labels(node.metadata.labels)] = node

    def allocatable(self, one: StatedType) -> ResourceList:
        """Return the allocatable amounts of a new node of the type `one`.

        Allocatable amounts that the instance type file states are used unchanged. The other amounts
        of CPU, memory and ephemeral storage follow from an existing node, by the rule of the
        module. If the capacity of `one` states no amount of the resource `pods`, of ephemeral
        storage or of huge pages, the existing node's amount is used. If `one.interface_pods` is not
        0, it replaces the existing node's number of pods in two cases: network interfaces limit the
        number on the existing node (in AWS), or all existing nodes are `limited`. If there is no
        existing node, the whole capacity is allocatable.
        """
        like = self._like(one, self._newest)
        if like is None:
            return {**one.capacity, **one.allocatable}
        have: ResourceList = dict(like.status.allocatable)
        found: ResourceList = {
            name: amount
            for name, amount in have.items()
            if name == "ephemeral-storage" or name.startswith("hugepages-")
        } | self._pods(one)
        found |= one.capacity
        for name in one.capacity:
            # A node without capacity, such as one that has just started, shows no reservation.
            if name in _SCALED and name in have and _reported(like, name):
                whole = self._would_report(one, like, name)
                left = max(0, whole - self._would_reserve(one, like, name, whole, found))
                found[name] = f"{left}m" if name == "cpu" else str(left)
        return {**found, **one.allocatable}

    def has_node_of(self, one: StatedType) -> bool:
        """Return whether a node of the type `one` exists."""
        return one.name in self._newest

    def reported(self, one: StatedType) -> dict[str, int]:
        """Return the CPU, memory and ephemeral storage that a new node of the type `one` reports.

        CPU is in millicores, the other amounts are in bytes. Resources without an amount in the
        capacity of `one` are left out.
        """
        like = self._like(one, self._newest)
        return {
            name: self._would_report(one, like, name)
            if like is not None and _reported(like, name)
            else _amount(name, one.capacity[name])
            for name in _SCALED
            if name in one.capacity
        }

    def _pods(self, one: StatedType) -> ResourceList:
        """Return how many pods a new node of the type `one` may have, as {"pods": number}.

        The result is {} if the number is unknown.
        """
        like = self._like(one, self._unlimited)
        if one.interface_pods and (like is None or self._is_limited_by_interfaces(like)):
            return {"pods": str(one.interface_pods)}
        have = {"pods": str(_PODS)} if like is None else like.status.allocatable
        return {name: amount for name, amount in have.items() if name == "pods"}

    def _would_report(self, one: StatedType, like: Node, name: str) -> int:
        """Return how much of the resource `name` a new node of the type `one` reports."""
        amount, size = _amount(name, one.capacity[name]), self._size(like, name)
        reported = _reported(like, name)
        if amount < size and reported < size:
            return min(amount * reported // size, amount * _REPORTED_PER_MILLE // 1000)
        return amount * reported // size

    def _would_reserve(
        self, one: StatedType, like: Node, name: str, whole: int, other: ResourceList
    ) -> int:
        """Return how much of the resource `name` a new node of the type `one` reserves.

        `like` is the existing node with which the new node is compared. `whole` is the amount of
        the resource that the new node reports. `other` contains the resources of the new node that
        are known so far, such as the maximum number of pods.
        """
        reserved, reported = _reserved(like, name), _reported(like, name)
        published = _published(like) if name == "memory" and one.name not in self._newest else None
        if published is not None:
            return published.of(whole, whole_value(other.get("pods", 0)))
        return max(reserved, -(-whole * reserved // reported))

    def leaves_nothing(self, one: StatedType) -> bool:
        """Return whether no CPU or no memory is allocatable on a new node of the type `one`."""
        left = self.allocatable(one)
        return any(_amount(name, left.get(name, 0)) <= 0 for name in ("cpu", "memory"))

    def assumed(self, types: Iterable[StatedType]) -> Iterator[Assumption]:
        """Yield an Assumption for each type in `types` that no existing node has.

        A type is left out if the file states its allocatable amounts. A type is also left out if
        the existing node from which the amounts are derived reserves nothing.
        """
        for one in types:
            like = self._like(one, self._newest)
            if like is None or one.name in self._newest or one.allocatable.keys() >= _AMOUNTS:
                continue
            cpu, memory = (_reserved(like, name) for name in ("cpu", "memory"))
            if cpu or memory:
                kind, published = type_of_labels(like.metadata.labels), _published(like)
                parts = [f"{cpu}m cpu"] if cpu else []
                parts += [f"{memory >> 20:,}Mi memory"] if memory and published is None else []
                yield Assumption(
                    one.name,
                    " and ".join(parts),
                    "" if published is None else published.service,
                    f"{like.metadata.name} ({kind})" if kind else like.metadata.name,
                    leaves_nothing=self.leaves_nothing(one),
                )

    def notes(self, types: Iterable[StatedType]) -> Iterator[str]:
        """Yield a note about the assumptions for the types in `types` that no existing node has."""
        yield from reservation_notes(self.assumed(types))

    def _like(self, one: StatedType, newest: Mapping[str, Node]) -> Node | None:
        """Return the existing node from which the amounts of new nodes of the type `one` follow.

        `newest` maps each instance type of the cluster to a node of this type. The result is None
        if `newest` is empty.
        """
        if one.name in newest:
            return newest[one.name]
        memory = _amount("memory", one.capacity.get("memory", 0))

        def rank(node: Node) -> tuple[bool, float, str, str]:
            other = self._size(node, "memory")
            ratio = max(memory, other) / max(min(memory, other), 1)
            is_in_service, created, name = copy_order(node)
            return is_in_service, -ratio, created, name

        return max(newest.values(), key=rank, default=None)

    def _stated_type(self, node: Node) -> StatedType | None:
        return self._stated.get(type_of_labels(node.metadata.labels))

    def _is_limited_by_interfaces(self, node: Node) -> bool:
        """Return whether the network interfaces of the machine limit the number of pods of `node`.

        If they do not, a setting of the kubelet limits this number, for example because of prefix
        delegation.
        """
        stated = self._stated_type(node)
        pods = whole_value(node.status.allocatable.get("pods", 0))
        return stated is not None and pods == stated.interface_pods

    def _size(self, node: Node, name: str) -> int:
        """Return how much of the resource `name` the machine of `node` has; 0 if unknown."""
        reported, stated = _reported(node, name), self._stated_type(node)
        size = 0 if stated is None else _amount(name, stated.capacity.get(name, 0))
        return size if _is_size_of(name, size, reported) else reported


def _reserved(node: Node, name: str) -> int:
    """Return how much of the resource `name` the kubelet of `node` reserves."""
    return max(0, _reported(node, name) - _amount(name, node.status.allocatable.get(name, 0)))


def _published(node: Node) -> PublishedReservation | None:
    """Return the cloud provider's published formula with which the kubelet reserves memory.

    Return None if no published formula gives the memory that the kubelet of `node` reserves.
    """
    pods = whole_value(node.status.allocatable.get("pods", 0))
    return published_reservation(_reported(node, "memory"), pods, _reserved(node, "memory"))


def _reservation_words(amounts: str, service: str, models: Sequence[str]) -> str:
    """Return the text of the assumption that new nodes reserve as much as the `models` do."""
    names = listed(models)
    words = f"{amounts} as on {names}, or the same share if that is more"
    if not service:
        return words
    which = "this node" if len(models) == 1 else "these nodes"
    formula = f"memory by the formula of {service}, which fits {which if amounts else names}"
    return f"{words}, and {formula}" if amounts else formula


def reservation_notes(
    assumed: Iterable[Assumption], existing: Collection[str] = ()
) -> Iterator[str]:
    """Yield a note that states the assumptions in `assumed`; nothing if there are none.

    `existing` is empty if the assumptions are about the whole cluster. If each assumption is about
    the new nodes of one pool, `existing` contains the instance types of the nodes of all pools. For
    a type in `existing`, the note says that some pools have no node of the type.
    """
    found = list(assumed)
    if not found:
        return
    names = {one.type_name for one in found}
    nowhere, elsewhere = sorted(names.difference(existing)), sorted(names.intersection(existing))
    missing = [f"There is no node of {listed(nowhere)}."] if nowhere else []
    missing += [f"In some pools, there is no node of {listed(elsewhere)}."] if elsewhere else []
    models: dict[tuple[str, str], set[str]] = {}
    for one in found:
        models.setdefault((one.amounts, one.service), set()).add(one.model)
    each = [_reservation_words(*what, sorted(own)) for what, own in models.items()]
    words = "; ".join(sorted(each)[:_WORDS_MAX])
    without = sorted({one.type_name for one in found if one.leaves_nothing})
    nothing = f" This leaves nothing of {listed(without)} for pods." if without else ""
    yield (
        f"{' '.join(missing)} New nodes of such types are assumed to reserve for the "
        f"system: {words}.{nothing} The columns {' and '.join(ALLOCATABLE_COLUMNS)} of {OPTION} "
        "replace this assumption."
    )


def size_notes(nodes: Iterable[Node], stated: Iterable[StatedType]) -> Iterator[str]:
    """Yield notes about the instance types whose size in a file contradicts an existing node.

    `nodes` are the existing nodes, and `stated` are the instance types in the file.
    """
    known, found = {one.name: one for one in stated}, dict[str, str]()
    for node in sorted(nodes, key=name_of_node):
        one = known.get(type_of_labels(node.metadata.labels))
        words = "" if one is None else next(_contradictions(node, one), "")
        if one is not None and words:
            found.setdefault(one.name, words)
    contradicted = [found[name] for name in sorted(found) if not known[name].is_of_nodes]
    if contradicted:
        yield (
            f"{OPTION} contradicts existing nodes: it states {listed(contradicted)}. Check the "
            "sizes and prices of these types."
        )
    shared = sorted(name for name in found if known[name].is_of_nodes)
    if shared:
        yield f"{OPTION} states one price for nodes of different sizes: those of {listed(shared)}."


def _contradictions(node: Node, one: StatedType) -> Iterator[str]:
    """Yield a text for each of cpu and memory whose size in `one` contradicts `node`.

    `one` is the instance type of `node`. If the capacity of `node` is absent or equals its
    allocatable amounts, no reservation is visible, as on a node that a scenario generates. In this
    case, the machine of `node` may be larger than `node` states. So a size above the size of `node`
    is no contradiction.
    """
    may_be_larger = node.status.capacity in ({}, node.status.allocatable)
    for name in ("cpu", "memory"):
        size, reported = _amount(name, one.capacity.get(name, 0)), _reported(node, name)
        if may_be_larger and reported <= size:
            continue
        if reported and not _is_size_of(name, size, reported):
            has = node.status.capacity.get(name, node.status.allocatable.get(name))
            stated = f"{one.name} with {one.capacity[name]} {name}"
            yield f"{stated} (node {node.metadata.name} has {has})"


def _is_size_of(name: str, size: int, reported: int) -> bool:
    """Return whether a kubelet can report `reported` if the machine has the amount `size`.

    `name` is the resource. For CPU, both amounts must be equal. For memory, a small difference is
    allowed.
    """
    least = _REPORTED_MIN if name == "memory" else 1
    return size * least <= reported <= size * (_REPORTED_MAX if name == "memory" else 1)


def _reported(node: Node, name: str) -> int:
    return _amount(name, (node.status.capacity or node.status.allocatable).get(name, 0))


def _amount(name: str, amount: QuantityText) -> int:
    return milli_value(amount) if name == "cpu" else whole_value(amount)


def with_allocatable(types: Iterable[StatedType], reserved: SystemReservations) -> list[StatedType]:
    """Return `types` with the amounts that are allocatable on their new nodes."""
    return [replace(one, allocatable=reserved.allocatable(one)) for one in types]
