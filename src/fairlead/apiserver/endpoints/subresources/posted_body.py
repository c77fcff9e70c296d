"""What is posted to a part of an object: a body of another kind, and options."""

from __future__ import annotations

from typing import Any

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.handlers.rest import in_namespace, sent
from fairlead.apiserver.endpoints.request.options import write_options
from fairlead.apiserver.endpoints.request_scope import Call
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind


def posted(call: Call, kind: Kind) -> Json:
    """The body, read as that kind, in the namespace of the path. Raises ApiError 400, 415, 422."""
    return in_namespace(call, sent(call, write_options(call.request, "CreateOptions"), kind))


def member(body: Json, field: str) -> Json:
    """An object in a body; empty when it is not there. Raises ApiError 400."""
    value: Any = body.get(field) or {}
    if not isinstance(value, dict):
        raise bad_request(f"{field} must be an object")
    return value
