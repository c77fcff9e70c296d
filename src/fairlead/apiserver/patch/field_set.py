"""Sets of fields: paths into an object, as a trie of JSON values.

A key is a step: `f:name` a field or a map's key, `k:{"name":"c"}` an item of a list by its keys,
`v:"x"` an item by its value. "." in a node says that the node itself is a member. On the wire
(metadata.managedFields[].fieldsV1) a node without children is a member without saying so.
Sets are never mutated, and they share nodes.

upstream: sigs.k8s.io/structured-merge-diff/fieldpath/{set,element,serialize}.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fairlead.api.integer import parse_int64
from fairlead.api.nesting import is_too_deep
from fairlead.api.text_cache import text_cache

CACHE_SIZE: Final = 4_096
FieldSet = dict[str, Any]

SELF: Final = "."
LEAF: Final[FieldSet] = {SELF: {}}
NOTHING: Final[FieldSet] = {}
_NUMBERED: Final = re.compile(r"v:-?\d|k:.*:-?\d")


def field_step(name: str) -> str:
    """The step to a field, or to a map's entry."""
    return f"f:{name}"


def key_step(keys: dict[str, Any]) -> str:
    """The step to the item of a list that has these keys."""
    return f"k:{_compact({name: keys[name] for name in sorted(keys)})}"


def value_step(value: Any) -> str:
    """The step to the item of a list that is this value."""
    return f"v:{_compact(value)}"


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in either."""
    if not one or not other:
        return one or other
    merged = dict(one)
    for step, node in other.items():
        mine = merged.get(step)
        merged[step] = node if mine is None or step == SELF else union(mine, node)
    return merged


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in `one` and not in `other`."""
    if not other:
        return one
    left = {}
    for step, node in one.items():
        theirs = other.get(step)
        if theirs is None:
            left[step] = node
        elif step != SELF:
            rest = difference(node, theirs)
            if rest:
                left[step] = rest
    return left


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in both."""
    both = {}
    for step, node in one.items():
        theirs = other.get(step)
        if theirs is None:
            continue
        shared = node if step == SELF else intersection(node, theirs)
        if shared or step == SELF:
            both[step] = shared
    return both


def without_subtrees(one: FieldSet, roots: FieldSet) -> FieldSet:
    """`one` without the members of `roots` and everything below them."""
    left = {}
    for step, node in one.items():
        theirs = roots.get(step)
        if theirs is None:
            left[step] = node
        elif SELF not in theirs and step != SELF:
            rest = without_subtrees(node, theirs)
            if rest:
                left[step] = rest
    return left


def of_path(*names: str) -> FieldSet:
    """The set of one field, which is reached by these names."""
    node = LEAF
    for name in reversed(names):
        node = {field_step(name): node}
    return node


def wire(node: FieldSet) -> FieldSet:
    """As it stands in fieldsV1."""
    made = {}
    for step in _in_order(node):
        inner = node[step]
        is_leaf = not inner or (len(inner) == 1 and SELF in inner)
        made[step] = NOTHING if is_leaf else wire(inner)
    return made


def _in_order(node: FieldSet) -> list[str]:
    # upstream: fieldpath/element.go:PathElement.Less: numbers are compared as numbers
    if not any(map(_NUMBERED.match, node)):
        return sorted(node)
    return sorted(node, key=_rank)


def _rank(step: str) -> tuple[str, list[tuple[int, Any]]]:
    if step[:2] not in ("k:", "v:"):
        return step, []
    content = msgspec.json.decode(step[2:])
    values = list(content.values()) if isinstance(content, dict) else [content]
    return step[:2], [_comparable(value) for value in values]


def _comparable(value: Any) -> tuple[int, Any]:
    match value:
        case int() | float():
            return 0, value
        case str():
            return 1, value
        case _:
            return 2, _compact(value)


def unwire(node: Any) -> FieldSet:
    """What stands in fieldsV1. Raises ValueError for what is no set of fields."""
    if not isinstance(node, dict):
        raise ValueError("a set of fields is an object")  # noqa: TRY004 - of a client's making
    made = {}
    for step, inner in node.items():
        if step == SELF:
            made[step] = NOTHING
        elif _is_step(step):
            made[step] = unwire(inner) if inner else LEAF
        else:
            raise ValueError(f"{step!r} is no step to a field")
    return made


@text_cache(maxsize=CACHE_SIZE)
def _is_step(step: str) -> bool:
    """Whether a step says where it leads."""
    # upstream: structured-merge-diff/fieldpath/serialize-pe.go:DeserializePathElement
    sort, rest = step[:2], step[2:]
    if sort == "f:":
        return True
    if sort == "i:":
        return parse_int64(rest) is not None
    try:
        value = msgspec.json.decode(rest) if sort in ("k:", "v:") else None
    except (msgspec.DecodeError, RecursionError):
        return False
    if is_too_deep(value):  # it is read again, where less of the stack may be left
        return False
    return isinstance(value, dict) if sort == "k:" else sort == "v:"


def paths(node: FieldSet, prefix: str = "") -> Iterator[str]:
    """The members as texts such as `.spec.containers[name="c"].image`: children of a node last."""
    # upstream: set.go:iteratePrefix gives a node's members first, then those below each child
    for step, inner in sorted(node.items()):
        if step != SELF and SELF in inner:
            yield prefix + step_text(step)
    for step, inner in sorted(node.items()):
        if step != SELF:
            yield from paths(inner, prefix + step_text(step))


def step_text(step: str) -> str:
    """A step as error messages write it."""
    # upstream: element.go:PathElement.String
    sort, rest = step[:2], step[2:]
    if sort == "f:":
        return f".{rest}"
    if sort == "v:":
        return f"[={rest}]"
    if sort == "i:":
        return f"[{rest}]"
    keys = msgspec.json.decode(rest)
    return "[" + ",".join(f"{name}={_compact(value)}" for name, value in keys.items()) + "]"


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()
