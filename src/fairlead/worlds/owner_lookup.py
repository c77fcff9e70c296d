"""Looks up whether the owners in an object's owner references exist.

An owner exists if there is an object with the kind, name and uid that the owner reference states.
An owner also counts as existing if its kind is not served, or if its kind is namespaced but the
object with the owner reference is cluster-scoped.

upstream: pkg/controller/garbagecollector/garbagecollector.go:isDangling
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION, KINDS, Kind, find_kind
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.command import LookUpOwners, ObjectRef
from fairlead.engine.core.stimulus import OwnersLookedUp

_BUILT_IN: Final[Mapping[tuple[str, str], Kind]] = {
    (kind.api_version, kind.kind): kind for kind in KINDS if not kind.is_custom
}


def look_up_owners(store: Store, command: LookUpOwners) -> OwnersLookedUp:
    """Return the uids of the owners of `command.target` that do not exist.

    The result is empty if the target itself is gone or terminating.
    """
    target = command.target
    obj = _find(store, target)
    if obj is None or obj["metadata"].get("deletionTimestamp"):
        return OwnersLookedUp(command, ())
    owners = obj["metadata"].get("ownerReferences") or ()
    absent = (one["uid"] for one in owners if one.get("uid") and _is_absent(store, one, target))
    return OwnersLookedUp(command, tuple(absent))


def _find(store: Store, target: ObjectRef) -> Json | None:
    kind = find_kind(target.kind)
    kinds = (
        [kind]
        if kind
        else [one for one in store.storage.kinds() if target.kind in (one.qualified, one.kind)]
    )
    found = (store.find(one, target.namespace, target.name) for one in kinds)
    return next((one for one in found if one is not None), None)


def _is_absent(store: Store, owner: Json, dependent: ObjectRef) -> bool:
    kind = _kind_of(owner, store)
    if kind is None or (kind.namespaced and not dependent.namespace):
        return False
    namespace = dependent.namespace if kind.namespaced else ""
    found = store.find(kind, namespace, owner.get("name", ""))
    return found is None or found["metadata"].get("uid") != owner["uid"]


def _kind_of(owner: Json, store: Store) -> Kind | None:
    """Return the kind of `owner`; None if that kind is not served."""
    api_version, name = owner.get("apiVersion", ""), owner.get("kind", "")
    known = _BUILT_IN.get((api_version, name))
    if known is not None:
        return known
    group, _, version = api_version.rpartition("/")
    for one in store.list(CUSTOM_RESOURCE_DEFINITION):
        spec = one["spec"]
        served = [row["name"] for row in spec["versions"] if row.get("served")]
        if (spec["group"], spec["names"]["kind"]) == (group, name) and version in served:
            plural, is_namespaced = spec["names"]["plural"], spec["scope"] == "Namespaced"
            return Kind(group, version, name, plural, namespaced=is_namespaced)
    return None
