"""Refusals that concern the request rather than an object, in upstream's words.

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
    """404: nothing is served under that path."""
    return ApiError("NotFound", 404, NO_RESOURCE, has_details=True)


def no_method() -> ApiError:
    """405: what is served there is not served that way."""
    return ApiError("MethodNotAllowed", 405, NO_METHOD, has_details=True)


def not_supported(kind: Kind, verb: str) -> ApiError:
    """405: objects of the kind are there, but nothing can be done to them that way."""
    message = f'{verb} is not supported on resources of kind "{kind.resource}"'
    return ApiError("MethodNotAllowed", 405, message, kind=kind)


def not_any_more(kind: Kind, verb: str) -> ApiError:
    """405: the definition of a custom resource is on its way out."""
    message = f"{verb} not allowed while custom resource definition is terminating"
    return ApiError("MethodNotAllowed", 405, message, kind=kind)


def not_acceptable(available: tuple[str, ...]) -> ApiError:
    """406: the client accepts none of what there is."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(available)}"
    return ApiError("NotAcceptable", 406, message, has_details=True)


def not_a_view(accepted: tuple[str, ...]) -> ApiError:
    """406: the media type is fine, what it should show is not."""
    message = f"only the following media types are accepted: {', '.join(accepted)}"
    return ApiError("NotAcceptable", 406, message)


def unknown_body(accepted: tuple[str, ...]) -> ApiError:
    """415: a body that nobody can read."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return ApiError("UnsupportedMediaType", 415, message)


def unknown_patch() -> ApiError:
    """415: no kind of patch."""
    return ApiError("UnsupportedMediaType", 415, "415: Unsupported Media Type", has_details=True)


def bad_option(options: str, *causes: Cause) -> ApiError:
    """422: a query parameter (or a field of DeleteOptions) that makes no sense."""
    kind = Kind("meta.k8s.io", "v1", options, options.lower())
    return invalid(kind, "", "", causes)


def unreadable(message: str) -> ApiError:
    """500 without a reason: an error of the storage layer that upstream passes on as it is."""
    return ApiError("", 500, message)


def from_the_future(asked: int, current: int) -> ApiError:
    """504: a version that is still to come."""
    # upstream: apiserver/pkg/storage/errors.go:NewTooLargeResourceVersionError
    return ApiError(
        "Timeout",
        504,
        f"Timeout: Too large resource version: {asked}, current: {current}",
        causes=(Cause("ResourceVersionTooLarge", "Too large resource version"),),
        retry_after_s=TOO_LARGE_RETRY_S,
    )
