"""DELETE of a collection.

Each object's deletion may have to wait for a webhook. The request is then handled again from the
start, and resumes with the object that waited:

    handle -> delete, delete, ... --WebhookNeeded--> ask -> handle -> delete, ...

upstream: apiserver/pkg/endpoints/handlers/delete.go:DeleteCollection,
registry/generic/registry/store.go:DeleteCollection
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Final

from msgspec import Struct, field

from fairlead.apiserver.admission.webhooks.plugin import WebhookNeeded
from fairlead.apiserver.endpoints.collection.list_page import ListPage, list_page
from fairlead.apiserver.endpoints.handlers.delete_options import (
    DeleteOptions,
    delete_options,
    delete_write,
    warn_of_orphans,
)
from fairlead.apiserver.endpoints.request.options import list_options
from fairlead.apiserver.endpoints.request.selector import selection_predicate
from fairlead.apiserver.endpoints.request_scope import RequestScope
from fairlead.apiserver.request import Response
from fairlead.apiserver.storage.storage import value_of

_UNLIMITED: Final = sys.maxsize


class DeleteCollectionProgress(Struct):
    """How far a request came before it had to wait for a webhook.

    `page` holds all objects to delete, of which the first `done` are finished. `warnings` were
    given for those.
    """

    page: ListPage
    done: int = 0
    warnings: list[str] = field(default_factory=list)


def delete_collection(scope: RequestScope) -> Response:
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
    # 3. list, or resume after a webhook has answered
    progress = scope.request.progress
    if not isinstance(progress, DeleteCollectionProgress):
        storage, namespace = scope.deps.store.storage, scope.info.namespace
        progress = DeleteCollectionProgress(
            list_page(storage, scope.kind, namespace, predicate, chosen)
        )
    # 4. admit and delete each
    _delete_rest(scope, options, progress)
    warn_of_orphans(scope, options)
    # 5. encode all of them
    return scope.respond_list(media_type, progress.page)


def _delete_rest(
    scope: RequestScope, options: DeleteOptions, progress: DeleteCollectionProgress
) -> None:
    """Delete the objects that are not done yet. Raises ApiError, WebhookNeeded."""
    store, kind, first = scope.deps.store, scope.kind, progress.done
    scope.warnings.extend(progress.warnings)
    for kept in progress.page.objects[first:]:
        meta = value_of(kept)["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        warnings_before = len(scope.warnings)
        if store.find(kind, namespace, name) is not None:
            write = delete_write(scope, options)
            try:
                store.delete(kind, namespace, name, scope.now, options.deletion, write=write)
            except WebhookNeeded as needed:
                needed.progress, needed.is_further = progress, progress.done > first
                raise
        progress.warnings.extend(scope.warnings[warnings_before:])
        progress.done += 1
