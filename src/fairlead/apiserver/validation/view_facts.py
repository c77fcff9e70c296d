"""view_facts: finds unknown enum values, numbers out of bounds and malformed times in views.

A view is an object that was decoded to the Python type of its kind. Without this check, an unknown
value would silently count as a known one. For example, a StatefulSet with the misspelled
`podManagementPolicy: parallel` would be treated as if it had `OrderedReady`. The allowed values and
bounds of a field are facts (`api/facts.py`), found through the schema of the kind. The schema also
says which strings are times.

Empty strings and zeros are not checked, because in a view they may stand for absent fields. In a
status, only times are checked. Controllers recompute the numbers of a status. A newer Kubernetes
release may have written an enum value that is unknown here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from msgspec import Struct, inspect

from fairlead.api.codec import VIEWS
from fairlead.api.facts import FieldFacts, facts_of
from fairlead.api.objects import ApiObject
from fairlead.apiserver.schema.model import Schema, Type, schema_of
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.field_facts import check_field
from fairlead.apiserver.validation.meta.object_meta import check_timestamp

_SCALARS: Final = (Type.STRING, Type.INT32, Type.INT64)
_TIMES: Final = (Type.TIME, Type.MICRO_TIME)
_KEYWORDS: Final = ("enum", "minimum", "maximum")


class _Member(Struct, frozen=True):
    """A member of a view; `check_view_facts` checks its value, or members inside its value.

    Exactly one of `is_time`, `facts` and `members` is set.
    """

    name: str  # the name in Python
    field: str  # the name in JSON
    facts: FieldFacts | None = None  # limit the member's value, or the items if the value is a list
    is_time: bool = False  # whether the value is a time
    # Whether the number 0 is checked, too. It is not if 0 can also mean that the field is missing.
    checks_zero: bool = False
    # For a struct or a list of structs, those members of the struct that `check_view_facts` reads.
    members: tuple[_Member, ...] = ()


def check_view_facts(view: ApiObject) -> Causes:
    """Yield an error for each unknown enum value, number out of bounds and malformed time.

    Nothing is checked if several kinds share the class of `view` (such as the class `PodGroup`), or
    if the kind has no schema.
    """
    members = _members_of_view(type(view))
    if members:
        yield from _wrong("", members, view)


def _wrong(path: str, members: tuple[_Member, ...], part: Struct) -> Causes:
    for member in members:
        value: Any = getattr(part, member.name)
        if not value and (value != 0 or not member.checks_zero):
            continue
        field = f"{path}.{member.field}" if path else member.field
        if member.is_time:
            yield from check_timestamp(field, value)
        elif member.facts is not None:
            for item in value if isinstance(value, tuple) else (value,):
                yield from check_field(field, member.facts, item)
        elif isinstance(value, Struct):
            yield from _wrong(field, member.members, value)
        else:
            for index, item in enumerate(value):
                yield from _wrong(f"{field}[{index}]", member.members, item)


@cache
def _members_of_view(view: type[ApiObject]) -> tuple[_Member, ...]:
    """Return the members of `view` that `check_view_facts` reads."""
    schema = _schemas().get(view)
    kind = inspect.type_info(view)
    if schema is None or not isinstance(kind, inspect.StructType):
        return ()
    # `check_metadata` checks the metadata.
    return tuple(one for one in _members(kind, schema, _KEYWORDS) if one.name != "metadata")


@cache
def _schemas() -> dict[type[ApiObject], Schema]:
    """Return {view: schema of its kind}. Views that several kinds share are left out."""
    views: Final = list(VIEWS.values())
    schemas = ((view, schema_of(*key)) for key, view in VIEWS.items() if views.count(view) == 1)
    return {view: schema for view, schema in schemas if schema is not None}


def _members(
    kind: inspect.StructType, schema: Schema, keywords: tuple[str, ...]
) -> Iterator[_Member]:
    """Yield the checked members of the type `kind`, and the members that contain checked members.

    A member is checked if it is a time or if one of `keywords` applies to it. `schema` is the
    schema of `kind`.
    """
    facts = facts_of(schema.long_name).fields
    for one in kind.fields:
        described = schema.fields.get(one.encode_name)
        if described is None:
            continue
        if described.schema.type in _TIMES:
            yield _Member(one.name, one.encode_name, is_time=True)
            continue
        items = described.schema.items
        if described.schema.type in _SCALARS or (items is not None and items.type in _SCALARS):
            checked = _checked(facts.get(one.encode_name), keywords)
            if checked is not None:
                zero = one.default is None
                yield _Member(one.name, one.encode_name, facts=checked, checks_zero=zero)
            continue
        part = _part(one.type)
        of_part = described.schema if items is None else items
        if part is not None and of_part.type is Type.OBJECT:
            below = () if one.name == "status" else keywords
            members = tuple(_members(part, of_part, below))
            if members:
                yield _Member(one.name, one.encode_name, members=members)


def _checked(facts: FieldFacts | None, keywords: tuple[str, ...]) -> FieldFacts | None:
    """Return only those of a field's `facts` that belong to `keywords`; None if there are none.

    If the field is a list, `facts` may limit its items to a set of values. This set is then treated
    as the only fact, with the keyword `enum`.
    """
    if facts is None:
        return None
    stated = {"enum": facts.items} if facts.items else facts.keywords
    kept = {word: stated[word] for word in keywords if word in stated}
    return FieldFacts(keywords=kept, words=facts.words) if kept else None


def _part(kind: inspect.Type) -> inspect.StructType | None:
    """Return the struct type inside the Python type `kind`; None if there is none.

    `kind` is the type of a view's member. If `kind` is a struct type, return `kind`. If `kind` is a
    list, return the struct type that the type of the items contains. If `kind` is a union, return
    the first struct type in the union.
    """
    match kind:
        case inspect.StructType():
            return kind
        case inspect.UnionType(types=types):
            return next(filter(None, map(_part, types)), None)
        case inspect.VarTupleType(item_type=item):
            return _part(item)
    return None
