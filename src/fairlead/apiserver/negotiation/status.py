"""metav1.Status objects for errors, and for results without an object.

upstream: apimachinery/pkg/apis/meta/v1/types.go:Status, apiserver/pkg/endpoints/handlers/
responsewriters/status.go
"""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError, Cause
from fairlead.apiserver.kind import Kind


def failure(error: ApiError) -> Json:
    """Return the Status for an error."""
    status: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {"continue": error.continue_token} if error.continue_token else {},
        "status": "Failure",
        "message": error.message,
    }
    if error.reason:
        status["reason"] = error.reason
    details = _details(error) if error.details is None else error.details
    if details or error.has_details or error.retry_after_s or error.causes:
        status["details"] = details
    status["code"] = error.code
    return status


def success(kind: Kind, meta: Json) -> Json:
    """Return the Status for the successful deletion of an object with the metadata `meta`."""
    details = {
        "name": meta["name"],
        "group": kind.stored_group,
        "kind": kind.plural,
        "uid": meta["uid"],
    }
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def done(code: int) -> Json:
    """Return the Status for a successful request, such as a binding, that returns no object.

    `code` is the HTTP status code.
    """
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": code,
    }


def _details(error: ApiError) -> Json:
    details: Json = {}
    if error.kind is not None and (error.code != 400):
        kind = error.kind.kind if error.reason == "Invalid" else error.kind.plural
        named = {
            "name": error.name,
            "group": error.kind.stored_group,
            "kind": error.resource or kind,
        }
        details |= {key: value for key, value in named.items() if value}
    if error.causes and error.code != 400:
        details["causes"] = [_cause(cause) for cause in error.causes]
    if error.retry_after_s:
        details["retryAfterSeconds"] = error.retry_after_s
    return details


def _cause(cause: Cause) -> Json:
    stated = {"reason": cause.reason, "message": cause.message, "field": cause.field}
    return {key: value for key, value in stated.items() if value}
