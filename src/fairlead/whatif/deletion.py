"""Which objects go with one that a user deletes; of a Namespace, all that it holds.

The namespace controller of the engine deletes them. A pod whose owner is not known would be made
anew, so its namespace cannot be deleted.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import NAMESPACE, NODE, POD
from fairlead.whatif.input_error import InputError
from fairlead.whatif.inventory import Inventory
from fairlead.whatif.manifest import Manifest

# upstream: plugin/pkg/admission/namespace/lifecycle/admission.go:NewLifecycle
_IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})


def deleted_with(source: str, target: Manifest, inventory: Inventory) -> list[Manifest]:
    """`target`, after all objects that go with it.

    Raises InputError in the name of `source` where it may not be deleted.
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
        problem = f"its {kind} {name} is not in the snapshot, and would make it anew"
        raise InputError(source, problem, object_name=pod.title)


def _controller(manifest: Manifest) -> Json | None:
    return next((owner for owner in _owners(manifest) if owner.get("controller")), None)


def _owners(manifest: Manifest) -> list[Json]:
    owners: list[Json] = manifest.value["metadata"].get("ownerReferences", [])
    return owners
