"""The language in which webhooks and policies say what they are about: CEL, over a request.

    object, oldObject     what is to be stored, what is there; null where there is none
    request               who wants what: an AdmissionRequest without the objects
    namespaceObject       the namespace of the object, null where it is in none
    params                the parameters of a policy's binding
    authorizer            what else whoever asks may do
    variables             what a policy has named, worked out when somebody asks

upstream: apiserver/pkg/admission/plugin/cel/{compile,activation,composition}.go
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from fairlead.api.json import Json
from fairlead.api.text.nesting import is_too_deep
from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.admission.cel.authorizer import FUNCTIONS, Judge, judging
from fairlead.apiserver.apiextensions.cel import named_format
from fairlead.cel.asking import OUT_OF_BUDGET, Budget, OutOfBudgetError, Program, Seen, program
from fairlead.cel.expansion import ExpressionError
from fairlead.cel.library import KEPT_CHARACTERS_MAX, environment

if TYPE_CHECKING:
    from cel_expr_python import cel

CACHE_SIZE: Final = 1_024
# What one expression may hand to the next.
VARIABLE_CHARACTERS_MAX: Final = 2 << 20
_NAMES: Final = (
    "object", "oldObject", "request", "namespaceObject", "params", "variables", "authorizer",
)  # fmt: skip
_VARIABLE: Final = re.compile(r"\bvariables\.([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an expression comes to, or why it comes to nothing."""

    value: Any = None
    problem: str = ""
    is_none: bool = False  # it is no expression


@dataclass(slots=True)
class Scope:
    """What expressions about one request can name; `named` are a policy's variables in order.

    `judge` knows what else whoever asks may do.
    """

    known: Mapping[str, Any]
    named: Sequence[Json] = ()
    judge: Judge | None = None
    _values: dict[str, Evaluation] = field(default_factory=dict)
    _budget: Budget = field(default_factory=Budget)
    _seen: Seen | None = None

    def evaluated(self, expression: str) -> Evaluation:
        """What `expression` comes to."""
        self._work_out(_VARIABLE.findall(expression))
        found = self._evaluated(expression)
        if not found.problem or found.problem == OUT_OF_BUDGET or found.is_none:
            return found
        return Evaluation(problem=f"expression '{expression}' resulted in error: {found.problem}")

    def _work_out(self, wanted: Iterable[str]) -> None:
        """Have the variables `wanted`, and before them those that they name, which stand before."""
        due, missing = [], set(wanted) - self._values.keys()
        if not missing:
            return
        for row in reversed(self.named):
            if row["name"] in missing:
                due.append(row)
                named = set(_VARIABLE.findall(row["expression"]))
                missing |= named - self._values.keys()
        for row in reversed(due):
            self._values[row["name"]] = _bounded(self._evaluated(row["expression"]))
            self._seen = None

    def _evaluated(self, expression: str) -> Evaluation:
        try:
            asked = compiled(expression)
        except ValueError as cause:
            return Evaluation(problem=f"compilation error: {cause}", is_none=True)
        problem = self._failed_variable(expression)
        if problem:
            return Evaluation(problem=problem)
        try:
            with judging(self.judge):
                answer = self._with_variables().ask(asked, self._budget)
        except OutOfBudgetError:
            return Evaluation(problem=OUT_OF_BUDGET)
        return Evaluation(answer.value, answer.problem)

    def _failed_variable(self, expression: str) -> str:
        """Why the first variable that `expression` names has no value, if one has none."""
        for name in _VARIABLE.findall(expression):
            found = self._values.get(name)
            if found is not None and found.problem:
                return f'composited variable "{name}" fails to evaluate: {found.problem}'
        return ""

    def _with_variables(self) -> Seen:
        """All that can be named, with the variables that have been worked out."""
        if self._seen is None:
            values = {name: one.value for name, one in self._values.items() if not one.problem}
            known = {**dict.fromkeys(_NAMES), **self.known, "variables": values}
            self._seen = Seen(_environment(), known)
        return self._seen


def _bounded(found: Evaluation) -> Evaluation:
    """`found`, unless what is made of it could grow without end."""
    if found.problem or not isinstance(found.value, str | bytes | list | dict):
        return found
    is_beyond = is_too_deep(found.value) or len(repr(found.value)) > VARIABLE_CHARACTERS_MAX
    return Evaluation(problem=OUT_OF_BUDGET) if is_beyond else found


@lru_cache(maxsize=1)
def _environment() -> cel.Env:
    return environment(dict.fromkeys(_NAMES, "dyn"), (*FUNCTIONS, *named_format.FUNCTIONS))


@text_cache(maxsize=CACHE_SIZE, characters_max=KEPT_CHARACTERS_MAX)
def compiled(expression: str) -> Program:
    """The program of `expression`. Raises ValueError that says what is wrong with it."""
    try:
        return program(_environment(), expression)
    except ExpressionError as cause:
        raise ValueError(f"compilation failed: {cause}") from None
