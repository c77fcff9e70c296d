"""Lists whole collections, page by page and without decoding the objects.

upstream: client-go/tools/pager/pager.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from fairlead.client.error import RequestError
from fairlead.client.rest_client import RestClient

PAGE_OBJECTS: Final = 2_000
_EXPIRED: Final = 410


class _Metadata(Struct):
    continue_: str = field(default="", name="continue")


class _Page(Struct):
    items: list[Raw] | None = None
    metadata: _Metadata = field(default_factory=_Metadata)


async def list_objects(
    client: RestClient, path: str, query: Mapping[str, str] | None = None
) -> list[Raw]:
    """Return the JSON texts of all objects in the collection at `path`, from one resource version.

    The items of typed lists omit kind and apiVersion. If the version expires between two pages, the
    whole list is read again immediately, as client-go does. Raises RequestError.
    """
    query = dict(query or {})
    items: list[Raw] = []
    token = ""
    while True:
        more = {"limit": str(PAGE_OBJECTS), **({"continue": token} if token else {})}
        try:
            page = await _page(client, path, {**query, **more})
        except RequestError as refusal:
            if refusal.code != _EXPIRED or not token:
                raise
            return list((await _page(client, path, query)).items or ())
        items += page.items or ()
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
