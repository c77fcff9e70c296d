"""PodStatusCopies: writes a pod's status as a copy of the same write to an earlier pod.

The pods of a workload go through the same status writes. What a write stores (merged status,
defaults, managed fields) follows from the old status, the old managed fields, and the command. In
all of them, three kinds of strings differ from pod to pod, and only their equality and their order
matter: times, IP addresses and uids. So a write is described by a text with markers in place of
these strings, and a write with the same text stores the same result with its own strings:

    write      {"startTime": "2026-01-01T00:00:09Z", ... "podIP": "10.0.0.7"}
    text       {"startTime": "<marker 0>", ... "podIP": "<marker 2>"}
    strings    2026-01-01T00:00:09Z, 2026-01-01T00:00:12Z, 10.0.0.7

Markers number the strings of each kind in ascending order, so texts are equal only if the strings
are equal and ordered alike. A write that mentions a string in another way than as a whole string
(or as the key of an address in managed fields) has a text of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.command import PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Component

TEMPLATES_MAX: Final = 1024
STRINGS_MAX: Final = 26
TEXT_MAX: Final = 1 << 14  # templates of larger texts would take much memory
_MARK: Final = b"\x7f"  # a text that has it is not described
_WRITTEN: Final = ("resourceVersion", "managedFields")
_END_OF_TIME: Final = b'Z"'
_TIME_BYTES: Final = len('"2026-01-01T00:00:00')
_TIME: Final = re.compile(rb'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d')
_ADDRESS: Final = re.compile(
    r"(?:[1-9]?\d|1\d\d|2[0-4]\d|25[0-5])(?:\.(?:[1-9]?\d|1\d\d|2[0-4]\d|25[0-5])){3}"
)
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """A status write: the pod before it, its text, and what the markers in the text stand for."""

    pod: Json
    text: bytes
    replaced: list[tuple[bytes, bytes]]  # by their markers


@dataclass(frozen=True, slots=True)
class _Template:
    """What a write stores: managed fields and status as a text with markers.

    `fields` are the sets of fields of the entries of managedFields that have no markers, and which
    all pods share; None for the others, whose sets are in the text.
    """

    text: bytes
    fields: list[Json | None]


class PodStatusCopies:
    """The status writes to the pods of one store, which must be tracked by field managers."""

    def __init__(self, store: Store) -> None:
        """Start without templates."""
        self._store = store
        self._templates: dict[bytes, _Template] = {}

    def described(
        self, command: PatchStatus, component: Component, now: Instant
    ) -> StatusWrite | None:
        """Return the write of `command` by `component`; None if it has to go through all stages."""
        target, fields = command.target, command.fields
        pod = self._store.find(POD, target.namespace, target.name)
        if pod is None or fields.get("nominatedNodeName") or command.resource_version:
            return None
        meta = pod["metadata"]
        uid, entries, status = meta["uid"], meta.get("managedFields"), pod.get("status", {})
        if target.uid not in ("", uid) or not entries:
            return None
        stamp = format_timestamp(now)
        text = _encode((component, stamp, entries, status, dict(fields), command.conditions))
        if _MARK in text or len(text) > TEXT_MAX:
            return None
        addresses = {place.get(key) for place in (status, fields) for key in ("hostIP", "podIP")}
        replaced = _marked(text, addresses, uid)
        if replaced is None:
            return None
        return StatusWrite(pod, _replaced(text, replaced), replaced)

    def write(self, described: StatusWrite) -> bool:
        """Write the status as it was written to an earlier pod; return False if it never was.

        Raises ApiError if there is no space.
        """
        template = self._templates.get(described.text)
        if template is None:
            return False
        text = template.text
        for string, mark in described.replaced:
            text = text.replace(mark, string)
        entries, status = _decode(text)
        for entry, fields in zip(entries, template.fields, strict=True):
            if fields is not None:
                entry["fieldsV1"] = fields
        pod = described.pod
        old = pod.get("status", {})
        self._store.storage.put(
            POD,
            {
                **pod,
                "metadata": {**pod["metadata"], "managedFields": entries},
                "status": {key: _shared(old.get(key), item) for key, item in status.items()},
            },
            is_arranged=True,
        )
        return True

    def learn(self, described: StatusWrite) -> None:
        """Make a template of a write that went through all stages."""
        meta = described.pod["metadata"]
        new = self._store.find(POD, meta["namespace"], meta["name"])
        if new is None or not _differs_in_status(described.pod, new):
            return
        after = new["metadata"]
        texts = [
            _replaced(_encode(entry["fieldsV1"]), described.replaced)
            for entry in after["managedFields"]
        ]
        fields = [
            None if _MARK in text else entry["fieldsV1"]
            for entry, text in zip(after["managedFields"], texts, strict=True)
        ]
        entries = [
            entry if own is None else {**entry, "fieldsV1": None}
            for entry, own in zip(after["managedFields"], fields, strict=True)
        ]
        text = _replaced(_encode((entries, new["status"])), described.replaced)
        if any(string.strip(b'"\\') in text for string, _ in described.replaced):
            return  # part of a longer string
        if len(self._templates) >= TEMPLATES_MAX:
            self._templates.clear()
        self._templates[described.text] = _Template(text, fields)


def _differs_in_status(old: Json, new: Json) -> bool:
    """Return whether `new` is `old` with another status and other managed fields."""
    before, after = old["metadata"], new["metadata"]
    return (
        new is not old
        and list(new) == list(old)
        and list(after) == list(before)
        and new["spec"] is old["spec"]
        and all(after[key] == before[key] for key in after if key not in _WRITTEN)
    )


def _marked(text: bytes, addresses: set[Any], uid: str) -> list[tuple[bytes, bytes]] | None:
    """Return the strings that differ from pod to pod, as they are in texts, with their markers.

    None if a string is not in the usual form.
    """
    times = {piece[-_TIME_BYTES:] for piece in text.split(_END_OF_TIME)[:-1]}
    if not all(map(_TIME.fullmatch, times)):
        return None
    addresses.discard(None)
    addresses.discard("")
    if not all(isinstance(one, str) and _ADDRESS.fullmatch(one) for one in addresses):
        return None
    found: list[tuple[bytes, bytes]] = []
    for time in sorted(times):
        mark = _mark(len(found))
        found.append((time + _END_OF_TIME, b'"%b"' % mark))
    for address in sorted(addresses):
        mark, name = _mark(len(found)), address.encode()
        found.append((b'"%b"' % name, b'"%b"' % mark))
        # a key of managed fields: "k:{\"ip\":\"10.0.0.7\"}"
        found.append((b'\\"%b\\"' % name, b'\\"%b\\"' % mark))
    found.append((uid.encode(), _mark(len(found))))
    return found if len(found) <= STRINGS_MAX else None


def _mark(number: int) -> bytes:
    return _MARK + bytes((ord("A") + number,))


def _replaced(text: bytes, strings: list[tuple[bytes, bytes]]) -> bytes:
    for string, mark in strings:
        text = text.replace(string, mark)
    return text


def _shared(old: Any, new: Any) -> Any:
    """Return `old` if it equals `new`, so that versions of a status share what did not change."""
    return old if type(old) is type(new) and old == new else new
