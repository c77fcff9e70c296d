"""Listing: which objects a list shows, at which version, and how it goes on.

Without a version a list shows the present. With one it may be newer than that (the default, and
NotOlderThan), or must be exactly that (Exact; and what a limit alone asks for). Version 0 takes
what is at hand, and is not limited.

upstream: apiserver/pkg/storage/etcd3/store.go:GetList, cacher/delegator.go:shouldDelegateList
"""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter

from fairlead.apiserver.endpoints.collection.continue_token import NOW, Token, decoded, encoded
from fairlead.apiserver.endpoints.collection.page import (
    Entry,
    Listed,
    list_too_old,
    objects_at,
    objects_now,
    page_too_old,
)
from fairlead.apiserver.endpoints.collection.selector import Selection
from fairlead.apiserver.endpoints.request.options import EXACT, ListOptions, unsigned
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.request_error import from_the_future
from fairlead.apiserver.storage.storage import Storage


def listed(
    storage: Storage, kind: Kind, namespace: str, wanted: Selection, options: ListOptions
) -> Listed:
    """The objects that a request asks for. Raises ApiError: 400, 410, 504."""
    if options.continue_token:
        return _continued(storage, kind, namespace, wanted, options)
    version = asked_version(storage, options.version)
    limit = options.limit if options.version != "0" else 0
    is_exact = options.match == EXACT or (limit > 0 and not options.match)
    if is_exact and version > 0:
        objects = _objects_at(storage, kind, namespace, version)
    else:
        objects, version = objects_now(storage, kind, namespace), storage.version
    # upstream: registry/generic/registry/store.go:ListPredicate looks one object up by its name
    is_one = bool(wanted.name) and (bool(namespace) or not kind.namespaced)
    return _page(objects, wanted, version, 0 if is_one else limit)


def asked_version(storage: Storage, text: str) -> int:
    """A list's resourceVersion, 0 when there is none. Raises ApiError 400, 504."""
    if not text:
        return 0
    problem = unsigned(text)
    if problem:
        raise bad_request(f"invalid resource version: {problem}")
    version = int(text)
    if version > storage.version:
        raise from_the_future(version, storage.version)
    return version


def _objects_at(storage: Storage, kind: Kind, namespace: str, version: int) -> list[Entry]:
    try:
        return objects_at(storage, kind, namespace, version)
    except ApiError:
        raise list_too_old() from None


def _continued(
    storage: Storage, kind: Kind, namespace: str, wanted: Selection, options: ListOptions
) -> Listed:
    if options.version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    token = decoded(options.continue_token)
    if token.version == NOW:
        objects, version = objects_now(storage, kind, namespace), storage.version
    else:
        version = token.version
        if version > storage.version:
            raise from_the_future(version, storage.version)
        try:
            objects = objects_at(storage, kind, namespace, version)
        except ApiError:
            raise page_too_old(token) from None
    first = bisect_left(objects, token.start, key=itemgetter(0))
    limit = options.limit if options.version != "0" else 0
    return _page(objects[first:], wanted, version, limit)


def _page(objects: list[Entry], wanted: Selection, version: int, limit: int) -> Listed:
    """So many of the `objects` that are wanted; it goes on where any more follow, wanted or not."""
    # upstream: apiserver/pkg/storage/cacher/cacher.go:GetList
    page, end = _first(objects, wanted, limit)
    if end == len(objects):
        return Listed([kept for _, kept in page], version)
    token = encoded(Token(version, f"/{page[-1][0]}\0"))
    # How much is left is told only where nobody had to look at the objects to count them.
    remaining = len(objects) - limit if wanted.is_everything else None
    return Listed([kept for _, kept in page], version, token, remaining)


def _first(objects: list[Entry], wanted: Selection, limit: int) -> tuple[list[Entry], int]:
    """The first that are wanted, at most `limit` unless that is 0, and where they end."""
    if wanted.is_everything:
        end = min(limit, len(objects)) if limit > 0 else len(objects)
        return objects[:end], end
    page: list[Entry] = []
    for end, entry in enumerate(objects, 1):
        if wanted.selects(entry[1]):
            page.append(entry)
            if len(page) == limit:
                return page, end
    return page, len(objects)
