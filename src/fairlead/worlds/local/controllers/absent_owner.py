"""Who names an owner that is not there: it goes, or forgets that owner if it has others.

The garbage collector of the engine sees owners go. This is for those that were gone, or never
there, when they were named: nobody of that name, or somebody else. An owner whose kind is not
served says nothing, and neither does one in a namespace of an object that is in none.

upstream: pkg/controller/garbagecollector/garbagecollector.go:isDangling, attemptToDeleteItem
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION, KINDS, Kind
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StorageChange
from fairlead.engine.core.instant import Instant
from fairlead.worlds.local.field_manager import controllers_write

_BUILT_IN: Final[Mapping[tuple[str, str], Kind]] = {
    (kind.api_version, kind.kind): kind for kind in KINDS if not kind.is_custom
}


class AbsentOwners:
    """Sees to everything that names owners."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._there: dict[str, None] = {}  # uids of owners that were found
        self._suspects: dict[tuple[Kind, str, str], None] = {}
        self._since: Instant | None = None

    def attend(self, change: StorageChange, store: Store, now: Instant) -> None:
        """See Attendant."""
        meta = change.object["metadata"]
        if change.type is ChangeType.DELETED:
            self._there.pop(meta.get("uid", ""), None)
            return
        owners = meta.get("ownerReferences")
        if not owners or meta.get("deletionTimestamp"):
            return
        before = (change.previous or {}).get("metadata", {}).get("ownerReferences")
        if owners != before and self._absent(change.object, change.kind, store):
            self._suspects[change.kind, meta.get("namespace", ""), meta["name"]] = None
            self._since = now if self._since is None else self._since

    def next_due(self) -> Instant | None:
        """At once where somebody is suspected."""
        return self._since

    def act(self, store: Store, now: Instant) -> None:
        """Let those go whose owners are still not there."""
        suspects, self._suspects, self._since = self._suspects, {}, None
        for kind, namespace, name in suspects:
            obj = store.find(kind, namespace, name)
            if obj is None or obj["metadata"].get("deletionTimestamp"):
                continue
            absent = self._absent(obj, kind, store)
            owners = obj["metadata"].get("ownerReferences") or []
            kept = [one for one in owners if one.get("uid") not in absent]
            with suppress(ApiError):  # it will be looked at again when it changes
                if absent and kept:
                    patch = {"metadata": {"ownerReferences": kept}}
                    write = controllers_write(kind, "", now)
                    store.patch(kind, namespace, name, patch, now, write=write)
                elif absent:
                    store.delete(kind, namespace, name, now, Deletion(policy="Background"))

    def _absent(self, obj: Json, kind: Kind, store: Store) -> dict[str, None]:
        """The uids of the owners of `obj` that are not there."""
        namespace = obj["metadata"].get("namespace", "") if kind.namespaced else ""
        owners = obj["metadata"].get("ownerReferences") or ()
        return {
            one["uid"]: None
            for one in owners
            if one.get("uid") and not self._is_there(one, namespace, store)
        }

    def _is_there(self, owner: Json, namespace: str, store: Store) -> bool:
        """Whether `owner` is there, as far as anybody can tell."""
        if owner["uid"] in self._there:
            return True
        kind = _kind_of(owner, store)
        if kind is None or (kind.namespaced and not namespace):
            return True
        found = store.find(kind, namespace if kind.namespaced else "", owner.get("name", ""))
        if found is None or found["metadata"].get("uid") != owner["uid"]:
            return False
        self._there[owner["uid"]] = None
        return True


def _kind_of(owner: Json, store: Store) -> Kind | None:
    """The kind of an owner, None where it is not served."""
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
