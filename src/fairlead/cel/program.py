"""Programs: expressions that are compiled once and evaluated with many values.

    environment = CelEnvironment({"self"})
    program = environment.program("self.replicas <= 5")
    program.evaluate({"self": {"replicas": 3}}, CostBudget()).value     True

The cost of one evaluation, and of all evaluations for one object, is limited (`runtime_cost`). This
module does not know the types of variables. `compiler` knows these types. It checks an expression
before the object that contains the expression is stored.

upstream: cel-go's cel/{env,program}.go, apiserver/pkg/apis/cel/config.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.cel.check.checker import checked
from fairlead.cel.check.object_types import ObjectTypes
from fairlead.cel.check.types import DYN, CelType, TypeSizeError
from fairlead.cel.cost.runtime_cost import CALL_COST_MAX, CostBudget
from fairlead.cel.error import (
    CALL_LIMIT,
    CelError,
    CostLimitError,
    ExpressionError,
    shown_problems,
)
from fairlead.cel.function import Function
from fairlead.cel.interpreter.evaluator import Planner, overloads_of
from fairlead.cel.interpreter.run import Evaluate, Run, Scope
from fairlead.cel.library import FUNCTIONS
from fairlead.cel.syntax.parser import parsed
from fairlead.cel.value import type_name

# Programs of longer expressions are not cached: a program may use fifty times the memory of its
# text.
KEPT_CHARACTERS_MAX: Final = 2_048
OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class EvaluationResult(Struct, frozen=True):
    """An expression's cost in units, and either its value or an error message (`problem`)."""

    value: Any = None
    problem: str = ""
    cost: int = 0

    @property
    def type_name(self) -> str:
        """The name of the value's type."""
        return type_name(self.value)


class Program(Struct, frozen=True):
    """A compiled expression."""

    evaluate_root: Evaluate
    slots: int

    def evaluate(self, known: Mapping[str, Any], budget: CostBudget) -> EvaluationResult:
        """Evaluate the expression with the variables `known`.

        The cost is taken from `budget`; raises OutOfBudgetError if too little is left. If the
        cost exceeds CALL_COST_MAX, the evaluation stops, and the result contains an error message.
        """
        run = Run(known, self.slots, min(CALL_COST_MAX, budget.left))
        value, problem = None, ""
        try:
            value = self.evaluate_root(run)
        except CelError as cause:
            problem = cause.message
        except (CostLimitError, RecursionError):
            problem = CALL_LIMIT
        if run.cost > run.limit:
            value, problem = None, CALL_LIMIT
        if problem == CALL_LIMIT:
            # The maximum cost of a call is charged. This also applies if the evaluation ended at
            # the recursion limit, or at the limit of work that upstream's units do not count.
            run.cost = CALL_COST_MAX
        budget.spend(run.cost)
        return EvaluationResult(value, problem, run.cost)


class CelEnvironment:
    """The variables and functions that expressions can use."""

    def __init__(self, variables: Iterable[str], more: Iterable[Function] = ()) -> None:
        """`variables` are names; `more` contains functions in addition to the library."""
        self._variables: dict[str, CelType] = dict.fromkeys(variables, DYN)
        functions = overloads_of((*FUNCTIONS, *more))
        self._planner = Planner(frozenset(self._variables), functions)

    def program(self, expression: str) -> Program:
        """Compile an expression to a program. Raises ExpressionError."""
        tree = parsed(expression)
        try:
            problems = checked(tree, self._variables, ObjectTypes()).problems
            if problems:
                raise ExpressionError(shown_problems(expression, problems))
            scope = Scope()
            root = self._planner.compile(tree.root, scope)
        except (RecursionError, TypeSizeError):
            raise ExpressionError(
                "ERROR: <input>:-1:0: expression recursion limit exceeded"
            ) from None
        return Program(root, scope.size)
