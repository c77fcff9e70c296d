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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from fairlead.api.expression.library import environment
from fairlead.api.expression.problem import problem_of
from fairlead.apiserver.admission.authorizer import FUNCTIONS, Judge, judging
from fairlead.apiserver.custom.rules import OUT_OF_BUDGET
from fairlead.apiserver.storage import Json

if TYPE_CHECKING:
    from cel_expr_python import cel

CACHE_SIZE: Final = 1_024
_NAMES: Final = (
    "object", "oldObject", "request", "namespaceObject", "params", "variables", "authorizer",
)  # fmt: skip
_VARIABLE: Final = re.compile(r"\bvariables\.([A-Za-z_]\w*)")
_STATUS: Final = re.compile(r"^[A-Z_]+: |\s*\[[A-Z_]+\]$")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an expression comes to, or why it comes to nothing."""

    value: Any = None
    problem: str = ""


@dataclass(slots=True)
class Scope:
    """What expressions about one request can name; `named` are a policy's variables in order.

    `judge` knows what else whoever asks may do.
    """

    known: Mapping[str, Any]
    named: Sequence[Json] = ()
    judge: Judge | None = None
    _values: dict[str, Evaluation] = field(default_factory=dict)

    def evaluated(self, expression: str) -> Evaluation:
        """What `expression` comes to."""
        try:
            program = compiled(expression)
        except ValueError as cause:
            return Evaluation(problem=f"compilation error: {cause}")
        found = self._asked(expression)
        if found.problem:
            return Evaluation(problem=_resulted(expression, found.problem))
        absent = dict.fromkeys(_NAMES)
        try:
            with judging(self.judge):
                result = program.eval(data={**absent, **self.known, "variables": found.value})
        except RuntimeError:  # what an evaluation may cost is bounded
            return Evaluation(problem=OUT_OF_BUDGET)
        if result.type().name() == "ERROR":
            return Evaluation(problem=_resulted(expression, problem_of(result)))
        return Evaluation(result.plain_value())

    def _asked(self, expression: str) -> Evaluation:
        """The variables that `expression` names; the first of them that fails."""
        values = {}
        wanted = set(_VARIABLE.findall(expression))
        for row in self.named:
            name = row["name"]
            if name in wanted:
                found = self._variable(name, row["expression"])
                if found.problem:
                    why = f'composited variable "{name}" fails to evaluate: {found.problem}'
                    return Evaluation(problem=why)
                values[name] = found.value
        return Evaluation(values)

    def _variable(self, name: str, expression: str) -> Evaluation:
        if name not in self._values:
            self._values[name] = Evaluation(problem="it depends on itself")
            self._values[name] = self.evaluated(expression)
        return self._values[name]


def _resulted(expression: str, problem: str) -> str:
    return f"expression '{expression}' resulted in error: {problem}"


@lru_cache(maxsize=1)
def _environment() -> cel.Env:
    return environment(dict.fromkeys(_NAMES, "dyn"), FUNCTIONS)


@lru_cache(maxsize=CACHE_SIZE)
def compiled(expression: str) -> cel.Expression:
    """The program of `expression`. Raises ValueError that says what is wrong with it."""
    try:
        return _environment().compile(expression)
    except RuntimeError as cause:
        text = str(cause)
        while _STATUS.search(text):
            text = _STATUS.sub("", text)
        raise ValueError(f"compilation failed: {text}") from None
