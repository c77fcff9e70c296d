"""Lists and maps that are written out with items of different kinds, which upstream refuses.

What is printed by `format` may be of any kinds.

upstream: cel-go's cel/validator.go:ValidateHomogeneousAggregateLiterals
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.cel.checking import Checked
from fairlead.cel.kind import Kind
from fairlead.cel.tree import Call, Entries, Items, Node, below

_EXEMPT = "format"


def mixed(found: Checked) -> Iterator[tuple[Node, str]]:
    """The items that are of another kind than those before them, and what is said of them."""
    due: list[Node] = [found.root]
    while due:
        node = due.pop()
        if isinstance(node, Call) and node.function == _EXEMPT:
            continue
        if isinstance(node, Items):
            yield from _mixed_items(node, found)
        elif isinstance(node, Entries) and not node.type_name:
            yield from _mixed_entries(node, found)
        due.extend(below(node))


def _mixed_items(node: Items, found: Checked) -> Iterator[tuple[Node, str]]:
    first: Kind | None = None
    for at, one in enumerate(node.items):
        kind = _inner(found.kinds[one.id], is_optional=at in node.optional)
        first = first or kind
        if kind != first:
            yield one, _said(first, kind)
            return


def _mixed_entries(node: Entries, found: Checked) -> Iterator[tuple[Node, str]]:
    first_key: Kind | None = None
    first_value: Kind | None = None
    for entry in node.entries:
        if isinstance(entry.key, str):
            continue
        key = found.kinds[entry.key.id]
        value = _inner(found.kinds[entry.value.id], is_optional=entry.is_optional)
        first_key, first_value = first_key or key, first_value or value
        if key != first_key:
            yield entry.key, _said(first_key, key)
        if value != first_value:
            yield entry.value, _said(first_value, value)


def _inner(kind: Kind, *, is_optional: bool) -> Kind:
    return kind.made_of[0] if is_optional and kind.made_of else kind


def _said(wanted: Kind, kind: Kind) -> str:
    return f"expected type '{wanted}' but found '{kind}'"
