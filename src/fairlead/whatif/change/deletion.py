"""Finds the objects that a what-if deletes together with an object: the contents of a Namespace.

The engine's namespace controller deletes the contents once the Namespace terminates. The deletion
is refused if the namespace contains a pod whose owner is unknown, because that owner would create a
replacement.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import NAMESPACE, NODE, POD
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

# upstream: plugin/pkg/admission/namespace/lifecycle/admission.go:NewLifecycle
_IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})


def deleted_with(source: str, target: Manifest, inventory: Inventory) -> list[Manifest]:
    """Return the objects that a deletion of `target` deletes; `target` itself is the last object.

    Raises InputError if `target` cannot be deleted; its message names `source`, an option or file.
    """
    if target.kind is not NAMESPACE:
        return [target]
    if target.ref.name in _IMMORTAL:
        raise InputError(source, f"the {target.title} may not be deleted")
    held = inventory.in_namespace(target.ref.name)
    names = {(manifest.ref.kind, manifest.ref.name) for manifest in held}
    for manifest in held:
        if manifest.kind is POD and (owner := _controller(manifest)):
            _refuse_unknown(source, manifest, owner, names)
    return [*held, target]


def _refuse_unknown(
    source: str, pod: Manifest, owner: Json, names: Collection[tuple[str, str]]
) -> None:
    kind, name = owner["kind"], owner["name"]
    if (kind, name) not in names and kind != NODE.kind:
        problem = f"its {kind} {name} is not in the snapshot, and would create it again"
        raise InputError(source, problem, object_name=pod.title)


def _controller(manifest: Manifest) -> Json | None:
    return next((owner for owner in _owners(manifest) if owner.get("controller")), None)


def _owners(manifest: Manifest) -> list[Json]:
    owners: list[Json] = manifest.value["metadata"].get("ownerReferences", [])
    return owners
