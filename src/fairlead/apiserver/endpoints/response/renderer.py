"""Rendering: an object, a list or an event in the form that was negotiated.

upstream: apiserver/pkg/endpoints/handlers/response.go:transformResponseObject
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.collection.page import Listed
from fairlead.apiserver.endpoints.response.encoded_objects import EncodedObjects, encode
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.negotiation.media_type import PARTIAL, PARTIAL_LIST, TABLE, YAML, Form
from fairlead.apiserver.registry.conversion import shown
from fairlead.apiserver.storage.storage import Kept, value_of

PARTS: Final = 16
LAID_OUT_BYTES_MAX: Final = 256 << 10
# What JSON may show as it is, and YAML may not or takes for the end of a line (YAML 1.1, 5.1).
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
Body = tuple[bytes, ...]
# (kind, objects, now, which part of each object goes along) -> columnDefinitions and rows
TableOf = Callable[[Kind, Sequence[Json], int, str], Json]


class _Dumper(yaml.CSafeDumper):
    """Writes maps that know how they were written like any others, and all of them out."""

    def ignore_aliases(self, data: Any) -> bool:
        """No part of a document refers to another one."""
        return True


_Dumper.add_multi_representer(dict, _Dumper.represent_dict)


def text_of(media_type: str, value: Any) -> bytes:
    """Any JSON value as JSON or YAML.

    Long YAML is written as JSON is, on one line: that is YAML too, and does not keep everybody
    else waiting for as long as laying it out takes (a second for each megabyte).
    """
    text = encode(value)
    if media_type != YAML:
        return text
    if len(text) > LAID_OUT_BYTES_MAX:
        return _UNPRINTABLE.sub(_escaped, text.decode()).encode() + b"\n"
    dumped: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, width=80)
    return dumped.encode()


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


@dataclass(frozen=True, slots=True)
class Renderer:
    """What all answers are written with; `table_of` None leaves tables out."""

    texts: EncodedObjects
    table_of: TableOf | None = None

    def object(self, form: Form, kind: Kind, kept: Kept, now: int, include: str = "") -> Body:
        """One object. Raises ApiError 406 where the view is one of lists."""
        if not form.view and form.media_type != YAML:
            return (self.texts.whole(kind, kept),)
        obj = value_of(kept)
        match form.view:
            case "":
                return (text_of(form.media_type, stated(kind, obj)),)
            case _ if form.view == TABLE:
                return (text_of(form.media_type, self.table(form, kind, obj, now, include)),)
            case _ if form.view == PARTIAL:
                return (text_of(form.media_type, partial(form, obj)),)
            case _:
                raise _mismatch(f"{PARTIAL_LIST}, but the requested object is not a list", kind, "")

    def list(self, form: Form, kind: Kind, found: Listed, now: int, include: str = "") -> Body:
        """A list. Raises ApiError 406 where the view is one of single objects."""
        meta = _list_metadata(found, is_custom=kind.is_custom and not form.view)
        match form.view:
            case "" if form.media_type != YAML:
                return self._items(kind, found.objects, meta)
            case "":
                plain = _plain_list(kind, _values(found.objects), meta)
                return (text_of(form.media_type, plain),)
            case _ if form.view == TABLE:
                table = self._table(form, kind, _values(found.objects), now, include)
                return (text_of(form.media_type, {**table, "metadata": meta}),)
            case _ if form.view == PARTIAL_LIST:
                items = [partial(form, obj) for obj in _values(found.objects)] or None
                document = {
                    "kind": PARTIAL_LIST,
                    "apiVersion": form.view_api_version,
                    "metadata": meta,
                    "items": items,
                }
                return (text_of(form.media_type, document),)
            case _:
                raise _mismatch(f"{PARTIAL}, but the requested object is a list", kind, "List")

    def table(self, form: Form, kind: Kind, obj: Json, now: int, include: str) -> Json:
        """One object as a Table. Raises ApiError 406 where there are none."""
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return {**self._table(form, kind, [obj], now, include), "metadata": meta}

    def _items(self, kind: Kind, objects: Sequence[Kept], meta: Json) -> Body:
        head = {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": meta}
        start = encode(head)[:-1] + b',"items":['
        item = self.texts.item
        texts = [item(kind, obj) for obj in objects]
        if len(texts) < PARTS:
            return (start + b",".join(texts) + b"]}",)
        step = -(-len(texts) // PARTS)
        parts = [b",".join(texts[at : at + step]) for at in range(0, len(texts), step)]
        between = [part + b"," for part in parts[:-1]]
        return (start, *between, parts[-1] + b"]}")

    def _table(
        self, form: Form, kind: Kind, objects: Sequence[Json], now: int, include: str
    ) -> Json:
        if self.table_of is None:
            raise ApiError("NotAcceptable", 406, "tables are not served")
        table = self.table_of(kind, objects, now, include)
        for row in table["rows"] or ():
            if (row["object"] or {}).get("kind") == PARTIAL:
                row["object"]["apiVersion"] = form.view_api_version
        return {**table, "kind": TABLE, "apiVersion": form.view_api_version}


def _values(objects: Sequence[Kept]) -> list[Json]:
    return list(map(value_of, objects))


def stated(kind: Kind, obj: Json) -> Json:
    """`obj` saying what it is first."""
    return {**shown(kind, obj), "kind": kind.kind, "apiVersion": kind.api_version}


def partial(form: Form, obj: Json) -> Json:
    """`obj` reduced to its metadata."""
    return {"kind": PARTIAL, "apiVersion": form.view_api_version, "metadata": obj["metadata"]}


def _plain_list(kind: Kind, objects: Sequence[Json], meta: Json) -> Json:
    if kind.is_custom:
        items = [stated(kind, obj) for obj in objects]
    else:
        bare = (shown(kind, obj) for obj in objects)
        items = [{key: obj[key] for key in obj if key not in _NAMED} for obj in bare]
    return {
        "kind": kind.list_kind,
        "apiVersion": kind.api_version,
        "metadata": meta,
        "items": items,
    }


_NAMED: Final = ("kind", "apiVersion")


def _list_metadata(found: Listed, *, is_custom: bool = False) -> Json:
    # A list of custom resources says even that it does not go on.
    meta: Json = {"continue": ""} if is_custom else {}
    if found.version >= 0:
        meta["resourceVersion"] = str(found.version)
    if found.continue_token:
        meta["continue"] = found.continue_token
    if found.remaining is not None:
        meta["remainingItemCount"] = found.remaining
    return meta


def _mismatch(what: str, kind: Kind, suffix: str) -> ApiError:
    package = "unstructured.Unstructured" if kind.is_custom else f"{_package(kind)}.{kind.kind}"
    return ApiError("NotAcceptable", 406, f"you requested {what} (*{package}{suffix})")


def _package(kind: Kind) -> str:
    """Upstream's Go package of a group's types."""
    return kind.group.partition(".")[0] or "core"
