"""FieldManagers: maintains metadata.managedFields, which says which component wrote a field.

A controller often writes the same fields of many objects, for example of all pods of a template. So
the managedFields of a new object are cached and reused for similar new objects. Equal sets of
fields are stored once.

upstream: apimachinery/pkg/util/managedfields
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.write import Track, Write
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.kind import NODE, Kind
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Component

REMEMBERED_MAX: Final = 512
_OPERATION: Final = "Update"
_EVENT: Final = "Event"


def controllers_write(kind: Kind, subresource: str, now: Instant) -> Write:
    """Return a Write that records the controller manager as the field manager."""
    return Write(
        track=track(kind, Component.CONTROLLER_MANAGER.value, _OPERATION, subresource, now)
    )


class FieldManagers:
    """Records the field manager of each write; its caches only save time and memory."""

    def __init__(self) -> None:
        self._entries: dict[bytes, list[Json]] = {}
        self._fields: dict[bytes, Json] = {}

    def of(self, component: Component, kind: Kind, subresource: str, now: Instant) -> Track:
        """Return a function that records `component` as the manager of written fields."""
        noted = track(kind, component.value, _OPERATION, subresource, now)

        def signed(old: Json | None, new: Json) -> Json:
            if old is not None:
                return self._shared(noted(old, new))
            shape = _shape(new) if kind.kind == _EVENT else _nameless(new)
            key = encode((component, now, shape))
            known = self._entries.get(key)
            if known is None:
                made = self._shared(noted(None, new))
                _remember(self._entries, key, made["metadata"].get("managedFields") or [])
                return made
            return _with_entries(new, known)

        return signed

    def _shared(self, obj: Json) -> Json:
        entries = obj["metadata"].get("managedFields")
        return _with_entries(obj, [self._one(entry) for entry in entries]) if entries else obj

    def _one(self, entry: Json) -> Json:
        fields = entry.get("fieldsV1") or {}
        key = encode(fields)
        known = self._fields.get(key)
        if known is None:
            _remember(self._fields, key, fields)
            known = fields
        return {**entry, "fieldsV1": known}


def registered(nodes: Iterable[Json], now: Instant) -> Iterator[Json]:
    """Yield each of the new `nodes` with the managed fields of its kubelet.

    All nodes must set the same fields, because all get the managed fields of the first node.
    """
    entries: list[Json] = []
    for node in nodes:
        if not entries:
            bare = {key: node[key] for key in node if key != "status"}
            own = track(NODE, Component.KUBELET.value, _OPERATION, "", now)(None, bare)
            reported = track(NODE, Component.KUBELET.value, _OPERATION, "status", now)
            signed = reported(own, {**own, "status": node["status"]})
            entries = signed["metadata"]["managedFields"]
        yield _with_entries(node, entries)


def _nameless(obj: Json) -> Json:
    """Return `obj` without its name, because managed fields never contain the name."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "name"}
    return {**obj, "metadata": meta}


def _shape(event: Json) -> Json:
    """Return `event` with each value replaced by a summary.

    The summary of a nested object is the sorted list of its field names. The summary of any other
    value is True if the value is empty, else False.
    """
    return {
        key: sorted(value) if isinstance(value, dict) else not value for key, value in event.items()
    }


def _with_entries(obj: Json, entries: list[Json]) -> Json:
    if not entries:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


def _remember(known: dict[bytes, Any], key: bytes, value: Any) -> None:
    if len(known) >= REMEMBERED_MAX:
        known.clear()
    known[key] = value
