"""Whether expressions about requests can be asked: they compile, and come to what is wanted.

What expressions may do with an `authorizer` is not known here; those that name one are not read.

upstream: pkg/apis/admissionregistration/validation/validation.go,
apiserver/pkg/admission/plugin/cel/compile.go:CompileCELExpression
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from fairlead.api.expression.library import KEPT_CHARACTERS_MAX, environment
from fairlead.api.expression.problem import compile_problem
from fairlead.api.text_cache import text_cache
from fairlead.apiserver.validation.field import Causes, invalid

if TYPE_CHECKING:
    from cel_expr_python import cel

CACHE_SIZE: Final = 1_024
BOOLEAN: Final = ("bool",)
TEXT: Final = ("string",)
TEXT_OR_NULL: Final = ("string", "null_type")
_NAMES: Final = ("object", "oldObject", "request", "namespaceObject", "params", "variables")
_UNREAD: Final = re.compile(r"\bauthorizer\b")
# Types that have other names here than in the library.
_TYPES: Final = {"NULL": "null_type", "LIST": "list(dyn)", "MAP": "map(dyn, dyn)"}


def check_expression(field: str, expression: str, wanted: tuple[str, ...] = ()) -> Causes:
    """An expression that comes to one of the types `wanted`, to anything where there are none."""
    if not expression.strip() or _UNREAD.search(expression):
        return
    problem, made = _read(expression)
    if problem:
        yield invalid(field, expression, f"compilation failed: {problem}")
    elif wanted and made not in ("dyn", *wanted):
        which = wanted[0] if not wanted[1:] else f"one of [{' '.join(wanted)}]"
        yield invalid(field, expression, f"must evaluate to {which} but got {made}")


@lru_cache(maxsize=1)
def _environment() -> cel.Env:
    return environment(dict.fromkeys(_NAMES, "dyn"))


@text_cache(maxsize=CACHE_SIZE, characters_max=KEPT_CHARACTERS_MAX)
def _read(expression: str) -> tuple[str, str]:
    """What is wrong with an expression, or the type that it comes to."""
    try:
        made = str(_environment().compile(expression).return_type().name())
    except RuntimeError as cause:
        return compile_problem(expression, cause), ""
    return "", _TYPES.get(made, made.lower())
