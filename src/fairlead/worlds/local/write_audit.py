"""WriteAudit: the audit events of the writes of Fairlead's own controllers.

These controllers write to the store without HTTP requests. Each change that a command makes becomes
an audit event, as if the controller had sent a request:

    binding, eviction   the verb `create` of the subresource, with the body that upstream sends
    new object          the verb `create`
    deletion            the verb `delete`, also for the change that sets the deletion timestamp
    other changes       the verb `update` of the whole object, although upstream often sends a patch

The creation of Event objects (`RecordEvent`) is not audited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.endpoints.audit import (
    AuditBackend,
    AuditLevel,
    audit_event,
    level_of,
    object_reference,
)
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.negotiation.status import done
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.command import (
    ApplyStatus,
    Bind,
    DeleteObject,
    EvictPod,
    IssuedCommand,
    PatchObject,
    PatchStatus,
    UpdateQuotaStatus,
)
from fairlead.engine.core.instant import Instant
from fairlead.worlds.component_identity import user_of

_OK: Final = 200
_CREATED: Final = 201


class _Write(Struct, frozen=True):
    """The audited request and response of a change that was made without HTTP."""

    verb: str
    subresource: str
    code: int
    request: Json
    response: Json


class WriteAudit:
    """Writes the audit events of commands."""

    def __init__(self, backend: AuditBackend, clock: Callable[[], Instant]) -> None:
        """`backend` receives the audit events; `clock` returns ns since 1970."""
        self._backend = backend
        self._clock = clock

    def observe(self, issued: IssuedCommand, change: StoredChange, at: Instant) -> None:
        """Write the event about `change`, which the command in `issued` made at `at`.

        While the clock is being advanced, `at` is later than the time of the clock. At other times,
        `at` may be earlier, because work may be late. The event has the later of the two times, so
        that it does not precede the client request to which the command reacts.
        """
        now = max(at, self._clock())
        write = _write_of(issued, change, now)
        meta, kind = change.object["metadata"], change.kind
        level = level_of(self._backend.level, write.verb, kind.plural, write.subresource)
        audit_id = f"{meta.get('uid', '')}-{change.version}"
        user = user_of(issued, change.previous)
        event = audit_event(audit_id, level, write.verb, user, write.code, now)
        event["objectRef"] = object_reference(
            resource=kind.plural,
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            uid=meta.get("uid", ""),
            apiGroup=kind.group,
            apiVersion=kind.version,
            subresource=write.subresource,
        )
        if level is not AuditLevel.METADATA:
            event["requestObject"] = write.request
        if level is AuditLevel.REQUEST_RESPONSE:
            event["responseObject"] = write.response
        self._backend.write(encode(event) + b"\n")


def _write_of(issued: IssuedCommand, change: StoredChange, now: Instant) -> _Write:
    new, before = change.object, change.previous
    if change.type is ChangeType.ADDED:
        return _Write("create", "", _CREATED, new, new)
    is_gone = change.type is ChangeType.DELETED
    if is_gone or (_is_terminating(new) and before is not None and not _is_terminating(before)):
        last = _as_removed(new, now) if is_gone else new
        if isinstance(issued.command, EvictPod):
            eviction = _about_pod(new, "policy/v1", "Eviction")
            return _Write("create", "eviction", _CREATED, eviction, done(_CREATED))
        return _Write("delete", "", _OK, _delete_options(last), last)
    match issued.command:
        case Bind(_, node):
            binding = _about_pod(new, "v1", "Binding") | {"target": {"kind": "Node", "name": node}}
            return _Write("create", "binding", _CREATED, binding, done(_CREATED))
        case DeleteObject():  # a shorter grace period
            return _Write("delete", "", _OK, _delete_options(new), new)
        case PatchStatus() | ApplyStatus() | UpdateQuotaStatus() | EvictPod():
            return _Write("update", "status", _OK, new, new)
        case PatchObject(_, _, subresource):
            return _Write("update", subresource, _OK, new, new)
        case _:
            return _Write("update", "", _OK, new, new)


def _is_terminating(obj: Json) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _as_removed(obj: Json, now: Instant) -> Json:
    """Return the deleted object `obj` without finalizers, and with a grace period of 0."""
    meta = {
        "deletionTimestamp": format_timestamp(now),
        **obj["metadata"],
        "deletionGracePeriodSeconds": 0,
    }
    meta.pop("finalizers", None)
    return {**obj, "metadata": meta}


def _delete_options(last: Json) -> Json:
    grace_s = last["metadata"].get("deletionGracePeriodSeconds", 0)
    return {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace_s}


def _about_pod(pod: Json, api_version: str, kind: str) -> Json:
    meta = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}
