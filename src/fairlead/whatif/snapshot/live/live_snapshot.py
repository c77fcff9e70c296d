"""Live snapshots: the objects of a running cluster that an answer needs, read once.

Objects are either kept as JSON text until the snapshot is parsed, or decoded page by page as they
arrive. Fairlead uses one version of each resource. If the server does not serve this version, an
older version that can be converted is read. Resources that the user may not read are left out.
Resources in versions that Fairlead does not read, and custom resources that the server fails to
read, are left out, too. Every answer describes the consequences. The number of bytes and the time
are limited, because a server can send an endless response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import chain
from typing import Final

from msgspec import DecodeError, Raw, Struct, field
from msgspec.json import Decoder

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.apiserver.kind import Kind
from fairlead.client.connection import ConnectionConfig
from fairlead.client.error import TOO_LONG, ConnectionConfigError, RequestError
from fairlead.client.http.connection import BodyLimit
from fairlead.client.list_objects import list_by_page
from fairlead.client.rest_client import RestClient
from fairlead.engine.core.instant import Instant
from fairlead.whatif.input.content import BYTES_MAX
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.listing import DecodedItem
from fairlead.whatif.input.pod_columns import encode_list
from fairlead.whatif.snapshot.decoder.dump_decoder import DumpDecoder
from fairlead.whatif.snapshot.garbage_collection import without_collection
from fairlead.whatif.snapshot.live.live_resource import LIVE_RESOURCES, LiveResource
from fairlead.whatif.snapshot.live.served_version import is_served, other_versions
from fairlead.whatif.snapshot.snapshot import DEFAULT_START, snapshot_annotations
from fairlead.whatif.snapshot.storable_object import is_older_version

READ_SECONDS_MAX: Final = 600
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _SERVER_ERROR = 401, 403, 404, 500


class _Metadata(Struct):
    namespace: str = ""
    name: str = ""


class _Named(Struct):
    metadata: _Metadata = field(default_factory=_Metadata)


_named: Final = Decoder(_Named).decode


class LiveObjects(Struct, frozen=True):
    """The objects read from a cluster, by kind, and the unreadable resources.

    Each object is a JSON text that contains its kind, or a decoded item.
    """

    name: str
    taken_at: Instant
    objects: tuple[tuple[Kind, Sequence[LiveObject]], ...]
    unreadable: tuple[LiveResource, ...]

    def __repr__(self) -> str:
        """Return a text without the objects, because a text with them would be very long.

        `asyncio.run` ends with a call of `signal.signal`, which makes a repr of the replaced signal
        handler. That repr contains the finished task and its result, which is this object.
        """
        return f"<LiveObjects of {self.name}>"

    def __len__(self) -> int:
        return sum(len(items) for _, items in self.objects)

    def __iter__(self) -> Iterator[LiveObject]:
        return chain.from_iterable(items for _, items in self.objects)

    def texts(self) -> Iterator[bytes]:
        """Yield the objects as JSON texts."""
        return map(bytes, self)

    def encoded(self) -> bytes:
        """Return all objects as one JSON List in the form that kubectl prints."""
        return encode_list(self.texts(), self.metadata())

    def metadata(self) -> Json:
        """Return the metadata of a file that contains the objects."""
        return {"annotations": snapshot_annotations(self.taken_at, self.unreadable_resources())}

    def refuse_duplicates(self) -> None:
        """Raise InputError if the server listed an object twice, or an object without metadata.

        No command could read a file with such objects. Call this method only if all objects are
        JSON texts.
        """
        for kind, items in self.objects:
            seen = set()
            for item in items:
                try:
                    metadata = _named(bytes(item)).metadata
                except DecodeError as cause:
                    problem = f"the server lists an invalid object: {cause}"
                    raise InputError(self.name, problem, object_name=kind.kind) from None
                key = "/".join(filter(None, (metadata.namespace, metadata.name)))
                if key in seen:
                    title = f"{kind.kind} {key}"
                    raise InputError(self.name, "the server lists it twice", object_name=title)
                seen.add(key)

    def unreadable_resources(self) -> list[str]:
        """Return the names of the resources that could not be read."""
        return list(dict.fromkeys(resource.kind.resource for resource in self.unreadable))


LiveObject = bytes | DecodedItem
# Converts the items of one page to the objects that are kept.
Keep = Callable[[Kind, Iterable[Raw]], Iterator[LiveObject]]
# Called with the number of objects that were read since the last call.
OnRead = Callable[[int], None]


def read_live(
    config: ConnectionConfig,
    on_read: OnRead | None = None,
    *,
    decode: bool = False,
    bytes_max: int = BYTES_MAX,
) -> LiveObjects:
    """Return the objects of the cluster that `config` describes.

    If `decode` is True, the objects that `DumpDecoder` can decode are decoded as they arrive.
    Raises InputError if the cluster cannot be read. Also raises InputError if the server sends more
    than `bytes_max` bytes of JSON in all, or if reading takes more than READ_SECONDS_MAX seconds.
    """
    keep = partial(_decoded, DumpDecoder()) if decode else _texts
    try:
        with without_collection():
            return asyncio.run(_read(config, keep, on_read, bytes_max))
    except ConnectionConfigError as cause:
        raise InputError(cause.source, cause.problem, field=cause.field) from None
    except RequestError as cause:
        if cause.reason == TOO_LONG:
            problem = f"sends more than {bytes_max:,} bytes; --max-input raises the limit"
            raise InputError(config.name, f"{cause.server}: {problem}") from None
        raise InputError(config.name, f"{cause.server}: {_hint(cause)}") from None
    except TimeoutError:
        problem = f"the cluster could not be read within {READ_SECONDS_MAX // 60} minutes"
        raise InputError(config.name, f"{config.server}: {problem}") from None


async def _read(
    config: ConnectionConfig, keep: Keep, on_read: OnRead | None, bytes_max: int
) -> LiveObjects:
    client = RestClient(config, bytes_max=BodyLimit(bytes_max))
    async with asyncio.timeout(READ_SECONDS_MAX), client:
        # The first response shows whether the server is reachable and accepts the credentials.
        first, *others = LIVE_RESOURCES
        found = [await _list(client, first, keep, on_read)]
        found += await asyncio.gather(*(_list(client, one, keep, on_read) for one in others))
        taken_at = _instant(client.date)
    unreadable = tuple(
        resource for resource, read in zip(LIVE_RESOURCES, found, strict=True) if read is None
    )
    objects = tuple(read for read in found if read is not None and read[1])
    return LiveObjects(config.name, taken_at, objects, unreadable)


async def _list(
    client: RestClient, resource: LiveResource, keep: Keep, on_read: OnRead | None
) -> tuple[Kind, Sequence[LiveObject]] | None:
    """Return (kind with the version that was read, objects) of one resource.

    The result is None if the objects cannot be read. There are three cases. The user has no
    permission. The server serves the resource only in versions that Fairlead does not read. The
    server fails to read a custom resource, for example because its conversion webhook is down. If
    the server does not serve the resource at all, the sequence of objects is empty. Raises
    RequestError for other errors, and for any error about a required resource.
    """
    try:
        return await _list_version(client, resource, keep, on_read)
    except RequestError as refusal:
        kind, code = resource.kind, refusal.code
        is_broken = kind.is_custom and code >= _SERVER_ERROR
        if not resource.consequence or not (is_broken or code in (_FORBIDDEN, _NOT_FOUND)):
            raise
        # The API server authorizes a request before it looks for the resource. So a resource that
        # it does not serve is forbidden, too.
        if is_broken or (code == _FORBIDDEN and await is_served(client, kind)):
            return None
        others = await other_versions(client, kind)
        older = next((one for one in others if is_older_version(kind, one)), "")
        if code == _FORBIDDEN or not older:
            return None if others else (kind, ())
    return await _list_version(client, resource.in_version(older), keep, on_read)


async def _list_version(
    client: RestClient, resource: LiveResource, keep: Keep, on_read: OnRead | None
) -> tuple[Kind, Sequence[LiveObject]]:
    kind = resource.kind
    keep_page = partial(keep, kind)
    items = await list_by_page(client, resource.path, keep_page, resource.query, is_versioned=True)
    if on_read is not None:
        on_read(len(items))
    return kind, items


def _texts(kind: Kind, items: Iterable[Raw]) -> Iterator[bytes]:
    """Yield the text of each item, with the apiVersion and kind that items of typed lists omit."""
    if kind.is_custom:
        yield from map(bytes, items)
        return
    start = f'{{"apiVersion":"{kind.api_version}","kind":"{kind.kind}",'.encode()
    for item in items:
        yield b"".join((start, memoryview(item)[1:]))


def _decoded(decoder: DumpDecoder, kind: Kind, items: Iterable[Raw]) -> Iterator[LiveObject]:
    """Yield a DecodedItem for each item, or the text of an item that `decoder` cannot decode."""
    for text in _texts(kind, items):
        try:
            found = decoder.decode(text)
        except DecodeError:  # reported when the snapshot is parsed
            found = None
        yield text if found is None else DecodedItem(*found)


def _hint(refusal: RequestError) -> str:
    match refusal.code:
        case _ if refusal.code == _UNAUTHORIZED:
            return f"{refusal.message}: the server does not accept the credentials"
        case _ if refusal.code == _FORBIDDEN:
            return f"{refusal.message} (`fairlead snapshot --rbac` prints the role that is needed)"
        case _:
            return refusal.message


def _instant(date: str) -> Instant:
    """Return the time in the HTTP Date header `date`; DEFAULT_START if it has no valid time."""
    try:
        return round(parsedate_to_datetime(date).timestamp()) * NANOSECONDS_PER_SECOND
    except ValueError:
        return DEFAULT_START
