"""Updates metadata.managedFields, which lists the fields that each manager wrote.

In memory, managedFields is a dict from `ManagerIdentifier` to an entry with a decoded field set.

A client turns tracking off by sending `[]` or `[{}]` as managedFields. While the stored list is
empty, updates are not recorded. The next apply turns tracking on again, and records all existing
fields under the manager `before-first-apply`.

upstream: apimachinery/pkg/util/managedfields/internal/*.go
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.patch.managedfields.field_set import (
    EMPTY,
    FieldSet,
    difference,
    from_fields_v1,
    set_of_paths,
    to_fields_v1,
    union,
)
from fairlead.apiserver.patch.managedfields.path_element import ItemKeyError
from fairlead.apiserver.patch.managedfields.typed import reconciled_with_schema
from fairlead.apiserver.patch.managedfields.updater import OwnedVersion, after_update
from fairlead.apiserver.schema.decoder import empty
from fairlead.apiserver.schema.model import Schema

APPLY: Final = "Apply"
UPDATE: Final = "Update"
SETS_MAX: Final = 512
SET_BYTES_MAX: Final = 1 << 14
UPDATERS_MAX: Final = 10  # upstream: fieldmanager.go:DefaultMaxUpdateManagers
_OLD_UPDATES_MANAGER_NAME: Final = "ancient-changes"

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode

# Fields that no manager owns, because the server sets them or they identify the object. upstream:
# managedfields/internal/stripmeta.go:stripSet
STRIPPED_FIELDS: Final = set_of_paths(
    ("apiVersion",),
    ("kind",),
    ("metadata",),
    ("metadata", "creationTimestamp"),
    ("metadata", "selfLink"),
    ("metadata", "uid"),
    ("metadata", "clusterName"),
    ("metadata", "generation"),
    ("metadata", "managedFields"),
    ("metadata", "resourceVersion"),
    ("metadata", "name"),
    ("metadata", "namespace"),
)


class ManagerIdentifier(Struct, frozen=True):
    """The values in a managedFields entry that together identify the entry."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def sort_key(self) -> str:
        """The identifier as text, in upstream's format; conflicts are sorted by this text."""
        # upstream: managedfields.go:BuildManagerIdentifier
        known = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": "" if self.operation == APPLY else self.api_version,
            "subresource": self.subresource,
        }
        return _encode({key: value for key, value in known.items() if value}).decode()


class ManagedFieldsEntry(Struct, frozen=True):
    """The fields that a manager owns, and the time when it last wrote them ("" if unknown)."""

    fields: FieldSet
    time: str = ""


ManagedFields = dict[ManagerIdentifier, ManagedFieldsEntry]


class TrackedResource(Struct, frozen=True, kw_only=True):
    """The rules by which writes to one resource or subresource are recorded in managedFields.

    `reset_fields` are fields that cannot be owned through the resource. `other_versions` are the
    API versions served besides `api_version`. An entry of managedFields with a version that is not
    served is dropped. If `rejects_unknown_versions` is set, such an entry raises
    UnknownVersionError instead. If `api_version` is "", every version counts as served, and
    `schema` describes each version that is not in `other_versions`.
    """

    schema: Schema
    reset_fields: FieldSet = field(default_factory=dict)
    api_version: str = ""
    other_versions: Mapping[str, OwnedVersion] = field(default_factory=dict)
    rejects_unknown_versions: bool = False

    @property
    def version(self) -> OwnedVersion:
        """The schema and the reset fields of the API version in which the object is written."""
        return OwnedVersion(self.schema, self.reset_fields)

    def versions_of(self, managed: ManagedFields) -> dict[ManagerIdentifier, OwnedVersion]:
        """Return {manager: its version} for managers whose API version is in `other_versions`."""
        return {
            owner: self.other_versions[owner.api_version]
            for owner in managed
            if owner.api_version in self.other_versions
        }


def updated(
    resource: TrackedResource,
    old: Json | None,
    new: Json,
    owner: ManagerIdentifier,
    timestamp: str,
) -> Json:
    """Return `new` with managedFields that record how `owner` updated `old`.

    `old` is None if `owner` created the object. The function updates the entries that the client
    sent in `new`. If the client sent no managedFields or malformed ones, or if the write is to a
    subresource, the function updates the entries of `old` instead.

    The result has no managedFields if the changed fields cannot be determined. The result of an
    update (`old` is not None) also has no managedFields if there are no entries to update, for
    example because the client sent `[]`.
    """
    # upstream: fieldmanager.go:UpdateNoErrors
    managed = _starting_entries(old, new, from_live=bool(owner.subresource))
    bare = without_managed_fields(new)
    if managed or old is None:
        before = empty(resource.schema) if old is None else without_managed_fields(old)
        try:
            managed = entries_after_update(resource, before, bare, managed, owner, timestamp)
        except (ItemKeyError, UnknownVersionError):
            managed = {}
    return with_managed_fields(bare, managed)


def entries_after_update(
    resource: TrackedResource,
    old: Json,
    new: Json,
    managed: ManagedFields,
    owner: ManagerIdentifier,
    timestamp: str,
) -> ManagedFields:
    """Return the entries after `owner` updates `old` to `new` at `timestamp`.

    Raises ItemKeyError, UnknownVersionError.
    """
    managed = with_present_schemas(resource, managed)
    # The update runs under a temporary manager, so that the fields that it writes are known.
    # `owner` gets a new timestamp only if the update writes fields.
    current = ManagerIdentifier("", "", "")
    owners = {one: entry.fields for one, entry in managed.items()}
    other_versions = resource.versions_of(managed)
    kept = after_update(
        resource.version, old, new, owners, manager=current, other_versions=other_versions
    )
    taken = difference(kept.pop(current, EMPTY), STRIPPED_FIELDS)
    made = {one: replace(managed[one], fields=own) for one, own in kept.items()}
    if taken:
        previous = made.get(owner)
        fields = union(taken, previous.fields) if previous else taken
        made[owner] = ManagedFieldsEntry(fields, timestamp)
    return _capped(made)


class UnknownVersionError(ValueError):
    """The API version of an entry is malformed or not served."""


def with_present_schemas(resource: TrackedResource, managed: ManagedFields) -> ManagedFields:
    """Return the entries whose API version is served, with fields adapted to the current schema.

    Entries of other versions are dropped. Raises UnknownVersionError for a malformed version. If
    `resource.rejects_unknown_versions` is True, also raises UnknownVersionError for a version that
    is not served.
    """
    # upstream: structured-merge-diff/merge/update.go:reconcileManagedFieldsWithSchemaChanges
    made = {}
    for owner, entry in managed.items():
        if owner.api_version.count("/") > 1:
            raise UnknownVersionError(f"unexpected GroupVersion string: {owner.api_version}")
        other = resource.other_versions.get(owner.api_version)
        is_known = other is not None or resource.api_version in ("", owner.api_version)
        if resource.rejects_unknown_versions and not is_known:
            why = f"request to convert CR to an invalid group/version: {owner.api_version}"
            raise UnknownVersionError(why)
        if is_known:
            schema = resource.schema if other is None else other.schema
            fields = _reconciled(schema, entry.fields)
            made[owner] = entry if fields is entry.fields else replace(entry, fields=fields)
    return made


def _reconciled(schema: Schema, fields: FieldSet) -> FieldSet:
    text = _encode(fields)
    if len(text) > SET_BYTES_MAX:
        return reconciled_with_schema(schema, fields)
    changed = _cached_reconciliation(schema, text)
    return fields if changed is None else changed


@lru_cache(maxsize=SETS_MAX)
def _cached_reconciliation(schema: Schema, text: bytes) -> FieldSet | None:
    """Return the field set in `text`, reconciled with `schema`; None if the set stays the same.

    `text` is the JSON of a `FieldSet`. The key "." marks the members of the set.
    """
    fields = _decode(text)
    made = reconciled_with_schema(schema, fields)
    return None if made is fields else made


def entries_of(obj: Json | None) -> ManagedFields:
    """Return the managedFields entries of an object; no entries if one of them is malformed."""
    found = (obj.get("metadata") or {}).get("managedFields") if obj else None
    try:
        return _decoded_entries(found or [])
    except (ValueError, AttributeError, TypeError):
        return {}


def with_managed_fields(obj: Json, managed: ManagedFields) -> Json:
    """Return `obj` with `managed` as its only managedFields entries."""
    meta = {
        key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"
    }
    if managed:
        order = sorted(managed.items(), key=_sort_key)
        meta["managedFields"] = [_encoded_entry(owner, entry) for owner, entry in order]
    return {**obj, "metadata": meta}


def without_managed_fields(obj: Json) -> Json:
    """Return `obj` without the field metadata.managedFields."""
    meta = obj.get("metadata", {})
    if "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {key: meta[key] for key in meta if key != "managedFields"}}


def without_timestamps(obj: Json) -> Json:
    """Return `obj` with empty managedFields timestamps, for comparisons that ignore them."""
    meta = obj["metadata"]
    if "managedFields" not in meta:
        return obj
    entries = [{**entry, "time": ""} for entry in meta["managedFields"]]
    return {**obj, "metadata": {**meta, "managedFields": entries}}


def _sort_key(item: tuple[ManagerIdentifier, ManagedFieldsEntry]) -> tuple[str, ...]:
    # upstream: managedfields.go:sortEncodedManagedFields
    owner, entry = item
    return owner.operation, entry.time, owner.manager, owner.api_version, owner.subresource


def _starting_entries(old: Json | None, new: Json, *, from_live: bool) -> ManagedFields:
    """Return the entries from which a write starts.

    If `from_live` is True, return the entries of the stored object `old`. Otherwise, return the
    entries that the client sent in `new`. If the client sent `[]` or `[{}]`, return no entries. If
    the client sent no managedFields or malformed managedFields, return the entries of `old`.
    """
    # upstream: fieldmanager.go:decodeLiveOrNew
    if from_live:
        return entries_of(old)
    sent = new.get("metadata", {}).get("managedFields")
    if sent is not None and sent in ([], [{}]):
        return {}
    return entries_of(new) or entries_of(old)


def _decoded_entries(entries: list[Json]) -> ManagedFields:
    """Return {identifier of the manager: entry}. Raises ValueError if an entry is malformed."""
    managed: ManagedFields = {}
    for entry in entries:
        operation = entry.get("operation", "")
        if operation not in (APPLY, UPDATE) or entry.get("fieldsType") != "FieldsV1":
            raise ValueError("an entry needs an operation and fieldsType FieldsV1")
        owner = ManagerIdentifier(
            entry.get("manager", ""),
            operation,
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        )
        if not owner.api_version:
            raise ValueError("an entry needs an apiVersion")
        encoded = entry.get("fieldsV1")
        fields = _decoded_set({} if encoded is None else encoded)
        if operation == APPLY:
            earlier = find_applier(managed, owner.manager, owner.subresource)
            managed = {one: kept for one, kept in managed.items() if one != earlier}
        managed[owner] = ManagedFieldsEntry(fields, entry.get("time") or "")
    return managed


def find_applier(
    managed: ManagedFields, manager: str, subresource: str
) -> ManagerIdentifier | None:
    """Return the identifier of the applier `manager` in any API version; None if there is none."""
    for owner in managed:
        if (owner.manager, owner.operation) == (manager, APPLY) and (
            owner.subresource == subresource
        ):
            return owner
    return None


def _decoded_set(encoded: Any) -> FieldSet:
    text = _encode(encoded)
    return _cached_decoding(text) if len(text) <= SET_BYTES_MAX else from_fields_v1(encoded)


def _encoded_set(fields: FieldSet) -> Json:
    text = _encode(fields)
    return _cached_encoding(text) if len(text) <= SET_BYTES_MAX else to_fields_v1(fields)


# Objects made from one template have equal field sets, so they share the decoded sets.
@lru_cache(maxsize=SETS_MAX)
def _cached_decoding(text: bytes) -> FieldSet:
    return from_fields_v1(_decode(text))


@lru_cache(maxsize=SETS_MAX)
def _cached_encoding(text: bytes) -> Json:
    return to_fields_v1(_decode(text))


def _encoded_entry(owner: ManagerIdentifier, entry: ManagedFieldsEntry) -> Json:
    made: Json = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": owner.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _encoded_set(entry.fields),
        "subresource": owner.subresource,
    }
    return {key: value for key, value in made.items() if value != ""}


def _capped(managed: ManagedFields) -> ManagedFields:
    """Return `managed`, with its oldest updaters merged if there are more than UPDATERS_MAX.

    Each API version has its own merged entry, called `ancient-changes`. Appliers are never merged.
    """
    # upstream: capmanagers.go:capUpdateManagers
    updaters = [owner for owner in managed if owner.operation == UPDATE]
    surplus = len(updaters) - UPDATERS_MAX
    if surplus <= 0:
        return managed
    updaters.sort(key=lambda owner: (managed[owner].time, owner.sort_key))
    capped = dict(managed)
    # The oldest updater of a version stays unchanged until a second one must be joined with it.
    oldest: dict[str, ManagerIdentifier] = {}
    for owner in updaters:
        if surplus <= 0:
            break
        first = oldest.setdefault(owner.api_version, owner)
        if first is owner:
            continue
        ancient = ManagerIdentifier(_OLD_UPDATES_MANAGER_NAME, UPDATE, owner.api_version)
        known = capped.get(ancient) or capped.pop(first)
        entry = managed[owner]
        # Updaters are visited by age, so the joined entry has the time of its youngest part.
        capped[ancient] = ManagedFieldsEntry(union(entry.fields, known.fields), entry.time)
        del capped[owner]
        surplus -= 1
    return capped
