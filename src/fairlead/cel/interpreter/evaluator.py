"""Evaluates trees, and measures the cost at the same time.

A tree is compiled once to closures, one for each node, and evaluated many times. A closure takes
the `Run` of one evaluation and adds the cost of its node to `Run.cost`. The closure returns a value
of the language (`value`), or raises CelError, the language's error value. Where the language
absorbs errors, a closure catches them:

    a && b                   false if either is false, even if the other is an error
    a || b                   true if either is true, even if the other is an error
    list.all, list.exists    like `&&` and `||` between the tests of all items (`comprehension`)

CostLimitError is never absorbed. Worked example, `has(self.a) && self.a > 2` for {"a": 3}:

    _&&_                          costs nothing itself
      has(self.a)     true        1: the variable; the test itself is free
      _>_             true        1, and for its operands:
        self.a        3           2: variable and field
        2             2           0

The sum is 4 units. Names are resolved when the tree is compiled: loop variables to positions in
`Run.slots`, other variables to keys of `Run.known`.

upstream: cel-go's interpreter/{planner,interpretable,attributes}.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.cel.error import CelError, no_overload, no_such_key
from fairlead.cel.function import Function, Overloads
from fairlead.cel.interpreter.comprehension import compiled_comprehension
from fairlead.cel.interpreter.operator import BINARY, UNARY, element, optional_element
from fairlead.cel.interpreter.run import Evaluate, Run, Scope, raised
from fairlead.cel.syntax.syntax_tree import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    path_of,
)
from fairlead.cel.value import DefaultMap, OptionalValue, TypeValue, Uint

# upstream: cel-go's common/cost.go
_LIST_COST, _MAP_COST, _OBJECT_COST = 10, 30, 40
_ALTERNATIVES: Final = ("or", "orValue")
_MAP_KEYS: Final = frozenset({str, int, bool, Uint})
_TYPES: Final = {
    name: TypeValue(name)
    for name in (
        *("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"),
        *("optional_type", "google.protobuf.Duration", "google.protobuf.Timestamp"),
        *("net.IP", "net.CIDR"),
    )
}

Functions = Mapping[tuple[str, bool], Overloads]


def overloads_of(functions: tuple[Function, ...]) -> Functions:
    """Return the functions, keyed by (name, whether they are called as methods)."""
    found: dict[tuple[str, bool], list[Function]] = {}
    for one in functions:
        found.setdefault((one.name, one.is_member), []).append(one)
    return {key: Overloads(group) for key, group in found.items()}


class Planner:
    """Compiles trees to closures; all trees use the same variables and functions."""

    def __init__(self, variables: frozenset[str], functions: Functions) -> None:
        """Store the variables and the functions. The name of a variable may contain dots."""
        self._variables, self._functions = variables, functions

    def compile(self, node: Node, scope: Scope) -> Evaluate:
        """Return the closure that evaluates a node; `scope` has the slots of loop variables."""
        match node:
            case Literal():
                return _constant(_value_of(node))
            case Identifier():
                return self._identifier(node.name, scope)
            case Select():
                return self._select(node, scope)
            case Call():
                return self._call(node, scope)
            case ListLiteral():
                return self._list(node, scope)
            case MapLiteral():
                return self._map(node, scope)
            case Comprehension():
                return compiled_comprehension(node, scope, self.compile)

    def _identifier(self, name: str, scope: Scope) -> Evaluate:
        slot = scope.slot(name)
        if slot is not None:
            return _local(slot)
        name = name.removeprefix(".")
        if name not in self._variables and name in _TYPES:
            return _constant(_TYPES[name])
        return _variable(name)

    def _qualified(self, node: Node, scope: Scope) -> str:
        """Return the path of `node`, such as `self.name`; "" if it is not a chain of fields.

        Returns "" also if the chain starts with a loop variable instead of a global variable.
        """
        path = path_of(node)
        return "" if scope.slot(path.partition(".")[0]) is not None else path.removeprefix(".")

    def _select(self, node: Select, scope: Scope) -> Evaluate:
        path = "" if node.is_test else self._qualified(node, scope)
        if path in self._variables or path in _TYPES:
            return self._identifier(path, scope)
        operand = self.compile(node.operand, scope)
        if node.is_test:
            return _tested(operand, node.field)
        return _selected(operand, node.field, 1 + _is_made(node.operand))

    def _call(self, node: Call, scope: Scope) -> Evaluate:
        given = [self.compile(one, scope) for one in node.arguments]
        special = _SPECIAL.get(node.function)
        if special is not None:
            return special(*given)
        if node.function == "_[_]":
            return _indexed(given[0], given[1], 1 + _is_made(node.arguments[0]))
        if node.function in BINARY:
            return BINARY[node.function](*given)
        if node.function in UNARY:
            return UNARY[node.function](*given)
        if node.function == "_?._":
            name = node.arguments[1]
            field = name.value if isinstance(name, Literal) else None
            return _optionally_selected(given[0], field)
        return self._function(node, given, scope)

    def _function(self, node: Call, given: list[Evaluate], scope: Scope) -> Evaluate:
        """Return the closure of a call; a function name may contain dots, as in `sets.contains`."""
        if node.target is None:
            return self._called((node.function, False), given)
        whole = f"{self._qualified(node.target, scope)}.{node.function}"
        if (whole, False) in self._functions:
            return self._called((whole, False), given)
        target = self.compile(node.target, scope)
        if node.function in _ALTERNATIVES and len(given) == 1:
            return _alternative(target, given[0], is_value=node.function == "orValue")
        return self._called((node.function, True), [target, *given])

    def _called(self, key: tuple[str, bool], given: list[Evaluate]) -> Evaluate:
        overloads = self._functions.get(key) or Overloads(())
        match given:
            case [one]:
                return _called_with_one(key[0], overloads, one)
            case [one, other]:
                return _called_with_two(key[0], overloads, one, other)
            case _:
                return _called_with_many(key[0], overloads, tuple(given))

    def _list(self, node: ListLiteral, scope: Scope) -> Evaluate:
        if all(isinstance(one, Literal) for one in node.items) and not node.optional:
            return _constant([_value_of(one) for one in node.items if isinstance(one, Literal)])
        items = tuple(self.compile(one, scope) for one in node.items)
        return _list_of_present(items, node.optional) if node.optional else _list_of(items)

    def _map(self, node: MapLiteral, scope: Scope) -> Evaluate:
        """Return the closure that makes a map or a typed object, such as `Object.spec{…}`.

        Only mutating policies make typed objects.
        """
        if not node.entries and not node.type_name:
            return lambda _: {}
        entries = tuple(
            (
                _constant(unescaped(one.key))
                if isinstance(one.key, str)
                else self.compile(one.key, scope),
                self.compile(one.value, scope),
                one.is_optional,
            )
            for one in node.entries
        )
        return _map_of(entries, _OBJECT_COST if node.type_name else _MAP_COST)


_ESCAPES: Final = {"__dot__": ".", "__dash__": "-", "__slash__": "/", "__underscores__": "__"}


def unescaped(name: str) -> str:
    """Return the field name for an escaped identifier, such as `namespace` for `__namespace__`.

    upstream: apiserver/pkg/cel/escaping.go
    """
    inner = name[2:-2]
    is_word = name.startswith("__") and name.endswith("__") and inner.isalpha()
    if is_word and inner.islower() and name not in _ESCAPES:
        return inner
    for escape, mark in _ESCAPES.items():
        name = name.replace(escape, mark)
    return name


def _value_of(node: Literal) -> Any:
    return Uint(node.value) if node.type_name == "uint" else node.value


def _is_made(node: Node) -> bool:
    """Return whether the value of `node` is computed rather than read from a variable or object.

    As in upstream, selecting a field from a computed value costs one more unit.
    """
    if isinstance(node, Call):
        return node.function not in ("_[_]", "_?._", "_[?_]", "_?_:_")
    return not isinstance(node, Identifier | Select)


def _constant(value: Any) -> Evaluate:
    return lambda _: value


def _local(slot: int) -> Evaluate:
    def local(run: Run) -> Any:
        run.cost += 1
        value = run.slots[slot]
        if type(value) is CelError:
            raise raised(value)
        return value

    return local


def _variable(name: str) -> Evaluate:
    def variable(run: Run) -> Any:
        run.cost += 1
        try:
            return run.known[name]
        except KeyError:
            raise CelError(f"no such attribute(s): {name}") from None

    return variable


def _selected(operand: Evaluate, field: str, cost: int) -> Evaluate:
    def selected(run: Run) -> Any:
        whole = operand(run)
        run.cost += cost
        if isinstance(whole, dict):
            try:
                return whole[field]
            except KeyError:
                raise no_such_key(field) from None
        if type(whole) is OptionalValue:
            return optional_element(whole, field)
        raise no_such_key(field)

    return selected


def _tested(operand: Evaluate, field: str) -> Evaluate:
    def tested(run: Run) -> bool:
        whole = operand(run)
        if type(whole) is OptionalValue:
            whole = whole.value
        return type(whole) is DefaultMap or (isinstance(whole, dict) and field in whole)

    return tested


def _optionally_selected(operand: Evaluate, field: Any) -> Evaluate:
    def selected(run: Run) -> Any:
        whole = operand(run)
        run.cost += 1
        return optional_element(whole, field)

    return selected


def _indexed(operand: Evaluate, index: Evaluate, cost: int) -> Evaluate:
    def indexed(run: Run) -> Any:
        whole, key = operand(run), index(run)
        run.cost += cost
        return element(whole, key)

    return indexed


def _optionally_indexed(operand: Evaluate, index: Evaluate) -> Evaluate:
    def indexed(run: Run) -> Any:
        whole, key = operand(run), index(run)
        run.cost += 1
        return optional_element(whole, key)

    return indexed


def _conditional(test: Evaluate, yes: Evaluate, no: Evaluate) -> Evaluate:
    def conditional(run: Run) -> Any:
        answer = test(run)
        if answer is True:
            return yes(run)
        if answer is False:
            return no(run)
        raise no_overload()

    return conditional


def _logical(one: Evaluate, other: Evaluate, *, decisive: bool) -> Evaluate:
    """Return the closure of `&&` or `||`.

    `decisive` is False for `&&` and True for `||`. If one operand has the value `decisive`, the
    result is also `decisive`.
    """

    def logical(run: Run) -> bool:
        problem = None
        try:
            left = one(run)
            if left is decisive:
                return left is True
        except CelError as cause:
            problem, left = cause, None
        right = other(run) if problem is None else _answer(other, run)
        if right is decisive:
            return right is True
        if problem is not None:
            raise raised(problem)
        if type(left) is bool and type(right) is bool:
            return not decisive
        raise no_overload()

    return logical


def _answer(other: Evaluate, run: Run) -> Any:
    """Return the value of the second operand, after the first operand was an error.

    Return None if the second operand is an error, too. The caller then raises the first error.
    """
    try:
        return other(run)
    except CelError:
        return None


def _alternative(one: Evaluate, other: Evaluate, *, is_value: bool) -> Evaluate:
    """Return the closure of `a.orValue(b)` if `is_value` is set, otherwise of `a.or(b)`.

    The closure evaluates `b` only if `a` is absent.

    upstream: cel-go's cel/library.go: evalOptionalOr, evalOptionalOrValue
    """

    def alternative(run: Run) -> Any:
        first = one(run)
        if type(first) is not OptionalValue:
            return first
        if not first.is_present:
            return other(run)
        return first.value if is_value else first

    return alternative


def _called_with_one(name: str, overloads: Overloads, one: Evaluate) -> Evaluate:
    found = overloads.of

    def called(run: Run) -> Any:
        value = one(run)
        function = found((type(value),))
        if function is None:
            raise _no_function(name)
        if function.cost is None:
            run.cost += 1
        else:
            run.charge(function.cost(value))
        try:
            return (
                function.implementation(run, value)
                if function.is_metered
                else function.implementation(value)
            )
        except ValueError as cause:
            raise CelError(str(cause)) from None

    return called


def _called_with_two(name: str, overloads: Overloads, one: Evaluate, other: Evaluate) -> Evaluate:
    found = overloads.of

    def called(run: Run) -> Any:
        first, second = one(run), other(run)
        function = found((type(first), type(second)))
        if function is None:
            raise _no_function(name)
        if function.cost is None:
            run.cost += 1
        else:
            run.charge(function.cost(first, second))
        try:
            if function.is_metered:
                return function.implementation(run, first, second)
            return function.implementation(first, second)
        except ValueError as cause:
            raise CelError(str(cause)) from None

    return called


def _called_with_many(name: str, overloads: Overloads, given: tuple[Evaluate, ...]) -> Evaluate:
    def called(run: Run) -> Any:
        values = [one(run) for one in given]
        function = overloads.of(tuple(map(type, values)))
        if function is None:
            raise _no_function(name)
        run.charge(1 if function.cost is None else function.cost(*values))
        try:
            return (
                function.implementation(run, *values)
                if function.is_metered
                else function.implementation(*values)
            )
        except ValueError as cause:
            raise CelError(str(cause)) from None

    return called


def _no_function(name: str) -> CelError:
    return CelError("no such overload: size") if name == "size" else no_overload()


def _list_of(items: tuple[Evaluate, ...]) -> Evaluate:
    def made(run: Run) -> list[Any]:
        run.cost += _LIST_COST
        return [one(run) for one in items]

    return made


def _list_of_present(items: tuple[Evaluate, ...], optional: tuple[int, ...]) -> Evaluate:
    """Return the closure that makes a list without the optional items that are absent."""

    def made(run: Run) -> list[Any]:
        run.cost += _LIST_COST
        found = []
        for at, one in enumerate(items):
            value = one(run)
            if at in optional:
                value = _optional("list element", value)
                if not value.is_present:
                    continue
                value = value.value
            found.append(value)
        return found

    return made


def _optional(what: str, value: Any) -> OptionalValue:
    if type(value) is OptionalValue:
        return value
    raise CelError(f"cannot initialize optional {what} from non-optional value {value}")


def _map_of(entries: tuple[tuple[Evaluate, Evaluate, bool], ...], cost: int) -> Evaluate:
    def made(run: Run) -> dict[Any, Any]:
        run.cost += cost
        found: dict[Any, Any] = {}
        for of_key, of_value, is_optional in entries:
            key, value = of_key(run), of_value(run)
            if type(key) not in _MAP_KEYS:
                raise CelError("unsupported key type")
            if is_optional:
                value = _optional("entry", value)
                if not value.is_present:
                    continue
                value = value.value
            found[key] = value
        return found

    return made


_SPECIAL: Final[dict[str, Callable[..., Evaluate]]] = {
    "_?_:_": _conditional,
    "_&&_": lambda one, other: _logical(one, other, decisive=False),
    "_||_": lambda one, other: _logical(one, other, decisive=True),
    "_[?_]": _optionally_indexed,
}
