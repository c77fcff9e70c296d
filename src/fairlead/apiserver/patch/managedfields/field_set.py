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

from fairlead.api.field_problem import quoted
from fairlead.api.integer import parse_int64
from fairlead.api.nesting import is_too_deep
from fairlead.api.text_cache import text_cache
from fairlead.apiserver.gotext.value import go_float, go_json

CACHE_SIZE: Final = 4_096
FieldSet = dict[str, Any]

SELF: Final = "."
LEAF: Final[FieldSet] = {SELF: {}}
NOTHING: Final[FieldSet] = {}
# Where the order of texts is not that of the values in them.
_RANKED: Final = re.compile(r"v:-?\d|k:.*:-?\d|[vk]:.*[\x20!\\]|[vk]:.*(true|false|null)|i:")
_SORTS: Final = ("f:", "k:", "v:", "i:")


def field_step(name: str) -> str:
    """The step to a field, or to a map's entry."""
    return f"f:{name}"


def key_step(keys: dict[str, Any]) -> str:
    """The step to the item of a list that has these keys."""
    return f"k:{go_json({name: _plain(keys[name]) for name in sorted(keys)})}"


def value_step(value: Any) -> str:
    """The step to the item of a list that is this value."""
    return f"v:{go_json(_plain(value))}"


def _plain(value: Any) -> Any:
    """A number without a fraction is written without a point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


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
    # upstream: fieldpath/element.go:PathElement.Compare: by values, not by their texts
    if not any(map(_RANKED.match, node)):
        return sorted(node)
    return sorted(node, key=_rank)


def _rank(step: str) -> tuple[int, list[tuple[str, int, Any]]]:
    sort, rest = step[:2], step[2:]
    if step == SELF:
        return -1, []
    if sort in ("f:", "i:"):
        return _SORTS.index(sort), [("", 0, rest if sort == "f:" else int(rest))]
    content = msgspec.json.decode(rest)
    members = content.items() if sort == "k:" else (("", content),)
    return _SORTS.index(sort), [(name, *_comparable(value)) for name, value in members]


def _comparable(value: Any) -> tuple[int, Any]:
    # upstream: structured-merge-diff/value/value.go:Compare
    match value:
        case bool():
            return 2, value
        case int() | float():
            return 0, value
        case str():
            return 1, value
        case None:
            return 5, ""
        case _:
            return 3 if isinstance(value, list) else 4, go_json(value)


def unwire(node: Any) -> FieldSet:
    """What stands in fieldsV1. Raises ValueError for what is no set of fields."""
    if not isinstance(node, dict):
        raise ValueError("a set of fields is an object")  # noqa: TRY004 - of a client's making
    made = {}
    for step, inner in node.items():
        known = "" if step == SELF else _canonical_step(step)
        if not known:
            continue
        below = unwire({} if inner is None else inner)
        is_member = not below or SELF in inner
        made[known] = {SELF: NOTHING, **below} if is_member else below
    return made


@text_cache(maxsize=CACHE_SIZE)
def _canonical_step(step: str) -> str:
    """A step as it is written here; "" for one that another version may know.

    Raises ValueError for one that leads nowhere.
    """
    # upstream: structured-merge-diff/fieldpath/serialize-pe.go:DeserializePathElement
    sort, rest = step[:2], step[2:]
    if sort[1:] != ":":
        raise ValueError(f"{step!r} is no step to a field")
    if sort not in _SORTS:
        return ""
    if sort == "f:":
        return step
    if sort == "i:":
        number = parse_int64(rest)
        if number is None:
            raise ValueError(f"{step!r} is no step to a field")
        return f"i:{number}"
    try:
        value = msgspec.json.decode(rest)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError(f"{step!r} is no step to a field") from None
    if is_too_deep(value):  # it is read again, where less of the stack may be left
        raise ValueError(f"{step!r} is no step to a field")
    if sort == "v:":
        return value_step(value)
    if not isinstance(value, dict):
        raise ValueError(f"{step!r} is no step to a field")  # noqa: TRY004 - of a client's making
    return key_step(value)


def paths(node: FieldSet, prefix: str = "") -> Iterator[str]:
    """The members as texts such as `.spec.containers[name="c"].image`: children of a node last."""
    # upstream: set.go:iteratePrefix gives a node's members first, then those below each child
    steps = [step for step in _in_order(node) if step != SELF]
    for step in steps:
        if SELF in node[step]:
            yield prefix + step_text(step)
    for step in steps:
        yield from paths(node[step], prefix + step_text(step))


def step_text(step: str) -> str:
    """A step as error messages write it."""
    # upstream: element.go:PathElement.String
    sort, rest = step[:2], step[2:]
    if sort == "f:":
        return f".{rest}"
    if sort == "i:":
        return f"[{rest}]"
    content = msgspec.json.decode(rest)
    if sort == "v:":
        return f"[={_shown(content)}]"
    return "[" + ",".join(f"{name}={_shown(value)}" for name, value in content.items()) + "]"


def _shown(value: Any) -> str:
    # upstream: structured-merge-diff/value/value.go:ToString
    match value:
        case str():
            return quoted(value)
        case list():
            return f"[{','.join(map(_shown, value))}]"
        case dict():
            return "".join(f"{key}={_shown(item)}" for key, item in value.items())
        case float():
            return go_float(value)
        case _:
            return go_json(value)
