"""Walks over values by their schema: which fields there are, differ, merge, or are taken away.

A value that is null counts as one that says nothing. Lists and maps are walked as their topology
has it: an atomic one is a single field, a list with keys is a set of items, a granular object a
set of fields.

upstream: sigs.k8s.io/structured-merge-diff/typed/{tofieldset,compare,merge,remove}.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.apiserver.json_equality import json_equal
from fairlead.apiserver.patch.managedfields.field_set import (
    LEAF,
    NOTHING,
    SELF,
    FieldSet,
    field_step,
)
from fairlead.apiserver.patch.managedfields.interleaving import interleaved
from fairlead.apiserver.patch.managedfields.path_element import (
    inner_schema,
    is_leaf,
    items_by_step,
    member_schema,
    steps_so_far,
)
from fairlead.apiserver.patch.managedfields.presence import presence_of
from fairlead.apiserver.schema.model import ANYTHING, Schema, Topology, Type

_ABSENT: Final = object()


class _Several(list[Any]):
    """Items of a list that nothing tells apart."""


@dataclass(slots=True)
class Comparison:
    """What became of each field: `added`, `modified`, `removed`."""

    added: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    removed: FieldSet = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether nothing became of anything."""
        return not (self.added or self.modified or self.removed)


def field_set(schema: Schema, value: Any) -> FieldSet:
    """The fields that `value` says something about."""
    if is_leaf(schema, value):
        return LEAF
    if value is None:
        return NOTHING
    made: FieldSet = {}
    if schema.type is Type.LIST:
        for step, item in _together(steps_so_far(schema, value)).items():
            inner = NOTHING if type(item) is _Several else field_set(_items(schema), item)
            made[step] = {SELF: {}, **inner}
        made.pop("", None)
        return made
    for key, item in value.items():
        inner = field_set(member_schema(schema, key), item)
        if key not in schema.fields or item is None or item == {}:
            inner = {SELF: {}, **inner}
        if inner:
            made[field_step(key)] = inner
    return made


def compare(schema: Schema, old: Any, new: Any) -> Comparison:
    """What became of the fields of `old` in `new`."""
    made = Comparison()
    made.added, made.modified, made.removed = _compare(schema, old, new)
    return made


_Triple = tuple[FieldSet, FieldSet, FieldSet]


def _compare(schema: Schema, old: Any, new: Any) -> _Triple:
    if old is _ABSENT:
        return presence_of(schema)(new), {}, {}
    if new is _ABSENT:
        return {}, {}, presence_of(schema)(old)
    if json_equal(old, new):
        return {}, {}, {}
    if is_leaf(schema, old) or is_leaf(schema, new):
        # A single value instead of fields, or the other way round: all of them changed.
        return _inside(schema, new), LEAF, _inside(schema, old)
    if not (old or new):
        return {}, LEAF, {}
    if not old:
        return _inside(schema, new), {}, {}
    if not new:
        return {}, {}, _inside(schema, old)
    return _below(schema, old, new)


def _below(schema: Schema, old: Any, new: Any) -> _Triple:
    """What became of what is in `old`, which is in `new` now."""
    below: _Triple = ({}, {}, {})
    for step, left, right in _pairs(schema, old, new):
        are_several = type(left) is _Several or type(right) is _Several
        compared = _compare_several if are_several else _compare
        parts = compared(inner_schema(schema, step), left, right)
        for whole, part in zip(below, parts, strict=True):
            if part:
                whole[step] = part
    return below


def _compare_several(schema: Schema, old: Any, new: Any) -> _Triple:
    """Items of one name in either list: they are one field, whatever is in them."""
    # upstream: compare.go:visitListItems
    if type(old) is type(new):
        return {}, NOTHING if json_equal(old, new) else LEAF, {}
    if type(old) is _Several:
        return NOTHING if new is _ABSENT else presence_of(schema)(new), {}, LEAF
    return LEAF, {}, NOTHING if old is _ABSENT else presence_of(schema)(old)


def _inside(schema: Schema, value: Any) -> FieldSet:
    """All that is in `value`, but not itself."""
    there = presence_of(schema)(value)
    return {step: node for step, node in there.items() if step != SELF}


def _pairs(schema: Schema, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every step that leads on from either value, with what is there in each; but what both share.

    Most of what there is was not touched, and steps are written for what was.
    """
    is_list = schema.type is Type.LIST
    before, after = _members(schema, old), _members(schema, new)
    prefix = "" if is_list else "f:"
    for step, left in before.items():
        right = after.get(step, _ABSENT)
        if right is not left:
            yield prefix + step, left, right
    for step, right in after.items():
        if step not in before:
            yield prefix + step, _ABSENT, right


def _members(schema: Schema, value: Any) -> dict[str, Any]:
    """What is in a value: by key, or the items of a list by step.

    A value of another sort has nothing in it.
    """
    if schema.type is not Type.LIST:
        return value if isinstance(value, dict) else {}
    return _together(items_by_step(schema, value if isinstance(value, list) else []))


def _together(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Items by step, those with one step together."""
    made: dict[str, Any] = {}
    for step, item in items:
        if step not in made:
            made[step] = item
        elif type(made[step]) is _Several:
            made[step].append(item)
        else:
            made[step] = _Several((made[step], item))
    return made


def _items(schema: Schema) -> Schema:
    return schema.items or ANYTHING


def merged(schema: Schema, base: Any, over: Any) -> Any:
    """`base` with what `over` says; what `over` does not say stays."""
    if is_leaf(schema, over) or is_leaf(schema, base) or base is None:
        return over
    if over is None:  # null says nothing of what is inside
        return base or None
    if schema.type is Type.LIST:
        return _merged_list(schema, base, over)
    made = dict(base)
    for key, item in over.items():
        known = key in base
        made[key] = merged(member_schema(schema, key), base[key], item) if known else item
    return made


def _merged_list(schema: Schema, base: list[Any], over: list[Any]) -> list[Any]:
    left = list(items_by_step(schema, base))
    mine: dict[str, Any] = {}
    for step, item in left:
        mine[step] = None if step in mine else item  # with several, nothing merges
    made = []
    for step, item, is_over in interleaved(left, list(items_by_step(schema, over))):
        other = mine.get(step) if is_over else None
        made.append(item if other is None else merged(_items(schema), other, item))
    return made


def without(schema: Schema, value: Any, fields: FieldSet) -> Any:
    """`value` without `fields`; what has nothing left is null."""
    # upstream: remove.go:removingWalker
    if value is None or is_leaf(schema, value):
        atomic = schema.topology is Topology.ATOMIC or schema.type is Type.ANY
        return None if atomic and isinstance(value, dict | list) else value
    left: Any
    if schema.type is Type.LIST:
        left = []
        for step, item in steps_so_far(schema, value):
            node = fields.get(step, NOTHING)
            if SELF not in node:
                left.append(without(inner_schema(schema, step), item, node) if node else item)
        return left or None
    left = {}
    for key, item in value.items():
        node = fields.get(field_step(key), NOTHING)
        if SELF not in node:
            left[key] = without(member_schema(schema, key), item, node) if node else item
    return left or None


def with_named_fields(schema: Schema, fields: FieldSet) -> FieldSet:
    """`fields` and the named fields that lead to them, but not maps' keys and lists' items."""
    # upstream: fieldpath/set.go:EnsureNamedFieldsAreMembers
    made: FieldSet = {}
    for step, node in fields.items():
        if step == SELF:
            made[step] = node
            continue
        inner = with_named_fields(inner_schema(schema, step), node)
        named = step[:2] == "f:" and step[2:] in schema.fields
        made[step] = {SELF: {}, **inner} if named else inner
    return made
