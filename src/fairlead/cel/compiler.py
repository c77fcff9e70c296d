"""Compiles an expression: parses it, and checks its types and constants as the API server does.

Apart from type errors, upstream rejects three kinds of expressions:

    duration("x")       a constant argument that cannot be parsed
    [1, "a"]            a list or a map whose items have different types
    int("x") == 1       a constant that cannot be converted

upstream: cel-go's cel/{env,validator}.go, interpreter/decorators.go:decOptimize
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fairlead.api.text.pattern import compiled_pattern
from fairlead.cel.check.checker import Checked, Fields, checked
from fairlead.cel.check.types import CelType, TypeSizeError
from fairlead.cel.error import (
    CelError,
    ConstantError,
    ExpressionError,
    shown_problems,
)
from fairlead.cel.library import regex, standard
from fairlead.cel.syntax.parser import parsed
from fairlead.cel.syntax.syntax_tree import (
    Call,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    below,
    nodes,
)

# The functions whose constant argument is parsed when the expression is compiled. Each has the
# function that parses the constant, and the position of the constant among the arguments.
_READERS: Final[dict[str, tuple[Callable[[Any], Any], int]]] = {
    "duration": (standard.to_duration, 0),
    "timestamp": (standard.to_timestamp, 0),
    "matches": (compiled_pattern, -1),
}
_CONVERSIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "bool": standard.to_bool,
    "bytes": standard.to_bytes,
    "double": standard.to_double,
    "int": standard.to_int,
    "string": standard.to_string,
    "uint": standard.to_uint,
}
_SEARCHES: Final = ("find", "findAll")
_NONE: Final = object()


def compiled(
    expression: str, variables: Mapping[str, CelType], fields: Fields, *, has_bindings: bool = False
) -> Checked:
    """Parse `expression` and check its types; return the result. Raises ExpressionError.

    `variables` maps the name of each allowed variable to its type. `fields` maps the names of
    structured types to their fields. `has_bindings` permits the macro `cel.bind`.
    """
    tree = parsed(expression, has_bindings=has_bindings)
    try:
        found = checked(tree, variables, fields)
    except (RecursionError, TypeSizeError):
        raise ExpressionError("ERROR: <input>:-1:0: expression recursion limit exceeded") from None
    problems = found.problems or sorted(
        (tree.places.get(node.id, 0), text) for node, text in (*_unreadable(found), *_mixed(found))
    )
    if problems:
        raise ExpressionError(shown_problems(expression, problems))
    _require_constants(found)
    return found


def _unreadable(found: Checked) -> Iterator[tuple[Node, str]]:
    """Yield (node, error) for each constant argument that its function cannot parse."""
    for node in nodes(found.root):
        if not isinstance(node, Call) or node.function not in _READERS or not node.arguments:
            continue
        read, at = _READERS[node.function]
        constant = node.arguments[at]
        if isinstance(constant, Literal) and _problem_of(read, constant.value):
            yield constant, f"invalid {node.function} argument"


def _problem_of(convert: Callable[[Any], Any], value: Any) -> str:
    """Return the error text if `value` cannot be converted, otherwise ""."""
    try:
        convert(value)
    except (ValueError, CelError) as cause:
        return str(cause) or "unreadable"
    return ""


def _mixed(found: Checked) -> Iterator[tuple[Node, str]]:
    """Yield (expression, error) for lists and maps whose items, keys or values differ in type.

    In each list, one item is reported: the first item whose type differs from the type of item 0.
    In each map, the keys that differ in type from the first key are reported, and the values that
    differ in type from the first value. Calls of `format` are not searched, because their arguments
    may have any types.

    upstream: cel-go's cel/validator.go:ValidateHomogeneousAggregateLiterals
    """
    due: list[Node] = [found.root]
    while due:
        node = due.pop()
        if isinstance(node, Call) and node.function == "format":
            continue
        if isinstance(node, ListLiteral):
            yield from _mixed_items(node, found)
        elif isinstance(node, MapLiteral) and not node.type_name:
            yield from _mixed_entries(node, found)
        due.extend(below(node))


def _mixed_items(node: ListLiteral, found: Checked) -> Iterator[tuple[Node, str]]:
    first: CelType | None = None
    for at, one in enumerate(node.items):
        type_ = _unwrapped(found.types[one.id], is_optional=at in node.optional)
        first = first or type_
        if type_ != first:
            yield one, _mismatch(first, type_)
            return


def _mixed_entries(node: MapLiteral, found: Checked) -> Iterator[tuple[Node, str]]:
    first_key: CelType | None = None
    first_value: CelType | None = None
    for entry in node.entries:
        if isinstance(entry.key, str):
            continue
        key = found.types[entry.key.id]
        value = _unwrapped(found.types[entry.value.id], is_optional=entry.is_optional)
        first_key, first_value = first_key or key, first_value or value
        if key != first_key:
            yield entry.key, _mismatch(first_key, key)
        if value != first_value:
            yield entry.value, _mismatch(first_value, value)


def _unwrapped(type_: CelType, *, is_optional: bool) -> CelType:
    return type_.parameters[0] if is_optional and type_.parameters else type_


def _mismatch(wanted: CelType, type_: CelType) -> str:
    return f"expected type '{wanted}' but found '{type_}'"


def _require_constants(found: Checked) -> None:
    """Raise ConstantError if a constant cannot be converted, or if a constant pattern is invalid.

    Patterns are the arguments of `find` and `findAll`.
    """
    for node in nodes(found.root):
        _constant(node)
        if isinstance(node, Call) and node.function in _SEARCHES and node.arguments:
            _require_pattern(node.arguments[0])


def _require_pattern(node: Node) -> None:
    if isinstance(node, Literal) and isinstance(node.value, str):
        problem = _problem_of(compiled_pattern, node.value)
        if problem:
            raise ConstantError(regex.pattern_problem(problem))


def _constant(node: Node) -> Any:
    """Return the value of a literal or of a converted literal such as `int("1")`.

    Return `_NONE` for other nodes. Raises ConstantError if a literal cannot be converted.
    """
    if isinstance(node, Literal):
        return node.value
    convert = _CONVERSIONS.get(node.function) if isinstance(node, Call) else None
    if convert is None or not isinstance(node, Call) or node.target is not None:
        return _NONE
    value = _constant(node.arguments[0]) if len(node.arguments) == 1 else _NONE
    if value is _NONE:
        return _NONE
    try:
        return convert(value)
    except (ValueError, CelError) as cause:
        raise ConstantError(str(cause)) from None
