"""Loads a whole cluster as another API server stored it.

Objects keep what they have: uids, versions, timestamps, status, priorities. Only what a
hand-written file leaves out is filled in. Numeric versions are kept; objects without one get later
versions.

The objects are returned in the order in which a new client would list them, whatever the order of
the input: kind by kind, pods last, each by namespace and name.

upstream: client-go lists every kind in the order of its keys
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead.api.codec import without_nulls
from fairlead.api.json import Json
from fairlead.api.text.integer import parse_int64
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.error import invalid
from fairlead.apiserver.kind import KINDS, NAMESPACE, POD, PRIORITY_CLASS, Kind, kind_of
from fairlead.apiserver.registry.admission_control import AdmissionControl
from fairlead.apiserver.registry.id_source import IdSource
from fairlead.apiserver.registry.strategies.core.match_label_keys import with_label_keys
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.validation.meta.field import duplicate
from fairlead.apiserver.validation.scheduling import SYSTEM_CLASSES
from fairlead.apiserver.validation.validator import validated_stored

DEFAULT_NAMESPACE: Final = "default"
_RANK: Final = {kind.resource: rank for rank, kind in enumerate(KINDS)}

Loaded = tuple[Kind, Json]


def load(
    storage: Storage,
    manifests: Iterable[Mapping[str, Any]],
    now: int,
    *,
    ids: IdSource,
    admission: AdmissionControl,
) -> list[Json]:
    """Fill `storage` with `manifests` and the system priority classes; return them in order.

    Raises ApiError that names the object: malformed, duplicate, or refused by `admission`. After an
    error the store must not be used any more.
    """
    loaded = [as_stored(manifest, now, ids) for manifest in manifests]
    present = {obj["metadata"]["name"] for kind, obj in loaded if kind is PRIORITY_CLASS}
    for name, manifest in SYSTEM_CLASSES.items():
        if name not in present and storage.find(PRIORITY_CLASS, "", name) is None:
            loaded.append(as_stored(manifest, now, ids))
    loaded.sort(key=_arrival)
    _refuse_duplicates(storage, loaded)
    loaded, newest = _versioned(loaded, storage.version)
    others = [entry for entry in loaded if entry[0] is not POD]
    storage.restore(others, newest)
    for kind, obj in others:
        admission.admit(Operation.LOAD, kind, obj)
    pods = [(POD, admission.admit(Operation.LOAD, POD, obj)) for kind, obj in loaded if kind is POD]
    storage.restore(pods, newest)
    return [obj for _, obj in (*others, *pods)]


def as_stored(manifest: Mapping[str, Any], now: int, ids: IdSource) -> Loaded:
    """`manifest` as a server would have stored it, without its version. Raises ApiError."""
    obj = without_nulls(dict(manifest))
    kind = kind_of(obj)
    obj = validated_stored(kind, located(kind, obj))
    if kind is POD:
        obj = with_label_keys(obj)
    meta = obj["metadata"]
    if kind is NAMESPACE and "spec" not in obj:
        obj["spec"] = {"finalizers": ["kubernetes"]}  # until it is empty
    missing = {}
    if "uid" not in meta:
        missing["uid"] = ids.new_uid(kind, meta.get("namespace", ""), meta["name"])
    if "creationTimestamp" not in meta:
        missing["creationTimestamp"] = format_timestamp(now)
    return kind, {**obj, "metadata": {**meta, **missing}} if missing else obj


def located(kind: Kind, obj: Json) -> Json:
    """`obj` with a namespace if its kind is namespaced, without one otherwise."""
    meta = obj.get("metadata", {})
    if not isinstance(meta, dict) or kind.namespaced == bool(meta.get("namespace")):
        return obj
    if kind.namespaced:
        return {**obj, "metadata": {**meta, "namespace": DEFAULT_NAMESPACE}}
    return {**obj, "metadata": {key: meta[key] for key in meta if key != "namespace"}}


def _arrival(entry: Loaded) -> tuple[Any, ...]:
    kind, obj = entry
    meta = obj["metadata"]
    rank = _RANK.get(kind.resource, len(_RANK))
    return kind is POD, rank, kind.resource, meta.get("namespace", ""), meta["name"]


def _refuse_duplicates(storage: Storage, loaded: list[Loaded]) -> None:
    """Refuse objects with equal names, which are neighbours because `loaded` is sorted."""
    before: tuple[Any, ...] = ()
    for kind, obj in loaded:
        meta = obj["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        key = (kind.resource, namespace, name)
        if key == before or storage.find(kind, namespace, name):
            raise invalid(kind, namespace, name, (duplicate("metadata.name", name),))
        before = key


def _versioned(loaded: list[Loaded], version: int) -> tuple[list[Loaded], int]:
    """`loaded` with a version for each object, and the newest version."""
    kept = [_own_version(obj) for _, obj in loaded]
    newest = max((own for own in kept if own is not None), default=0)
    newest = max(newest, version)
    versioned = []
    for (kind, obj), own in zip(loaded, kept, strict=True):
        if own is None:
            newest += 1
            meta = {**obj["metadata"], "resourceVersion": str(newest)}
            versioned.append((kind, {**obj, "metadata": meta}))
        else:
            versioned.append((kind, obj))
    return versioned, newest


def _own_version(obj: Json) -> int | None:
    text = obj["metadata"].get("resourceVersion", "")
    return parse_int64(text) if text.isdecimal() else None
