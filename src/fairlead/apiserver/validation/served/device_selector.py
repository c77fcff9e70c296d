"""Expressions that select devices: whether they can be compiled, and say yes or no.

upstream: dynamic-resource-allocation/cel/compile.go:CompileCELExpression,
pkg/apis/resource/validation/validation.go:validateCELSelector
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from fairlead.api.expression.device_language import device_language
from fairlead.apiserver.validation.field import Causes, invalid, required
from fairlead.apiserver.validation.served.form import too_long, too_many

if TYPE_CHECKING:
    from cel_expr_python import cel

Json = dict[str, Any]

LENGTH_MAX: Final = 10 * 1024
SELECTORS_MAX: Final = 32
EXPRESSIONS_CACHED_MAX: Final = 1_024
_NOISE: Final = re.compile(r"^[A-Z_]+: (?=ERROR)|\s*\[[A-Z_]+\]$")
# Upstream's devices are a type with fields, ours are variables of such names.
_FIELD: Final = re.compile(r"undeclared reference to 'device\.(\w+)' \(in container ''\)")


def check_selectors(field: str, selectors: list[Json]) -> Causes:
    """What a request, or a class, asks of a device."""
    for place, selector in enumerate(selectors):
        where = f"{field}[{place}].cel"
        if selector.get("cel") is None:
            yield required(where)
            continue
        yield from _check_expression(f"{where}.expression", selector["cel"].get("expression", ""))
    if len(selectors) > SELECTORS_MAX:
        yield too_many(field, len(selectors), SELECTORS_MAX)


def _check_expression(field: str, expression: str) -> Causes:
    if len(expression.encode()) > LENGTH_MAX:
        yield too_long(field, LENGTH_MAX)
        return
    problem = _problem(expression)
    if problem:
        yield invalid(field, expression, problem)


@lru_cache(maxsize=EXPRESSIONS_CACHED_MAX)
def _problem(expression: str) -> str:
    """Why an expression is none; nothing if it is one."""
    try:
        kind = _language().compile(expression).return_type().name()
    except RuntimeError as cause:
        text = _NOISE.sub("", str(cause))
        return "compilation failed: " + _FIELD.sub(r"undefined field '\1'", text)
    if kind in ("BOOL", "DYN"):
        return ""
    return f"must evaluate to bool or the unknown type, not {kind.lower()}"


@cache
def _language() -> cel.Env:
    return device_language()
