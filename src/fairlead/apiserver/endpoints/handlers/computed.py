"""GET and list for kinds that are computed instead of stored: componentstatuses and metrics.

These kinds have no resourceVersion and cannot be watched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.collection.list_page import ListPage
from fairlead.apiserver.endpoints.request.options import list_options
from fairlead.apiserver.endpoints.request.selector import selection_predicate
from fairlead.apiserver.endpoints.request_scope import ComputedObjects, RequestScope
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.request import Response

NO_VERSION: Final = -1
NOTHING_COMPUTED: Final[Mapping[Kind, ComputedObjects]] = {}


def get(scope: RequestScope) -> Response:
    """Return the object that the path names.

    Raises ApiError if the object does not exist: 500 for a ComponentStatus, as in upstream, and 404
    for any other object. Raises ApiError 406 if no accepted media type is supported.
    """
    scope.negotiate()
    for obj in _objects(scope):
        if obj["metadata"]["name"] == scope.info.name:
            return scope.respond(obj)
    raise scope.deps.computed[scope.kind].absent(scope.info.namespace, scope.info.name)


def list_objects(scope: RequestScope) -> Response:
    """Return all objects that the selectors match."""
    media_type = scope.negotiate(is_list=True)
    options = list_options(scope.request, is_watch=False)
    predicate = selection_predicate(scope.kind, options.label_selector, options.field_selector)
    matches = [obj for obj in _objects(scope) if predicate.matches(obj)]
    page = ListPage(matches, NO_VERSION)
    return scope.respond_list(media_type, page, scope.request.parameter("includeObject"))


def _objects(scope: RequestScope) -> list[Json]:
    return scope.deps.computed[scope.kind].objects(scope.info.namespace, scope.now)
