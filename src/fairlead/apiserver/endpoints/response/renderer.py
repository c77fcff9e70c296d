"""Renderer: renders objects and lists in the negotiated media type and view.

upstream: apiserver/pkg/endpoints/handlers/response.go:transformResponseObject
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.conversion.kind_conversion import shown
from fairlead.apiserver.endpoints.collection.list_page import ListPage
from fairlead.apiserver.endpoints.response.encoded_objects import EncodedObjects
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import (
    PARTIAL,
    PARTIAL_LIST,
    TABLE,
    YAML,
    MediaTypeOptions,
)
from fairlead.apiserver.negotiation.serializer import encode, text_of
from fairlead.apiserver.request import Body
from fairlead.apiserver.storage.storage import StoredObject, value_of

LIST_PART_BYTES: Final = 64 << 10
_TYPE_FIELDS: Final = ("kind", "apiVersion")

# (kind, objects, now, includeObject) -> columnDefinitions and rows
TableOf = Callable[[Kind, Sequence[Json], int, str], Json]


class Renderer(Struct, frozen=True):
    """Renders the bodies of responses. If `table_of` is None, the server cannot render Tables."""

    texts: EncodedObjects
    table_of: TableOf | None = None

    def object(
        self,
        media_type: MediaTypeOptions,
        kind: Kind,
        kept: StoredObject,
        now: int,
        include: str = "",
    ) -> Body:
        """Return the body for one object. Raises ApiError 406 if the requested view is for lists.

        `include` is the parameter includeObject of Tables.
        """
        if not media_type.view and media_type.media_type != YAML:
            return (self.texts.whole(kind, kept),)
        obj = value_of(kept)
        match media_type.view:
            case "":
                return (text_of(media_type.media_type, with_type(kind, obj)),)
            case _ if media_type.view == TABLE:
                return (
                    text_of(media_type.media_type, self.table(media_type, kind, obj, now, include)),
                )
            case _ if media_type.view == PARTIAL:
                return (text_of(media_type.media_type, partial(media_type, obj)),)
            case _:
                raise _mismatch(f"{PARTIAL_LIST}, but the requested object is not a list", kind, "")

    def list(
        self, media_type: MediaTypeOptions, kind: Kind, page: ListPage, now: int, include: str = ""
    ) -> Body:
        """Return the body for a list, with the objects of `page`.

        Raises ApiError 406 if `media_type.view` is a view of single objects.
        """
        meta = _list_metadata(page, is_custom=kind.is_custom and not media_type.view)
        match media_type.view:
            case "" if media_type.media_type != YAML:
                return self._items(kind, page.objects, meta)
            case "":
                plain = _plain_list(kind, _values(page.objects), meta)
                return (text_of(media_type.media_type, plain),)
            case _ if media_type.view == TABLE:
                table = self._table(media_type, kind, _values(page.objects), now, include)
                return (text_of(media_type.media_type, {**table, "metadata": meta}),)
            case _ if media_type.view == PARTIAL_LIST:
                items = [partial(media_type, obj) for obj in _values(page.objects)] or None
                document = {
                    "kind": PARTIAL_LIST,
                    "apiVersion": media_type.view_api_version,
                    "metadata": meta,
                    "items": items,
                }
                return (text_of(media_type.media_type, document),)
            case _:
                raise _mismatch(f"{PARTIAL}, but the requested object is a list", kind, "List")

    def table(
        self, media_type: MediaTypeOptions, kind: Kind, obj: Json, now: int, include: str
    ) -> Json:
        """Return one object as a Table. Raises ApiError 406 if the server cannot render Tables."""
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return {**self._table(media_type, kind, [obj], now, include), "metadata": meta}

    def _items(self, kind: Kind, objects: Sequence[StoredObject], meta: Json) -> Body:
        head = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta}
        start = encode(head)[:-1] + b',"items":['
        return ListBody(start, kind, objects, self.texts)

    def _table(
        self,
        media_type: MediaTypeOptions,
        kind: Kind,
        objects: Sequence[Json],
        now: int,
        include: str,
    ) -> Json:
        if self.table_of is None:
            raise ApiError("NotAcceptable", 406, "tables are not served")
        table = self.table_of(kind, objects, now, include)
        for row in table["rows"] or ():
            if (row["object"] or {}).get("kind") == PARTIAL:
                row["object"]["apiVersion"] = media_type.view_api_version
        return {**table, "kind": TABLE, "apiVersion": media_type.view_api_version}


class ListBody(Struct, frozen=True):
    """The JSON body of a list. Each step of an iteration encodes one part of the body.

    A part has about LIST_PART_BYTES. A response to a slow client therefore needs memory for one
    encoded part rather than for the whole body.
    """

    start: bytes
    kind: Kind
    objects: Sequence[StoredObject]
    texts: EncodedObjects

    def __iter__(self) -> Iterator[bytes]:
        """Yield the parts of the body in order."""
        item, kind = self.texts.item, self.kind
        part, size, separator = [self.start], 0, b""
        for obj in self.objects:
            text = item(kind, obj)
            part += (separator, text)
            separator = b","
            size += len(text)
            if size >= LIST_PART_BYTES:
                whole = b"".join(part)
                part, size, text = [], 0, b""  # while a client is slow, only `whole` is kept
                yield whole
        part.append(b"]}")
        yield b"".join(part)


def _values(objects: Sequence[StoredObject]) -> list[Json]:
    return list(map(value_of, objects))


def with_type(kind: Kind, obj: Json) -> Json:
    """Return `obj` converted to the version of `kind`, with its kind and apiVersion."""
    return {**shown(kind, obj), "kind": kind.kind, "apiVersion": kind.api_version}


def partial(media_type: MediaTypeOptions, obj: Json) -> Json:
    """Return `obj` as PartialObjectMetadata."""
    return {"kind": PARTIAL, "apiVersion": media_type.view_api_version, "metadata": obj["metadata"]}


def _plain_list(kind: Kind, objects: Sequence[Json], meta: Json) -> Json:
    if kind.is_custom:
        items = [with_type(kind, obj) for obj in objects]
    else:
        bare = (shown(kind, obj) for obj in objects)
        items = [{key: obj[key] for key in obj if key not in _TYPE_FIELDS} for obj in bare]
    return {
        "kind": kind.list_kind,
        "apiVersion": kind.api_version,
        "metadata": meta,
        "items": items,
    }


def _list_metadata(page: ListPage, *, is_custom: bool = False) -> Json:
    # Lists of custom resources have an empty continue token.
    meta: Json = {"continue": ""} if is_custom else {}
    if page.version >= 0:
        meta["resourceVersion"] = str(page.version)
    if page.continue_token:
        meta["continue"] = page.continue_token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    return meta


def _mismatch(what: str, kind: Kind, suffix: str) -> ApiError:
    package = kind.group.partition(".")[0] or "core"  # upstream's Go package of the group's types
    name = "unstructured.Unstructured" if kind.is_custom else f"{package}.{kind.kind}"
    return ApiError("NotAcceptable", 406, f"you requested {what} (*{name}{suffix})")
