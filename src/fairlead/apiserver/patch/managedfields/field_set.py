"""Field sets: sets of paths into an object, as tries of path elements.

A node of a trie is a dict from path element to child node. The key "." means that the path of the
node is in the set. The set {.metadata.labels["a"], .spec, .spec.replicas} is

    {"f:metadata": {"f:labels": {"f:a": {".": {}}}},
     "f:spec": {".": {}, "f:replicas": {".": {}}}}

In `metadata.managedFields[].fieldsV1`, the path of a node without children is in the set even
without the key ".". So the same set is

    {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {".": {}, "f:replicas": {}}}

Sets are never mutated, so operations share nodes between their results.

upstream: sigs.k8s.io/structured-merge-diff/fieldpath/{set,serialize}.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.apiserver.patch.managedfields.path_element import (
    SELF,
    canonical_element,
    element_text,
    field_element,
    in_order,
)

FieldSet = dict[str, Any]

LEAF: Final[FieldSet] = {SELF: {}}
EMPTY: Final[FieldSet] = {}


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields that are in at least one of the sets."""
    if not left or not right:
        return left or right
    merged = dict(left)
    for element, node in right.items():
        mine = merged.get(element)
        merged[element] = node if mine is None or element == SELF else union(mine, node)
    return merged


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields that are in `left` but not in `right`."""
    if not right:
        return left
    result = {}
    for element, node in left.items():
        theirs = right.get(element)
        if theirs is None:
            result[element] = node
        elif element != SELF:
            rest = difference(node, theirs)
            if rest:
                result[element] = rest
    return result


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the fields that are in both sets."""
    both = {}
    for element, node in left.items():
        theirs = right.get(element)
        if theirs is None:
            continue
        shared = node if element == SELF else intersection(node, theirs)
        if shared or element == SELF:
            both[element] = shared
    return both


def recursive_difference(fields: FieldSet, roots: FieldSet) -> FieldSet:
    """Return the fields of `fields` that are neither in `roots` nor below a field in `roots`.

    Example: if `roots` is {.status}, .status.phase is removed, too; `difference` would keep it.
    """
    # upstream: set.go:RecursiveDifference
    result = {}
    for element, node in fields.items():
        theirs = roots.get(element)
        if theirs is None:
            result[element] = node
        elif SELF not in theirs and element != SELF:
            rest = recursive_difference(node, theirs)
            if rest:
                result[element] = rest
    return result


def set_of_path(*names: str) -> FieldSet:
    """Return the set of one field; for example, `set_of_path("spec", "replicas")`."""
    node = LEAF
    for name in reversed(names):
        node = {field_element(name): node}
    return node


def set_of_paths(*paths_: tuple[str, ...]) -> FieldSet:
    """Return the set of the fields at `paths_`; a path is a tuple of field names."""
    made: FieldSet = {}
    for path in paths_:
        made = union(made, set_of_path(*path))
    return made


def to_fields_v1(node: FieldSet) -> FieldSet:
    """Return a set in the form of `fieldsV1`, with its elements in upstream's order."""
    made = {}
    for element in in_order(node):
        inner = node[element]
        is_member_only = not inner or (len(inner) == 1 and SELF in inner)
        made[element] = EMPTY if is_member_only else to_fields_v1(inner)
    return made


def from_fields_v1(node: Any) -> FieldSet:
    """Return the set that a `fieldsV1` describes. Raises ValueError if `node` is malformed."""
    if not isinstance(node, dict):
        raise ValueError("a field set is an object")  # noqa: TRY004 - client's input
    made = {}
    for element, inner in node.items():
        known = "" if element == SELF else canonical_element(element)
        if not known:
            continue
        below = from_fields_v1({} if inner is None else inner)
        is_member = not below or SELF in inner
        made[known] = {SELF: EMPTY, **below} if is_member else below
    return made


def paths(node: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield the path of each field in the set `node`, with `prefix` before each path.

    Example of a path: `.spec.containers[name="c"].image`. All fields directly inside an object come
    before the fields at deeper levels of the object. Upstream lists conflicts in this order.
    """
    # upstream: set.go:iteratePrefix
    elements = [element for element in in_order(node) if element != SELF]
    for element in elements:
        if SELF in node[element]:
            yield prefix + element_text(element)
    for element in elements:
        yield from paths(node[element], prefix + element_text(element))
