"""Audit log lines: the user, the request and the status code, without bodies.

upstream: apiserver/pkg/apis/audit/v1/types.go:Event, level Metadata
"""

from __future__ import annotations

import hashlib
from typing import Final
from urllib.parse import urlencode

from fairlead.api.json import Json
from fairlead.api.timestamp import format_micro_time
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes, allow_all
from fairlead.apiserver.auth.impersonation import USER, impersonated
from fairlead.apiserver.endpoints.collection.watch import Watch
from fairlead.apiserver.endpoints.request.options import is_true
from fairlead.apiserver.endpoints.request.request_info import request_info_of, verb_of
from fairlead.apiserver.negotiation.serializer import encode
from fairlead.apiserver.request import Request, Response, User

AUDIT_ID: Final = "audit-id"
KIND: Final = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata"}


def audit_line(request: Request, answer: Response | Watch, now: int) -> bytes:
    """Return the audit log line for a request with the response `answer` at `now` (ns since 1970).

    The request's header audit-id becomes the auditID.
    """
    code = 200 if isinstance(answer, Watch) else answer.status
    when = format_micro_time(now)
    event: Json = {
        **KIND,
        "auditID": request.headers.get(AUDIT_ID, ""),
        "stage": "ResponseStarted" if isinstance(answer, Watch) else "ResponseComplete",
        "requestURI": _uri(request),
        "verb": request.method.lower(),
        "user": _user(request.user),
        "userAgent": request.headers.get("user-agent", ""),
        "responseStatus": {"metadata": {}, "code": code},
        "requestReceivedTimestamp": when,
        "stageTimestamp": when,
    }
    if request.user.name and request.headers.get(USER):
        # upstream: audit/request.go:LogImpersonatedUser, even if impersonation was refused
        attributes = AuthorizationAttributes(request.user, event["verb"])
        event["impersonatedUser"] = _user(impersonated(attributes, request.headers, allow_all))
    target = request_info_of(request.path)
    if target is not None:
        is_watch = is_true(request, "watch")
        event["verb"] = verb_of(request.method, target, is_watch=is_watch) or event["verb"]
        named = {
            "resource": target.resource,
            "namespace": target.namespace,
            "name": target.name,
            "apiGroup": target.group,
            "apiVersion": target.version,
            "subresource": target.subresource,
        }
        event["objectRef"] = {key: value for key, value in named.items() if value}
    if request.notes:
        event["annotations"] = request.notes
    return encode(event) + b"\n"


def id_prefix(now: int) -> str:
    """Return the common prefix of all audit ids of a server that started at `now`.

    An audit id is this prefix and twelve hex digits.
    """
    digits = hashlib.sha256(str(now).encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-"


def _uri(request: Request) -> str:
    return f"{request.path}?{urlencode(request.query)}" if request.query else request.path


def _user(user: User) -> Json:
    shown: Json = {"username": user.name, "groups": list(user.groups)}
    return {**shown, "uid": user.uid} if user.uid else shown
