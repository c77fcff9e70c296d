"""Errors about a request rather than an object, in upstream's words.

upstream: apimachinery/pkg/api/errors/errors.go:NewGenericServerResponse,
apiserver/pkg/endpoints/handlers/negotiation/errors.go
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.error import ApiError, Cause, invalid
from fairlead.apiserver.kind import Kind

NO_RESOURCE: Final = "the server could not find the requested resource"
NO_METHOD: Final = "the server does not allow this method on the requested resource"
TOO_LARGE_RETRY_S: Final = 1


def no_resource() -> ApiError:
    """Return ApiError 404: the server has no resource at the requested path."""
    return ApiError("NotFound", 404, NO_RESOURCE, has_details=True)


def no_method() -> ApiError:
    """Return ApiError 405: the path exists, but does not support the method."""
    return ApiError("MethodNotAllowed", 405, NO_METHOD, has_details=True)


def not_supported(kind: Kind, verb: str) -> ApiError:
    """Return ApiError 405: the kind of a custom resource does not support the verb."""
    message = f'{verb} is not supported on resources of kind "{kind.resource}"'
    return ApiError("MethodNotAllowed", 405, message, kind=kind)


def not_allowed_while_terminating(kind: Kind, verb: str) -> ApiError:
    """Return ApiError 405: the CustomResourceDefinition of `kind` is being deleted."""
    message = f"{verb} not allowed while custom resource definition is terminating"
    return ApiError("MethodNotAllowed", 405, message, kind=kind)


def not_acceptable(available: tuple[str, ...]) -> ApiError:
    """Return ApiError 406: the client accepts none of the `available` media types."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(available)}"
    return ApiError("NotAcceptable", 406, message, has_details=True)


def unknown_media_type(accepted: tuple[str, ...]) -> ApiError:
    """Return ApiError 406: the client requests an unknown view or media type."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return ApiError("NotAcceptable", 406, message)


def unknown_body(accepted: tuple[str, ...]) -> ApiError:
    """Return ApiError 415: the body has a media type that is not in `accepted`."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return ApiError("UnsupportedMediaType", 415, message)


def unknown_patch() -> ApiError:
    """Return ApiError 415: the body of a PATCH request does not have a patch media type."""
    return ApiError("UnsupportedMediaType", 415, "415: Unsupported Media Type", has_details=True)


def bad_option(options: str, *causes: Cause) -> ApiError:
    """Return ApiError 422: query parameters or DeleteOptions are invalid.

    `options` is the name of the options type: ListOptions, DeleteOptions or similar.
    """
    kind = Kind("meta.k8s.io", "v1", options, options.lower())
    return invalid(kind, "", "", causes)


def unreadable(message: str) -> ApiError:
    """Return ApiError 500 without a reason: a resourceVersion or a Binding is invalid."""
    return ApiError("", 500, message)


def too_large_resource_version(requested: int, current: int) -> ApiError:
    """Return ApiError 504: `requested` is newer than the newest resourceVersion, `current`."""
    # upstream: apiserver/pkg/storage/errors.go:NewTooLargeResourceVersionError
    return ApiError(
        "Timeout",
        504,
        f"Timeout: Too large resource version: {requested}, current: {current}",
        causes=(Cause("ResourceVersionTooLarge", "Too large resource version"),),
        retry_after_s=TOO_LARGE_RETRY_S,
    )
