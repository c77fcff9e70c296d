"""Snapshots: the output of `kubectl get nodes,pods,... -A -o yaml|json` as one or several files.

Virtual time starts at the newest timestamp in the metadata and status of the objects. This
timestamp is the best estimate of the time of the dump. A snapshot that Fairlead wrote states the
exact time in an annotation of its List, because a simulation may end long after the newest
timestamp.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from os import PathLike, fsencode, fspath
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import ApiObject
from fairlead.api.pods.original import REPLACES
from fairlead.api.timestamp import format_micro_time, format_timestamp, parse_timestamp
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NODE
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.instant import Instant
from fairlead.whatif.input.content import BYTES_MAX, OnRead, read_silently
from fairlead.whatif.input.document import STDIN, Document, parse_listings, read_listings
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.listing import ItemTexts, Listing
from fairlead.whatif.input.mapped_file import unchanged_files
from fairlead.whatif.input.option_type import require_type
from fairlead.whatif.snapshot.api_refusal import as_input_error
from fairlead.whatif.snapshot.decoder.newest_timestamp import plausible_instant
from fairlead.whatif.snapshot.garbage_collection import without_collection
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest, ReplicaManifests, contents_of, entries_of
from fairlead.whatif.snapshot.manifest_reader import manifests_of_cluster, refuse_shared_uids
from fairlead.whatif.snapshot.node_lifecycle.starting_node import starting_nodes
from fairlead.whatif.snapshot.storable_object import type_name
from fairlead.whatif.snapshot.validation.size_limit import refuse_excess

DEFAULT_START: Final[Instant] = parse_timestamp("2026-01-01T00:00:00Z")

TAKEN_AT: Final = "fairlead.dev/taken-at"
UNREADABLE: Final = "fairlead.dev/unreadable"
_READ_BY: Final = "fairlead.dev/read-by"
_KUBECTL: Final = "kubectl"
# Stands for the snapshot in a command if it is not known how the user named the snapshot.
PLACEHOLDER: Final = "SNAPSHOT"


class Snapshot(Struct, frozen=True):
    r"""A cluster at an instant; `source` is the path as the user wrote it.

    Bytes of the path that are not UTF-8 are written as escapes such as `\xe9`.
    """

    source: str
    manifests: Sequence[Manifest]
    taken_at: Instant
    unreadable: tuple[str, ...] = ()  # the resources that could not be read (`pods`, `jobs.batch`)
    # True only if Fairlead read the cluster, because a dump by kubectl may contain only one
    # namespace.
    has_all_namespaces: bool = False
    start_notes: tuple[str, ...] = ()  # notes about nodes that were starting (`starting_node`)
    # The files of a directory or an archive that were skipped because they are empty.
    empty_files: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # all other files
    # The words that name the cluster in a command, such as (`dump.json`,) or (`--context`, `prod`).
    arguments: tuple[str, ...] = (PLACEHOLDER,)
    # Further words for the commands that have options of the batch scheduler.
    batch_arguments: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return a short text; a text with the objects could be very long."""
        objects = f"{len(self.manifests):,} objects"
        return f"<Snapshot: {self.source} at {format_timestamp(self.taken_at)}, {objects}>"

    @property
    def words(self) -> str:
        """The `arguments` as text for a shell."""
        return shlex.join(self.arguments)

    @property
    def question_arguments(self) -> tuple[str, ...]:
        """The words that name the cluster and its schedulers to `fairlead explain` and `whatif`."""
        return (*self.arguments, *self.batch_arguments)

    def inventory(self) -> Inventory:
        """Return a new index of the objects."""
        return Inventory(self.manifests, unreadable=self.unreadable)


def read_snapshot(
    path: str | PathLike[str],
    stdin: BinaryIO | None = None,
    bytes_max: int = BYTES_MAX,
    on_read: OnRead = read_silently,
    *,
    is_copied: bool = False,
) -> Snapshot:
    """Return the snapshot at `path` (a file, a directory, `-` for standard input).

    A node that was starting when the file was written is Ready in the snapshot. `bytes_max` limits
    the size of a file; `on_read` is called with the progress of reading. If `is_copied` is set, the
    objects do not depend on the file after this call. A server sets it, because the file may change
    later. Raises InputError.
    """
    return _started(read_dump(path, stdin, bytes_max, on_read, is_copied=is_copied))


def read_dump(
    path: str | PathLike[str],
    stdin: BinaryIO | None = None,
    bytes_max: int = BYTES_MAX,
    on_read: OnRead = read_silently,
    *,
    is_copied: bool = False,
) -> Snapshot:
    """Return the snapshot at `path` with the nodes as they are in the file; see `read_snapshot`.

    Raises InputError, for example if a file is changed while it is read.
    """
    source = fspath(path)
    empty: list[str] = []
    with without_collection(), unchanged_files():
        documents = read_listings(
            source, stdin, bytes_max, on_read, empty.append, is_copied=is_copied
        )
        found = _snapshot(STDIN if source == "-" else source, documents, on_read)
    return replace(
        found,
        source=_printable(found.source),
        empty_files=tuple(map(_printable, empty)),
        files=tuple(dict.fromkeys(_printable(one.source) for one in documents)),
        arguments=(_printable(source),),
    )


def _printable(path: str) -> str:
    r"""Return `path` with escapes such as `\xe9` for bytes that are not UTF-8."""
    return fsencode(path).decode(errors="backslashreplace")


def parse_snapshot(source: str, data: bytes) -> Snapshot:
    """Return the snapshot in the document `data`; `source` names it in messages.

    Raises InputError.
    """
    return _started(_snapshot(source, parse_listings(source, data)))


def snapshot_of_texts(source: str, items: ItemTexts, metadata: Json) -> Snapshot:
    """Return the snapshot of a List with the objects `items`, which are JSON texts.

    `metadata` is the metadata of the List, and `source` is the name of the cluster in messages. The
    objects were just read from this cluster. Raises InputError.
    """
    head = {"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": []}
    with without_collection():
        snapshot = _snapshot(source, [Document(source, head, Listing(head, items))], is_live=True)
    return _started(snapshot)


def _snapshot(
    source: str,
    documents: list[Document],
    on_read: OnRead = read_silently,
    *,
    is_live: bool = False,
) -> Snapshot:
    found = manifests_of_cluster(documents, on_read=on_read, is_live=is_live)
    refuse_shared_uids(found)
    if not any(entry.kind is NODE for entry in entries_of(found)):
        raise InputError(source, _without_nodes(found))
    refuse_excess(found)
    return snapshot_of(source, documents, found, start_of_time(documents, found))


def snapshot_of(
    source: str, documents: Sequence[Document], found: Sequence[Manifest], taken_at: Instant
) -> Snapshot:
    """Return the snapshot of the objects `found` in `documents`. Raises InputError."""
    unreadable = tuple(name for document in documents for name in _unreadable(document))
    has_all_namespaces = any(_is_read_by_fairlead(document) for document in documents)
    return Snapshot(source, found, taken_at, unreadable, has_all_namespaces)


def _started(snapshot: Snapshot) -> Snapshot:
    """Return a copy of `snapshot` in which the nodes that were starting have started."""
    found, notes = with_starting_nodes_ready(snapshot.manifests, snapshot.taken_at)
    return replace(snapshot, manifests=found, start_notes=notes) if notes else snapshot


def with_starting_nodes_ready(
    manifests: Sequence[Manifest], taken_at: Instant
) -> tuple[Sequence[Manifest], tuple[str, ...]]:
    """Return (`manifests` in which starting nodes are Ready, notes).

    The nodes that were starting at `taken_at` are replaced by Ready nodes. The notes state what is
    assumed about these nodes. If no node was starting, the notes are (). Raises InputError.
    """
    starting = starting_nodes(manifests, taken_at)
    if not starting:
        return manifests, ()
    # Imported only if it is needed.
    from fairlead.whatif.snapshot.node_lifecycle.started_node import with_started_nodes  # noqa: PLC0415

    return with_started_nodes(manifests, starting, taken_at)


def _without_nodes(found: Iterable[Manifest]) -> str:
    """Return the error for a dump without Nodes; it says how to take a complete dump."""
    from fairlead.whatif.snapshot.dump_command import dump_command  # noqa: PLC0415 - an error only

    counts = Counter(manifest.kind.kind for manifest in found)
    contents = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common(3))
    contained = f"contains {contents}, but no Node" if contents else "contains no Node"
    return f"{contained}; dump all kinds together: {dump_command('cluster.json')}"


def snapshot_annotations(taken_at: Instant, unreadable: Iterable[str] = ()) -> dict[str, str]:
    """Return the annotations of a List: the time of the snapshot, and the unreadable resources."""
    annotations = {TAKEN_AT: format_micro_time(taken_at)}
    names = ",".join(unreadable)
    return {**annotations, UNREADABLE: names} if names else annotations


def copied_annotations(snapshot: Snapshot) -> dict[str, str]:
    """Return the annotations for a List that is a copy of `snapshot`.

    If kubectl, and not Fairlead, read the objects from the cluster, an annotation says so. A list
    of kubectl may contain the objects of only one namespace (`has_all_namespaces`).
    """
    annotations = snapshot_annotations(snapshot.taken_at, snapshot.unreadable)
    return annotations if snapshot.has_all_namespaces else {**annotations, _READ_BY: _KUBECTL}


def encode_snapshot(objects: list[Json], taken_at: Instant) -> bytes:
    """Return `objects` as one JSON List in kubectl's form, which `read_snapshot` can read.

    If a pod replaced another pod in a simulation, the annotation REPLACES of the new pod contains
    the name of the old pod. Answers show that name. The annotation is left out here, so answers
    about the new snapshot show the new pod's own name. Raises InputError for an argument of a wrong
    type, such as a Snapshot.
    """
    require_type("encode_snapshot", "objects", objects, list | tuple)
    for number, one in enumerate(objects):
        require_type("encode_snapshot", f"objects[{number}]", one, dict)
    require_type("encode_snapshot", "taken_at", taken_at, int)
    metadata = {"annotations": snapshot_annotations(taken_at)}
    items = [_with_own_name(one) for one in objects]
    whole = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": metadata}
    return msgspec.json.encode(whole) + b"\n"


def _with_own_name(obj: Json) -> Json:
    meta = obj["metadata"]
    if REPLACES not in (meta.get("annotations") or {}):
        return obj
    kept = {key: text for key, text in meta["annotations"].items() if key != REPLACES}
    others = {key: value for key, value in meta.items() if key != "annotations"}
    return {**obj, "metadata": {**others, "annotations": kept} if kept else others}


def load_objects(snapshot: Snapshot, store: Store) -> Sequence[ApiObject]:
    """Load the snapshot into `store`; return views of its objects as the API server stores them.

    Raises InputError for objects that the store refuses.
    """
    try:
        return store.load(contents_of(snapshot.manifests), snapshot.taken_at)
    except ApiError as refused:
        raise as_input_error(snapshot.source, snapshot.manifests, refused) from None


def start_of_time(documents: Iterable[Document], manifests: Iterable[Manifest]) -> Instant:
    """Return the time at which the dump in `documents`, with the objects `manifests`, was taken.

    Return DEFAULT_START if the documents and the objects contain no time. Raises InputError for a
    malformed time.
    """
    known = (newest_instant(manifests), *map(_taken_at, documents))
    return max((instant for instant in known if instant is not None), default=DEFAULT_START)


def _taken_at(document: Document) -> Instant | None:
    """Return the time in the annotation of a List; None if Fairlead did not write the List.

    Raises InputError for a malformed time.
    """
    text = _annotation(document, TAKEN_AT)
    if text is None:
        return None
    try:
        return plausible_instant(text)
    except ValueError as cause:
        raise InputError(document.source, str(cause), field=_path_of_annotation(TAKEN_AT)) from None


def _is_read_by_fairlead(document: Document) -> bool:
    """Return whether Fairlead, not kubectl, read the objects in `document` from a cluster."""
    return _taken_at(document) is not None and _annotation(document, _READ_BY) != _KUBECTL


def _unreadable(document: Document) -> list[str]:
    """Return the resources that could not be read when the List was written."""
    text = _annotation(document, UNREADABLE)
    return [] if text is None else text.split(",")


def _annotation(document: Document, key: str) -> str | None:
    """Return the annotation `key` of the List in `document`; None if either is missing.

    Raises InputError if the metadata, the annotations or the annotation have a wrong type.
    """
    match document.value:
        case {"kind": "List" | "Snapshot", "metadata": metadata} if metadata is not None:
            annotations = _as_map(document, metadata, "metadata").get("annotations")
        case _:
            return None
    if annotations is None:
        return None
    value = _as_map(document, annotations, "metadata.annotations").get(key)
    if isinstance(value, str | None):
        return value
    problem = f"expected text, got {type_name(value)}"
    raise InputError(document.source, problem, field=_path_of_annotation(key))


def _as_map(document: Document, value: object, field: str) -> Json:
    if not isinstance(value, dict):
        problem = f"expected an object, got {type_name(value)}"
        raise InputError(document.source, problem, field=field)
    return value


def _path_of_annotation(key: str) -> str:
    return f"metadata.annotations[{key}]"


def newest_instant(manifests: Iterable[Manifest]) -> Instant | None:
    """Return the newest timestamp in metadata and status of `manifests`; None if there is none.

    Raises InputError for a malformed timestamp.
    """
    newest: Instant | None = None
    for entry in entries_of(manifests):
        manifest = entry.sample if isinstance(entry, ReplicaManifests) else entry
        for text in manifest.timestamps:
            try:
                instant = plausible_instant(text)
            except ValueError as cause:
                field = _path_of(manifest.value, text)
                raise manifest.refuse(str(cause), field=field) from None
            if instant is not None and (newest is None or instant > newest):
                newest = instant
    return newest


def _path_of(value: object, text: str, path: str = "") -> str:
    """Return the path of the first field below `value` with the value `text`; "" if there is none.

    `path` is the path of `value`. Example: `status.conditions[0].lastHeartbeatTime`.
    """
    if value == text:
        return path
    items: Iterable[tuple[str, object]] = ()
    if isinstance(value, dict):
        items = ((f"{path}.{key}" if path else str(key), item) for key, item in value.items())
    elif isinstance(value, list):
        items = ((f"{path}[{index}]", item) for index, item in enumerate(value))
    found = (_path_of(item, text, below) for below, item in items)
    return next(filter(None, found), "")
