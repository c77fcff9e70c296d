"""Expands macros: calls that are replaced by other nodes, such as a loop or a test for a field.

    list.all(x, test)      a loop that starts with true and repeats `accumulator && test`
    list.map(x, value)     a loop that starts with [] and repeats `accumulator + [value]`
    has(a.b)               a selection that tests whether the field exists

upstream: cel-go's parser/macro.go, cel/{macro,library}.go, ext/{bindings,comprehensions,lists}.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fairlead.cel.syntax.syntax_tree import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"
MAP_INSERT: Final = "cel.@mapInsert"
_TARGET, _SORTED = "@target", "@__sortBy_input__"


class MacroError(ValueError):
    """Raised if the arguments of a macro are invalid; `node` is the node with the error."""

    def __init__(self, node: Node, why: str) -> None:
        """`why` is the message that the compiler prints."""
        super().__init__(why)
        self.node = node


class NodeFactory:
    """Creates nodes with unique ids, and stores their positions."""

    def __init__(self) -> None:
        """Start without nodes."""
        self.places: dict[int, int] = {}

    def id_at(self, place: int) -> int:
        """Create an id for a node at the position `place`."""
        number = len(self.places) + 1
        self.places[number] = place
        return number

    def literal(self, place: int, kind: str, value: Any) -> Literal:
        """Return a new literal node."""
        return Literal(self.id_at(place), kind, value)

    def call(self, place: int, function: str, *arguments: Node) -> Call:
        """Return a new call of a function or an operator."""
        return Call(self.id_at(place), function, None, arguments)


class _Expansion:
    """Creates the nodes for one macro call, all at the position of the call."""

    def __init__(self, call: Call, factory: NodeFactory) -> None:
        """`call` is the macro call to expand."""
        self.arguments = call.arguments
        self._target = call.target
        self._factory = factory
        self._place = factory.places[call.id]

    @property
    def target(self) -> Node:
        """The value on which the macro is called. Raises ValueError if there is no such value."""
        if self._target is None:
            raise ValueError("a macro without a target")
        return self._target

    def literal(self, kind: str, value: Any) -> Literal:
        """Return a new literal node."""
        return self._factory.literal(self._place, kind, value)

    def name(self, name: str = ACCUMULATOR) -> Identifier:
        """Return a new node for the variable `name`, by default the accumulator."""
        return Identifier(self._factory.id_at(self._place), name)

    def call(self, function: str, *arguments: Node) -> Call:
        """Return a new call of a function or an operator."""
        return self._factory.call(self._place, function, *arguments)

    def member_call(self, function: str, target: Node, *arguments: Node) -> Call:
        """Return a new call of a function on the value `target`."""
        return Call(self._factory.id_at(self._place), function, target, arguments)

    def list(self, *items: Node) -> ListLiteral:
        """Return a new list of `items`."""
        return ListLiteral(self._factory.id_at(self._place), items, ())

    def map(self) -> MapLiteral:
        """Return a new map without entries."""
        return MapLiteral(self._factory.id_at(self._place), "", ())

    def select_test(self, operand: Node, field: str) -> Select:
        """Return a new node that tests whether `operand` has the field `field`."""
        return Select(self._factory.id_at(self._place), operand, field, is_test=True)

    def fold(
        self,
        names: tuple[str, ...],
        initial: Node,
        step: Node,
        *,
        condition: Node | None = None,
        result: Node | None = None,
    ) -> Comprehension:
        """Return a loop over the items of `self.target`, on which the macro is called.

        `names` are the loop variables. `initial` is the first value of the accumulator, and `step`
        computes the accumulator's next value in each round. The loop ends when `condition` is
        false. If `condition` is None, the loop runs over all items. `result` is the value of the
        loop, by default the accumulator.
        """
        return Comprehension(
            self._factory.id_at(self._place),
            names[0],
            names[1] if len(names) > 1 else "",
            self.target,
            ACCUMULATOR,
            initial,
            condition or self.literal("bool", True),  # noqa: FBT003 - the value of a constant
            step,
            result or self.name(),
        )

    def bind(self, name: str, value: Node, result: Node) -> Comprehension:
        """Return a loop without rounds; its value is `result`, where `name` stands for `value`."""
        no = self.literal("bool", False)  # noqa: FBT003 - the value of a constant
        return Comprehension(
            self._factory.id_at(self._place),
            UNUSED,
            "",
            self.list(),
            name,
            value,
            no,
            self.name(name),
            result,
        )


def expanded(call: Call, factory: NodeFactory, *, has_bindings: bool) -> Node:
    """Return the expansion of a macro call; return any other call unchanged.

    The macro `cel.bind` is expanded only if `has_bindings` is set. Raises MacroError.
    """
    count = len(call.arguments)
    if call.target is None:
        is_test = call.function == "has" and count == 1
        return _has(_Expansion(call, factory)) if is_test else call
    if _is_binding(call):
        return _bind(_Expansion(call, factory)) if has_bindings else call
    expand = _MEMBERS.get((call.function, count))
    return call if expand is None else expand(_Expansion(call, factory))


def _is_binding(call: Call) -> bool:
    is_cel = isinstance(call.target, Identifier) and call.target.name == "cel"
    return is_cel and call.function == "bind" and len(call.arguments) == 3


def _simple_name(node: Node) -> str:
    if not isinstance(node, Identifier):
        raise MacroError(node, "argument must be a simple name")
    return node.name


def _variable(node: Node) -> str:
    """Return the name of the loop variable in a macro's argument."""
    name = _simple_name(node)
    if name in (ACCUMULATOR, "__result__"):
        raise MacroError(node, "iteration variable overwrites accumulator variable")
    return name


def _variables(nodes: tuple[Node, ...]) -> tuple[str, ...]:
    return tuple(map(_variable if len(nodes) == 1 else _simple_name, nodes))


def _has(of: _Expansion) -> Node:
    (field,) = of.arguments
    if not isinstance(field, Select) or field.is_test:
        raise MacroError(field, "invalid argument to has() macro")
    return of.select_test(field.operand, field.field)


def _bind(of: _Expansion) -> Node:
    name, value, result = of.arguments
    return of.bind(_simple_name(name), value, result)


def _all(of: _Expansion) -> Node:
    *names, test = of.arguments
    condition = of.call("@not_strictly_false", of.name())
    step = of.call("_&&_", of.name(), test)
    yes = of.literal("bool", True)  # noqa: FBT003 - the value of a constant
    return of.fold(_variables(tuple(names)), yes, step, condition=condition)


def _exists(of: _Expansion) -> Node:
    *names, test = of.arguments
    condition = of.call("@not_strictly_false", of.call("!_", of.name()))
    step = of.call("_||_", of.name(), test)
    no = of.literal("bool", False)  # noqa: FBT003 - the value of a constant
    return of.fold(_variables(tuple(names)), no, step, condition=condition)


def _exists_one(of: _Expansion) -> Node:
    *names, test = of.arguments
    one = of.literal("int", 1)
    step = of.call("_?_:_", test, of.call("_+_", of.name(), one), of.name())
    result = of.call("_==_", of.name(), of.literal("int", 1))
    return of.fold(_variables(tuple(names)), of.literal("int", 0), step, result=result)


def _collected(of: _Expansion, names: tuple[Node, ...], test: Node | None, value: Node) -> Node:
    """Return a loop whose result is a list: one `value` for each round in which `test` is true."""
    step: Node = of.call("_+_", of.name(), of.list(value))
    if test is not None:
        step = of.call("_?_:_", test, step, of.name())
    return of.fold(_variables(names), of.list(), step)


def _map(of: _Expansion) -> Node:
    name, *test, value = of.arguments
    return _collected(of, (name,), test[0] if test else None, value)


def _filter(of: _Expansion) -> Node:
    name, test = of.arguments
    return _collected(of, (name,), test, name)


def _transform_list(of: _Expansion) -> Node:
    key, item, *test, value = of.arguments
    return _collected(of, (key, item), test[0] if test else None, value)


def _inserted(of: _Expansion, names: tuple[str, ...], test: list[Node], *new: Node) -> Node:
    """Return a loop that makes a map; each item that passes the test adds entries to the map.

    `test` contains one node, or none if every item passes. `new` contains a key and a value, or
    one map with the entries.
    """
    step: Node = of.call(MAP_INSERT, of.name(), *new)
    if test:
        step = of.call("_?_:_", test[0], step, of.name())
    return of.fold(names, of.map(), step)


def _transform_map(of: _Expansion) -> Node:
    key, item, *test, value = of.arguments
    names = _variables((key, item))
    return _inserted(of, names, test, of.name(names[0]), value)


def _transform_map_entry(of: _Expansion) -> Node:
    key, item, *test, entry = of.arguments
    return _inserted(of, _variables((key, item)), test, entry)


def _opt_map(of: _Expansion) -> Node:
    return _mapped_optional(of, lambda value: of.call("optional.of", value))


def _opt_flat_map(of: _Expansion) -> Node:
    return _mapped_optional(of, lambda value: value)


def _mapped_optional(of: _Expansion, wrap: Callable[[Node], Node]) -> Node:
    """Return the node for a macro that computes a value from the content of an optional value.

    `wrap` takes the node of the computed value, and returns the node of the macro's result. If the
    optional value is absent, the result is absent, too. The optional value is evaluated once.
    """
    name, value = of.arguments
    target = of.target
    is_named = isinstance(target, Identifier)
    known = target if is_named else of.name(_TARGET)
    inner = of.bind(_simple_name(name), of.member_call("value", known), value)
    none = of.call("optional.none")
    made = of.call("_?_:_", of.member_call("hasValue", known), wrap(inner), none)
    return made if is_named else of.bind(_TARGET, target, made)


def _sort_by(of: _Expansion) -> Node:
    """Return `bind(s, target, s.@sortByAssociatedKeys(keys))`, which sorts the target by keys."""
    name, key = of.arguments
    if isinstance(of.target, Literal | MapLiteral):
        takes = "a list, identifier, comprehension, call or select expression"
        raise MacroError(of.target, f"sortBy can only be applied to {takes}")
    target, of._target = of.target, of.name(_SORTED)  # noqa: SLF001 - its own module
    keys = _collected(of, (name,), None, key)
    made = of.member_call("@sortByAssociatedKeys", of.name(_SORTED), keys)
    return of.bind(_SORTED, target, made)


_MEMBERS: Final[dict[tuple[str, int], Callable[[_Expansion], Node]]] = {
    ("all", 2): _all,
    ("all", 3): _all,
    ("exists", 2): _exists,
    ("exists", 3): _exists,
    ("exists_one", 2): _exists_one,
    ("exists_one", 3): _exists_one,
    ("existsOne", 2): _exists_one,
    ("existsOne", 3): _exists_one,
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
    ("sortBy", 2): _sort_by,
}
