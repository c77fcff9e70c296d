"""Asking an expression: its answer about given values, within bounds.

What one question, and all those about one object, may take is bounded before they are asked
(`bound`). Upstream counts what is taken meanwhile, in other units; what is said is the same.

upstream: apiserver/pkg/apis/cel/config.go: PerCallLimit, RuntimeCELCostBudget
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from fairlead.cel.bound import LOOK, TooCostlyError, spend
from fairlead.cel.expansion import ExpressionError, check_size
from fairlead.cel.extent import Scale
from fairlead.cel.kept import tree_of
from fairlead.cel.library import KEPT_CHARACTERS_MAX
from fairlead.cel.problem import CALL_LIMIT, NO_NAMES, compile_problem, failure_of, problem_of
from fairlead.cel.reading import parsed_tree
from fairlead.cel.retelling import needs_retelling, retold
from fairlead.cel.tree import Call, Items, Literal, Loop, Node, nodes
from fairlead.cel.writing import written

if TYPE_CHECKING:
    from cel_expr_python import cel

BUDGET: Final = 200_000_000  # units of `bound`
KEPT_BYTES_MAX: Final = 16 << 20
_READING: Final = 600  # for each character
_LIGHT_NODES_MAX: Final = 24
_LIGHT_UNITS: Final = 2_000
_LIGHT: Final = frozenset(
    {"_&&_", "_||_", "!_", "-_", "_-_", "_?_:_", "_[_]", "_?._", "_[?_]", "hasValue", "orValue"}
    | {"type", "int", "double", "bool"}
)
# These are light where one of what they compare is written out.
_COMPARISONS: Final = frozenset(
    {"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "startsWith", "endsWith"}
)
OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class OutOfBudgetError(Exception):
    """All questions together have taken more than they may."""


class Budget:
    """What is left of it."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        """All of it is left."""
        self._left = BUDGET

    def take(self, units: int) -> None:
        """Take what a question may need. Raises OutOfBudgetError."""
        self._left -= units
        if self._left < 0:
            raise OutOfBudgetError


@dataclass(frozen=True)
class Program:
    """An expression that can be asked.

    `made` are the values that are made of those it is asked about, by names of theirs, before it
    is asked what is at `root`. Programs of long texts are not kept: they are read at each question,
    which takes so many units.
    """

    expression: cel.Expression
    root: Node
    made: tuple[Node, ...] = ()
    reading_units: int = 0

    @cached_property
    def is_light(self) -> bool:
        """Whether it takes little, whatever the values: nothing is repeated, nothing made."""
        every = tuple(islice(nodes(self.root), _LIGHT_NODES_MAX + 1))
        return len(every) <= _LIGHT_NODES_MAX and not self.made and all(map(_is_light, every))


def _is_light(node: Node) -> bool:
    if isinstance(node, Call):
        is_compared = node.function in _COMPARISONS
        return node.function in _LIGHT or (is_compared and _is_written(node.arguments[-1]))
    return not isinstance(node, Loop)


def _is_written(node: Node) -> bool:
    return isinstance(node, Literal) or (
        isinstance(node, Items) and all(isinstance(item, Literal) for item in node.items)
    )


def program(env: cel.Env, text: str, *, wrapped: int = 0) -> Program:
    """The program of a text, so many of whose outermost names are only other forms of values.

    Raises ExpressionError.
    """
    check_size(text)
    try:
        parsed = parsed_tree(text)
        if needs_retelling(parsed):
            root = retold(parsed)
            expression = env.deserialize(written(root))
        else:
            expression = env.compile(text)
            root = tree_of(expression.serialize()).root
    except RuntimeError as cause:
        raise ExpressionError(compile_problem(text, cause)) from None
    made = []
    for _ in range(wrapped):
        if isinstance(root, Loop):
            made.append(root.initial)
            root = root.result
    units = len(text) * _READING if len(text) > KEPT_CHARACTERS_MAX else 0
    return Program(expression, root, tuple(made), units)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an expression comes to, or why it comes to nothing."""

    value: Any = None
    problem: str = ""
    kind: str = ""


class Seen:
    """Values that several expressions are asked about.

    The library has them in an activation, and keeps there what it makes of them; so there is a new
    one after questions that may have made much.
    """

    __slots__ = ("_activation", "_env", "_kept_bytes", "_named", "known", "scale")

    def __init__(
        self, env: cel.Env, known: Mapping[str, Any], named: Mapping[str, Any] | None = None
    ) -> None:
        """The values by their names; `named` by those that the library knows, if they differ."""
        self.known, self.scale = known, Scale()
        self._env, self._named = env, known if named is None else named
        self._activation: cel.Activation | None = None
        self._kept_bytes = 0

    def ask(self, asked: Program, budget: Budget) -> Answer:
        """What an expression says of them. Raises OutOfBudgetError."""
        self.scale.unnamed.clear()
        looked_before = self.scale.looked
        try:
            budget.take(asked.reading_units)
            if asked.is_light:
                budget.take(_LIGHT_UNITS)
            for node in () if asked.is_light else (*asked.made, asked.root):
                spent = spend(node, self.known, self.scale)
                budget.take(spent.work)
                self._kept_bytes += spent.room
        except TooCostlyError:
            budget.take((self.scale.looked - looked_before) * LOOK)
            return Answer(problem=CALL_LIMIT)
        values = self._values()
        try:
            result = asked.expression.eval(values)
        except (RuntimeError, ValueError, TypeError, MemoryError) as cause:
            return Answer(problem=failure_of(cause))
        kind = result.type().name()
        if kind == "ERROR":
            return Answer(problem=self._named_problem(asked, problem_of(result)))
        return Answer(_plain(result), kind=kind)

    def _values(self) -> cel.Activation:
        if self._activation is None:
            self._activation = self._env.Activation(dict(self._named))
        activation = self._activation
        if self._kept_bytes > KEPT_BYTES_MAX:
            self._activation, self._kept_bytes = None, 0
        return activation

    def _named_problem(self, asked: Program, problem: str) -> str:
        if problem != NO_NAMES:
            return problem
        with suppress(TooCostlyError):
            spend(asked.root, self.known, self.scale)
        names = self.scale.unnamed
        return f"no such key: {names[0]}" if names else "no such overload"


def _plain(result: cel.Value) -> Any:
    """The value in types of ours, None for those that have none."""
    try:
        return result.plain_value()
    except TypeError:
        return None
