"""Lists whole collections, page by page and without decoding the objects.

upstream: client-go/tools/pager/pager.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from fairlead.client.error import RequestError
from fairlead.client.rest_client import RestClient

PAGE_OBJECTS: Final = 2_000
_EXPIRED: Final = 410

Kept = TypeVar("Kept")


class _Metadata(Struct):
    continue_: str = field(default="", name="continue")


class _Page(Struct):
    items: list[Raw] | None = None
    metadata: _Metadata = field(default_factory=_Metadata)


async def list_objects(
    client: RestClient, path: str, query: Mapping[str, str] | None = None
) -> list[Raw]:
    """Return the JSON texts of all objects in the collection at `path`, from one resource version.

    The items of typed lists omit kind and apiVersion. Raises RequestError.
    """
    return await list_by_page(client, path, list, query)


async def list_by_page(
    client: RestClient,
    path: str,
    keep: Callable[[Iterable[Raw]], Iterable[Kept]],
    query: Mapping[str, str] | None = None,
) -> list[Kept]:
    """Return what `keep` returns for the items of each page of the collection at `path`.

    The text of a page is freed before the next one is read, unless `keep` returns its items. If the
    resource version expires between two pages, the whole list is read again immediately, as
    client-go does. Raises RequestError.
    """
    query = dict(query or {})
    items: list[Kept] = []
    token = ""
    while True:
        more = {"limit": str(PAGE_OBJECTS), **({"continue": token} if token else {})}
        try:
            page = await _page(client, path, {**query, **more})
        except RequestError as refusal:
            if refusal.code != _EXPIRED or not token:
                raise
            return [*keep((await _page(client, path, query)).items or ())]
        items += keep(page.items or ())
        if not page.metadata.continue_:
            return items
        if page.metadata.continue_ == token:
            text = f"{path}: the server repeats a continue token, so the list has no end"
            raise RequestError(client.config.server, 200, "", text)
        token = page.metadata.continue_


async def _page(client: RestClient, path: str, query: Mapping[str, str]) -> _Page:
    body = await client.get(path, query)
    try:
        if not body.isascii():
            body.decode()  # msgspec does not check the texts that it skips
        return msgspec.json.decode(body, type=_Page)
    except (msgspec.DecodeError, UnicodeDecodeError) as cause:
        text = f"{path}: the answer is not a list ({cause})"
        raise RequestError(client.config.server, 200, "", text) from None
