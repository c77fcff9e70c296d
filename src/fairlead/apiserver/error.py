"""ApiError: a refused request, with upstream's reasons, codes and messages.

upstream: apimachinery/pkg/api/errors/errors.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.status_cause import Cause as Cause  # noqa: PLC0414 - exported here, too

STALE: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class ApiError(Exception):
    """A refused request: the reason, HTTP code, message and details of the Status in the response.

    `retry_after_s` is 0 if the response has no Retry-After header. If `resource` is not "", it
    replaces the plural of the kind in the details. If `has_details` is True, the Status has details
    even if they are empty. If `continue_token` is not "", a client can use it to continue a list
    whose previous token has expired.
    """

    def __init__(  # noqa: PLR0913 - the parts of one Status
        self,
        reason: str,
        code: int,
        message: str,
        *,
        kind: Kind | None = None,
        namespace: str = "",
        name: str = "",
        causes: tuple[Cause, ...] = (),
        retry_after_s: int = 0,
        resource: str = "",
        has_details: bool = False,
        continue_token: str = "",
        details: dict[str, Any] | None = None,
    ) -> None:
        """`reason`, `code` and `message` are those of the Status.

        `kind`, `namespace` and `name` identify the requested object, if there is one. `causes` are
        the errors of individual fields. `details` replaces the details that are computed from the
        other arguments.
        """
        super().__init__(message)
        self.reason = reason
        self.code = code
        self.message = message
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.causes = causes
        self.retry_after_s = retry_after_s
        self.resource = resource
        self.has_details = has_details
        self.continue_token = continue_token
        self.details = details


def not_found(kind: Kind, namespace: str, name: str) -> ApiError:
    """Return ApiError 404: the object does not exist."""
    message = f"{kind.resource} {quoted(name)} not found"
    return ApiError("NotFound", 404, message, kind=kind, namespace=namespace, name=name)


def already_exists(
    kind: Kind, namespace: str, name: str, *, terminating: bool = False, is_generated: bool = False
) -> ApiError:
    """Return ApiError 409: an object with this name already exists.

    `terminating` means that the existing object is being deleted. `is_generated` means that the
    client set generateName, with or without a name.
    """
    # upstream: registry/generic/registry/store.go:Create, rest/create.go:CheckGeneratedNameError
    message = f"{kind.resource} {quoted(name)} already exists"
    if is_generated:
        message += ", the server was not able to generate a unique name for the object"
    if terminating:
        message = f"object is being deleted: {message}"
    return ApiError(
        "AlreadyExists",
        409,
        message,
        kind=kind,
        namespace=namespace,
        name=name,
        retry_after_s=int(is_generated),
    )


def conflict(kind: Kind, namespace: str, name: str, why: str, *, resource: str = "") -> ApiError:
    """Return ApiError 409: the request conflicts with the stored object, because of `why`.

    If `resource` is not "", it replaces the plural of the kind in the message and the details.
    """
    message = f"Operation cannot be fulfilled on {resource or kind.resource} {quoted(name)}: {why}"
    return ApiError(
        "Conflict", 409, message, kind=kind, namespace=namespace, name=name, resource=resource
    )


def forbidden(kind: Kind, namespace: str, name: str, why: str, *, resource: str = "") -> ApiError:
    """Return ApiError 403: the request is not allowed, because of `why`.

    If `resource` is not "", it replaces the plural of the kind in the message.
    """
    message = f"{resource or kind.resource} {quoted(name)} is forbidden: {why}"
    return ApiError("Forbidden", 403, message, kind=kind, namespace=namespace, name=name)


def invalid(kind: Kind, namespace: str, name: str, causes: tuple[Cause, ...]) -> ApiError:
    """Return ApiError 422: the object violates rules of its kind. `causes` must not be empty."""
    stated = list(dict.fromkeys(map(str, causes)))
    text = stated[0] if len(stated) == 1 else f"[{', '.join(stated)}]"
    message = f"{kind.qualified} {quoted(name)} is invalid: {text}"
    return ApiError(
        "Invalid", 422, message, kind=kind, namespace=namespace, name=name, causes=causes
    )


def bad_request(message: str) -> ApiError:
    """Return ApiError 400: the request is malformed."""
    return ApiError("BadRequest", 400, message)


def internal_error(message: str) -> ApiError:
    """Return ApiError 500: the server failed to handle the request."""
    return ApiError("InternalError", 500, message)


def no_space() -> ApiError:
    """Return ApiError 500: the storage has no space for another write."""
    # upstream: etcd's api/v3rpc/rpctypes/error.go:ErrGRPCNoSpace, passed on unchanged
    return ApiError("", 500, "etcdserver: mvcc: database space exceeded")


def too_many_requests(message: str, cause: Cause, *, retry_after_s: int = 0) -> ApiError:
    """Return ApiError 429: the client can retry later.

    If `retry_after_s` is 0, the response has no Retry-After header.
    """
    return ApiError("TooManyRequests", 429, message, causes=(cause,), retry_after_s=retry_after_s)


def expired(requested: int, oldest: int) -> ApiError:
    """Return ApiError 410: version `requested` is too old; the change log starts at `oldest`."""
    return ApiError("Expired", 410, f"too old resource version: {requested} ({oldest})")
