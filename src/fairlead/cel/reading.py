"""Reading: an expression as a checked tree, or what its compiler says against it.

The library's parser reads; macros that upstream does not have are unknown to it here. What it says
is put into the words of CEL's implementation in Go.

upstream: cel-go's cel/env.go:Compile, cel/validator.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from fairlead.api.text.pattern import compiled_pattern
from fairlead.cel.checking import Checked, Fields, checked
from fairlead.cel.expansion import ExpressionError, check_size
from fairlead.cel.folding import converted, require_constants
from fairlead.cel.kept import tree_of
from fairlead.cel.kind import Kind
from fairlead.cel.library import BINDINGS, PARTS, configured
from fairlead.cel.mixture import mixed
from fairlead.cel.picture import shown
from fairlead.cel.tree import Call, Literal, Node, nodes

if TYPE_CHECKING:
    from cel_expr_python import cel

_STATUS: Final = re.compile(r"^(?!ERROR)[A-Z_]+: |\s*\[[A-Z_]+\]$")
_NO_NAME: Final = re.compile(r"\w+\(\) variable name must be a simple identifier")
_DEPTH: Final = re.compile(r"[Rr]ecursion (?:limit|depth)\D*(\d+)")
_NOWHERE: Final = "ERROR: <input>:-1:0: "
# What constants are read by, with the place of the constant among the arguments.
_READERS: Final = {"duration": 0, "timestamp": 0, "matches": -1}


def read(
    expression: str, variables: Mapping[str, Kind], fields: Fields, *, has_bindings: bool = False
) -> Checked:
    """What an expression over `variables` is. Raises ExpressionError.

    `fields` are those of the structures among the kinds. Only some expressions have `cel.bind`.
    """
    check_size(expression)
    try:
        kept = (
            _parser(has_bindings=has_bindings).compile(expression, disable_check=True).serialize()
        )
    except RuntimeError as cause:
        raise ExpressionError(_told(str(cause))) from None
    tree = tree_of(kept)
    found = checked(tree, variables, fields)
    problems = found.problems or sorted(
        (tree.places.get(node.id, 0), text) for node, text in (*_misread(found), *mixed(found))
    )
    if problems:
        raise ExpressionError(shown(expression, problems))
    require_constants(found)
    return found


def parsed_tree(expression: str) -> Node:
    """The tree of an expression that is known to be one. Raises RuntimeError of the library."""
    kept = _parser(has_bindings=True).compile(expression, disable_check=True).serialize()
    return tree_of(kept).root


@lru_cache(maxsize=2)
def _parser(*, has_bindings: bool) -> cel.Env:
    return configured({}, (*PARTS, BINDINGS) if has_bindings else PARTS, ())


def _told(said: str) -> str:
    """What the parser says against an expression, without its own marks."""
    while _STATUS.search(said):
        said = _STATUS.sub("", said)
    depth = _DEPTH.search(said)
    if depth is not None:
        return f"{_NOWHERE}expression recursion limit exceeded: {depth[1]}"
    return _NO_NAME.sub("argument must be a simple name", said)


def _misread(found: Checked) -> Iterator[tuple[Node, str]]:
    """The constants that are none of what they are read as."""
    for node in nodes(found.root):
        if not isinstance(node, Call) or node.function not in _READERS:
            continue
        constant = node.arguments[_READERS[node.function]] if node.arguments else None
        if isinstance(constant, Literal) and not _is_readable(node.function, constant.value):
            yield constant, f"invalid {node.function} argument"


def _is_readable(name: str, value: Any) -> bool:
    if name != "matches":
        return not converted(name, value)[1]
    try:
        compiled_pattern(value)
    except ValueError:
        return False
    return True
