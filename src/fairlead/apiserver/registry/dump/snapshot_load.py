"""Loads a snapshot: objects that the API server of another cluster has stored.

Objects keep their uids, versions, timestamps, status and priorities. Missing fields are set,
because a hand-written file leaves out fields that a server would set. An object whose
resourceVersion is missing or not a number gets a version that is higher than all others.

The objects are returned in the order in which a new client would list them, regardless of the input
order. In this order, the objects are sorted by kind, then by namespace and name; pods come last.

Each input is a JSON value, a `DumpedObject` or a `DumpedReplicas`. A `DumpedObject` is the text of
an object together with its typed view. A `DumpedReplicas` contains the texts of similar pods
together with their template. The objects in a `DumpedObject` or a `DumpedReplicas` are already
complete, so they are stored without changes.

upstream: client-go lists every kind in the order of its keys
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, Final, TypeGuard

from msgspec import Struct

from fairlead.api.codec import decode, without_nulls
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject
from fairlead.api.pods.replicas import LoadedObjects, Replicas, neighbouring_replicas
from fairlead.api.text.integer import parse_int64
from fairlead.api.text.json_template import TemplateRows
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.error import invalid
from fairlead.apiserver.kind import KINDS, NAMESPACE, POD, PRIORITY_CLASS, Kind, kind_of
from fairlead.apiserver.registry.admission_control import AdmissionControl
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.apiserver.registry.dump.replicas import DumpedReplicas
from fairlead.apiserver.registry.id_source import IdSource
from fairlead.apiserver.registry.registry import Registry
from fairlead.apiserver.registry.strategies.core.match_label_keys import with_label_keys
from fairlead.apiserver.storage.storage import Key, Storage
from fairlead.apiserver.validation.meta.field import duplicate
from fairlead.apiserver.validation.scheduling import SYSTEM_CLASSES
from fairlead.apiserver.validation.validator import validated_stored

DEFAULT_NAMESPACE: Final = "default"
_RANK: Final = {kind.resource: rank for rank, kind in enumerate(KINDS)}


class _LoadedJson(Struct):
    """An object that was given to `load` as JSON; `value` is the result of `as_stored`."""

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
Content = Mapping[str, Any] | DumpedObject | DumpedReplicas
KindOf = Callable[[Mapping[str, Any]], Kind]


def load(  # noqa: PLR0913 - the parts of a store
    storage: Storage,
    manifests: Iterable[Content],
    now: int,
    *,
    ids: IdSource,
    registry: Registry,
    admission: AdmissionControl,
    kind_of: KindOf = kind_of,
) -> LoadedObjects:
    """Fill `storage` with `manifests` and the system priority classes.

    Return the views of the objects, sorted by kind, namespace and name; pods come last. `ids`
    generates missing uids. `registry` sets defaults and validates. `admission` sets fields of pods,
    such as the priority. `kind_of` returns the kind of a JSON manifest. `now` (ns since 1970) is
    the creation time of each object that has no creationTimestamp.

    Raises ApiError if an object is malformed, a duplicate, or refused by `admission`; the error
    names the object. After an error, `storage` must not be used.
    """
    loaded: list[Loaded | DumpedReplicas] = [
        manifest
        if isinstance(manifest, DumpedObject | DumpedReplicas)
        else _LoadedJson(*as_stored(manifest, now, registry, kind_of))
        for manifest in manifests
    ]
    present = {_first_key(entry)[1] for entry in loaded if entry.kind is PRIORITY_CLASS}
    for name, manifest in SYSTEM_CLASSES.items():
        if name not in present and storage.find(PRIORITY_CLASS, "", name) is None:
            loaded.append(_LoadedJson(*as_stored(manifest, now, registry)))
    loaded = _in_listing_order(storage, loaded)
    # Gangs, for example, are handled in the order of their uids if they are equally old. So that an
    # answer does not depend on the order of a dump's items, uids are generated in listing order.
    loaded = [
        _LoadedJson(entry.kind, with_uid(entry.kind, entry.value, ids))
        if isinstance(entry, _LoadedJson)
        else entry
        for entry in loaded
    ]
    newest = _give_versions(loaded, storage.version)
    others = [entry for entry in loaded if _is_one(entry) and entry.kind is not POD]
    pods = [entry for entry in loaded if entry.kind is POD]
    storage.restore_deferred(others, newest)
    _admit(admission, others)  # A plugin may refuse these objects, but changes only pods.
    _admit(admission, filter(_is_one, pods))
    return LoadedObjects((entry.view for entry in others), _restored(storage, pods, newest))


def _restored(
    storage: Storage, pods: Iterable[Loaded | DumpedReplicas], newest: int
) -> list[Replicas]:
    """Add `pods` to `storage`; return their typed views as `Replicas`, in the same order.

    Consecutive pods that are replicas of each other share one `Replicas`; any other pod has its
    own. `newest` is the newest resourceVersion of all loaded objects.
    """
    found: list[Replicas] = []
    for are_single, some in groupby(pods, key=_is_one):
        if are_single:
            single = list(filter(_is_one, some))
            storage.restore_deferred(single, newest)
            views: list[Any] = [entry.view for entry in single]
            found += neighbouring_replicas(views, map(_template_of, single))
            continue
        for replicas in some:
            if isinstance(replicas, DumpedReplicas):
                storage.restore_rows(replicas, newest)
                found.append(replicas)
    return found


def _template_of(entry: Loaded) -> object:
    """Return the template of `entry` if the template's `makes_replicas` is True; None otherwise."""
    template = entry.template if isinstance(entry, DumpedObject) else None
    return template if template is not None and template.makes_replicas else None


def _is_one(entry: Loaded | DumpedReplicas) -> TypeGuard[Loaded]:
    return not isinstance(entry, DumpedReplicas)


def as_stored(
    manifest: Mapping[str, Any], now: int, registry: Registry, kind_of: KindOf = kind_of
) -> tuple[Kind, Json]:
    """Return (kind of `manifest`, `manifest` as a server would store it).

    `kind_of` returns the kind of a JSON object. If the uid or the resourceVersion is missing, it is
    not set here (see `with_uid`). Raises ApiError if `manifest` is malformed or invalid.
    """
    obj = without_nulls(dict(manifest))
    kind = kind_of(obj)
    rules = registry.rules(kind)
    obj = validated_stored(kind, rules, located(kind, obj))
    registry.validator.validate_loaded(kind, obj)
    as_read = registry.read(kind, obj)
    if as_read is not obj:
        # `read` drops empty values such as `nodeSelector: {}`. If the template of a Deployment
        # kept such a value, it would never equal the template of the ReplicaSet that is created
        # from it.
        obj = without_nulls(as_read)
    if kind is POD:
        obj = with_label_keys(obj)
    meta = obj["metadata"]
    if kind is NAMESPACE and "spec" not in obj:
        obj["spec"] = {"finalizers": ["kubernetes"]}  # removed by the namespace controller
    if "creationTimestamp" not in meta:
        obj = {**obj, "metadata": {**meta, "creationTimestamp": format_timestamp(now)}}
    return kind, obj


def with_uid(kind: Kind, obj: Json, ids: IdSource) -> Json:
    """Return `obj`, with a uid from `ids` if it has none."""
    meta = obj["metadata"]
    if "uid" in meta:
        return obj
    uid = ids.new_uid(kind, meta.get("namespace", ""), meta["name"])
    return {**obj, "metadata": {**meta, "uid": uid}}


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


def _in_listing_order(
    storage: Storage, loaded: Sequence[Loaded | DumpedReplicas]
) -> list[Loaded | DumpedReplicas]:
    """Return `loaded` sorted by kind, namespace and name; pods come last.

    A DumpedReplicas stays whole only if no other pod comes between its pods in this order (see
    `_without_overlaps`). If `storage` has or had pods, each DumpedReplicas is divided into single
    pods. Raises ApiError if an object occurs twice in `loaded`, or is already in `storage`.
    """
    present = {kind.resource for kind in storage.kinds()}
    if not all(map(_is_one, loaded)):
        pods = (one for one in loaded if one.kind is POD)
        divided = map(_divided, pods) if POD.resource in present else _without_overlaps(pods)
        loaded = [one for one in loaded if one.kind is not POD]
        loaded += (one for some in divided for one in some)
    by_kind: dict[str, list[tuple[Key, int, Loaded | DumpedReplicas]]] = defaultdict(list)
    for number, entry in enumerate(loaded):
        by_kind[entry.kind.resource].append((_first_key(entry), number, entry))
    found: list[Loaded | DumpedReplicas] = []
    for resource in sorted(by_kind, key=_rank):
        entries = by_kind[resource]
        entries.sort()  # by key, then by number; numbers are unique, so entries are never compared
        before: Key | None = None
        for key, _, entry in entries:
            if key == before or (resource in present and storage.find(entry.kind, *key)):
                raise invalid(entry.kind, *key, (duplicate("metadata.name", key[1]),))
            before = key
            found.append(entry)
    return found


def _without_overlaps(
    pods: Iterable[Loaded | DumpedReplicas],
) -> Iterator[Iterable[Loaded | DumpedReplicas]]:
    """Yield `pods` in groups; the groups are sorted by namespace and name.

    A DumpedReplicas contains similar pods of a dump; this function sorts these pods by name. If
    their names and uids are unique, and no other pod comes between them in sorted order, the
    DumpedReplicas stays whole. Otherwise, `_joined` makes a larger DumpedReplicas of these pods and
    the pods that come between them. If `_joined` returns None, the DumpedReplicas is divided into
    single pods.
    """
    entries = [one.by_name() if isinstance(one, DumpedReplicas) else one for one in pods]
    run: list[Loaded | DumpedReplicas] = []  # entries that overlap
    last: Key = ("", "")
    for entry in sorted(entries, key=_first_key):
        if run and last < _first_key(entry):
            yield _separate(run)
            run = []
        run.append(entry)
        last = max(last, _last_key(entry))
    yield _separate(run)


def _separate(run: Sequence[Loaded | DumpedReplicas]) -> Iterable[Loaded | DumpedReplicas]:
    """Return the pods of `run` as one DumpedReplicas if possible, otherwise as single pods.

    The entries of `run` cover overlapping ranges of namespaces and names. If `run` has only one
    entry, and the names and uids in this entry are unique, `run` is returned unchanged.
    """
    if len(run) == 1 and (not isinstance(run[0], DumpedReplicas) or run[0].have_own_keys):
        return run
    joined = _joined(run)
    if joined is not None:
        return (joined,)
    return (one for entry in run for one in _divided(entry))


def _joined(run: Sequence[Loaded | DumpedReplicas]) -> DumpedReplicas | None:
    """Return the pods of `run` as one DumpedReplicas; None if this is not possible.

    All of these conditions must hold:

    - `run` contains at least one DumpedReplicas,
    - the texts of all pods match the template of the first DumpedReplicas,
    - the pods are replicas of each other, and have unique names and uids,
    - all or none of the pods have a node, and all or none have a start time,
    - none of the single pods in `run` was given as JSON.
    """
    replicas = [one for one in run if isinstance(one, DumpedReplicas)]
    if not replicas:
        return None
    template, same = replicas[0].template, replicas[0].texts.template
    parts = [one.texts for one in replicas if one.texts.template is same]
    rows: list[Sequence[str]] = []
    for entry in run:
        if isinstance(entry, DumpedReplicas) and entry.texts.template is same:
            continue
        if isinstance(entry, _LoadedJson):
            return None
        for text in entry.texts if isinstance(entry, DumpedReplicas) else (entry.text,):
            row = template.replica_strings(text)
            if row is None:
                return None
            rows.append(row)
    if rows:
        parts.append(TemplateRows.of(same, rows))
    found = DumpedReplicas(template, TemplateRows.joined(parts)).by_name()
    return found if found.have_own_keys and found.have_equal_state else None


def _first_key(entry: Loaded | DumpedReplicas) -> Key:
    if isinstance(entry, DumpedReplicas):
        return entry.namespace, entry.names[0]
    return entry.key


def _last_key(entry: Loaded | DumpedReplicas) -> Key:
    if isinstance(entry, DumpedReplicas):
        return entry.namespace, entry.names[-1]
    return entry.key


def _divided(entry: Loaded | DumpedReplicas) -> Iterable[Loaded | DumpedReplicas]:
    return (
        map(entry.object_at, range(len(entry))) if isinstance(entry, DumpedReplicas) else (entry,)
    )


def _rank(resource: str) -> tuple[bool, int, str]:
    return resource == POD.resource, _RANK.get(resource, len(_RANK)), resource


def _give_versions(loaded: Sequence[Loaded | DumpedReplicas], version: int) -> int:
    """Set each resourceVersion that is missing or not a number; return the newest resourceVersion.

    `version` is the version of the storage. The new resourceVersions are higher than `version`, and
    higher than all resourceVersions in `loaded`.
    """
    values = [entry for entry in loaded if isinstance(entry, _LoadedJson)]
    texts = chain(
        (one.view.metadata.resource_version for one in loaded if isinstance(one, DumpedObject)),
        *(one.versions for one in loaded if isinstance(one, DumpedReplicas)),
    )
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
    """Replace each pod with the pod that admission returns.

    Objects that were not given as JSON have already been admitted, so they are skipped. Raises
    ApiError if a plugin refuses an object.
    """
    for entry in loaded:
        if isinstance(entry, _LoadedJson):
            admitted = admission.admit(Operation.LOAD, entry.kind, entry.value)
            if entry.kind is POD:
                entry.value = admitted
