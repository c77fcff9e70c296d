"""Checks that a node exists if an applied pod or pod template is bound to it.

The API server accepts every `spec.nodeName`. If the node does not exist, pod garbage collection
deletes the pod, and the controller of the pod creates it again.

upstream: pkg/controller/podgc/gc_controller.go: gcOrphaned
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.apiserver.kind import NODE
from fairlead.whatif.input.error import known_names
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.pod_spec import pod_spec_of


def refuse_absent_nodes(new: Sequence[Manifest], inventory: Inventory) -> None:
    """Raise InputError for a pod or pod template of `new` that is bound to a missing node.

    A new version of an object in `inventory` may keep the missing node of the old version.
    `inventory` must not contain `new` yet.
    """
    nodes = {one.ref.name for one in new if one.kind is NODE}
    nodes |= {one.ref.name for one in inventory.of_kind(NODE)}
    for manifest in new:
        field, spec = pod_spec_of(manifest)
        name = spec.get("nodeName")
        if not isinstance(name, str) or not name or name in nodes:
            continue
        before = inventory.get(manifest.kind, manifest.ref.namespace, manifest.ref.name)
        if before is None or pod_spec_of(before)[1].get("nodeName") != name:
            problem = f"there is no Node {name}; {known_names(name, nodes)}"
            raise manifest.refuse(problem, field=f"{field}.nodeName")
