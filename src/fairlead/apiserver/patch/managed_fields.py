"""metadata.managedFields: who wrote which fields, kept up to date by every write.

A writer is known by manager, operation, API version and subresource (`Writer`); one entry each.
Objects whose list is empty are not tracked any further by updates: clearing the list is how a
client gives up tracking, and the next apply starts again with everybody else's fields under the
name `before-first-apply`.

upstream: apimachinery/pkg/util/managedfields/internal/*.go
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from fairlead.apiserver.patch.field_set import (
    NOTHING,
    FieldSet,
    difference,
    of_path,
    union,
    unwire,
    wire,
)
from fairlead.apiserver.patch.ownership import after_update
from fairlead.apiserver.schema.decoding import empty
from fairlead.apiserver.schema.model import Schema

Json = dict[str, Any]

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


@dataclass(frozen=True, slots=True, order=True)
class Writer:
    """Whose entry it is."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""


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
    """

    schema: Schema
    ignored: FieldSet = field(default_factory=dict)


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
        managed = after_write(tracking, before, bare, managed, writer, timestamp)
    return with_managed(bare, managed)


def after_write(
    tracking: Tracking, old: Json, new: Json, managed: Managed, writer: Writer, timestamp: str
) -> Managed:
    """The entries once `writer` made `new` of `old`, at `timestamp`."""
    current = Writer("", "", "")  # its own entry is one more, which then joins the older one
    owners = {one: entry.fields for one, entry in managed.items()}
    kept = after_update(
        tracking.schema, old, new, owners, manager=current, ignored=tracking.ignored
    )
    taken = difference(kept.pop(current, NOTHING), STRIPPED)
    made = {one: replace(managed[one], fields=own) for one, own in kept.items()}
    if taken:
        previous = made.get(writer)
        fields = union(taken, previous.fields) if previous else taken
        made[writer] = Entry(fields, timestamp)
    return _capped(made)


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


def _rank(item: tuple[Writer, Entry]) -> tuple[str, str, Writer]:
    writer, entry = item
    return writer.operation, entry.time, writer


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
        fields = _set(entry.get("fieldsV1", {}))
        managed[writer] = Entry(fields, entry.get("time") or "")
    return managed


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
    """The oldest updaters become one when there are too many."""
    # upstream: capmanagers.go:capUpdateManagers
    updaters = [writer for writer in managed if writer.operation == UPDATE]
    surplus = len(updaters) - UPDATERS_MAX
    if surplus <= 0:
        return managed
    updaters.sort(key=lambda writer: (managed[writer].time, writer))
    capped = dict(managed)
    for writer in updaters:
        if surplus <= 0:
            break
        ancient = replace(writer, manager=_ANCIENT, subresource="")
        entry = capped.pop(writer)
        known = capped.get(ancient)
        surplus -= 1 if known else 0
        fields = union(known.fields, entry.fields) if known else entry.fields
        capped[ancient] = Entry(fields, entry.time)
    return capped


def ignoring(*names: tuple[str, ...]) -> FieldSet:
    """The set of these paths, for `Tracking.ignored`."""
    made: FieldSet = {}
    for path in names:
        made = union(made, of_path(*path))
    return made
