"""Passage: an object on its way through the stations of an API server, up to being stored.

upstream: apiserver/pkg/registry/rest/{create,update}.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.api.codec import without_nulls
from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.error import STALE, ApiError, already_exists, conflict
from fairlead.apiserver.kind import POD, Kind, kind_of
from fairlead.apiserver.registry import snapshot_load
from fairlead.apiserver.registry.deletion import require_no_new_finalizers, require_same_end
from fairlead.apiserver.registry.precondition import require_uid
from fairlead.apiserver.registry.stations import Stations
from fairlead.apiserver.registry.strategies.core.match_label_keys import with_label_keys
from fairlead.apiserver.registry.strategy import (
    prepared_for_create,
    prepared_for_status,
    prepared_for_update,
)

RV_ON_CREATE: Final = "resourceVersion should not be set on objects to be created"


def created(
    stations: Stations, manifest: Mapping[str, Any], now: int, kind: Kind | None, write: Write
) -> tuple[Kind, Json, Json]:
    """The kind of a new object, the object as it was let in, and as it is to be stored.

    Raises ApiError.
    """
    # Who knows the kind has read the object by its schema: its nulls mean something.
    obj = dict(manifest) if kind else without_nulls(dict(manifest))
    kind = kind or kind_of(obj)
    obj = stations.named(kind, snapshot_load.located(kind, obj))
    obj = stations.completed(kind, obj, is_read=write.is_read)
    if "name" not in obj.get("metadata", {}):
        if stations.strategies is not None:
            stations.strategies.begun(kind, obj, stations.storage, is_tried=write.dry_run)
        stations.validate_new(kind, obj)
    meta = obj["metadata"]
    namespace, name = meta.get("namespace", ""), meta["name"]
    if _is_version(meta.get("resourceVersion", "")):
        raise ApiError("", 500, RV_ON_CREATE)
    obj = write.tracked(None, obj)
    attributes = stations.changed(stations.attributes(Operation.CREATE, kind, obj, write))
    obj = attributes.obj
    if stations.strategies is not None:
        stations.strategies.begun(kind, obj, stations.storage, is_tried=write.dry_run)
    stations.validate_new(kind, obj)
    existing = stations.storage.find(kind, namespace, name)
    uid = "" if existing else stations.ids.new_uid(kind, namespace, name)
    obj = prepared_for_create(kind, obj, uid, format_timestamp(now))
    obj = with_label_keys(obj) if kind is POD else obj
    if stations.strategies is not None:
        obj = stations.strategies.created(kind, obj, stations.storage, is_tried=write.dry_run)
    stations.warn(kind, None, obj, write)
    stations.check(attributes.with_object(obj))
    if existing is not None:
        going = bool(existing["metadata"].get("deletionTimestamp"))
        is_generated = bool(obj["metadata"].get("generateName"))
        raise already_exists(kind, namespace, name, terminating=going, is_generated=is_generated)
    return kind, attributes.obj, obj


def replaced(
    stations: Stations, kind: Kind, old: Json, new: Json, write: Write, subresource: str
) -> Json:
    """What is to be stored in place of `old`. Raises ApiError."""
    before, meta = old["metadata"], new["metadata"]
    namespace, name = before.get("namespace", ""), before["name"]
    require_uid(kind, old, meta.get("uid", ""))
    if meta.get("resourceVersion", "0") not in ("0", before["resourceVersion"]):
        raise conflict(kind, namespace, name, STALE)
    new = write.tracked(old, stations.completed(kind, new, is_read=write.is_read))
    attributes = stations.attributes(Operation.UPDATE, kind, new, write, old, subresource)
    attributes = stations.changed(attributes)
    new = attributes.obj
    require_no_new_finalizers(kind, old, new)
    if stations.strategies is not None:
        require_same_end(kind, old, new)
    new = prepared_for_update(kind, old, new)
    if stations.strategies is not None:
        new = stations.strategies.updated(kind, old, new, stations.storage, is_tried=write.dry_run)
    stations.validate_update(kind, old, new)
    stations.warn(kind, old, new, write)
    stations.check(attributes.with_object(new))
    return new


def restated(stations: Stations, kind: Kind, old: Json, new: Json, write: Write, part: str) -> Json:
    """What is to be stored in place of `old` where `part` is written. Raises ApiError."""
    before, meta = old["metadata"], new["metadata"]
    require_uid(kind, old, meta.get("uid", ""))
    if meta.get("resourceVersion", "0") not in ("0", before["resourceVersion"]):
        raise conflict(kind, before.get("namespace", ""), before["name"], STALE)
    new = write.tracked(old, stations.completed(kind, new, is_read=write.is_read))
    new = prepared_for_status(kind, old, new)
    stations.validator.validate_status_update(kind, old, new, part)
    return stations.admitted(Operation.UPDATE, kind, new, old=old, subresource=part, write=write)


def _is_version(text: str) -> bool:
    """Whether `text` is the version of some object: neither 0 nor no number at all."""
    return text.isascii() and text.isdecimal() and text.strip("0") != ""
