"""NodeAddresses: sets the address and the pod IP range of each new node that Fairlead simulates.

In a real cluster, the kubelet reports the addresses, and the controller manager assigns the range.
If a node had no address, its pods with hostNetwork would have no IP, and would not be endpoints of
Services. Other programs may set the addresses of nodes that Fairlead does not simulate.

A simulated node without status.nodeInfo was created by a client. For such a node, this controller
also sets status.nodeInfo and the labels that a kubelet would set, so that node selectors such as
`kubernetes.io/os: linux` match.

upstream: pkg/controller/nodeipam/ipam/range_allocator.go:allocateOrOccupyCIDR,
pkg/kubelet/nodestatus/setters.go:NodeAddress, MachineInfo;
pkg/kubelet/kubelet_node_status.go:updateDefaultLabels
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, ClassVar, Final

from fairlead.api.json import Json
from fairlead.api.nodes.kubelet_behaviour import SIMULATED_RUNTIME
from fairlead.api.objects import ApiObject, Node
from fairlead.apiserver.kind import NODE
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import Command, ObjectRef, PatchObject, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.worlds.local.bootstrap.nodes import (
    node_addresses,
    node_info,
    node_labels,
    pod_range,
)
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController

NUMBERS_MAX: Final = 30_000  # from this number on, the ranges repeat


class NodeAddresses(ReactiveController):
    """Assigns the lowest free address and pod range to each simulated node that lacks them.

    The controller also sets the labels and the status.nodeInfo of nodes that a client created.
    """

    issuer: ClassVar[Issuer] = controller_account("node-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Node,), succeeded=(), failed=(PatchObject, PatchStatus)
    )

    def __init__(self, storage: Storage, simulated: Collection[str] | None = None) -> None:
        """`simulated` are the names of the nodes that have a simulated kubelet (None: all)."""
        super().__init__()
        self._storage = storage
        self._simulated = simulated
        # By uid of the node: its pod range and address; only nodes that need no write.
        self._known: dict[str, tuple[str, str]] = {}
        # By uid of the node, until the writes that assign the number are observed.
        self._numbers: dict[str, int] = {}

    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Return commands that add missing addresses, pod ranges and nodeInfo to changed nodes."""
        nodes = [(one, is_deleted) for one, is_deleted in changed if isinstance(one, Node)]
        lacking = [one for one, is_deleted in nodes if self._observe(one, is_deleted=is_deleted)]
        return [command for one in lacking for command in self._assign(one.metadata.name)]

    def is_own(self, target: ObjectRef) -> bool:
        """Return whether `target` is a node that lacks something that this controller sets."""
        return target.kind == NODE.kind and target.uid in self._numbers

    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Return the commands that update the node `target`; [] if no update is needed."""
        return self._assign(target.name)

    def _observe(self, node: Node, *, is_deleted: bool) -> bool:
        """Return whether this controller must add an address, pod range or nodeInfo to `node`.

        If the result is False and `node` still exists, its pod range and address are recorded as
        used.
        """
        meta = node.metadata
        if is_deleted:
            self._known.pop(meta.uid, None)
            self._numbers.pop(meta.uid, None)
            return False
        if meta.uid in self._known:
            return False
        stored = self._storage.find(NODE, "", meta.name)
        if stored is None or stored["metadata"]["uid"] != meta.uid:
            return False
        given, address = stored["spec"].get("podCIDR", ""), _address(stored)
        is_simulated = node.status.node_info.container_runtime_version == SIMULATED_RUNTIME
        lacks_address = is_simulated and not (given and address)
        if lacks_address or self._lacks_information(stored):
            return True
        self._numbers.pop(meta.uid, None)
        self._known[meta.uid] = given, address
        return False

    def _assign(self, name: str) -> list[Command]:
        node = self._storage.find(NODE, "", name)
        if node is None:
            return []
        uid = node["metadata"]["uid"]
        number = self._numbers.get(uid) or self._free_number()
        if number is None:
            return []
        self._numbers[uid] = number
        target = ObjectRef(NODE.kind, "", name, uid)
        patch: dict[str, Any] = {}
        status: dict[str, Any] = {}
        if not node["spec"].get("podCIDR"):
            given = pod_range(number)
            patch["spec"] = {"podCIDR": given, "podCIDRs": [given]}
        if not _address(node):
            status["addresses"] = node_addresses(number, name)
        if self._lacks_information(node):
            patch["metadata"] = {"labels": node_labels(name) | node["metadata"].get("labels", {})}
            status["nodeInfo"] = node_info(number)
        commands: list[Command] = [PatchObject(target, patch)] if patch else []
        return [*commands, PatchStatus(target, status)] if status else commands

    def _lacks_information(self, node: Json) -> bool:
        """Return whether `node` has a simulated kubelet, but no status.nodeInfo from a kubelet."""
        if self._simulated is not None and node["metadata"]["name"] not in self._simulated:
            return False
        return not (node["status"].get("nodeInfo") or {}).get("kubeletVersion")

    def _free_number(self) -> int | None:
        """Return the lowest number that is free for a new node; None if all numbers are in use.

        The pod range and the address of a node follow from its number. A number is in use if it is
        assigned to a node. A number is also in use if a node has the pod range or the address that
        follows from the number.
        """
        taken = {text for both in self._known.values() for text in both}
        assigned = set(self._numbers.values())
        free = (
            number
            for number in range(1, NUMBERS_MAX)
            if number not in assigned
            and pod_range(number) not in taken
            and node_addresses(number, "")[0]["address"] not in taken
        )
        return next(free, None)


def _address(node: Json) -> str:
    """Return the first address of `node`; "" if `node` has no address."""
    addresses = node["status"].get("addresses") or [{}]
    return str(addresses[0].get("address", ""))
