"""Audit log lines: the user, the request, the status code and, depending on the level, bodies.

Bodies are recorded only for writes, and never for resources that contain secrets. In
kube-apiserver, an audit policy decides which bodies are recorded. Fairlead reads no audit policy.

upstream: apiserver/pkg/apis/audit/v1/types.go:Event; audit/request.go:LogRequestObject,
LogResponseObject
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.text.yaml_documents import YamlError
from fairlead.api.timestamp import format_micro_time
from fairlead.apiserver.auth.authentication.token import is_websocket_request
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes, allow_all
from fairlead.apiserver.auth.impersonation import USER, impersonated
from fairlead.apiserver.endpoints.collection.watch import Watch
from fairlead.apiserver.endpoints.request.body import media_type_of, parsed_yaml
from fairlead.apiserver.endpoints.request.options import is_true
from fairlead.apiserver.endpoints.request.request_info import request_info_of, verb_of
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import WRITE_VERBS
from fairlead.apiserver.negotiation.media_type import PROTOBUF
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.protobuf.decoder import decode
from fairlead.apiserver.request import Request, Response, User

AUDIT_ID: Final = "audit-id"
_KIND: Final = {"kind": "Event", "apiVersion": "audit.k8s.io/v1"}
# (resource, subresource) whose bodies contain secrets.
_CONFIDENTIAL: Final = (("secrets", ""), ("serviceaccounts", "token"), ("tokenreviews", ""))


class AuditLevel(StrEnum):
    """Which bodies the audit log contains: none, only requests, or requests and responses."""

    METADATA = "Metadata"
    REQUEST = "Request"
    REQUEST_RESPONSE = "RequestResponse"


class AuditBackend(Struct, frozen=True):
    """The audit log: `write` appends a line, and `level` is the configured audit level.

    upstream: apiserver/plugin/pkg/audit/log/backend.go
    """

    write: Callable[[bytes], object]
    level: AuditLevel = AuditLevel.METADATA


def level_of(level: AuditLevel, verb: str, resource: str, subresource: str) -> AuditLevel:
    """Return the level of an event: `level`, or Metadata for reads and confidential resources."""
    is_confidential = (resource, subresource) in _CONFIDENTIAL
    return AuditLevel.METADATA if is_confidential or verb not in WRITE_VERBS else level


def audit_event(
    audit_id: str, level: AuditLevel, verb: str, user: User, code: int, now: int
) -> Json:
    """Return an audit event of the stage ResponseComplete, with the fields that all events have.

    `code` is the status code of the response. `now` is the time of the request (ns since 1970).
    """
    when = format_micro_time(now)
    return {
        **_KIND,
        "level": level.value,
        "auditID": audit_id,
        "stage": "ResponseComplete",
        "verb": verb,
        "user": _shown_user(user),
        "responseStatus": {"metadata": {}, "code": code},
        "requestReceivedTimestamp": when,
        "stageTimestamp": when,
    }


def object_reference(**fields: str) -> Json:
    """Return the objectRef of an audit event: the `fields` that are not empty."""
    return {key: value for key, value in fields.items() if value}


def audit_line(
    request: Request,
    answer: Response | Watch,
    now: int,
    level: AuditLevel = AuditLevel.METADATA,
) -> bytes:
    """Return the audit log line for a request with the response `answer`.

    `now` is the time of the request (ns since 1970). The request's header audit-id becomes the
    auditID. `level` applies only to writes of resources that are not confidential (`level_of`); all
    other lines have the level Metadata.
    """
    code = _status(request, answer)
    audit_id, verb = request.headers.get(AUDIT_ID, ""), request.method.lower()
    event = audit_event(audit_id, AuditLevel.METADATA, verb, request.user, code, now)
    event["requestURI"] = (
        f"{request.path}?{urlencode(request.query)}" if request.query else request.path
    )
    event["userAgent"] = request.headers.get("user-agent", "")
    if isinstance(answer, Watch):
        event["stage"] = "ResponseStarted"
    if request.user.name and request.headers.get(USER):
        # upstream: audit/request.go:LogImpersonatedUser, even if impersonation was refused
        attributes = AuthorizationAttributes(request.user, event["verb"])
        wanted = impersonated(attributes, request.headers, allow_all)
        event["impersonatedUser"] = _shown_user(wanted)
    target = request_info_of(request.path)
    if target is not None:
        is_watch = is_true(request, "watch")
        event["verb"] = verb_of(request.method, target, is_watch=is_watch) or event["verb"]
        event["objectRef"] = object_reference(
            resource=target.resource,
            namespace=target.namespace,
            name=target.name,
            apiGroup=target.group,
            apiVersion=target.version,
            subresource=target.subresource,
        )
        found = level_of(level, event["verb"], target.resource, target.subresource)
        if found is not AuditLevel.METADATA:
            event |= _bodies(request, answer, found)
    if request.notes:
        event["annotations"] = request.notes
    return encode(event) + b"\n"


def _status(request: Request, answer: Response | Watch) -> int:
    """Return the status code of a response; 101 for a watch over a WebSocket."""
    if isinstance(answer, Response):
        return answer.status
    # upstream: filters/audit.go:Hijack, which is called before the handshake is checked
    return 101 if is_websocket_request(request.headers) else 200


def _bodies(request: Request, answer: Response | Watch, level: AuditLevel) -> Json:
    """Return the fields of an audit event that depend on `level`: the level, and the bodies.

    The level Request adds requestObject; the level RequestResponse also adds responseObject. A body
    is left out if it cannot be decoded or is a long list.
    """
    found: Json = {"level": level.value}
    sent = _decoded(request.body, request.headers.get("content-type", ""))
    if sent is not None:
        found["requestObject"] = sent
    # A body that is not a tuple is a long list, which can be read only once. It is left out.
    body = answer.body if isinstance(answer, Response) else ()
    if level is AuditLevel.REQUEST_RESPONSE and isinstance(body, tuple):
        given = _decoded(b"".join(body), answer.content_type)
        if given is not None:
            found["responseObject"] = given
    return found


def _decoded(body: bytes, content_type: str) -> Any:
    """Return the JSON value of a body; None if it is empty or malformed."""
    if not body:
        return None
    try:
        if media_type_of(content_type) == PROTOBUF:
            return decode(body, "", "")
        if media_type_of(content_type).endswith("yaml"):
            return parsed_yaml(body)[0]
        return msgspec.json.decode(body)
    except (ApiError, YamlError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def id_prefix(now: int) -> str:
    """Return the common prefix of all audit ids of a server that started at `now`.

    An audit id is this prefix and twelve hex digits.
    """
    digits = hashlib.sha256(str(now).encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-"


def _shown_user(user: User) -> Json:
    """Return the UserInfo of `user` for an audit event."""
    shown: Json = {"username": user.name, "groups": list(user.groups)}
    return {**shown, "uid": user.uid} if user.uid else shown
