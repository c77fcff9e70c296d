"""Loads all objects of a cluster that another API server has stored.

Objects keep their uids, versions, timestamps, status and priorities. Only the fields that a
hand-written file leaves out are set. An object whose resourceVersion is missing or not a number
gets a version that is higher than all others.

The objects are returned in the order in which a new client would list them, regardless of the input
order: kind by kind, pods last, and sorted by namespace and name within a kind.

The input is a JSON value or a `DumpedObject`: the text of an object together with its typed view. A
`DumpedObject` is stored without changes. Its text is decoded when the storage first reads it. Most
objects of a dump are never read.

upstream: client-go lists every kind in the order of its keys
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from fairlead.api.codec import decode, drop_nulls, without_nulls
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject
from fairlead.api.pods.replicas import LoadedObjects
from fairlead.api.text.integer import parse_int64
from fairlead.api.text.json_template import TemplateText
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.defaulting.simulation import with_defaults
from fairlead.apiserver.error import invalid
from fairlead.apiserver.kind import KINDS, NAMESPACE, POD, PRIORITY_CLASS, Kind, kind_of
from fairlead.apiserver.registry.admission_control import AdmissionControl
from fairlead.apiserver.registry.id_source import IdSource
from fairlead.apiserver.registry.registry import Registry
from fairlead.apiserver.registry.strategies.core.match_label_keys import with_label_keys
from fairlead.apiserver.storage.storage import Key, Storage
from fairlead.apiserver.validation.meta.field import duplicate
from fairlead.apiserver.validation.scheduling import SYSTEM_CLASSES
from fairlead.apiserver.validation.validator import validated_stored

DEFAULT_NAMESPACE: Final = "default"
_decode: Final = msgspec.json.Decoder(type=Json).decode
_RANK: Final = {kind.resource: rank for rank, kind in enumerate(KINDS)}


Text = msgspec.Raw | bytes | TemplateText


class DumpedValue(Protocol):
    """Builds the JSON values of similar objects from their texts, faster than decoding would.

    `makes_replicas` means that the objects differ only in name, uid, version, node, the names of
    their volumes, addresses and times.
    """

    makes_replicas: bool

    def value_of(self, text: Text) -> Json | None:
        """Return the value of `text`; None if `text` must be decoded.

        The value shares parts with other values, so callers must not mutate it.
        """


class DumpedObject(msgspec.Struct, frozen=True, gc=False):
    """A dumped object in stored form (`StoredForm`): its typed view and its text.

    `template` is not None if many objects of the dump have similar texts.
    """

    kind: Kind
    view: ApiObject
    text: Text
    template: DumpedValue | None = None

    @property
    def key(self) -> Key:
        """The namespace and name of the object."""
        meta = self.view.metadata
        return meta.namespace, meta.name

    @property
    def version(self) -> int | None:
        """The resourceVersion as a number; an object in stored form always has one."""
        return int(self.view.metadata.resource_version)

    @property
    def value(self) -> Json:
        """The object as JSON, decoded again at each access; callers must not mutate it."""
        if self.template is not None:
            value = self.template.value_of(self.text)
            if value is not None:
                return value
        return value_of_text(self.kind, self.text)

    @property
    def managed_fields(self) -> tuple[Json, ...]:
        """The managedFields in `text`, which `value` does not contain."""
        return tuple(_decode(bytes(self.text))["metadata"].get("managedFields") or ())


def value_of_text(kind: Kind, text: Text | bytes) -> Json:
    """Return the JSON value of the `text` of an object in stored form, without managedFields."""
    data = bytes(text)
    obj = _decode(data)
    obj["metadata"].pop("managedFields", None)
    if b"null" in data:
        drop_nulls(obj)
    return with_defaults(kind, obj)


class _LoadedJson(Struct):
    """An object that `as_stored` has returned."""

    kind: Kind
    value: Json

    @property
    def key(self) -> Key:
        meta = self.value["metadata"]
        return meta.get("namespace", ""), meta["name"]

    @property
    def version(self) -> int | None:
        """The resourceVersion; None if it is absent or not a number."""
        text = self.value["metadata"].get("resourceVersion", "")
        return parse_int64(text) if text.isdecimal() else None

    @property
    def view(self) -> ApiObject:
        return decode(self.value)


Loaded = DumpedObject | _LoadedJson


def load(
    storage: Storage,
    manifests: Iterable[Mapping[str, Any] | DumpedObject],
    now: int,
    *,
    ids: IdSource,
    registry: Registry,
    admission: AdmissionControl,
) -> LoadedObjects:
    """Fill `storage` with `manifests` and the system priority classes.

    Return the views of the objects in listing order.

    Raises ApiError if an object is malformed, a duplicate, or refused by `admission`; the error
    names the object. After an error, the store must not be used.
    """
    loaded = [
        manifest
        if isinstance(manifest, DumpedObject)
        else _LoadedJson(*as_stored(manifest, now, ids, registry))
        for manifest in manifests
    ]
    present = {entry.key[1] for entry in loaded if entry.kind is PRIORITY_CLASS}
    for name, manifest in SYSTEM_CLASSES.items():
        if name not in present and storage.find(PRIORITY_CLASS, "", name) is None:
            loaded.append(_LoadedJson(*as_stored(manifest, now, ids, registry)))
    loaded = _in_listing_order(storage, loaded)
    newest = _give_versions(loaded, storage.version)
    others = [entry for entry in loaded if entry.kind is not POD]
    pods = [entry for entry in loaded if entry.kind is POD]
    storage.restore_deferred(others, newest)
    _admit(admission, others)  # The plugin refuses or accepts; it changes only pods.
    _admit(admission, pods)
    storage.restore_deferred(pods, newest)
    templates = [
        entry.template
        if isinstance(entry, DumpedObject) and entry.template and entry.template.makes_replicas
        else None
        for entry in pods
    ]
    views: list[Any] = [entry.view for entry in pods]
    return LoadedObjects((entry.view for entry in others), views, templates)


def as_stored(
    manifest: Mapping[str, Any], now: int, ids: IdSource, registry: Registry
) -> tuple[Kind, Json]:
    """Return (kind, `manifest` as a server would store it, without a version). Raises ApiError."""
    obj = without_nulls(dict(manifest))
    kind = kind_of(obj)
    rules = registry.rules(kind)
    obj = validated_stored(kind, rules, located(kind, obj))
    if kind is POD:
        obj = with_label_keys(obj)
    meta = obj["metadata"]
    if kind is NAMESPACE and "spec" not in obj:
        obj["spec"] = {"finalizers": ["kubernetes"]}  # kept until the namespace is empty
    missing = {}
    if "uid" not in meta:
        missing["uid"] = ids.new_uid(kind, meta.get("namespace", ""), meta["name"])
    if "creationTimestamp" not in meta:
        missing["creationTimestamp"] = format_timestamp(now)
    return kind, {**obj, "metadata": {**meta, **missing}} if missing else obj


def located(kind: Kind, obj: Json) -> Json:
    """Return `obj` with the namespace that it needs.

    A namespaced object without a namespace gets the namespace `default`. A cluster-scoped object
    loses its namespace.
    """
    meta = obj.get("metadata", {})
    if not isinstance(meta, dict) or kind.namespaced == bool(meta.get("namespace")):
        return obj
    if kind.namespaced:
        return {**obj, "metadata": {**meta, "namespace": DEFAULT_NAMESPACE}}
    return {**obj, "metadata": {key: meta[key] for key in meta if key != "namespace"}}


def _in_listing_order(storage: Storage, loaded: Iterable[Loaded]) -> list[Loaded]:
    """Return `loaded` sorted by kind, namespace and name; pods come last.

    Raises ApiError if two objects have the same kind, namespace and name, or if `storage` has one.
    """
    by_kind: dict[str, list[tuple[Key, int, Loaded]]] = defaultdict(list)
    for number, entry in enumerate(loaded):
        by_kind[entry.kind.resource].append((entry.key, number, entry))
    present = {kind.resource for kind in storage.kinds()}
    found: list[Loaded] = []
    for resource in sorted(by_kind, key=_rank):
        entries = by_kind[resource]
        entries.sort()  # by key; the number is unique, so objects are never compared
        before: Key | None = None
        for key, _, entry in entries:
            if key == before or (resource in present and storage.find(entry.kind, *key)):
                raise invalid(entry.kind, *key, (duplicate("metadata.name", key[1]),))
            before = key
            found.append(entry)
    return found


def _rank(resource: str) -> tuple[bool, int, str]:
    return resource == POD.resource, _RANK.get(resource, len(_RANK)), resource


def _give_versions(loaded: Sequence[Loaded], version: int) -> int:
    """Set the version of each object that has none, and return the newest version.

    The new versions are higher than `version` and all versions in `loaded`.
    """
    values = [entry for entry in loaded if isinstance(entry, _LoadedJson)]
    texts = {
        entry.view.metadata.resource_version for entry in loaded if isinstance(entry, DumpedObject)
    }
    kept = [(entry, entry.version) for entry in values]
    newest = max((own for _, own in kept if own is not None), default=0)
    newest = max(newest, version, max(map(int, texts), default=0))
    for entry, own in kept:
        if own is None:
            newest += 1
            meta = {**entry.value["metadata"], "resourceVersion": str(newest)}
            entry.value = {**entry.value, "metadata": meta}
    return newest


def _admit(admission: AdmissionControl, loaded: Iterable[Loaded]) -> None:
    """Replace each pod with the pod that admission returns. Raises ApiError.

    Objects in stored form have already been admitted.
    """
    for entry in loaded:
        if isinstance(entry, _LoadedJson):
            admitted = admission.admit(Operation.LOAD, entry.kind, entry.value)
            if entry.kind is POD:
                entry.value = admitted
