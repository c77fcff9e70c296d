"""SNAPSHOT: what `kubectl get nodes,pods,... -A -o yaml|json` prints, as it is or in pieces.

Virtual time starts at the newest timestamp that the objects' metadata and status hold: that is
when the dump was taken, as far as it tells. A snapshot that Fairlead wrote says it in an annotation
of its List, since nothing need have happened for a while before the end of a simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import msgspec

from fairlead.api.json import Json
from fairlead.api.timestamp import format_micro_time, format_timestamp, parse_timestamp
from fairlead.apiserver.kind import NODE
from fairlead.engine.core.instant import Instant
from fairlead.whatif.documents import STDIN, Document, read
from fairlead.whatif.input_error import InputError
from fairlead.whatif.limits import refuse_excess
from fairlead.whatif.manifest import Manifest, manifests

DEFAULT_START: Final[Instant] = parse_timestamp("2026-01-01T00:00:00Z")

TAKEN_AT: Final = "fairlead.dev/taken-at"

# Between them lie the times at which a dump can have been taken: those before are Go's zero time
# and its like, and behind the last one there would be no room for what is simulated.
_EARLIEST: Final[Instant] = 0
_LATEST: Final[Instant] = parse_timestamp("2250-01-01T00:00:00Z")
_TIME_KEYS: Final = frozenset(
    {
        "acquireTime",
        "completionTime",
        "finishedAt",
        "lastHeartbeatTime",
        "lastProbeTime",
        "lastScheduleTime",
        "lastSuccessfulTime",
        "lastTransitionTime",
        "lastUpdateTime",
        "renewTime",
        "startTime",
        "startedAt",
    }
)
_LEASE: Final = "leases.coordination.k8s.io"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at an instant; `source` is what the user named."""

    source: str
    manifests: tuple[Manifest, ...]
    taken_at: Instant


def read_snapshot(path: str, stdin: BinaryIO | None = None) -> Snapshot:
    """The snapshot at `path` (a file, a directory, `-` for standard input). Raises InputError."""
    source = STDIN if path == "-" else path
    documents = read(path, stdin)
    found = manifests(documents)
    if not any(manifest.kind is NODE for manifest in found):
        raise InputError(source, "holds no Node; a cluster needs at least one")
    refuse_excess(found)
    return Snapshot(source, tuple(found), start_of_time(documents, found))


def encode_snapshot(objects: list[Json], taken_at: Instant) -> bytes:
    """`objects` as kubectl prints them, one List in JSON; `read_snapshot` reads it."""
    metadata = {"annotations": {TAKEN_AT: format_micro_time(taken_at)}}
    whole = {"apiVersion": "v1", "items": objects, "kind": "List", "metadata": metadata}
    return msgspec.json.encode(whole) + b"\n"


def start_of_time(documents: Iterable[Document], found: Iterable[Manifest]) -> Instant:
    """When `documents`, which hold the objects `found`, were taken. Raises InputError."""
    known = (newest_instant(found), *map(_taken_at, documents))
    return max((instant for instant in known if instant is not None), default=DEFAULT_START)


def _taken_at(document: Document) -> Instant | None:
    """What a List that Fairlead wrote says of itself."""
    match document.value:
        case {"kind": "List", "metadata": {"annotations": {"fairlead.dev/taken-at": str(text)}}}:
            try:
                return _instant(text)
            except ValueError as cause:
                field = f"metadata.annotations[{TAKEN_AT}]"
                raise InputError(document.source, str(cause), field=field) from None
    return None


def newest_instant(found: Iterable[Manifest]) -> Instant | None:
    """The newest timestamp in metadata and status of `found`; None when there is none.

    Raises InputError for a timestamp that is none.
    """
    newest: Instant | None = None
    for manifest in found:
        for text in dict.fromkeys(_timestamps(manifest)):
            try:
                instant = _instant(text)
            except ValueError as cause:
                raise manifest.refuse(str(cause)) from None
            if instant is not None and (newest is None or instant > newest):
                newest = instant
    return newest


def _instant(text: str) -> Instant | None:
    """When that is; None where it tells nothing. Raises ValueError."""
    instant = parse_timestamp(text)
    if instant > _LATEST:
        raise ValueError(f"{text!r} is later than {format_timestamp(_LATEST)}")
    return instant if instant >= _EARLIEST else None


def _timestamps(manifest: Manifest) -> Iterator[str]:
    """Every text in `manifest` that says when something happened.

    A deletionTimestamp is left out: it lies in the future by the grace period.
    """
    value = manifest.value
    created = value["metadata"].get("creationTimestamp")
    if isinstance(created, str):
        yield created
    yield from _times_below(value.get("status"))
    if manifest.kind.resource == _LEASE:
        yield from _times_below(value.get("spec"))


def _times_below(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, str):
                if key in _TIME_KEYS:
                    yield item
            elif isinstance(item, dict | list):
                yield from _times_below(item)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield from _times_below(item)
