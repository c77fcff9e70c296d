"""PodWriteCopies: stores a write to a pod as a copy of the same write to an earlier pod.

The pods of a workload go through the same status writes and bindings. The result of a status write
(merged status, defaults, managed fields) follows from the old status, the old managed fields, and
the command. The result of a binding follows from the old status and labels, the status of the
namespace, and the topology labels of the node. In these inputs, three kinds of strings differ from
pod to pod: times, IP addresses and uids. Only their equality and their order affect the result.
Therefore a write is described by a text with markers in place of these strings. Two writes with the
same text store the same result, except for the strings of their own pods:

    write      {"startTime": "2026-01-01T00:00:09Z", ... "podIP": "10.0.0.7"}
    text       {"startTime": "<marker 0>", ... "podIP": "<marker 2>"}
    strings    2026-01-01T00:00:09Z, 2026-01-01T00:00:12Z, 10.0.0.7

Markers are numbered: first the times in ascending order, then the IP addresses in ascending order,
then the uid. Therefore two texts are equal only if equal strings are at the same places and the
order of the strings is the same. A time or IP address is replaced only if it is a whole JSON
string, or the key of an address in managed fields.

Before a kubelet's status write is stored, details such as IP addresses are added to it. Such a
write also has a second description, which contains the inputs of these details (`ReportInputs`) in
place of the details. If an earlier write had the same second description, the details need not be
computed. In place of each set of managed fields, the second description contains a number and the
IP addresses in the set. Sets that differ only in their IP addresses have the same number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from operator import itemgetter
from string import ascii_uppercase
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.plugins.pod_topology_labels import LABELS as TOPOLOGY_LABELS
from fairlead.apiserver.kind import NAMESPACE, NODE, POD
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.command import Bind, Command, ObjectRef, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Component
from fairlead.worlds.local.kubelet.pod_status import ReportInputs

TEMPLATES_MAX: Final = 1024
STRINGS_MAX: Final = 26
TEXT_MAX: Final = 1 << 14  # templates of larger texts would take much memory
_MARK: Final = b"\x7f"  # a text that has it is not described
_MARK_TEXT: Final = _MARK.decode()
_WRITTEN: Final = frozenset(("resourceVersion", "labels"))
_WRITTEN_WITH_STATUS: Final = frozenset(("resourceVersion", "managedFields"))
# A key of managed fields with an address: k:{"ip":"10.0.0.7"}
_ADDRESS_KEY: Final = re.compile(rb'\{\\"ip\\":\\"([0-9.]+)\\"\}')
_END_OF_TIME: Final = b'Z"'
_TIME_BYTES: Final = len('"2026-01-01T00:00:00')
_TIME: Final = re.compile(rb'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d')
_ADDRESS: Final = re.compile(
    r"(?:[1-9]?\d|1\d\d|2[0-4]\d|25[0-5])(?:\.(?:[1-9]?\d|1\d\d|2[0-4]\d|25[0-5])){3}"
)
_QUOTES: Final = b'"\\'
_MARK_IN_TEXT: Final = re.compile(_MARK + rb"([A-Z])")
# Markers in ascending order: without quotes, as strings, and in keys of managed fields.
_MARKS: Final = [_MARK + letter.encode() for letter in ascii_uppercase]
_QUOTED: Final = [b'"%b"' % mark for mark in _MARKS]
_IN_KEY: Final = [b'\\"%b\\"' % mark for mark in _MARKS]
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class PodWrite(Struct, frozen=True):
    """A write to `pod`, described by `text`.

    `text` contains markers in place of the strings that differ from pod to pod. `replaced` contains
    a pair (string, marker) for each of these strings. `node` is the node of a binding, "" for a
    status write.
    """

    pod: Json
    node: str
    text: bytes
    replaced: list[tuple[bytes, bytes]]  # by their markers

    @property
    def strings(self) -> list[bytes]:
        """The strings in `replaced`, without quotes.

        In `text`, the marker with the n-th letter of the alphabet stands for the n-th string.
        """
        return [string.strip(_QUOTES) for string, _ in self.replaced]


class _Template(Struct, frozen=True):
    """A JSON text with placeholders: managed fields, labels and status of pods after a write.

    `text` contains `%b` in place of each string that differs from pod to pod. `order` returns the
    values of `PodWrite.strings` in the order of these placeholders. In `text`, a part that the
    write does not change is null. `fields` has an item for each entry of managedFields: the part of
    the entry's set of fields that is the same for all pods (see `_parts`). `text` contains only the
    other part. `keys` are the names of the members of metadata and of spec, in order.
    """

    text: bytes
    order: Callable[[Sequence[bytes]], Any]
    fields: list[Json | None]
    keys: tuple[tuple[str, ...], tuple[str, ...]]


class PodWriteCopies:
    """Stores a status write or binding of a pod as a copy of the same write to an earlier pod.

    A copied write calls no admission webhooks or policies. Use this class only while the store
    contains no webhook configurations and no policies.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._templates: dict[bytes, _Template] = {}
        self._reports: dict[bytes, _Template] = {}  # by the inputs of kubelets' status writes
        self._sets: dict[bytes, int] = {}  # the numbers of sets of managed fields, by their texts
        self._unused = count()  # the numbers of further sets; no number is used twice
        self._numbers: dict[int, tuple[Json, list[int | str]]] = {}  # by the id of the set

    def described_report(
        self, command: PatchStatus, inputs: ReportInputs, now: Instant
    ) -> PodWrite | None:
        """Return a PodWrite that describes `command`, a kubelet's status write, by `inputs`.

        The details of the status write, such as pod IPs and container statuses, are not computed.
        The description contains `inputs`, from which the details would be computed. Returns None
        if the write cannot be stored as a copy of an earlier write.
        """
        pod, fields = self._pod(command.target), command.fields
        if pod is None or fields.get("nominatedNodeName") or command.resource_version:
            return None
        meta, status = pod["metadata"], pod.get("status", {})
        entries = [
            {**entry, "fieldsV1": self._numbered(entry["fieldsV1"])}
            for entry in meta.get("managedFields") or ()
        ]
        if not entries:  # not tracked
            return None
        read = meta.get("generation"), inputs.spec, inputs.addresses
        text = _encode(
            (format_timestamp(now), entries, status, dict(fields), command.conditions, read)
        )
        places = status, fields, inputs.addresses
        addresses = {place.get(key) for place in places for key in ("hostIP", "podIP")}
        return _described(pod, "", text, addresses)

    def _numbered(self, fields: Json) -> list[int | str]:
        """Return a list that stands for `fields`, a set of managed fields.

        The list contains a number, then the IP addresses in the keys of the set, in order. Sets
        that are equal except for their addresses have the same number.
        """
        known = self._numbers.get(id(fields))
        if known is not None and known[0] is fields:
            return known[1]
        shape, *others = _ADDRESS_KEY.split(_encode(fields))
        addresses = [one.decode() for one in others[::2]]
        shape = _MARK.join((shape, *others[1::2]))
        if len(self._sets) >= TEMPLATES_MAX:
            self._sets.clear()
            self._numbers.clear()
        if shape not in self._sets:
            self._sets[shape] = next(self._unused)
        numbered = [self._sets[shape], *addresses]
        if not addresses:  # Sets with addresses belong to one pod.
            if len(self._numbers) >= TEMPLATES_MAX:
                self._numbers.clear()
            self._numbers[id(fields)] = fields, numbered
        return numbered

    def write_report(self, report: PodWrite) -> bool:
        """Perform `report` as a copy of an earlier write with the same `PodWrite.text`.

        Returns False and stores nothing if there is no such write.
        """
        template = self._reports.get(report.text)
        if template is not None:
            self._store_copy(report, template)
        return template is not None

    def learn_report(self, report: PodWrite | None, described: PodWrite) -> None:
        """Store the template of `described.text` also under `report.text`.

        `report` and `described` describe the same status write of a kubelet. Where `described`
        contains certain details, `report` contains their inputs (`ReportInputs`). Nothing changes
        if `report` is None, or if `report.replaced` differs from `described.replaced`.
        """
        if report is None or report.replaced != described.replaced:
            return
        if len(self._reports) >= TEMPLATES_MAX:
            self._reports.clear()
        self._reports[report.text] = self._templates[described.text]

    def described(self, command: Command, component: Component, now: Instant) -> PodWrite | None:
        """Return a PodWrite that describes `command`, which `component` issued.

        Returns None if the write cannot be stored as a copy of an earlier write.
        """
        match command:
            case PatchStatus(target) if target.kind == POD.kind:
                return self._status_write(command, component, now)
            case Bind():
                return self._binding(command, now)
            case _:
                return None

    def _status_write(
        self, command: PatchStatus, component: Component, now: Instant
    ) -> PodWrite | None:
        pod, fields = self._pod(command.target), command.fields
        if pod is None or fields.get("nominatedNodeName") or command.resource_version:
            return None
        entries, status = pod["metadata"].get("managedFields"), pod.get("status", {})
        if not entries:  # not tracked
            return None
        stamp = format_timestamp(now)
        text = _encode((component, stamp, entries, status, dict(fields), command.conditions))
        addresses = {place.get(key) for place in (status, fields) for key in ("hostIP", "podIP")}
        return _described(pod, "", text, addresses)

    def _binding(self, command: Bind, now: Instant) -> PodWrite | None:
        """Return a PodWrite that describes a binding and everything that affects its result.

        Returns None if the binding cannot be stored as a copy of an earlier binding.
        """
        pod = self._pod(command.pod)
        if pod is None or not command.node:
            return None
        meta, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
        is_refused = spec.get("nodeName") or spec.get("schedulingGates")
        if is_refused or meta.get("deletionTimestamp") or status.get("podIP"):
            return None
        read = []
        for kind, name in ((NAMESPACE, meta["namespace"]), (NODE, command.node)):
            found = self._store.find(kind, "", name)
            if found is None:
                return None
            read.append(found)
        labels = read[1]["metadata"].get("labels") or {}
        admitted = read[0].get("status"), [labels.get(key) for key in TOPOLOGY_LABELS]
        members = meta.get("labels"), list(meta), list(spec)
        text = _encode((format_timestamp(now), admitted, members, status))
        return _described(pod, command.node, text, set())

    def _pod(self, target: ObjectRef) -> Json | None:
        pod = self._store.find(POD, target.namespace, target.name)
        if pod is None or target.uid not in ("", pod["metadata"]["uid"]):
            return None
        return pod

    def write(self, described: PodWrite) -> bool:
        """Perform the write `described` by copying the result of an earlier write.

        The earlier write must have the same `text`. Return False if there is no such write. Raises
        ApiError if the disk is full.
        """
        template = self._templates.get(described.text)
        if template is not None:
            self._store_copy(described, template)
        return template is not None

    def _store_copy(self, described: PodWrite, template: _Template) -> None:
        text = template.text % template.order(described.strings)
        entries, labels, status = _decode(text)
        pod = described.pod
        meta, spec, old = pod["metadata"], pod["spec"], pod.get("status", {})
        if entries is not None:
            for entry, shared in zip(entries, template.fields, strict=True):
                entry["fieldsV1"] = _joined(shared, entry["fieldsV1"])
            meta = {**meta, "managedFields": entries}
        if described.node:
            made = {**meta, "labels": labels} if labels else meta
            meta = {key: made[key] for key in template.keys[0]}
            bound = {**spec, "nodeName": described.node}
            spec = {key: bound[key] for key in template.keys[1]}
        status = {key: _shared(old.get(key), item) for key, item in status.items()}
        new = {**pod, "metadata": meta, "spec": spec, "status": status}
        self._store.storage.put(POD, new, is_arranged=True)

    def learn(self, described: PodWrite) -> None:
        """Use the result of a write as the template for later writes.

        `described` describes this write, which the caller has performed in full, not as a copy of
        an earlier write. No template is made if the write changed parts of the pod that a
        `_Template` does not contain.
        """
        old = described.pod
        new = self._store.find(POD, old["metadata"]["namespace"], old["metadata"]["name"])
        if new is None or new is old or not _is_typical(described, new):
            return
        meta = new["metadata"]
        entries: list[Json] | None = None
        fields: list[Json | None] = []
        if not described.node:
            entries = []
            for entry in meta["managedFields"]:
                marked = _decode(_replaced(_encode(entry["fieldsV1"]), described.replaced))
                shared, own = _parts(marked)
                fields.append(shared if own else entry["fieldsV1"])
                entries.append({**entry, "fieldsV1": own})
        labels = meta.get("labels") if described.node else None
        text = _replaced(_encode((entries, labels, new["status"])), described.replaced)
        if any(string in text for string in described.strings):
            return  # a string is also part of a longer string
        if len(self._templates) >= TEMPLATES_MAX:
            self._templates.clear()
        keys = tuple(meta), tuple(new["spec"])
        self._templates[described.text] = _Template(*_format(text), fields, keys)


def _described(pod: Json, node: str, text: bytes, addresses: set[Any]) -> PodWrite | None:
    if _MARK in text or len(text) > TEXT_MAX:
        return None
    replaced = _marked(text, addresses, pod["metadata"]["uid"])
    return None if replaced is None else PodWrite(pod, node, _replaced(text, replaced), replaced)


def _is_typical(described: PodWrite, new: Json) -> bool:
    """Return whether the write changed only those parts of the pod that a `_Template` contains."""
    old = described.pod
    before, after = old["metadata"], new["metadata"]
    written = _WRITTEN if described.node else _WRITTEN_WITH_STATUS
    has_same_spec = new["spec"] is old["spec"]
    if described.node:
        bound = {**old["spec"], "nodeName": described.node}
        has_same_spec = new["spec"] == bound
    elif list(after) != list(before):
        return False
    return (
        has_same_spec
        and list(new) == list(old)
        and after.keys() - written == before.keys() - written
        and all(after[key] == before[key] for key in after if key not in written)
    )


def _marked(text: bytes, addresses: set[Any], uid: str) -> list[tuple[bytes, bytes]] | None:
    """Return pairs (string, marker) of the strings in `text` that differ from pod to pod.

    These strings are times, `addresses` and `uid`. Returns None if a time or an address does not
    have the usual form, or if there are too many strings.
    """
    times = _marked_times(
        frozenset([piece[-_TIME_BYTES:] for piece in text.split(_END_OF_TIME)[:-1]])
    )
    if times is None:
        return None
    addresses.discard(None)
    addresses.discard("")
    if not all(map(_is_address, addresses)):
        return None
    if len(times) + 2 * len(addresses) + 1 > STRINGS_MAX:
        return None
    found = [*times]
    for address in sorted(addresses):
        number, name = len(found), address.encode()
        found.append((b'"%b"' % name, _QUOTED[number]))
        # a key of managed fields: "k:{\"ip\":\"10.0.0.7\"}"
        found.append((b'\\"%b\\"' % name, _IN_KEY[number]))
    found.append((uid.encode(), _MARKS[len(found)]))
    return found


@lru_cache(maxsize=TEMPLATES_MAX)
def _marked_times(times: frozenset[bytes]) -> tuple[tuple[bytes, bytes], ...] | None:
    """Return a pair (time, marker) for each of `times`, in ascending order.

    In the pairs, _END_OF_TIME is appended to the times. Returns None if a time does not have the
    usual form. The results are cached, because pods that start in the same seconds
    have the same times.
    """
    if not all(map(_TIME.fullmatch, times)):
        return None
    return tuple(zip([time + _END_OF_TIME for time in sorted(times)], _QUOTED, strict=False))


@lru_cache(maxsize=TEMPLATES_MAX)
def _is_address(value: Any) -> bool:
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def _format(text: bytes) -> tuple[bytes, Callable[[Sequence[bytes]], Any]]:
    """Return (format, order) for a text with markers.

    The format is the text with `%b` in place of each marker. The function `order` takes
    `PodWrite.strings`, and returns the string for each `%b`, in the order of the text.
    """
    first, *others = _MARK_IN_TEXT.split(text.replace(b"%", b"%%"))
    numbers = [ord(mark) - ord("A") for mark in others[::2]]
    places = b"".join((first, *(b"%b" + after for after in others[1::2])))
    return places, itemgetter(*numbers) if numbers else _nothing


def _nothing(_: Sequence[bytes]) -> tuple[()]:
    return ()


def _parts(fields: Any) -> tuple[Any, Any]:
    """Split the set of managed fields `fields` into (shared, own).

    Some keys of the set contain a marker, which stands for a string that differs from pod to pod.
    `own` contains only the JSON objects with such a key, and the keys that lead to these JSON
    objects. In `shared`, None replaces these JSON objects:

        set     {"f:status": {"f:phase": {}, "f:podIPs": {"k:<marker 2>": {}}}}
        shared  {"f:status": {"f:phase": {}, "f:podIPs": None}}
        own     {"f:status": {"f:podIPs": {"k:<marker 2>": {}}}}
    """
    if not isinstance(fields, dict) or any(_MARK_TEXT in key for key in fields):
        return None, fields
    parts = {key: _parts(value) for key, value in fields.items()}
    shared = {key: shared for key, (shared, _) in parts.items()}
    return shared, {key: own for key, (_, own) in parts.items() if own}


def _joined(shared: Any, own: Any) -> Any:
    """Return the set of managed fields with the parts `shared` and `own`; see `_parts`."""
    if shared is None:
        return own
    if not own:
        return shared
    return {**shared, **{key: _joined(shared[key], value) for key, value in own.items()}}


def _replaced(text: bytes, strings: list[tuple[bytes, bytes]]) -> bytes:
    for string, mark in strings:
        text = text.replace(string, mark)
    return text


def _shared(old: Any, new: Any) -> Any:
    """Return `old` if it equals `new`, so that versions of a status share their unchanged parts."""
    return old if type(old) is type(new) and old == new else new
