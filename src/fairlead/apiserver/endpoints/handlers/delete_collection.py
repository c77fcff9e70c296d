"""DELETE of a collection.

upstream: apiserver/pkg/endpoints/handlers/delete.go:DeleteCollection,
registry/generic/registry/store.go:DeleteCollection
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.suspension import WebhookCalls, retried
from fairlead.apiserver.endpoints.collection.list_page import list_page
from fairlead.apiserver.endpoints.handlers.delete_options import (
    DeleteOptions,
    delete_options,
    delete_write,
    warn_of_orphans,
)
from fairlead.apiserver.endpoints.request.options import list_options
from fairlead.apiserver.endpoints.request.selector import selection_predicate
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.request import Response
from fairlead.apiserver.storage.storage import value_of

_UNLIMITED: Final = sys.maxsize


def delete_collection(scope: RequestScope) -> WebhookCalls[Response]:
    """Deletes all objects that the selectors match; returns them as they were before."""
    # 1. negotiate the media type of the answer
    media_type = scope.negotiate()
    # 2. read the options and selectors
    options = delete_options(scope)
    chosen = list_options(scope.request, is_watch=False)
    if not chosen.limit:
        # Upstream lists in pages of exactly the requested version; a limit has that effect.
        chosen = replace(chosen, limit=_UNLIMITED)
    predicate = selection_predicate(scope.kind, chosen.label_selector, chosen.field_selector)
    # 3. list
    storage, namespace = scope.deps.store.storage, scope.info.namespace
    page = list_page(storage, scope.kind, namespace, predicate, chosen)
    # 4. admit and delete each
    for listed in page.objects:
        try:
            yield from retried(partial(_delete, scope, options, value_of(listed)["metadata"]))
        except ApiError as refusal:
            if refusal.reason != "NotFound":  # another request has deleted it
                raise
    warn_of_orphans(scope, options)
    # 5. encode all of them
    return scope.respond_list(media_type, page)


def _delete(scope: RequestScope, options: DeleteOptions, meta: Json) -> WebhookCalls[Json]:
    """Delete the object with this metadata. Raises ApiError."""
    namespace, name = meta.get("namespace", ""), meta["name"]
    return scope.deps.store.delete.steps(
        scope.kind,
        namespace,
        name,
        scope.now,
        options.deletion,
        write=delete_write(scope, options),
    )
