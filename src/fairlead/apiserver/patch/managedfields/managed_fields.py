"""metadata.managedFields: who wrote which fields, kept up to date by every write.

A writer is known by manager, operation, API version and subresource (`Writer`); one entry each.
Objects whose list is empty are not tracked any further by updates: clearing the list is how a
client gives up tracking, and the next apply starts again with everybody else's fields under the
name `before-first-apply`.

upstream: apimachinery/pkg/util/managedfields/internal/*.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.apiserver.patch.managedfields.field_set import (
    NOTHING,
    FieldSet,
    difference,
    of_path,
    union,
    unwire,
    wire,
)
from fairlead.apiserver.patch.managedfields.path_element import NamelessItemError
from fairlead.apiserver.patch.managedfields.reconciliation import reconciled
from fairlead.apiserver.patch.managedfields.updater import Version, after_update
from fairlead.apiserver.schema.decoding import empty
from fairlead.apiserver.schema.model import Schema

APPLY: Final = "Apply"
UPDATE: Final = "Update"
SETS_MAX: Final = 512
SET_BYTES_MAX: Final = 1 << 14
UPDATERS_MAX: Final = 10  # upstream: fieldmanager.go:DefaultMaxUpdateManagers
_ANCIENT: Final = "ancient-changes"

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode

# upstream: stripmeta.go: the server's own fields belong to nobody
_SERVERS: Final = (
    "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion", "name", "namespace",
)  # fmt: skip


def _stripped() -> FieldSet:
    made = union(of_path("apiVersion"), of_path("kind"))
    made = union(made, of_path("metadata"))
    for name in _SERVERS:
        made = union(made, of_path("metadata", name))
    return made


STRIPPED: Final = _stripped()


@dataclass(frozen=True, slots=True)
class Writer:
    """Whose entry it is; an applier has one, whatever version it applied in."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def identity(self) -> str:
        """What upstream knows a writer by, and puts writers in order by."""
        # upstream: managedfields.go:BuildManagerIdentifier
        known = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": "" if self.operation == APPLY else self.api_version,
            "subresource": self.subresource,
        }
        return _encode({key: value for key, value in known.items() if value}).decode()


@dataclass(frozen=True, slots=True)
class Entry:
    """What a writer owns, and when they last came to own something ("": unknown)."""

    fields: FieldSet
    time: str = ""


Managed = dict[Writer, Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracking:
    """How writes to one resource are tracked: by its type, and what its writers cannot own.

    `ignored` are the fields that the resource, or subresource, resets whatever a client sends.
    `others` are the versions that there are besides `api_version`, by their names. Entries of any
    other one are nobody's, or where it `must_know` them nobody can be told of any (without a name,
    all entries are of this version).
    """

    schema: Schema
    ignored: FieldSet = field(default_factory=dict)
    api_version: str = ""
    others: Mapping[str, Version] = field(default_factory=dict)
    must_know: bool = False

    @property
    def own(self) -> Version:
        """The version that is written."""
        return Version(self.schema, self.ignored)

    def others_of(self, managed: Managed) -> dict[Writer, Version]:
        """The versions of those who wrote in another one."""
        return {
            one: self.others[one.api_version] for one in managed if one.api_version in self.others
        }


def updated(
    tracking: Tracking, old: Json | None, new: Json, writer: Writer, timestamp: str
) -> Json:
    """`new`, which a client made of `old` (None: it is new), with what `writer` now owns.

    What stands in `new`'s own managedFields is believed unless it is a subresource's write.
    """
    managed = _believed(old, new, from_live=bool(writer.subresource))
    bare = _bare(new)
    if managed or old is None:
        before = _bare(old) if old is not None else empty(tracking.schema)
        try:
            managed = after_write(tracking, before, bare, managed, writer, timestamp)
        except (NamelessItemError, UnknownVersionError):
            managed = {}  # upstream: fieldmanager.go:UpdateNoErrors
    return with_managed(bare, managed)


def after_write(
    tracking: Tracking, old: Json, new: Json, managed: Managed, writer: Writer, timestamp: str
) -> Managed:
    """The entries once `writer` made `new` of `old`, at `timestamp`.

    Raises NamelessItemError where items cannot be told apart, UnknownVersionError.
    """
    managed = of_today(tracking, managed)
    current = Writer("", "", "")  # its own entry is one more, which then joins the older one
    owners = {one: entry.fields for one, entry in managed.items()}
    others = tracking.others_of(managed)
    kept = after_update(tracking.own, old, new, owners, manager=current, others=others)
    taken = difference(kept.pop(current, NOTHING), STRIPPED)
    made = {one: replace(managed[one], fields=own) for one, own in kept.items()}
    if taken:
        previous = made.get(writer)
        fields = union(taken, previous.fields) if previous else taken
        made[writer] = Entry(fields, timestamp)
    return _capped(made)


class UnknownVersionError(ValueError):
    """An entry's API version is none."""


def of_today(tracking: Tracking, managed: Managed) -> Managed:
    """The entries of versions that there are, as their type is now. Raises UnknownVersionError."""
    # upstream: structured-merge-diff/merge/update.go:reconcileManagedFieldsWithSchemaChanges
    made = {}
    for writer, entry in managed.items():
        if writer.api_version.count("/") > 1:
            raise UnknownVersionError(f"unexpected GroupVersion string: {writer.api_version}")
        other = tracking.others.get(writer.api_version)
        is_known = other is not None or tracking.api_version in ("", writer.api_version)
        if tracking.must_know and not is_known:
            why = f"request to convert CR to an invalid group/version: {writer.api_version}"
            raise UnknownVersionError(why)
        if is_known:
            schema = tracking.schema if other is None else other.schema
            fields = _reconciled(schema, entry.fields)
            made[writer] = entry if fields is entry.fields else replace(entry, fields=fields)
    return made


def _reconciled(schema: Schema, fields: FieldSet) -> FieldSet:
    text = _encode(fields)
    if len(text) > SET_BYTES_MAX:
        return reconciled(schema, fields)
    changed = _known_change(schema, text)
    return fields if changed is None else changed


@lru_cache(maxsize=SETS_MAX)
def _known_change(schema: Schema, text: bytes) -> FieldSet | None:
    """What a set is reconciled to; None where it stays, as almost all do."""
    fields = _decode(text)
    made = reconciled(schema, fields)
    return None if made is fields else made


def entries_of(obj: Json | None) -> Managed:
    """The entries of an object; none if they make no sense."""
    found = (obj.get("metadata") or {}).get("managedFields") if obj else None
    try:
        return _read(found or [])
    except (ValueError, AttributeError, TypeError):
        return {}


def with_managed(obj: Json, managed: Managed) -> Json:
    """`obj` with these entries and no others."""
    meta = {
        key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"
    }
    if managed:
        order = sorted(managed.items(), key=_rank)
        meta["managedFields"] = [_written(writer, entry) for writer, entry in order]
    return {**obj, "metadata": meta}


def without_times(obj: Json) -> Json:
    """`obj` as it is compared: who owns what, but not since when."""
    meta = obj["metadata"]
    if "managedFields" not in meta:
        return obj
    entries = [{**entry, "time": ""} for entry in meta["managedFields"]]
    return {**obj, "metadata": {**meta, "managedFields": entries}}


def _rank(item: tuple[Writer, Entry]) -> tuple[str, ...]:
    writer, entry = item
    who = writer.manager, writer.api_version, writer.subresource
    return writer.operation, entry.time, *who


def _believed(old: Json | None, new: Json, *, from_live: bool) -> Managed:
    # upstream: fieldmanager.go:decodeLiveOrNew
    if from_live:
        return entries_of(old)
    sent = new.get("metadata", {}).get("managedFields")
    if sent is not None and sent in ([], [{}]):
        return {}
    return entries_of(new) or entries_of(old)


def _bare(obj: Json) -> Json:
    meta = obj.get("metadata", {})
    if "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {key: meta[key] for key in meta if key != "managedFields"}}


def _read(entries: list[Json]) -> Managed:
    managed: Managed = {}
    for entry in entries:
        operation = entry.get("operation", "")
        if operation not in (APPLY, UPDATE) or entry.get("fieldsType") != "FieldsV1":
            raise ValueError("an entry says who did what, in FieldsV1")
        writer = Writer(
            entry.get("manager", ""),
            operation,
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        )
        if not writer.api_version:
            raise ValueError("an entry says in which version somebody wrote")
        written = entry.get("fieldsV1")
        fields = _set({} if written is None else written)
        if operation == APPLY:
            earlier = applier(managed, writer.manager, writer.subresource)
            managed = {one: kept for one, kept in managed.items() if one != earlier}
        managed[writer] = Entry(fields, entry.get("time") or "")
    return managed


def applier(managed: Managed, manager: str, subresource: str) -> Writer | None:
    """Who applied under that name, whatever the version; None if nobody did."""
    for writer in managed:
        if (writer.manager, writer.operation) == (manager, APPLY) and (
            writer.subresource == subresource
        ):
            return writer
    return None


def _set(written: Any) -> FieldSet:
    text = _encode(written)
    return _known_set(text) if len(text) <= SET_BYTES_MAX else unwire(written)


def _wired(fields: FieldSet) -> Json:
    text = _encode(fields)
    return _known_wired(text) if len(text) <= SET_BYTES_MAX else wire(fields)


# Objects made from one template have the same sets of fields, which they share.
@lru_cache(maxsize=SETS_MAX)
def _known_set(text: bytes) -> FieldSet:
    return unwire(_decode(text))


@lru_cache(maxsize=SETS_MAX)
def _known_wired(text: bytes) -> Json:
    return wire(_decode(text))


def _written(writer: Writer, entry: Entry) -> Json:
    made: Json = {
        "manager": writer.manager,
        "operation": writer.operation,
        "apiVersion": writer.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _wired(entry.fields),
        "subresource": writer.subresource,
    }
    return {key: value for key, value in made.items() if value != ""}


def _capped(managed: Managed) -> Managed:
    """The oldest updaters of each version become one when there are too many."""
    # upstream: capmanagers.go:capUpdateManagers
    updaters = [writer for writer in managed if writer.operation == UPDATE]
    surplus = len(updaters) - UPDATERS_MAX
    if surplus <= 0:
        return managed
    updaters.sort(key=lambda writer: (managed[writer].time, writer.identity))
    capped = dict(managed)
    oldest: dict[str, Writer] = {}
    for writer in updaters:
        if surplus <= 0:
            break
        first = oldest.setdefault(writer.api_version, writer)
        if first is writer:
            continue
        ancient = Writer(_ANCIENT, UPDATE, writer.api_version)
        known = capped.get(ancient) or capped.pop(first)
        entry = managed[writer]
        capped[ancient] = Entry(union(entry.fields, known.fields), entry.time)
        del capped[writer]
        surplus -= 1
    return capped


def ignoring(*names: tuple[str, ...]) -> FieldSet:
    """The set of these paths, for `Tracking.ignored`."""
    made: FieldSet = {}
    for path in names:
        made = union(made, of_path(*path))
    return made
