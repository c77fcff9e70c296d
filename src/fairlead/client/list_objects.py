"""Lists whole collections, page by page and without decoding the objects.

upstream: client-go/tools/pager/pager.go
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from fairlead.client.error import (
    TIMED_OUT,
    TOO_LONG,
    UNDECODABLE,
    RequestError,
    may_be_temporary,
)
from fairlead.client.page_sequence import PageSequence
from fairlead.client.rest_client import RestClient

PAGE_OBJECTS: Final = 2_000
# The pauses after failures of a page that follows another one. Without these repetitions, a list
# of many pages would hardly ever end if the server often fails for a moment.
PAGE_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0)
_EXPIRED: Final = 410
_OBJECT_START: Final = ord("{")

Kept = TypeVar("Kept")


class _Metadata(Struct):
    continue_: str = field(default="", name="continue")
    resource_version: str = field(default="", name="resourceVersion")


class _Page(Struct):
    items: list[Raw] | None  # the server writes null for an empty list
    metadata: _Metadata = field(default_factory=_Metadata)


async def list_objects(
    client: RestClient, path: str, query: Mapping[str, str] | None = None
) -> list[Raw]:
    """Return the JSON texts of all objects in the collection at `path`, from one resource version.

    The items of typed lists omit `kind` and `apiVersion`. Raises RequestError if a request fails;
    if the server responded, the message of this error contains `path`.
    """
    return await list_by_page(client, path, list, query)


async def list_by_page(
    client: RestClient,
    path: str,
    keep: Callable[[Iterable[Raw]], Iterable[Kept]],
    query: Mapping[str, str] | None = None,
    *,
    is_versioned: bool = False,
) -> list[Kept]:
    """Call `keep` with the items of each page of the collection at `path`; return all results.

    The text of a page is freed before the next page is read, unless `keep` returns items of the
    page. If the continue token expires, the list is read again without a limit, as in client-go.
    Earlier results of `keep` are then discarded. If a page after the first one fails and the
    failure may be temporary, the page is requested again after a pause, at most once for each pause
    in PAGE_PAUSES_S. The page is not requested again after a timeout, because `RestClient.get` has
    then already waited for minutes.

    Raises RequestError if a request fails, or if the server repeats pages without end. If
    `is_versioned` is set, also raises RequestError for an empty page without a resourceVersion.
    Every list of stored objects has a resourceVersion, so such a page is not a list of stored
    objects. Examples are the JSON text `{"items": []}` and an empty list of metrics.
    """
    query = dict(query or {})
    items: list[Kept] = []
    limit, token, pages = {"limit": str(PAGE_OBJECTS)}, "", PageSequence()
    while True:
        more = {**limit, **({"continue": token} if token else {})}
        try:
            page = await _page(client, path, {**query, **more}, PAGE_PAUSES_S if token else ())
        except RequestError as refusal:
            if refusal.code != _EXPIRED or not token or not limit:
                raise
            items, limit, token, pages = [], {}, "", PageSequence()
            continue
        if is_versioned and not (page.items or page.metadata.resource_version):
            raise _no_list(client, path, "it has neither items nor a resourceVersion")
        items += keep(page.items or ())
        token = page.metadata.continue_
        if not token:
            return items
        problem = pages.add(token, is_empty=not page.items)
        if problem:
            text = f"{path}: {problem}, so the list has no end"
            raise RequestError(client.config.server, 200, "", text)


async def _page(
    client: RestClient, path: str, query: Mapping[str, str], pauses_s: Sequence[float] = ()
) -> _Page:
    try:
        body = await client.get(path, query)
    except RequestError as cause:
        is_final = cause.reason in (TIMED_OUT, TOO_LONG)
        if pauses_s and not is_final and may_be_temporary(cause.code):
            await asyncio.sleep(pauses_s[0])
            return await _page(client, path, query, pauses_s[1:])
        if not cause.code:
            raise
        text = f"{path}: {cause.message}"
        raise RequestError(cause.server, cause.code, cause.reason, text) from None
    try:
        if not body.isascii():
            body.decode()  # msgspec does not check the texts that it skips
        page = msgspec.json.decode(body, type=_Page)
    except UNDECODABLE as cause:
        too_deep = isinstance(cause, RecursionError)
        why = "it is nested too deeply" if too_deep else str(cause)
        raise _no_list(client, path, why) from None
    for number, item in enumerate(page.items or ()):
        if memoryview(item)[0] != _OBJECT_START:
            raise _no_list(client, path, f"items[{number}] is not an object")
    return page


def _no_list(client: RestClient, path: str, why: str) -> RequestError:
    text = f"{path}: the answer is not a list of Kubernetes objects ({why})"
    return RequestError(client.config.server, 200, "", text)
