"""Evaluates loops over lists and maps: the expansions of `all`, `exists`, `map` and other macros.

In upstream's syntax tree, each round of a loop computes the next value of a variable, the
accumulator. Only macros create loops, so every loop has one of the forms below. Each form is
evaluated by its own function, which has no accumulator but charges upstream's cost:

    accumulator && test, or accumulator || test       `_quantified`: ends at the first decisive item
    accumulator + [value], or test ? … : accumulator  `_collected`: appends to one list
    cel.@mapInsert(accumulator, …)                    `_inserted`: adds to one map
    test ? accumulator + 1 : accumulator              `_counted`
    a loop over [], made by `cel.bind`                `_bound`

An error in one round does not end a loop. In upstream, the error becomes the accumulator's value,
and the next rounds still run. A later round may decide the result of `all` or `exists`, or raise
another error. If an error occurred and no round decides the result, the function raises the error
that upstream's accumulator would contain after the last round.

upstream: cel-go's interpreter/interpretable.go:evalFold
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from fairlead.cel.error import CelError, no_overload
from fairlead.cel.interpreter.run import Evaluate, Run, Scope, raised
from fairlead.cel.syntax.macro import MAP_INSERT
from fairlead.cel.syntax.syntax_tree import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    Node,
)
from fairlead.cel.value import Duration, Timestamp, TypeValue, Uint

Compile = Callable[[Node, Scope], Evaluate]

# The cost that upstream charges for the accumulator in one round: reading it, and the operation.
_ALL_COST, _EXISTS_COST = 3, 4
_APPEND_COST, _INSERT_COST = 12, 2
_GO_NAMES: Final = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    Timestamp: "types.Timestamp",
    Duration: "types.Duration",
    TypeValue: "*types.Type",
}


def compiled_comprehension(node: Comprehension, scope: Scope, compile_: Compile) -> Evaluate:
    """Return the closure of the loop `node`; `compile_` creates the closures of its child nodes."""
    if node.is_bind:
        inner = scope.with_names(node.accumulator)
        slot = inner.slot(node.accumulator) or 0
        return _bound(slot, compile_(node.initial, scope), compile_(node.result, inner))
    inner = scope.with_names(*((node.name, node.second) if node.second else (node.name,)))
    rounds = _Rounds(
        compile_(node.range, scope), inner.slot(node.name) or 0, inner.slot(node.second)
    )
    is_plain = isinstance(node.result, Identifier) and node.result.name == node.accumulator
    if is_plain and _is_quantifier(node):
        step = node.step
        (_, decided) = step.arguments if isinstance(step, Call) else (step, step)
        is_all = isinstance(node.initial, Literal) and node.initial.value is True
        return _quantified(rounds, compile_(decided, inner), is_all=is_all)
    test, addition = _addition(node)
    condition = None if test is None else compile_(test, inner)
    if isinstance(addition, ListLiteral):
        return _collected(rounds, condition, compile_(addition.items[0], inner))
    if isinstance(addition, Call):
        new = [compile_(one, inner) for one in addition.arguments[1:]]
        return _inserted(rounds, condition, new)
    if condition is None:
        raise ValueError("a loop that no macro makes")
    return _counted(rounds, condition)


def _is_quantifier(node: Comprehension) -> bool:
    is_checked = isinstance(node.condition, Call)
    return is_checked and isinstance(node.step, Call) and node.step.function in ("_&&_", "_||_")


def _addition(node: Comprehension) -> tuple[Node | None, ListLiteral | Call | None]:
    """Return (condition, addition) of a loop that adds to its accumulator.

    A round of the loop adds something only if the condition is true. The condition is None if every
    round adds something. The addition is a list or a call that computes what a round adds. For
    `exists_one`, which adds the number 1, the addition is None.
    """
    step = node.step
    test: Node | None = None
    if isinstance(step, Call) and step.function == "_?_:_":
        test, step = step.arguments[:2]
    if not isinstance(step, Call):
        return test, None
    if step.function == MAP_INSERT:
        return test, step
    added = step.arguments[-1]
    return test, added if isinstance(added, ListLiteral) else None


class _Rounds(Struct, frozen=True):
    """The values over which a loop iterates, and the slots of its variables."""

    range: Evaluate
    first: int
    second: int | None

    def of(self, run: Run) -> Iterator[None]:
        """Yield once per round, after setting the loop's variables.

        Raises CelError if the value of `range` is neither a list nor a map.
        """
        whole, slots = self.range(run), run.slots
        if isinstance(whole, list):
            if self.second is None:
                for slots[self.first] in whole:
                    if run.cost > run.limit:
                        run.charge(0)
                    yield
            else:
                for slots[self.first], slots[self.second] in enumerate(whole):
                    run.charge(0)
                    yield
        elif isinstance(whole, dict):
            for key in tuple(whole):
                slots[self.first] = key
                if self.second is not None:
                    slots[self.second] = whole[key]
                run.charge(0)
                yield
        else:
            name = _GO_NAMES.get(type(whole), f"types.{type(whole).__name__}")
            raise CelError(f"got '{name}', expected iterable type")


def _bound(slot: int, initial: Evaluate, result: Evaluate) -> Evaluate:
    def bound(run: Run) -> Any:
        try:
            run.slots[slot] = initial(run)
        except CelError as cause:
            run.slots[slot] = cause
        return result(run)

    return bound


def _quantified(rounds: _Rounds, test: Evaluate, *, is_all: bool) -> Evaluate:
    """Return the closure that evaluates `all` if `is_all` is set, and otherwise `exists`."""
    cost = _ALL_COST if is_all else _EXISTS_COST

    def quantified(run: Run) -> bool:
        problem: CelError | None = None
        for _ in rounds.of(run):
            run.cost += cost
            try:
                answer = test(run)
            except CelError as cause:
                problem = problem or cause
                continue
            if answer is (not is_all):
                return not is_all
            if answer is not is_all:
                problem = problem or no_overload()
        run.cost += 1
        if problem is not None:
            raise raised(problem)
        return is_all

    return quantified


def _collected(rounds: _Rounds, test: Evaluate | None, value: Evaluate) -> Evaluate:
    """Return the closure of a loop that makes a list.

    A round of the loop appends `value` if `test` is true. If `test` is None, each round appends
    `value`.
    """

    def collected(run: Run) -> list[Any]:
        found: list[Any] = []
        problem: CelError | None = None
        for _ in rounds.of(run):
            try:
                if test is not None and not _is_passed(test(run)):
                    run.cost += 1
                elif problem is None:
                    run.cost += _APPEND_COST
                    found.append(value(run))
            except CelError as cause:
                problem = cause
        run.cost += 1
        if problem is not None:
            raise raised(problem)
        return found

    return collected


def _is_passed(answer: Any) -> bool:
    if answer is True or answer is False:
        return answer is True
    raise no_overload()


def _inserted(rounds: _Rounds, test: Evaluate | None, new: list[Evaluate]) -> Evaluate:
    """Return the closure that makes a map from the items that pass the test.

    For each of these items, `new` computes a key and a value, or one map whose entries are all
    added.
    """

    def inserted(run: Run) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        problem: CelError | None = None
        for _ in rounds.of(run):
            try:
                is_passed = test is None or _is_passed(test(run))
            except CelError as cause:
                problem = cause
                continue
            # If the accumulator is an error, the arguments after it are not evaluated.
            if not is_passed or (problem is not None and len(new) > 1):
                run.cost += 1
                continue
            run.cost += _INSERT_COST
            try:
                _insert(found, [one(run) for one in new])
            except CelError as cause:
                problem = problem or cause
        run.cost += 1
        if problem is not None:
            raise raised(problem)
        return found

    return inserted


def _insert(found: dict[Any, Any], values: list[Any]) -> None:
    """Add entries to the map `found`; `values` contains a key and a value, or only a map.

    If `values` contains a map, all entries of this map are added. Raises CelError if `found`
    already has one of the keys, or if the only item of `values` is not a map.
    """
    entries = values[0] if len(values) == 1 else {values[0]: values[1]}
    if not isinstance(entries, dict):
        raise no_overload()
    for key, value in entries.items():
        if key in found:
            raise CelError(f"insert failed: key {key} already exists")
        found[key] = value


def _counted(rounds: _Rounds, test: Evaluate) -> Evaluate:
    """Return the closure of `exists_one`, which returns whether exactly one item passes `test`."""

    def counted(run: Run) -> bool:
        count = 0
        problem: CelError | None = None
        for _ in rounds.of(run):
            run.cost += 1
            try:
                if _is_passed(test(run)):
                    run.cost += 1
                    count += 1
            except CelError as cause:
                problem = cause
        run.cost += 2
        if problem is not None:
            raise raised(problem)
        return count == 1

    return counted
