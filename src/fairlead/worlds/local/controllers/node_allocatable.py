"""NodeAllocatable: copies extended resources of nodes from status.capacity to status.allocatable.

A client adds an extended resource, such as `example.com/dongle`, to status.capacity of a node. A
kubelet then copies the amount to status.allocatable, so that the scheduler can use it.

upstream: pkg/kubelet/nodestatus/setters.go:MachineInfo. Upstream computes all of allocatable. This
  controller changes neither the amounts of native resources nor amounts that a client has set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar

from fairlead.api.nodes.readiness import UNKNOWN, ready_status
from fairlead.api.objects import ApiObject, Node, ResourceList
from fairlead.api.resource_name import is_extended_resource
from fairlead.engine.core.command import Command, ObjectRef, PatchStatus, node_ref
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import KUBELET, Issuer
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController


class NodeAllocatable(ReactiveController):
    """Copies new and changed extended resources of nodes from their capacity to allocatable."""

    issuer: ClassVar[Issuer] = KUBELET
    interest: ClassVar[Interest] = Interest(changed=(Node,), succeeded=(), failed=(PatchStatus,))

    def __init__(self, simulated: Collection[str] | None = None) -> None:
        """`simulated` are the names of the nodes that have a simulated kubelet (None: all)."""
        super().__init__()
        self._simulated = simulated
        self._nodes: dict[str, Node] = {}  # by uid
        # By uid of the node: the capacity of its extended resources that is allocatable.
        self._copied: dict[str, Mapping[str, str]] = {}

    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Return the writes to changed nodes whose allocatable amounts are not up to date."""
        commands: list[Command] = []
        for one, is_deleted in changed:
            if not isinstance(one, Node):
                continue
            uid, name = one.metadata.uid, one.metadata.name
            if is_deleted:
                self._nodes.pop(uid, None)
                self._copied.pop(uid, None)
            elif self._simulated is None or name in self._simulated:
                self._nodes[uid] = one
                commands += self._copy(one)
        return commands

    def is_own(self, target: ObjectRef) -> bool:
        """Return whether `target` is a node with a simulated kubelet."""
        return target.kind == "Node" and target.uid in self._nodes

    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Return the command that updates the node `target`; [] if no update is needed."""
        node = self._nodes.get(target.uid)
        return [] if node is None else self._copy(node)

    def _copy(self, node: Node) -> list[Command]:
        """Return the command that changes status.allocatable; [] if no change is needed.

        Also returns [] while the condition Ready is Unknown, because the kubelet reports nothing.
        """
        if ready_status(node) == UNKNOWN:
            return []
        uid = node.metadata.uid
        capacity = _extended(node.status.capacity)
        allocatable = _extended(node.status.allocatable)
        changes = _changes(self._copied.get(uid, {}), capacity, allocatable)
        if changes:
            return [PatchStatus(node_ref(node), {"allocatable": changes})]
        self._copied[uid] = capacity
        return []


def _changes(
    before: Mapping[str, str], capacity: Mapping[str, str], allocatable: Mapping[str, str]
) -> dict[str, str | None]:
    """Return the amounts to write to status.allocatable; None removes the resource.

    `before` is the capacity that was copied last. If an allocatable amount differs from `before`, a
    client has set this amount, for example because a device is unhealthy. Such an amount is kept as
    long as the resource is in `capacity`.
    """
    changes: dict[str, str | None] = {
        name: amount
        for name, amount in capacity.items()
        if name not in allocatable or allocatable[name] == before.get(name) != amount
    }
    return changes | {name: None for name in before if name in allocatable and name not in capacity}


def _extended(amounts: ResourceList) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items() if is_extended_resource(name)}
