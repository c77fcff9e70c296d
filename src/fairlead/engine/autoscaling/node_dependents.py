"""NodeDependents: the CSINode and the ResourceSlices of a node that an autoscaler adds.

In a real cluster, the kubelet and the drivers on the node create these objects. A CSINode limits
the number of attached volumes, and ResourceSlices list devices. A simulation copies the objects of
an existing node. The simulation creates the copies before the new Node, so that they exist before a
pod is placed on the Node. It deletes the copies together with the Node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.engine.core.command import CreateObject, DeleteObject, ObjectRef

CSI_NODE: Final = "CSINode"
RESOURCE_SLICE: Final = "ResourceSlice"
DEPENDENT_KINDS: Final = (CSI_NODE, RESOURCE_SLICE)
_WHY: Final = "belonged to a deleted machine"


class NodeDependents(Struct, frozen=True):
    """Manifests (`objects`) of the CSINode and the ResourceSlices of the existing node `like`.

    `creations` copies these objects for a new node.
    """

    like: str = ""
    objects: tuple[Json, ...] = ()

    def without_devices(self) -> NodeDependents:
        """Return a copy without ResourceSlices, for nodes whose devices are not known."""
        kept = tuple(one for one in self.objects if one["kind"] == CSI_NODE)
        return NodeDependents(self.like, kept)

    def creations(self, node: str) -> Iterator[CreateObject]:
        """Yield commands that create the objects of the new node `node`."""
        for one in self.objects:
            yield CreateObject(copied_dependent(one, self.like, node))

    def deletions(self, node: str) -> Iterator[DeleteObject]:
        """Yield commands that delete the objects that `creations` made for `node`."""
        for command in self.creations(node):
            kind, name = command.target.kind, command.target.name
            yield DeleteObject(ObjectRef(kind, "", name), why=_WHY)


NO_DEPENDENTS: Final = NodeDependents()


class DependentsOfTypes(Struct, frozen=True):
    """The CSINode and ResourceSlices that new nodes get.

    The keys of `by_type` are pairs (NodePool, instance type); the NodePool "" means any NodePool.
    The keys of `by_pool` are NodePools. `by_pool` is used if `by_type` has no entry for the
    instance type.
    """

    by_type: Mapping[tuple[str, str], NodeDependents] = {}
    by_pool: Mapping[str, NodeDependents] = {}

    def of(self, pool: str, instance_type: str) -> NodeDependents:
        """Return the CSINode and ResourceSlices for a new node of `instance_type` in `pool`.

        `pool` is the name of a NodePool. The objects are those of an existing node of this type. A
        node in `pool` is preferred to a node in another NodePool. If no node of this type is known,
        the result is only the CSINode of any node in `pool`. If no node in `pool` is known either,
        the result has no objects.
        """
        same = self.by_type.get((pool, instance_type)) or self.by_type.get(("", instance_type))
        return same or self.by_pool.get(pool, NO_DEPENDENTS).without_devices()


def copied_dependent(one: Json, like: str, name: str) -> Json:
    """Return a copy of `one` for the new node `name`.

    `one` is the CSINode or a ResourceSlice of the node `like`. Devices have no taints in the copy:
    drivers taint unhealthy devices, and the devices of a new machine are healthy.
    """
    head = {"apiVersion": one["apiVersion"], "kind": one["kind"]}
    spec = one.get("spec") or {}
    if one["kind"] == CSI_NODE:
        return {**head, "metadata": {"name": name}, "spec": spec}
    pool = dict(spec.get("pool") or {})
    pool["name"] = device_pool_name(str(pool.get("name", "")), like, name)
    meta = {"name": f"{one['metadata']['name']}-{name}"}
    own: Json = {"nodeName": name, "pool": pool}
    if "devices" in spec:
        own["devices"] = [_without_taints(device) for device in spec["devices"]]
    return {**head, "metadata": meta, "spec": {**spec, **own}}


def _without_taints(device: Json) -> Json:
    return {field: value for field, value in device.items() if field != "taints"}


def device_pool_name(pool: str, node: str, name: str) -> str:
    """Return the name of the device pool of the new node `name`, given the pool of `node`.

    The new node is a copy of `node`, whose device pool is named `pool`. Drivers usually name a pool
    after its node. If `pool` equals `node`, the result is `name`. Otherwise, the result is `pool`
    followed by `name`.
    """
    return name if pool == node else f"{pool}-{name}"


def dependents_of_nodes(objects: Sequence[Json]) -> dict[str, NodeDependents]:
    """Return {node name: CSINode and ResourceSlices of the node}.

    `objects` are manifests of CSINodes and ResourceSlices. Slices without a node are left out.
    """
    found: dict[str, list[Json]] = {}
    for one in objects:
        if one["kind"] == CSI_NODE:
            found.setdefault(one["metadata"]["name"], []).append(one)
        elif one["kind"] == RESOURCE_SLICE:
            name = (one.get("spec") or {}).get("nodeName")
            if name:
                found.setdefault(name, []).append(one)
    return {name: NodeDependents(name, tuple(own)) for name, own in found.items()}
