"""GET of a collection.

upstream: apiserver/pkg/endpoints/handlers/get.go:ListResource
"""

from __future__ import annotations

from fairlead.apiserver.endpoints.collection.list_page import list_page
from fairlead.apiserver.endpoints.request.options import list_options
from fairlead.apiserver.endpoints.request.selector import selection_predicate
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.request import Response


def list_objects(scope: RequestScope) -> Response:
    """The objects that the selectors match, or one page of them."""
    # 1. negotiate the media type of the answer
    media_type = scope.negotiate(is_list=True)
    # 2. read the options and selectors
    options = list_options(scope.request, is_watch=False)
    predicate = selection_predicate(scope.kind, options.label_selector, options.field_selector)
    # 3. list
    storage, namespace = scope.deps.store.storage, scope.info.namespace
    page = list_page(storage, scope.kind, namespace, predicate, options)
    # 4. encode
    return scope.respond_list(media_type, page, scope.request.parameter("includeObject"))
