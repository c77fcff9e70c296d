"""Decodes the bodies of requests to subresources: posted objects, PUTs and PATCHes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.endpoints.handlers.patcher import patcher_of
from fairlead.apiserver.endpoints.handlers.rest import (
    decoded_object,
    existing_object,
    in_request_namespace,
    in_request_version,
    require_request_name,
    without_duplicate_owners,
    write_of,
)
from fairlead.apiserver.endpoints.request.options import WriteOptions, write_options
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.suspension import WebhookCalls


def posted_body(scope: RequestScope, kind: Kind) -> Json:
    """Return the decoded body of a POST, an object of `kind` in the path's namespace.

    Raises ApiError.
    """
    options = write_options(scope.request, "CreateOptions")
    return in_request_namespace(scope, decoded_object(scope, options, kind))


def object_member(body: Json, field: str) -> Json:
    """Return the object in the member `field` of `body`; {} if it is missing or empty.

    Raises ApiError 400 if the member is not an object.
    """
    value: Any = body.get(field) or {}
    if not isinstance(value, dict):
        raise bad_request(f"{field} must be an object")
    return value


class SubresourceUpdate(Struct, frozen=True):
    """A decoded PUT or PATCH of a subresource.

    `old` is the stored object in the version of the request. `view` is the object or the Scale that
    results from the PUT or PATCH. If `is_applied` is True, server-side apply computed `view`,
    including its managedFields.
    """

    old: Json
    view: Json
    options: WriteOptions
    write: Write
    is_applied: bool = False


def requested_update(
    scope: RequestScope, kind: Kind, view_of: Callable[[Json], Json]
) -> WebhookCalls[SubresourceUpdate]:
    """Return the update that a PUT or PATCH requests.

    `view_of` returns what the subresource shows of a stored object: the object itself or its
    Scale. `kind` is the kind of this result. For PUT, the body is decoded before the object is
    looked up. A malformed body is therefore reported even if the object does not exist. Raises
    ApiError.
    """
    # 1. negotiate the media type of the response
    scope.negotiate()
    subresource = scope.info.subresource
    if scope.verb == "patch":
        # 2. read the options, look up the object, and apply the patch
        options = write_options(scope.request, "PatchOptions")
        patcher = patcher_of(scope, options, kind, subresource)
        old = yield from in_request_version(scope, existing_object(scope))
        patched = yield from patcher.patched(view_of(old))
        new = require_request_name(scope, in_request_namespace(scope, patched))
        write = write_of(scope, options, patcher.operation, subresource)
        return SubresourceUpdate(old, new, options, write, patcher.is_apply)
    # 2. read the options, decode the body, and look up the object
    options = write_options(scope.request, "UpdateOptions")
    new = in_request_namespace(scope, decoded_object(scope, options, kind))
    new = without_duplicate_owners(new, scope.warnings.append)
    if not new["metadata"].get("name"):
        # This raises an error: as in upstream, a missing name is reported before a missing object.
        require_request_name(scope, new)
    old = yield from in_request_version(scope, existing_object(scope))
    new = require_request_name(scope, new)
    return SubresourceUpdate(old, new, options, write_of(scope, options, "Update", subresource))


def whole_object(obj: Json) -> Json:
    """Return `obj`; the `view_of` of subresources that show the whole object."""
    return obj
