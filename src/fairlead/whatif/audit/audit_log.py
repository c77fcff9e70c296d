"""Reads audit logs of kube-apiserver: the writes to objects on which scheduling depends.

Each line of a log contains one `Event` of audit.k8s.io/v1, or an `EventList`, as the webhook
backend sends it. Only events of successful writes at the stage ResponseComplete are used. The level
of these events must be Request or RequestResponse, because other levels record no bodies.

upstream: apiserver/pkg/apis/audit/v1/types.go
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import WRITE_VERBS, Kind, find_kind
from fairlead.engine.core.instant import Instant
from fairlead.whatif.input.error import InputError

API_VERSION: Final = "audit.k8s.io/v1"
_COMPLETE: Final = "ResponseComplete"
_CREATED: Final = 201
_BODY_LEVELS: Final = ("Request", "RequestResponse")
_SUBRESOURCES: Final = ("", "status", "binding", "eviction", "resize", "ephemeralcontainers")
_RESOURCES: Final = (
    "pods",
    "nodes",
    "namespaces",
    "services",
    "replicationcontrollers",
    "persistentvolumes",
    "persistentvolumeclaims",
    "replicasets.apps",
    "statefulsets.apps",
    "poddisruptionbudgets.policy",
    "priorityclasses.scheduling.k8s.io",
    "storageclasses.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "csidrivers.storage.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "resourceclaims.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "deviceclasses.resource.k8s.io",
)
_WORKLOADS: Final = (
    "deployments.apps",
    "daemonsets.apps",
    "jobs.batch",
    "cronjobs.batch",
)
SCALE: Final = "scale"


def _kinds_of(resources: Iterable[str]) -> dict[tuple[str, str], Kind]:
    found = [kind for kind in map(find_kind, resources) if kind is not None]
    return {(kind.plural, kind.group): kind for kind in found}


_KINDS: Final = _kinds_of(_RESOURCES)
_ALL_KINDS: Final = _kinds_of((*_RESOURCES, *_WORKLOADS))

_LINE: Final = re.compile(rb"\S[^\n]*")  # a line from its first non-blank character on
_T = TypeVar("_T")
_NO_BODY: Final = msgspec.Raw(b"null")
_TRUNCATED: Final = "truncated"  # in the message of msgspec for an incomplete text


class _ObjectReference(msgspec.Struct, rename="camel"):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    api_group: str = ""
    subresource: str = ""


class _ResponseStatus(msgspec.Struct):
    code: int = 0


class _User(msgspec.Struct):
    username: str = ""


class _Event(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    level: str = ""
    audit_id: str = msgspec.field(name="auditID", default="")
    stage: str = ""
    verb: str = ""
    request_uri: str = msgspec.field(name="requestURI", default="")
    user: _User = msgspec.field(default_factory=_User)
    object_ref: _ObjectReference | None = None
    response_status: _ResponseStatus | None = None
    request_object: msgspec.Raw = _NO_BODY
    response_object: msgspec.Raw = _NO_BODY
    stage_timestamp: str = ""
    items: list[_Event] = msgspec.field(default_factory=list)


class _ObjectName(msgspec.Struct):
    name: str
    namespace: str = ""


class _NamedObject(msgspec.Struct):
    metadata: _ObjectName


class AuditedWrite(Struct, frozen=True):
    """A successful write by `user`; `where` names its line in error messages.

    `request` is the body of the request (for the verb `patch`, the patch). `response` is the object
    after the write; None if the response was not recorded or is not an object of `kind`. `deleted`
    contains the objects in the response to deletecollection.
    """

    where: str
    at: Instant
    verb: str
    kind: Kind
    subresource: str
    namespace: str
    name: str
    request: Any
    response: Json | None
    deleted: tuple[Json, ...] = ()
    user: str = ""


def read_audit_log(
    source: str, data: bytes, *, has_workloads: bool = False
) -> tuple[list[AuditedWrite], list[str]]:
    """Return the writes in the log `data`, ordered by time, and notes for the user.

    `source` is the name of the log. If `has_workloads` is set, the result includes writes of
    Deployments, DaemonSets, Jobs and CronJobs, and of the subresource scale. If the last line is
    incomplete, it is left out with a note. Raises InputError if the log is malformed, records no
    bodies, or has no event of the stage ResponseComplete.
    """
    decode = msgspec.json.Decoder(_Event).decode
    writes: list[AuditedWrite] = []
    notes: list[str] = []
    stages: set[str] = set()
    seen: set[tuple[str, str, str, int]] = set()
    for number, line in _lines(data.removeprefix(BOM_UTF8)):
        where = f"line {number}"
        if number > 1 and data.endswith(line) and _is_cut_short(line):
            notes.append(
                f"{source}: {where}, the last one, is incomplete and is left out. A copy of a log "
                "that is still being written can end like this."
            )
            break
        event = _decoded(source, where, "", line, decode)
        for one in _events(source, where, event):
            stages.add(one.stage)
            body = hash(bytes(one.request_object))
            identity = (one.audit_id, one.stage, one.stage_timestamp, body)
            if one.audit_id and identity in seen:
                continue  # the event is in two of the concatenated files
            seen.add(identity)
            writes += _writes(source, where, one, has_workloads=has_workloads)
    if _COMPLETE not in stages:
        raise InputError(source, f"has no audit event of the stage {_COMPLETE}")
    return sorted(writes, key=lambda write: write.at), notes


def _is_cut_short(line: bytes) -> bool:
    """Return whether `line`, which does not end with a newline, is the beginning of an object."""
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except msgspec.DecodeError as cause:
        return line.startswith(b"{") and _TRUNCATED in str(cause)
    return False


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (line number, line) for each line that is not blank; the first line has number 1."""
    number, end = 1, 0
    for found in _LINE.finditer(data):
        number += data.count(b"\n", end, found.start())
        end = found.end()
        yield number, found[0]


def _decoded(
    source: str, where: str, field: str, data: bytes | msgspec.Raw, decode: Callable[[Any], _T]
) -> _T:
    """Return `data` decoded by `decode`. Raises InputError if `data` is malformed.

    The error names the file `source`, the place `where` in it, and `field`. An empty `field` means
    that `data` is a whole event.
    """
    problem = "is not an audit event" if not field else "is not JSON"
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as cause:
        raise InputError(source, f"{problem}: {cause}", object_name=where, field=field) from None
    except RecursionError:
        raise InputError(source, "is nested too deeply", object_name=where, field=field) from None


def _events(source: str, where: str, event: _Event) -> Iterable[_Event]:
    """Return the events of `event`, which is an Event or an EventList.

    Raises InputError, which names the place `where` in the file `source`, if `event` has another
    kind or version.
    """
    if event.api_version != API_VERSION or event.kind not in ("Event", "EventList"):
        found = f"{event.kind or 'an object'} of {event.api_version or 'no apiVersion'}"
        problem = f"expected an Event of {API_VERSION}, got {found}"
        raise InputError(source, problem, object_name=where)
    return (event,) if event.kind == "Event" else event.items


def _writes(
    source: str, where: str, event: _Event, *, has_workloads: bool
) -> Iterator[AuditedWrite]:
    """Yield the write that `event` records, if it changes an object that scheduling depends on.

    If `has_workloads` is set, writes to workloads such as Deployments are included. Raises
    InputError, which names the place `where` in the file `source`, if the event was recorded
    without bodies, or is malformed.
    """
    ref, status = event.object_ref, event.response_status
    if ref is None or event.stage != _COMPLETE or event.verb not in WRITE_VERBS:
        return
    kinds = _ALL_KINDS if has_workloads else _KINDS
    subresources = (*_SUBRESOURCES, SCALE) if has_workloads else _SUBRESOURCES
    kind = kinds.get((ref.resource, ref.api_group))
    if kind is None or ref.subresource not in subresources or "dryRun=" in event.request_uri:
        return
    if status is None or not 200 <= status.code < 300:
        return
    if event.level not in _BODY_LEVELS:
        what = "/".join(filter(None, (ref.resource, ref.subresource)))
        problem = (
            f"{event.verb} {what} was recorded at level {event.level or 'None'}; the audit policy "
            f"must record {what} at level Request or RequestResponse"
        )
        raise InputError(source, problem, object_name=where)
    try:
        at = parse_timestamp(event.stage_timestamp)
    except ValueError as cause:
        raise InputError(source, str(cause), object_name=where, field="stageTimestamp") from None
    request, response = (
        _decoded(source, where, field, body, msgspec.json.decode)
        for field, body in (
            ("requestObject", event.request_object),
            ("responseObject", event.response_object),
        )
    )
    is_object = isinstance(response, dict) and response.get("kind") == kind.kind
    if is_object:
        _require_metadata(source, where, "responseObject", response)
    if is_object and event.verb != "deletecollection":
        _require_same_object(source, where, ref, kind, response["metadata"])
    name = ref.name or (response["metadata"]["name"] if is_object else "")
    # The objectRef of a request to an existing Namespace has its name in both fields.
    namespace = ref.namespace if kind.namespaced else ""
    # An apply patch or an update of a missing object creates it.
    is_creation = status.code == _CREATED and not ref.subresource
    yield AuditedWrite(
        where,
        at,
        "create" if is_creation else event.verb,
        kind,
        ref.subresource,
        namespace,
        name,
        request,
        response if is_object else None,
        tuple(_listed(source, where, response, kind)) if event.verb == "deletecollection" else (),
        event.user.username,
    )


def _require_metadata(source: str, where: str, field: str, obj: Any) -> None:
    """Raise InputError if `obj`, an object in `field` of an event, has no valid name."""
    try:
        msgspec.convert(obj, _NamedObject)
    except msgspec.ValidationError as cause:
        problem, _, path = str(cause).partition(" - at `$")
        shown = problem[0].lower() + problem[1:].replace("`", "")
        raise InputError(
            source, shown, object_name=where, field=f"{field}{path.rstrip('`')}"
        ) from None


def _require_same_object(
    source: str, where: str, ref: _ObjectReference, kind: Kind, meta: Json
) -> None:
    """Raise InputError if `meta`, the metadata of the response, contradicts the objectRef `ref`."""
    stated = [("name", ref.name)] if ref.name else []
    if kind.namespaced:
        stated.append(("namespace", ref.namespace))
    for key, value in stated:
        if meta.get(key, "") != value:
            problem = f"is {meta.get(key, '')!r}, but objectRef.{key} is {value!r}"
            raise InputError(
                source, problem, object_name=where, field=f"responseObject.metadata.{key}"
            )


def _listed(source: str, where: str, response: Any, kind: Kind) -> Iterator[Json]:
    """Yield the objects in the list `response`; add `kind` and `apiVersion` where they are missing.

    Raises InputError for an object without a valid name.
    """
    if isinstance(response, dict) and response.get("kind") == kind.list_kind:
        items = response.get("items")
        for number, item in enumerate(items if isinstance(items, list) else ()):
            _require_metadata(source, where, f"responseObject.items[{number}]", item)
            yield {"apiVersion": kind.api_version, "kind": kind.kind, **item}
