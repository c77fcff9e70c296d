"""CEL expressions of webhooks and policies, and the variables they can use.

    object                the new object; null for DELETE
    oldObject             the stored object; null for CREATE
    request               the AdmissionRequest without the objects
    namespaceObject       the Namespace of the object; null if the object is cluster-scoped
    params                the parameters that the policy's binding selects
    authorizer            checks of the requesting user's permissions
    variables             the policy's own variables, each evaluated at its first use

upstream: apiserver/pkg/admission/plugin/cel/{compile,activation,composition}.go
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.nesting import is_too_deep
from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.admission.cel.authorizer import FUNCTIONS
from fairlead.apiserver.apiextensions.cel import named_format
from fairlead.cel.cost.runtime_cost import CostBudget, OutOfBudgetError
from fairlead.cel.error import ExpressionError
from fairlead.cel.program import KEPT_CHARACTERS_MAX, OUT_OF_BUDGET, CelEnvironment, Program

CACHE_SIZE: Final = 1_024
# The maximum size of the value of an expression or a policy variable.
VALUE_CHARACTERS_MAX: Final = 2 << 20
_CHARACTERS_PER_ITEM: Final = 4
_NAMES: Final = (
    "object", "oldObject", "request", "namespaceObject", "params", "variables", "authorizer",
    "authorizer.requestResource",
)  # fmt: skip
_VARIABLE: Final = re.compile(r"\bvariables\.([A-Za-z_]\w*)")


class ExpressionResult(Struct, frozen=True):
    """The value of an expression, or the reason why its evaluation failed."""

    value: Any = None
    problem: str = ""
    is_compile_error: bool = False  # the expression does not compile


class ExpressionContext(Struct):
    """The variables and the common cost budget of expressions that are evaluated together.

    `variable_definitions` is spec.variables of the policy that contains the expressions. For
    expressions outside policies, `variable_definitions` is empty.
    """

    variables: Mapping[str, Any]
    variable_definitions: Sequence[Json] = ()
    _values: dict[str, ExpressionResult] = field(default_factory=dict)
    _budget: CostBudget = field(default_factory=CostBudget)
    _activation: dict[str, Any] | None = None

    def with_budget(self, units: int) -> ExpressionContext:
        """Return a context with the same variables and a separate cost budget of `units`."""
        return replace(self, _budget=CostBudget(units))

    def evaluate(self, expression: str) -> ExpressionResult:
        """Return the value of an expression, after evaluating the policy variables that it uses."""
        self._evaluate_variables(_VARIABLE.findall(expression))
        result = self._evaluate(expression)
        if not result.problem or result.problem == OUT_OF_BUDGET or result.is_compile_error:
            return result
        return ExpressionResult(
            problem=f"expression '{expression}' resulted in error: {result.problem}"
        )

    def _evaluate_variables(self, names: Iterable[str]) -> None:
        """Evaluate the policy variables `names`, after the variables that they depend on."""
        needed_rows, missing = [], set(names) - self._values.keys()
        if not missing:
            return
        for row in reversed(self.variable_definitions):
            if row["name"] in missing:
                needed_rows.append(row)
                variable_definitions = set(_VARIABLE.findall(row["expression"]))
                missing |= variable_definitions - self._values.keys()
        for row in reversed(needed_rows):
            self._values[row["name"]] = self._evaluate(row["expression"])
            self._activation = None

    def _evaluate(self, expression: str) -> ExpressionResult:
        try:
            compiled_program = compiled(expression)
        except ValueError as cause:
            return ExpressionResult(problem=f"compilation error: {cause}", is_compile_error=True)
        problem = self._variable_problem(expression)
        if problem:
            return ExpressionResult(problem=problem)
        try:
            answer = compiled_program.evaluate(self._all_variables(), self._budget)
        except OutOfBudgetError:
            return ExpressionResult(problem=OUT_OF_BUDGET)
        if _is_too_large(answer.value):
            return ExpressionResult(problem=OUT_OF_BUDGET)
        return ExpressionResult(answer.value, answer.problem)

    def _variable_problem(self, expression: str) -> str:
        """Return the error text of the first failed variable in `expression`; "" if none failed."""
        for name in _VARIABLE.findall(expression):
            result = self._values.get(name)
            if result is not None and result.problem:
                return f'composited variable "{name}" fails to evaluate: {result.problem}'
        return ""

    def _all_variables(self) -> dict[str, Any]:
        """Return all CEL variables, including the policy variables that have been evaluated."""
        if self._activation is None:
            values = {name: one.value for name, one in self._values.items() if not one.problem}
            self._activation = {
                **dict.fromkeys(_NAMES), **self.variables, "variables": values
            }  # fmt: skip
        return self._activation


def _is_too_large(value: Any) -> bool:
    """Return whether a value exceeds the maximum size or the maximum nesting depth."""
    remaining, characters = [value], 0
    while remaining and characters <= VALUE_CHARACTERS_MAX:
        here = remaining.pop()
        if isinstance(here, str | bytes):
            characters += len(here)
        elif isinstance(here, dict):
            characters += _CHARACTERS_PER_ITEM * len(here)
            remaining.extend(here)
            remaining.extend(here.values())
        elif isinstance(here, list):
            characters += _CHARACTERS_PER_ITEM * len(here)
            remaining.extend(here)
    return characters > VALUE_CHARACTERS_MAX or is_too_deep(value)


@lru_cache(maxsize=1)
def _environment() -> CelEnvironment:
    return CelEnvironment(_NAMES, (*FUNCTIONS, *named_format.FUNCTIONS))


@text_cache(maxsize=CACHE_SIZE, characters_max=KEPT_CHARACTERS_MAX)
def compiled(expression: str) -> Program:
    """Return the compiled program of `expression`. Raises ValueError if it does not compile."""
    try:
        return _environment().program(expression)
    except ExpressionError as cause:
        raise ValueError(f"compilation failed: {cause}") from None
