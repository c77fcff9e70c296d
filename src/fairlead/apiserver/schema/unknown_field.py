"""Finds values of a wrong type, and fields that a kind does not have, such as misspelled fields."""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches

from fairlead.api.json import Json
from fairlead.apiserver.schema.decoder import read
from fairlead.apiserver.schema.field_location import FieldLocation, Notes
from fairlead.apiserver.schema.model import Schema, schema_of
from fairlead.apiserver.schema.scalar import TypeMismatchError


class UnknownFields(Notes):
    """The paths of unknown fields, each with a known field name of similar spelling, or ""."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def unknown(self, location: FieldLocation) -> None:
        """Record an unknown field."""
        known = {} if location.owner is None else location.owner.fields
        names = {name.lower(): name for name in known}
        near = get_close_matches(str(location.step).lower(), names, 1)
        self.found.append((location.path, names[near[0]] if near else ""))


def unknown_fields(api_version: str, kind: str, value: Json) -> list[tuple[str, str]]:
    """Return (path, nearest known name or "") of each unknown field, in the order of `value`.

    Returns [] for a kind without a schema, such as a custom resource. If a field has the wrong
    type, the fields after it are not checked.
    """
    schema = schema_of(api_version, kind)
    return [] if schema is None else unknown_fields_of(schema, value)


def unknown_fields_of(schema: Schema, value: Json) -> list[tuple[str, str]]:
    """Return (path, nearest known name or "") of each field of `value` that `schema` lacks.

    The fields are in the order of `value`. If a field has the wrong type, the fields after it are
    not checked.
    """
    notes = UnknownFields()
    with suppress(TypeMismatchError):
        read(schema, value, FieldLocation(), notes)
    return notes.found


def wrong_type(api_version: str, kind: str, value: Json) -> tuple[str, str]:
    """Return (path, upstream's error) of a value that does not fit the type of its field.

    Returns ("", "") if there is none, and for a kind without a schema, such as a custom resource.
    """
    schema = schema_of(api_version, kind)
    if schema is not None:
        try:
            read(schema, value, FieldLocation(), Notes())
        except TypeMismatchError as refused:
            return refused.location.path if refused.location else "", str(refused)
    return "", ""
