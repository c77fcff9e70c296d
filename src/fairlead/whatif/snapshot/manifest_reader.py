"""Reads the objects of a user's files as manifests.

Lists are expanded, missing namespaces filled in, and unusable objects reported with file and name.
Most objects of a dump need no change and remain texts with typed views (`DumpDecoder`); all others
are brought into the form that the store accepts (`storable_object`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from fairlead.api.codec import UNNAMED, DecodeError, decode, display_name
from fairlead.api.json import Json
from fairlead.api.text.json_template import TemplateRows
from fairlead.api.text.name_list import listed
from fairlead.api.text.nesting import is_too_deep
from fairlead.apiserver.kind import NODE, kind_of, reference_kind
from fairlead.engine.core.command import ObjectRef
from fairlead.whatif.input.content import OnRead, read_silently
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.listing import DecodedItem, Listing
from fairlead.whatif.input.pod_columns import KIND as SNAPSHOT
from fairlead.whatif.input.pod_columns import ColumnError, ItemText, objects_of
from fairlead.whatif.snapshot.decoder.dump_decoder import DumpDecoder
from fairlead.whatif.snapshot.decoder.simulator_export import exported_objects, is_simulator_export
from fairlead.whatif.snapshot.manifest import Manifest, Manifests, ReplicaManifests, entries_of
from fairlead.whatif.snapshot.served_kind import is_served, nearest_kind
from fairlead.whatif.snapshot.storable_object import storable_object, type_name
from fairlead.worlds.fairlead_annotation import (
    FIELD,
    node_annotation_problem,
    pod_annotation_problem,
    unknown_annotation_notes,
)

DEFAULT_NAMESPACE: Final = "default"
_REPORTED_EVERY: Final = 512  # number of objects
_RELEASED_EVERY: Final = 8192  # number of objects
_LIST_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "items"})


def manifests(documents: Iterable[Document], namespace: str = DEFAULT_NAMESPACE) -> list[Manifest]:
    """Return all objects in `documents` as a list; see `manifests_of_cluster`."""
    return list(manifests_of_cluster(documents, namespace))


def manifests_of_cluster(
    documents: Iterable[Document],
    namespace: str = DEFAULT_NAMESPACE,
    on_read: OnRead = read_silently,
    *,
    is_live: bool = False,
) -> Manifests:
    """Return all objects in `documents`; namespaced objects without a namespace get `namespace`.

    `on_read` is called with the progress of reading. Raises InputError for an invalid object, and
    for an object that appears twice. Also raises InputError for a hand-written object with a kind
    that seems to be misspelled. `is_live` is set if the objects were just read from a cluster. In
    this case, an invalid value in one of Fairlead's annotations is no error
    (`invalid_annotations`). If it were an error, one user of a cluster could block the questions of
    all other users.
    """
    found = Manifests(
        one for document in documents for one in _manifests(document, namespace, on_read)
    )
    refuse_duplicates(found)
    for manifest in entries_of(found):
        if isinstance(manifest, ReplicaManifests) or manifest.view is not None:
            continue  # the object is of a known kind and has none of Fairlead's annotations
        if not (manifest.ref.uid or is_served(manifest.kind)) and nearest_kind(manifest.kind):
            _require_known_kind(manifest)
        if not is_live:
            refuse_invalid_annotations(manifest)
    return found


def refuse_invalid_annotations(manifest: Manifest) -> None:
    """Raise InputError for one of Fairlead's annotations with an invalid value."""
    value = manifest.value
    if manifest.kind is NODE and (problem := node_annotation_problem(value)):
        raise manifest.refuse(problem, field=FIELD)
    if problem := pod_annotation_problem(value):
        raise manifest.refuse(problem)


def invalid_annotations(found: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note for each invalid value of Fairlead's annotations in `found`.

    Only objects of a live cluster can have such a value. The engine ignores it, as in
    `fairlead up`.
    """
    titles: dict[str, list[str]] = {}
    for one in found:
        if one.view is not None:  # such an object has none of Fairlead's annotations
            continue
        try:
            refuse_invalid_annotations(one)
        except InputError as cause:
            problem = ": ".join(filter(None, (cause.field, cause.problem)))
            titles.setdefault(problem, []).append(one.title)
    for problem, objects in titles.items():
        yield f"{listed(objects, 1)}: {problem}; this value has no effect."


def unknown_annotations(found: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note for each of Fairlead's annotations in `found` that has no effect."""
    # An object with a view was loaded as it is in the dump. Objects with Fairlead's annotations are
    # never loaded in this way.
    own = ((one.title, one.value) for one in found if one.view is None)
    return unknown_annotation_notes(own)


def manifests_to_apply(
    documents: Iterable[Document], namespace: str = DEFAULT_NAMESPACE
) -> list[tuple[Manifest, Json]]:
    """Return (object, value as in the file) for each object in `documents`.

    The value still contains the nulls of the file.

    Raises InputError for an invalid object, and for a kind that does not exist in its API group.
    """
    whole = [
        one
        for document in documents
        for one in ([document] if document.listing is None else document.parsed())
    ]
    found = manifests(whole, namespace)
    for manifest in found:
        _require_known_kind(manifest)
    written = [value for one in whole for _, value in _opened(one.source, one.value)]
    return list(zip(found, written, strict=True))


def _require_known_kind(manifest: Manifest) -> None:
    """Raise InputError for an unknown kind in an API group that Kubernetes itself defines."""
    if is_served(manifest.kind):
        return
    near = nearest_kind(manifest.kind)
    # LeaseCandidate and others exist, but are off by default
    hint = f"; did you mean {near}?" if near else " that Kubernetes serves by default"
    problem = f"{manifest.kind.api_version} has no kind {manifest.kind.kind}{hint}"
    raise manifest.refuse(problem, field="kind")


def refuse_duplicates(manifests: Iterable[Manifest]) -> None:
    """Raise InputError if an object appears twice in `manifests`."""
    if _are_distinct(manifests):
        return
    seen: dict[tuple[str, str, str], Manifest] = {}
    for manifest in manifests:
        first = seen.setdefault(manifest.identity, manifest)
        if first is not manifest:
            where = f" (first in {first.source})" if first.source != manifest.source else ""
            raise manifest.refuse(f"appears twice{where}", field="metadata.name")


def refuse_shared_uids(manifests: Iterable[Manifest]) -> None:
    """Raise InputError if two objects of one kind have the same uid, as after copy and paste.

    An owner reference with this uid would refer to both objects. Objects without a uid are
    accepted: they get a uid later.
    """
    if _have_own_uids(manifests):
        return
    seen: dict[tuple[str, str], Manifest] = {}
    for manifest in manifests:
        first = seen.setdefault((manifest.kind.resource, manifest.ref.uid), manifest)
        if first is not manifest and manifest.ref.uid:
            problem = f"is also the uid of {first.title}; remove it or give it another value"
            raise manifest.refuse(problem, field="metadata.uid")


def _have_own_uids(manifests: Iterable[Manifest]) -> bool:
    """Return whether all uids in `manifests` are different within each kind."""
    seen: defaultdict[str, set[str]] = defaultdict(set)  # uids by resource
    count = 0
    for entry in entries_of(manifests):
        if isinstance(entry, ReplicaManifests):
            uids = entry.replicas.uids  # none is empty, see `StoredForm.has_replicas`
            count += len(uids)
            seen[entry.kind.resource].update(uids)
        elif entry.ref.uid:
            count += 1
            seen[entry.kind.resource].add(entry.ref.uid)
    return sum(map(len, seen.values())) == count


def _are_distinct(manifests: Iterable[Manifest]) -> bool:
    """Return whether no object appears twice in `manifests`."""
    # The names by (resource, namespace). A set of all identities would need a tuple for each pod.
    seen: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    count = 0
    for entry in entries_of(manifests):
        if isinstance(entry, ReplicaManifests):
            count += len(entry.replicas)
            seen[entry.kind.resource, entry.replicas.namespace].update(entry.replicas.names)
        else:
            count += 1
            resource, namespace, name = entry.identity
            seen[resource, namespace].add(name)
    return sum(map(len, seen.values())) == count


def _manifests(
    document: Document, namespace: str, on_read: OnRead = read_silently
) -> list[Manifest | ReplicaManifests]:
    """Return the objects in `document`; see `manifests_of_cluster`."""
    source = document.source
    if document.listing is None:
        values = _opened(source, document.value)
        return [
            _manifest_at(source, ": ".join(filter(None, (document.place, place))), value, namespace)
            for place, value in values
        ]
    _refuse_objects_beside_items(source, document.listing.head)
    try:
        return _listed(source, document.listing, namespace, on_read)
    except (msgspec.DecodeError, RecursionError):
        # An item is not a valid value, such as 1e999, or is nested too deeply. The error of the
        # whole document says so.
        return [one for whole in document.parsed() for one in _manifests(whole, namespace)]


def _listed(
    source: str, listing: Listing, namespace: str, on_read: OnRead
) -> list[Manifest | ReplicaManifests]:
    """Return the objects in `listing`.

    Raises msgspec.DecodeError for an item that is not a valid value. Raises RecursionError for an
    item that is nested too deeply for the decoder.
    """
    defaults, decoder = _item_defaults(listing.head), DumpDecoder()
    total = sum(len(one) if isinstance(one, TemplateRows) else 1 for one in listing.items)
    found: list[Manifest | ReplicaManifests] = []
    number = next_report = 0
    next_release = _RELEASED_EVERY
    for texts in decoder.with_rows(listing.items):
        if number >= next_report:
            on_read("objects", number, total)
            next_report = number + _REPORTED_EVERY
        if number >= next_release:
            listing.release(number / total)
            next_release = number + _RELEASED_EVERY
        if isinstance(texts, TemplateRows) and (rows := decoder.decode_rows(texts)) is not None:
            found.append(ReplicaManifests(source, *rows))
            number += len(texts)
            continue
        for text in texts if isinstance(texts, TemplateRows) else (texts,):
            decoded = (
                (text.dumped, text.newest)
                if isinstance(text, DecodedItem)
                else decoder.decode(text)
            )
            if decoded is None:
                found += _decoded_as_json(source, number, text, defaults, namespace)
            else:
                dumped, newest = decoded
                meta = dumped.view.metadata
                kind = reference_kind(dumped.kind)
                ref = ObjectRef(kind, meta.namespace, meta.name, meta.uid)
                found.append(Manifest(source, dumped.kind, ref, dumped, newest))
            number += 1
    return found


def _decoded_as_json(
    source: str, number: int, text: ItemText | DecodedItem, defaults: Json, namespace: str
) -> Iterator[Manifest]:
    """Yield the objects in `text`, the item `number` of a listing; usually `text` is one object."""
    item = msgspec.json.decode(bytes(text))
    if is_too_deep(item):
        is_object = isinstance(item, dict) and isinstance(item.get("kind"), str)
        title = f"{item['kind']} {display_name(item)}" if is_object else f"items[{number}]"
        raise InputError(source, "is nested too deeply", object_name=title)
    value = {**defaults, **item} if isinstance(item, dict) else item
    for place, one in _opened(source, value, f"items[{number}]"):
        yield _manifest_at(source, place, one, namespace)


def _manifest_at(source: str, place: str, value: Any, namespace: str) -> Manifest:
    """Return the manifest of `value`, the object at `place` in the file `source`.

    A namespaced object without a namespace gets `namespace`. Raises InputError; an error about an
    object without a name contains `place`.
    """
    try:
        return _manifest(source, value, namespace)
    except InputError as cause:
        if place and not cause.object_name:
            raise InputError(source, cause.problem, field=place) from None
        if not place or not cause.object_name.endswith(UNNAMED):
            raise
        name = f"{place}: {cause.object_name}"
        raise InputError(source, cause.problem, object_name=name, field=cause.field) from None


def _opened(source: str, value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (place, object) for the object `value`, or for each object in the list `value`.

    A snapshot and an export of kube-scheduler-simulator count as lists.

    `place` is the path of `value` in the document, such as `items[3]`; "" for the whole document.
    """
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _opened(source, item, place and f"{place}[{number}]")
    elif _is_list(value):
        items, field = value["items"], f"{place}.items" if place else "items"
        if items is None:
            items = []  # Go programs write a nil slice as null; kubectl reads it as empty
        if not isinstance(items, list):
            raise InputError(source, f"expected a list, got {type_name(items)}", field=field)
        _refuse_objects_beside_items(source, value, place)
        defaults = _item_defaults(value)
        for number, item in enumerate(items):
            whole = {**defaults, **item} if isinstance(item, dict) else item
            yield from _opened(source, whole, f"{field}[{number}]")
    elif isinstance(value, dict) and value.get("kind") == SNAPSHOT and "pods" in value:
        yield from ((place, item) for item in _objects_of_snapshot(source, value))
    elif is_simulator_export(value):
        yield from ((place, item) for item in exported_objects(value))
    else:
        yield place, value


def _objects_of_snapshot(source: str, value: Json) -> list[Any]:
    try:
        return objects_of(value)
    except ColumnError as cause:
        raise InputError(source, cause.problem, field=cause.field) from None


def _is_list(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and str(value.get("kind", "")).endswith("List")
        and ("items" in value)
    )


def _refuse_objects_beside_items(source: str, value: Json, place: str = "") -> None:
    """Raise InputError if an unknown field of the List `value` is a list of objects.

    The answer would lack these objects. Other unknown fields of a List are ignored, as by kubectl.
    """
    for field, content in value.items():
        if field in _LIST_FIELDS:
            continue
        if isinstance(content, list) and any(map(_is_object, content)):
            problem = f"{value['kind']} has no such field; put its objects into items"
            raise InputError(source, problem, field=f"{place}.{field}" if place else field)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _item_defaults(value: Json) -> Json:
    """Return apiVersion and kind for the items of a typed list (PodList); items may omit both."""
    kind = str(value["kind"]).removesuffix("List").removesuffix(SNAPSHOT)
    return {"apiVersion": value.get("apiVersion"), "kind": kind} if kind else {}


def _manifest(source: str, value: Any, namespace: str) -> Manifest:
    """Return the manifest of `value`, an object in the file `source`. Raises InputError.

    A namespaced object without a namespace gets `namespace`.
    """
    clean = storable_object(source, value)
    kind = kind_of(clean)
    metadata = clean["metadata"]
    if not kind.namespaced:
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = namespace
    try:
        decode(clean)  # checks the types of the fields
    except DecodeError as cause:
        raise InputError.of_decode(source, cause) from None
    name, uid = metadata["name"], metadata.get("uid", "")
    ref = ObjectRef(reference_kind(kind), metadata.get("namespace", ""), name, uid)
    managed = value["metadata"].get("managedFields")
    kept = tuple(managed) if isinstance(managed, list) else ()
    return Manifest(source, kind, ref, clean, managed=kept)
