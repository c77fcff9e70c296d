"""Arrangement: the order in which the members of an object are kept, as upstream writes them."""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.model import schema_of
from fairlead.apiserver.schema.order import ordered, ordered_by_name


def arranged(kind: Kind, obj: Json) -> Json:
    """`obj` in the order of its type, by name where it has none."""
    schema = None if kind.is_custom else schema_of(kind.stored_as, kind.kind)
    made: Json = ordered_by_name(obj) if schema is None else ordered(schema, obj)
    return made
