"""DELETE of one object, DELETE of a collection, and their DeleteOptions.

upstream: apiserver/pkg/endpoints/handlers/delete.go:DeleteResource, DeleteCollection
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.field_problem import quoted
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.endpoints.handlers.get import page_in_request_version
from fairlead.apiserver.endpoints.handlers.rest import (
    conversions_of,
    in_request_version,
    require_key,
)
from fairlead.apiserver.endpoints.request.body import decoded
from fairlead.apiserver.endpoints.request.body_type import stated_type
from fairlead.apiserver.endpoints.request.options import (
    dry_run_causes,
    integer,
    is_true,
    list_options,
)
from fairlead.apiserver.endpoints.request.selector import selection_predicate
from fairlead.apiserver.endpoints.request.typed_object import read_by_type
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import ApiError, Cause, bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.request_error import bad_option
from fairlead.apiserver.negotiation.status import success
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.strategies.table import strategy_of
from fairlead.apiserver.request import Request, Response
from fairlead.apiserver.schema.scalar import TypeMismatchError
from fairlead.apiserver.storage.storage import value_of
from fairlead.apiserver.suspension import WebhookCalls, retried
from fairlead.apiserver.validation.meta.field import invalid, not_supported


def delete(scope: RequestScope) -> WebhookCalls[Response]:
    """Delete the object that the path names, immediately or after its grace period."""
    # 1. negotiate the media type of the response
    scope.negotiate()
    # 2. read the options from the body, else from the query
    options = delete_options(scope)
    warn_of_orphans(scope, options)
    require_key(scope.info.name)
    # 3. admit and delete
    store, kind, info = scope.deps.store, scope.kind, scope.info
    write = delete_write(scope, options)
    last = yield from store.delete.steps(
        kind, info.namespace, info.name, scope.now, options.deletion, write=write
    )
    # 4. encode the object; if it was removed, most kinds return a Status instead
    remains = store.storage.find_stored(kind, info.namespace, info.name) is not None
    has_finalizers = bool(last["metadata"].get("finalizers"))
    if (
        strategy_of(kind).returns_deleted_object
        or has_finalizers
        or (remains and not options.dry_run)
    ):
        shown = yield from in_request_version(scope, last)
        return scope.respond(shown, 202 if remains and options.is_legacy_cascade else 200)
    return scope.respond_json(success(kind, last["metadata"]))


# --- collections ---------------------------------------------------------------------------------

# upstream: apiserver/pkg/endpoints/handlers/delete.go:DeleteCollection,
# registry/generic/registry/store.go:DeleteCollection

_UNLIMITED: Final = sys.maxsize


def delete_collection(scope: RequestScope) -> WebhookCalls[Response]:
    """Delete the objects that the selectors match; return them as they were before the deletion.

    If the request has a `limit`, only this number of objects is deleted.
    """
    # 1. negotiate the media type of the response
    media_type = scope.negotiate()
    # 2. read the options and selectors
    options = delete_options(scope)
    chosen = list_options(scope.request, is_watch=False)
    if not chosen.limit:
        # With a limit, objects are listed as they were at exactly the requested version, which
        # upstream always does here.
        chosen = replace(chosen, limit=_UNLIMITED)
    predicate = selection_predicate(scope.kind, chosen.label_selector, chosen.field_selector)
    # 3. list
    page = yield from page_in_request_version(scope, predicate, chosen)
    # 4. admit and delete each
    for listed in page.objects:
        try:
            yield from retried(partial(_delete, scope, options, value_of(listed)["metadata"]))
        except ApiError as refusal:
            if refusal.reason != "NotFound":  # the object is already deleted
                raise
    warn_of_orphans(scope, options)
    # 5. encode all objects of the list
    return scope.respond_list(media_type, page)


def _delete(scope: RequestScope, options: DeleteOptions, meta: Json) -> WebhookCalls[Json]:
    """Delete the object that has the name and namespace in `meta`. Raises ApiError."""
    namespace, name = meta.get("namespace", ""), meta["name"]
    return scope.deps.store.delete.steps(
        scope.kind,
        namespace,
        name,
        scope.now,
        options.deletion,
        write=delete_write(scope, options),
    )


# --- options -------------------------------------------------------------------------------------

# upstream: apimachinery/pkg/apis/meta/v1/types.go:DeleteOptions,
# apiserver/pkg/endpoints/handlers/delete.go

DELETE_OPTIONS: Final = Kind("", "v1", "DeleteOptions", "deleteoptions")
POLICIES: Final = ("Foreground", "Background", "Orphan")
_OPTIONS_VERSION: Final = "meta.k8s.io/v1"
_UNKNOWN_OPTIONS: Final = (
    "no kind {} is registered for version {} in scheme "
    '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"'
)


class DeleteOptions(Struct, frozen=True):
    """The DeleteOptions of a request; `deletion` is the part that the store needs.

    `is_legacy_cascade` is True if the request states `orphanDependents: false`, an old form of
    `propagationPolicy: Background`. The status code is then 202 instead of 200 if the response
    contains the object and the object still exists. `raw` contains the fields that the client set,
    except apiVersion and kind.
    """

    deletion: Deletion
    dry_run: bool
    is_legacy_cascade: bool = False
    raw: Json = field(default_factory=dict)


_NO_OPTIONS: Final = DeleteOptions(Deletion(), dry_run=False)


def delete_options(scope: RequestScope) -> DeleteOptions:
    """Return the DeleteOptions from the body; without a body, from the query. Raises ApiError."""
    if not scope.request.body and not scope.request.query:
        return _NO_OPTIONS
    raw = _body_options(scope) if scope.request.body else _query_options(scope.request)
    causes = (*_causes(raw), *dry_run_causes(tuple(raw.get("dryRun") or ())))
    if causes:
        raise bad_option("DeleteOptions", *causes)
    preconditions = raw.get("preconditions") or {}
    policy = raw.get("propagationPolicy") or ""
    if raw.get("orphanDependents") is not None:
        policy = "Orphan" if raw["orphanDependents"] else "Background"
    deletion = Deletion(
        grace_period_s=raw.get("gracePeriodSeconds"),
        policy=policy,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
    )
    type_fields = ("apiVersion", "kind")
    return DeleteOptions(
        deletion,
        dry_run=bool(raw.get("dryRun")),
        is_legacy_cascade=raw.get("orphanDependents") is False,
        raw={
            key: value for key, value in raw.items() if key not in type_fields and value is not None
        },
    )


def warn_of_orphans(scope: RequestScope, options: DeleteOptions) -> None:
    """Send the kind's warning about orphans, if any, when `options` have no propagation policy."""
    warning = strategy_of(scope.kind).warning_without_policy
    if warning and not options.deletion.policy:
        scope.warnings.append(warning)


def delete_write(scope: RequestScope, options: DeleteOptions) -> Write:
    """Return the Write for a deletion: user, options and callbacks that the store needs."""
    return Write(
        dry_run=options.dry_run,
        user=scope.request.user,
        warn=scope.warnings.append,
        annotate=scope.request.notes.__setitem__,
        rights=scope.deps.identity.rights if scope.deps.identity else None,
        options=options.raw,
        conversions=conversions_of(scope),
    )


def _body_options(scope: RequestScope) -> Json:
    """Return the DeleteOptions in the body. Their apiVersion and kind may be missing."""
    request = scope.request
    content_type = request.headers.get("content-type", "")
    body = decoded(request.body, content_type, "", scope.deps.protobuf)
    version, kind = stated_type(body)
    if kind not in ("", DELETE_OPTIONS.kind):
        known = quoted(kind), quoted(version or _OPTIONS_VERSION)
        raise bad_request(_UNKNOWN_OPTIONS.format(*known))
    try:
        options, _ = read_by_type(DELETE_OPTIONS, body)
    except TypeMismatchError as cause:
        raise bad_request(str(cause)) from None
    return options


def _query_options(request: Request) -> Json:
    options: dict[str, Any] = {}
    grace_period_s = integer(request, "gracePeriodSeconds")
    if grace_period_s is not None:
        options["gracePeriodSeconds"] = grace_period_s
    if request.has("propagationPolicy"):
        options["propagationPolicy"] = request.parameter("propagationPolicy")
    if request.has("orphanDependents"):
        options["orphanDependents"] = is_true(request, "orphanDependents")
    dry_run = [value for key, value in request.query if key == "dryRun"]
    if dry_run:
        options["dryRun"] = dry_run
    # upstream: apimachinery/pkg/apis/meta/v1/conversion.go:Convert_url_Values_To_v1_DeleteOptions
    preconditions = {name: request.parameter(name) for name in ("uid", "resourceVersion")}
    if any(preconditions.values()):
        options["preconditions"] = {name: text for name, text in preconditions.items() if text}
    return options


def _causes(options: Json) -> Iterator[Cause]:
    # upstream: apimachinery/pkg/apis/meta/v1/validation/validation.go:ValidateDeleteOptions
    policy, orphans = options.get("propagationPolicy"), options.get("orphanDependents")
    if policy is not None and orphans is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        yield invalid("propagationPolicy", policy, why)
    if policy is not None and policy not in POLICIES:
        yield not_supported("propagationPolicy", policy, (*POLICIES, "nil"))
