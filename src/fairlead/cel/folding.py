"""Folding: constants that are made into other kinds when an expression becomes a program.

    int("x") == 1      is refused, although it would be asked in vain only

upstream: cel-go's interpreter/decorators.go:decOptimize
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from fairlead.api.text.pattern import compiled_pattern
from fairlead.cel.checking import Checked
from fairlead.cel.expansion import ConstantError
from fairlead.cel.library import configured
from fairlead.cel.problem import pattern_problem, problem_of
from fairlead.cel.tree import Call, Literal, Node, nodes

if TYPE_CHECKING:
    from cel_expr_python import cel

# Texts of times and patterns are looked at before (`reading`).
_CONVERSIONS: Final = frozenset({"bool", "bytes", "double", "int", "string", "uint"})
_SEARCHES: Final = ("find", "findAll")
_NONE: Final = object()


def require_constants(found: Checked) -> None:
    """Raises ConstantError where one cannot be converted."""
    for node in nodes(found.root):
        _constant(node)
        if isinstance(node, Call) and node.function in _SEARCHES and node.arguments:
            _require_pattern(node.arguments[0])


def converted(name: str, value: Any) -> tuple[Any, str]:
    """What a conversion makes of a value, or why it makes nothing of it."""
    result = _language().compile(f"{name}(value)").eval(data={"value": value})
    if result.type().name() == "ERROR":
        return None, problem_of(result)
    return result.plain_value(), ""


def _require_pattern(node: Node) -> None:
    if not isinstance(node, Literal) or not isinstance(node.value, str):
        return
    try:
        compiled_pattern(node.value)
    except ValueError as cause:
        raise ConstantError(pattern_problem(str(cause))) from None


def _constant(node: Node) -> Any:
    """The value of a constant, also of one that is converted."""
    if isinstance(node, Literal):
        return node.value
    if not isinstance(node, Call) or node.function not in _CONVERSIONS or node.target is not None:
        return _NONE
    value = _constant(node.arguments[0]) if len(node.arguments) == 1 else _NONE
    if value is _NONE:
        return _NONE
    made, problem = converted(node.function, value)
    if problem:
        raise ConstantError(problem)
    return made


@lru_cache(maxsize=1)
def _language() -> cel.Env:
    return configured({"value": "dyn"}, (), ())
