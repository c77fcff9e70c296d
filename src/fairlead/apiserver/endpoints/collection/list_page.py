"""List pages: the objects in a page of a list, their version, and the start of the next page.

resourceVersion      resourceVersionMatch  the page contains
""                   ""                    the newest objects
N                    NotOlderThan          the newest objects
N                    Exact                 the objects at version N
N without a limit    ""                    the newest objects
N with a limit       ""                    the objects at version N
0                    "" or NotOlderThan    all newest objects, regardless of the limit

If version N does not exist yet, the client gets error 504.

A continue token contains the version of the first page, and the key at which the next page starts.
Later pages show the objects at that version, reconstructed from the change log. If the change log
no longer contains that version, the client gets error 410. The error contains a new token. The
version in this token is -1, and the list continues with the newest objects.

upstream: apiserver/pkg/storage/continue.go, storage/etcd3/store.go:GetList,
storage/cacher/delegator/interface.go:ShouldDelegateList
"""

from __future__ import annotations

import base64
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from posixpath import normpath
from string import ascii_letters, digits
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.request.options import (
    EXACT,
    ListOptions,
    resource_version_problem,
)
from fairlead.apiserver.endpoints.request.selector import SelectionPredicate
from fairlead.apiserver.error import ApiError, bad_request
from fairlead.apiserver.kind import POD, Kind
from fairlead.apiserver.negotiation.request_error import too_large_resource_version
from fairlead.apiserver.schema.gojson.json_text import JsonError, json_kind, parse_json
from fairlead.apiserver.storage.storage import ChangeType, Storage, StoredObject, list_key
from fairlead.apiserver.suspension import WebhookCalls

# The key of an object in a list of one namespace ("name") or of all namespaces ("namespace/name"),
# and the object as stored.
ListEntry = tuple[str, StoredObject]

# At least so many objects are converted at a time while a page searches for matching objects.
MATCHED_MIN: Final = 100

_LIST_TOO_OLD: Final = "The resourceVersion for the provided list is too old."
_PAGE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


class ListPage(Struct, frozen=True):
    """One page of a list: `objects`, as they were at `version`.

    If the objects are computed and not stored, `version` is -1.

    `remaining` is the number of objects after this page; None if it is unknown or zero. On the last
    page, `continue_token` is "".
    """

    objects: Sequence[StoredObject]
    version: int
    continue_token: str = ""
    remaining: int | None = None


class ListCandidates(Struct, frozen=True):
    """The objects to which a list applies its selectors.

    `objects` contains `count` objects, ordered by key, as they were at resourceVersion `version`.
    If `limit` is positive, a page of the list contains at most `limit` objects.
    """

    objects: Iterable[ListEntry]
    count: int
    version: int
    limit: int


def list_page(
    storage: Storage,
    kind: Kind,
    namespace: str,
    predicate: SelectionPredicate,
    options: ListOptions,
) -> ListPage:
    """Return the page of objects that `options` describe. Raises ApiError 400, 410, 504."""
    found = candidates(storage, kind, namespace, predicate, options)
    return _page(found, *_first_matches(found.objects, predicate, found.limit), predicate)


def converted_page(
    found: ListCandidates,
    predicate: SelectionPredicate,
    convert: Callable[[Sequence[StoredObject]], WebhookCalls[list[Json]]],
) -> WebhookCalls[ListPage]:
    """Return the page of the candidates `found`, converted by `convert`.

    `predicate` selects objects by their converted form. Raises ApiError 500 if the conversion
    fails.
    """
    if predicate.is_everything:
        matches, end = _first_matches(found.objects, predicate, found.limit)
        objects = yield from convert([kept for _, kept in matches])
        made = [(key, obj) for (key, _), obj in zip(matches, objects, strict=True)]
        return _page(found, made, end, predicate)
    # The storage may change while a webhook is called, so all candidates are taken first.
    entries = list(found.objects)
    matches, end = [], 0
    is_full = False
    # A conversion webhook does not change names.
    named = [at for at, (key, _) in enumerate(entries) if may_match(predicate, key)]
    size = max(found.limit, MATCHED_MIN) if found.limit > 0 else len(named)
    for start in range(0, len(named), max(size, 1)):
        batch = named[start : start + size]
        objects = yield from convert([entries[at][1] for at in batch])
        for at, obj in zip(batch, objects, strict=True):
            if predicate.matches(obj):
                matches.append((entries[at][0], obj))
                end, is_full = at + 1, len(matches) == found.limit
            if is_full:
                return _page(found, matches, end, predicate)
    return _page(found, matches, found.count, predicate)


def may_match(predicate: SelectionPredicate, key: str) -> bool:
    """Return whether an object with the list key `key` may match; only its name is checked."""
    return predicate.name in ("", key.rpartition("/")[2])


def candidates(
    storage: Storage,
    kind: Kind,
    namespace: str,
    predicate: SelectionPredicate,
    options: ListOptions,
) -> ListCandidates:
    """Return the candidates for the page that `options` describe. Raises ApiError 400, 410, 504."""
    if options.continue_token:
        return _next_candidates(storage, kind, namespace, options)
    version = _requested_version(storage, options.version)
    limit = options.limit if options.version != "0" else 0
    is_exact = options.match == EXACT or (limit > 0 and not options.match)
    # upstream: registry/generic/registry/store.go:ListPredicate gets a single object by its name,
    # without paging
    is_single = bool(predicate.name) and (bool(namespace) or not kind.namespaced)
    if is_exact and version > 0:
        try:
            objects = _objects_at(storage, kind, namespace, version)
        except ApiError:
            raise ApiError("Expired", 410, _LIST_TOO_OLD) from None
        return ListCandidates(*objects, version, 0 if is_single else limit)
    if limit > 0 and not is_single:
        objects = _objects_at(storage, kind, namespace, storage.version)
        return ListCandidates(*objects, storage.version, limit)
    if kind is POD and predicate.node_name:
        found = _pods_now(storage, namespace, predicate.node_name)
    else:
        found = objects_now(storage, kind, namespace)
    return ListCandidates(found, len(found), storage.version, 0)


def objects_now(storage: Storage, kind: Kind, namespace: str) -> list[ListEntry]:
    """Return the objects of one namespace, or of all namespaces (""), ordered by their keys."""
    found = storage.stored_items(kind, namespace or None)
    return sorted(((list_key(key, namespace), kept) for key, kept in found), key=itemgetter(0))


def _pods_now(storage: Storage, namespace: str, node: str) -> list[ListEntry]:
    """Return the pods on `node` in one namespace, or in all namespaces (""), ordered by key."""
    found = storage.stored_pods_on(node)
    chosen = ((key, kept) for key, kept in found if namespace in ("", key[0]))
    return sorted(((list_key(key, namespace), kept) for key, kept in chosen), key=itemgetter(0))


def _requested_version(storage: Storage, text: str) -> int:
    """Return the number in `text`, the parameter resourceVersion of a list request; 0 for "".

    Raises ApiError 400 if `text` is malformed, and 504 if the version does not exist yet.
    """
    if not text:
        return 0
    problem = resource_version_problem(text)
    if problem:
        raise bad_request(f"invalid resource version: {problem}")
    version = int(text)
    if version > storage.version:
        raise too_large_resource_version(version, storage.version)
    return version


def _next_candidates(
    storage: Storage, kind: Kind, namespace: str, options: ListOptions
) -> ListCandidates:
    if options.version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    token = decoded(options.continue_token)
    version = storage.version if token.version == NOW else token.version
    if version > storage.version:
        raise too_large_resource_version(version, storage.version)
    try:
        objects, count = _objects_at(storage, kind, namespace, version, token.start)
    except ApiError:
        raise token_too_old(token, _PAGE_TOO_OLD) from None
    limit = options.limit if options.version != "0" else 0
    return ListCandidates(objects, count, version, limit)


def _page(
    found: ListCandidates, matches: Sequence[ListEntry], end: int, predicate: SelectionPredicate
) -> ListPage:
    """Return a page with `matches`, and with a continue token unless it is the last page.

    `end` is the number of candidates in `found` that were examined to find `matches`.
    """
    # upstream: apiserver/pkg/storage/cacher/cacher.go:GetList
    version = found.version
    if end == found.count:
        return ListPage([kept for _, kept in matches], version)
    # The next page starts right after the last key: "\0" is the smallest possible suffix.
    token = encoded(Token(version, f"/{matches[-1][0]}\0"))
    # As in upstream, the remaining objects are counted only if the selectors match every object.
    remaining = found.count - found.limit if predicate.is_everything else None
    return ListPage([kept for _, kept in matches], version, token, remaining)


def _first_matches(
    objects: Iterable[ListEntry], predicate: SelectionPredicate, limit: int
) -> tuple[list[ListEntry], int]:
    """Return (first `limit` matching objects, number of objects that were examined).

    If `limit` is not positive, all matching objects are returned.
    """
    if predicate.is_everything:
        matches = list(islice(objects, limit if limit > 0 else None))
        return matches, len(matches)
    matches, end = [], 0
    for end, entry in enumerate(objects, 1):  # noqa: B007 - used after the loop
        if predicate.selects(entry[1]):
            matches.append(entry)
            if len(matches) == limit:
                break
    return matches, end


def _objects_at(
    storage: Storage, kind: Kind, namespace: str, version: int, start: str = ""
) -> tuple[Iterator[ListEntry], int]:
    """Return (objects as they were at `version`, their number).

    The objects are ordered by key, and begin at the key `start`. Raises ApiError 410 if the change
    log starts after `version`.
    """
    before = _changed_since(storage, kind, namespace, version)
    keys = storage.list_keys(kind, namespace)
    if before:  # some objects may have been added or removed since `version`
        present = {key for key in before if _is_member(keys, key)}
        gone = {key for key in present if before[key] is None}
        back = [key for key, kept in before.items() if kept is not None and key not in present]
        if gone or back:
            keys = sorted([*(key for key in keys if key not in gone), *back])
    first = bisect_left(keys, start)

    def entry(key: str) -> ListEntry:
        kept = before.get(key)
        return key, _found(storage, kind, namespace, key) if kept is None else kept

    return map(entry, islice(keys, first, None)), len(keys) - first


def _is_member(keys: Sequence[str], key: str) -> bool:
    """Return whether the sorted `keys` contain `key`."""
    place = bisect_left(keys, key)
    return place < len(keys) and keys[place] == key


def _found(storage: Storage, kind: Kind, namespace: str, key: str) -> StoredObject:
    own, _, name = (namespace, "", key) if namespace else key.rpartition("/")
    found = storage.find_stored(kind, own, name)
    assert found is not None
    return found


def _changed_since(
    storage: Storage, kind: Kind, namespace: str, version: int
) -> dict[str, StoredObject | None]:
    """Return the objects that changed after `version`, by key, as they were at `version`.

    An object that did not exist at `version` is None. Raises ApiError 410 if the change log starts
    after `version`.
    """
    before: dict[str, StoredObject | None] = {}
    for change in reversed(storage.changes_since(version)):
        if change.kind.resource != kind.resource:
            continue
        if namespace and change.key[0] != namespace:
            continue
        key = list_key(change.key, namespace)
        if change.type is ChangeType.ADDED:
            before[key] = None
        elif change.previous is not None:
            before[key] = change.previous
    return before


# --- continue tokens -----------------------------------------------------------------------------

# A token is a version and the first key of the next page, as JSON in base64 without padding. A
# malformed token is rejected with the errors of Go's decoders, as upstream does.
# upstream: apiserver/pkg/storage/continue.go, encoding/base64/base64.go

FORMAT: Final = "meta.k8s.io/v1"
NOW: Final = -1
_INVALID: Final = "invalid continue token: continue key is not valid: "
_ALPHABET: Final = frozenset(f"{ascii_letters}{digits}-_")
_LINE_ENDS: Final = str.maketrans("", "", "\r\n")
_WHOLE: Final = 4
# the members of a token, with their types in Python and in Go
_MEMBERS: Final[dict[str, tuple[type, str]]] = {
    "v": (str, "string"),
    "rv": (int, "int64"),
    "start": (str, "string"),
}


class Token(Struct, frozen=True):
    """A continue token: the next page starts at the key `start` (inclusive).

    The page shows the objects at `version`, or the newest objects if `version` is NOW.
    """

    version: int
    start: str


def encoded(token: Token) -> str:
    """Return a continue token as the text that the server sends to the client."""
    text = msgspec.json.encode({"v": FORMAT, "rv": token.version, "start": token.start})
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decoded(text: str) -> Token:
    """Return the token that `text` encodes.

    The field `start` of the token has no leading slash, even if it has one in `text`. Raises
    ApiError 400 if `text` is malformed.
    """
    at = _first_fault(text)
    if at is not None:
        raise bad_request(f"{_INVALID}illegal base64 data at input byte {at}")
    plain = text.translate(_LINE_ENDS)
    padded = plain + "=" * (-len(plain) % _WHOLE)
    try:
        content = parse_json(base64.urlsafe_b64decode(padded))
    except JsonError as cause:
        raise bad_request(f"{_INVALID}{cause}") from None
    for problem in _mistyped(content):
        raise bad_request(f"{_INVALID}json: cannot unmarshal {problem}")
    return _checked(content or {})


def _first_fault(text: str) -> int | None:
    """Return the offset at which `text` stops being valid base64; None if all of it is valid."""
    encoded_text = text.encode("latin-1", "replace").decode("latin-1")
    for at, mark in enumerate(encoded_text):
        if mark not in _ALPHABET and mark not in "\r\n":
            return at
    # A single last character encodes only six bits.
    return len(text) - 1 if len(text.translate(_LINE_ENDS)) % _WHOLE == 1 else None


def _mistyped(content: Any) -> Iterator[str]:
    """Yield the type errors of `content`, a decoded token; null is valid for every member."""
    if content is None:
        return
    if not isinstance(content, dict):
        yield f"{json_kind(content)} into Go value of type storage.continueToken"
        return
    for name, value in content.items():
        wanted, called = _MEMBERS.get(name, (object, ""))
        if value is None or (isinstance(value, wanted) and not _is_truth(value, wanted)):
            continue
        is_fraction = wanted is int and isinstance(value, float)
        shown = f"number {value}" if is_fraction else json_kind(value)
        yield f"{shown} into Go struct field continueToken.{name} of type {called}"


def _is_truth(value: Any, wanted: type) -> bool:
    return wanted is int and isinstance(value, bool)


def _checked(content: dict[str, Any]) -> Token:
    written, version = content.get("v") or "", content.get("rv") or 0
    start: str = content.get("start") or ""
    if written != FORMAT:
        raise bad_request(f"{_INVALID}server does not recognize this encoded version {written}")
    if version == 0:
        text = f"incorrect encoded start resourceVersion (version {FORMAT})"
        raise bad_request(_INVALID + text)
    if not start:
        raise bad_request(f"{_INVALID}encoded start key empty (version {FORMAT})")
    key = start if start.startswith("/") else f"/{start}"
    if _cleaned(key) != key:
        raise bad_request(_INVALID + start)
    return Token(version, key[1:])


def _cleaned(key: str) -> str:
    """Return `key` as Go's path.Clean would clean it.

    Python's normpath would keep a leading `//`.
    """
    return normpath(key.replace("//", "/", 1)) if key.startswith("//") else normpath(key)


def token_too_old(token: Token, why: str) -> ApiError:
    """Return ApiError 410 with the message `why` and a new token.

    With the new token, the client can continue at `token.start`, but with the newest objects.
    """
    fresh = encoded(Token(NOW, token.start))
    return ApiError("Expired", 410, why, continue_token=fresh)
