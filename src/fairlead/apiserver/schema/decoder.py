"""Decodes a JSON value into *stored form*, the form in which an API server stores objects.

Unknown fields and nulls are dropped, and quantities and timestamps become canonical. Empty values
are dropped, kept or added according to upstream's types (`Zero`).

If a value has the wrong type, the whole object is refused with Go's message about the first such
value. Some Go types have their own UnmarshalJSON (quantities, timestamps). A malformed value of
such a type ends the decoding. The message is then about this malformed value, even if an earlier
value has the wrong type.

Unknown and duplicate fields are not errors; they cause notes, in document order. As in Go, a
later value of a duplicate field is decoded into the earlier value: objects and maps are merged. If
the later value is null, a scalar or struct keeps the earlier value, but a pointer, list or map is
removed.

upstream: sigs.k8s.io/json, encoding/json with the types of staging/src/k8s.io/api
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.schema.compiled_reader import UnusualError, reader_of
from fairlead.apiserver.schema.field_location import FieldLocation, Notes
from fairlead.apiserver.schema.gojson.json_text import Repeating
from fairlead.apiserver.schema.model import Field, Schema, Type, Zero
from fairlead.apiserver.schema.scalar import (
    BYTE,
    ENDING,
    PLAIN,
    ReadSingle,
    TypeMismatchError,
    refused,
    whole_number,
)
from fairlead.apiserver.schema.union import NeitherError, is_union, read_union
from fairlead.apiserver.schema.zero_value import emitted, zero_value

# Somewhat more than the number of built-in kinds; types of custom resources come and go.
CACHE_SIZE: Final = 1 << 7


def decoded(schema: Schema, value: Any) -> tuple[Any, list[str]]:
    """Return (`value` in stored form, notes about unknown and duplicate fields).

    Raises TypeMismatchError for a value of a wrong type; see the module docstring.
    """
    notes = Notes()
    return read(schema, value, FieldLocation(), notes), notes.texts


def read(schema: Schema, value: Any, location: FieldLocation, notes: Notes) -> Any:
    """Return `value`, found at `location`, in the form in which an API server stores it.

    Adds notes about unknown and duplicate fields to `notes`. Raises TypeMismatchError for a value
    of a wrong type.
    """
    try:
        return reader_of(schema)(value)
    except UnusualError:
        return _walked(schema, value, location, notes)


def walked(schema: Schema, value: Any) -> tuple[Any, list[str]]:
    """Decode `value` as `decoded` does, but without the fast path of `compiled_reader`."""
    notes = Notes()
    return _walked(schema, value, FieldLocation(), notes), notes.texts


@lru_cache(maxsize=CACHE_SIZE)
def empty(schema: Schema) -> Any:
    """Return an empty object of type `schema`, in the form in which an API server stores it.

    The object is shared, so do not mutate it.
    """
    return _walked(schema, {}, FieldLocation(), Notes())


def _walked(schema: Schema, value: Any, location: FieldLocation, notes: Notes) -> Any:
    walk = _Walk(notes)
    try:
        made = walk.value(schema, value, location)
    except TypeMismatchError as last:
        first = walk.mismatch or last
        raise TypeMismatchError(str(last), first.restoring, last.location) from None
    if walk.mismatch is not None:
        raise walk.mismatch
    return made


class _Walk:
    """A walk through one value, which collects notes and the first type mismatch."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self.mismatch: TypeMismatchError | None = None

    def value(self, schema: Schema, value: Any, location: FieldLocation, before: Any = None) -> Any:
        """Return `value` in the form in which an API server stores it.

        `before` is the value of an earlier occurrence of the same field; None if there is none.
        Raises TypeMismatchError for a failure that ends the decoding.
        """
        match schema.type:
            case Type.OBJECT if isinstance(value, dict):
                return self._object(schema, value, location, before)
            case Type.LIST if isinstance(value, list) and schema.items is not None:
                return self._list(schema.items, value, location, before)
            case Type.MAP if isinstance(value, dict) and schema.items is not None:
                return self._map(schema.items, value, location, before)
            case Type.ANY:
                return self._union(schema, value, location) if is_union(schema) else value
            case Type.BYTES if isinstance(value, list):
                return self._byte_list(value, location, before)
            case _ if schema.type in ENDING:
                return self._ending(schema, value, location)
            case _:
                read = PLAIN.get(schema.type, refused)
                return self._plain(read, schema, value, location, before)

    def _ending(self, schema: Schema, value: Any, location: FieldLocation) -> Any:
        """Decode a value whose Go type has an UnmarshalJSON of its own."""
        try:
            return ENDING[schema.type](schema, value, location)
        except TypeMismatchError as mismatch:
            mismatch.location = location
            raise

    def _plain(
        self, read: ReadSingle, schema: Schema, value: Any, location: FieldLocation, before: Any
    ) -> Any:
        """Call `read` to decode a value whose Go type has no UnmarshalJSON of its own.

        If the value has a wrong type, return `before`; record the mismatch if it is the first.
        """
        try:
            return read(schema, value, location)
        except TypeMismatchError as mismatch:
            self.mismatch = self.mismatch or mismatch
            return before

    def _union(self, schema: Schema, value: Any, location: FieldLocation) -> Any:
        quietly = Notes()
        try:
            return read_union(
                schema, value, lambda member, one: _walked(member, one, location, quietly)
            )
        except NeitherError as cause:
            raise TypeMismatchError(str(cause)) from None

    def _object(self, schema: Schema, value: Json, location: FieldLocation, before: Any) -> Json:
        made: Json = dict(before) if isinstance(before, dict) else {}
        seen: set[str] = set()
        for key, item in _members(value):
            here = FieldLocation(location, key, schema)
            field = schema.fields.get(key)
            if field is None:
                self._notes.unknown(here)
                continue
            if key in seen:
                self._notes.repeated(here)
            seen.add(key)
            if item is not None:
                read = self.value(field.schema, item, here, made.get(key))
                self._set(made, key, field, read)
            elif not _is_plain(field):
                made.pop(key, None)
        for key, inner in emitted(schema):
            if key not in made:
                made[key] = zero_value(inner) if inner else None
        return made

    def _set(self, made: Json, key: str, field: Field, value: Any) -> None:
        if value is None or (field.zero is Zero.DROP and not value):
            made.pop(key, None)
        elif (
            field.zero is Zero.EMIT
            and value == {}
            and field.schema.type not in (Type.OBJECT, Type.ANY)
        ):
            made[key] = None
        else:
            made[key] = value

    def _list(
        self, items: Schema, value: list[Any], location: FieldLocation, before: Any
    ) -> list[Any]:
        old = before if isinstance(before, list) else []
        return [
            self._item(items, item, FieldLocation(location, at), old[at] if at < len(old) else None)
            for at, item in enumerate(value)
        ]

    def _item(self, schema: Schema, item: Any, location: FieldLocation, before: Any = None) -> Any:
        if item is not None:
            read = self.value(schema, item, location, before)
            return zero_value(schema) if read is None else read
        if before is not None:
            return before
        return "" if schema.type is Type.BYTES else zero_value(schema)

    def _map(self, items: Schema, value: Json, location: FieldLocation, before: Any) -> Json:
        made: Json = dict(before) if isinstance(before, dict) else {}
        seen: set[str] = set()
        for key, item in _members(value):
            here = FieldLocation(location, key)
            if key in seen:
                self._notes.repeated(here)
            seen.add(key)
            made[key] = self._item(items, item, here)
        return made

    def _byte_list(self, value: list[Any], location: FieldLocation, before: Any) -> Any:
        """Return the base64 text of a byte list that the client sent as a list of numbers.

        Return `before` instead if any value decoded so far had a wrong type. If the field is a
        duplicate in its object, `before` is the value of the earlier occurrence.
        """
        numbers = [
            0
            if one is None
            else self._plain(whole_number, BYTE, one, FieldLocation(location, at), 0)
            for at, one in enumerate(value)
        ]
        return before if self.mismatch else base64.b64encode(bytes(numbers)).decode()


def _members(value: Json) -> Iterable[tuple[str, Any]]:
    return value.pairs if isinstance(value, Repeating) else value.items()


def _is_plain(field: Field) -> bool:
    """Return whether the Go type of `field` is a scalar or a struct.

    If a duplicate of such a field is null, the earlier value is kept.
    """
    if field.zero not in (Zero.DROP, Zero.EMIT):
        return False
    return field.schema.type in _SINGLE or (
        field.schema.type is Type.OBJECT and field.zero is Zero.EMIT
    )


_SINGLE: Final = (Type.STRING, Type.BOOLEAN, Type.INT32, Type.INT64, Type.NUMBER)
