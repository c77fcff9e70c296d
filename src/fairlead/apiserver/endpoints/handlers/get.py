"""GET of one object, and GET of a collection.

upstream: apiserver/pkg/endpoints/handlers/get.go:GetResource, ListResource
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from fairlead.apiserver.apiextensions.conversion.converter import calls_webhook, from_storage
from fairlead.apiserver.endpoints.collection.list_page import (
    ListPage,
    candidates,
    converted_page,
    list_page,
)
from fairlead.apiserver.endpoints.handlers.rest import in_request_version, require_key
from fairlead.apiserver.endpoints.request.options import (
    ListOptions,
    is_true,
    list_options,
    resource_version_problem,
)
from fairlead.apiserver.endpoints.request.selector import SelectionPredicate, selection_predicate
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import bad_request, not_found
from fairlead.apiserver.negotiation.media_type import MediaTypeOptions
from fairlead.apiserver.negotiation.request_error import too_large_resource_version, unreadable
from fairlead.apiserver.request import Response
from fairlead.apiserver.storage.storage import StoredObject, value_of, version_of
from fairlead.apiserver.suspension import WebhookCalls


def get(scope: RequestScope) -> Response | WebhookCalls[Response]:
    """Return the newest version of the object that the path names.

    Raises ApiError:

    - 400 for an invalid name or the parameter `export=true`
    - 404 if the object does not exist
    - 406 if no accepted media type is supported
    - 500 for a malformed resourceVersion, or if a conversion webhook fails
    - 504 for a resourceVersion that does not exist yet
    """
    if scope.request.query and is_true(scope.request, "export"):
        why = "the export parameter, deprecated since v1.14, is no longer supported"
        raise bad_request(why)
    # 1. negotiate the media type of the response
    scope.negotiate()
    # 2. check the key and the version
    require_key(scope.info.name)
    _require_known_version(scope, scope.request.parameter("resourceVersion"))
    # 3. look up the object, convert it if a webhook is necessary, and encode it
    info = scope.info
    kept = scope.deps.store.storage.find_stored(scope.kind, info.namespace, info.name)
    if kept is None:
        raise not_found(scope.kind, info.namespace, info.name)
    if calls_webhook(scope.kind, kept):
        return _converted(scope, kept)
    return replace(scope.respond(_decorated(scope, kept)), version=version_of(kept))


def _decorated(scope: RequestScope, kept: StoredObject) -> StoredObject:
    """Return what clients see of the stored object `kept`; see `ResourceStrategy.decorate`."""
    decorate = scope.deps.store.registry.strategy(scope.kind).decorate
    return kept if decorate is None else decorate(value_of(kept), scope.now)


def _converted(scope: RequestScope, kept: StoredObject) -> WebhookCalls[Response]:
    """Return the response that contains the object `kept`, converted by a webhook."""
    obj = yield from in_request_version(scope, kept)
    return replace(scope.respond(obj), version=version_of(kept))


def _require_known_version(scope: RequestScope, text: str) -> None:
    """Reject a resourceVersion that is malformed (500) or does not exist yet (504)."""
    if not text:
        return
    problem = resource_version_problem(text)
    if problem:
        raise unreadable(problem)
    newest = scope.deps.store.version
    if int(text) > newest:
        raise too_large_resource_version(int(text), newest)


# --- list ----------------------------------------------------------------------------------------


def list_objects(scope: RequestScope) -> Response | WebhookCalls[Response]:
    """Return all objects that the selectors match, or one page of these objects."""
    # 1. negotiate the media type of the response
    media_type = scope.negotiate(is_list=True)
    # 2. read the options and selectors
    options = list_options(scope.request, is_watch=False)
    predicate = selection_predicate(scope.kind, options.label_selector, options.field_selector)
    # 3. list
    include = scope.request.parameter("includeObject")
    if scope.kind.conversion_webhook is not None:
        return _converted_list(scope, media_type, predicate, options, include)
    storage, namespace = scope.deps.store.storage, scope.info.namespace
    page = list_page(storage, scope.kind, namespace, predicate, options)
    if scope.deps.store.registry.strategy(scope.kind).decorate is not None:
        page = replace(page, objects=[_decorated(scope, kept) for kept in page.objects])
    # 4. encode
    return scope.respond_list(media_type, page, include)


def _converted_list(
    scope: RequestScope,
    media_type: MediaTypeOptions,
    predicate: SelectionPredicate,
    options: ListOptions,
    include: str,
) -> WebhookCalls[Response]:
    """Return the response to a list request; a webhook may have to convert the objects."""
    page = yield from page_in_request_version(scope, predicate, options)
    return scope.respond_list(media_type, page, include)


def page_in_request_version(
    scope: RequestScope, predicate: SelectionPredicate, options: ListOptions
) -> WebhookCalls[ListPage]:
    """Return the page of objects that `options` describe, in the version of the request.

    Raises ApiError 400, 410, 500, 504.
    """
    storage, kind, namespace = scope.deps.store.storage, scope.kind, scope.info.namespace
    if kind.conversion_webhook is None:
        return list_page(storage, kind, namespace, predicate, options)
    found = candidates(storage, kind, namespace, predicate, options)
    convert = partial(from_storage, kind, storage=storage)
    return (yield from converted_page(found, predicate, convert))
