"""Estimates the cost of an expression from the possible sizes of its values.

`SizeOf` returns the size of the value at a path. A path starts with a variable. For example, the
path (`self`, `items`, `@items`, `name`) is the name of any item of `self.items`. Worked example:
`self.names.all(n, n == 'web-1')` with at most 5 names of at most 20 characters.

    self.names                    2         a variable and a field
    each round, 0 to 5 times:
      @not_strictly_false(@result)  2       the loop's condition: a variable and a call
      @result && …                  1 .. 3  the left side, then perhaps the right side:
        n == 'web-1'                     2  a variable; ceil(0.1 * 5), for the shorter text
    @result                       1         the result
                                  3 .. 28   that is 2 + 0 * 3 + 1 and 2 + 5 * 5 + 1

upstream: cel-go's checker/cost.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from fairlead.cel.check.checker import Checked
from fairlead.cel.check.types import DYN, CelType
from fairlead.cel.cost.call_estimate import Operand, call_cost
from fairlead.cel.cost.estimate import ENDLESS, NOTHING, ONE, UNKNOWN, Estimate, fixed
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

Path = tuple[str, ...]
SizeOf = Callable[[Path], Estimate | None]

_LIST, _MAP, _OBJECT = fixed(10), fixed(30), fixed(40)
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_ACCUMULATOR: Final = "@result"


class _Within(Struct, frozen=True):
    """The sizes of the keys and items of a list or a map; the keys of a list are its indexes."""

    is_list: bool
    key: Estimate
    value: Estimate

    def union(self, other: _Within | None) -> _Within | None:
        if other is None:
            return None
        return _Within(self.is_list, self.key.union(other.key), self.value.union(other.value))


class _Local(Struct, frozen=True):
    """A variable of a loop or of `cel.bind`: the path and the size of its value.

    The module's docstring describes paths. If the value is a list or a map, `within` contains the
    sizes of the keys and items. `size` and `within` are None if they are unknown.
    """

    path: Path
    size: Estimate | None = None
    within: _Within | None = None


def estimated_cost(checked: Checked, size_of: SizeOf) -> Estimate:
    """Return the minimal and the maximal cost of an expression."""
    return _Estimate(checked, size_of).cost(checked.root)


class _Estimate(Struct):
    checked: Checked
    size_of: SizeOf
    paths: dict[int, Path] = field(default_factory=dict)
    sizes: dict[int, Estimate] = field(default_factory=dict)
    within: dict[int, _Within] = field(default_factory=dict)
    locals: dict[str, list[_Local]] = field(default_factory=dict)

    def cost(self, node: Node) -> Estimate:
        """Return the cost of a node and of all nodes below it."""
        match node:
            case Literal():
                return NOTHING
            case Identifier():
                local = self._local(node.name)
                self.paths[node.id] = local.path if local else (node.name,)
                return ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._items(node)
            case MapLiteral():
                return self._entries(node)
            case Comprehension():
                return self._bind(node) if node.is_bind else self._loop(node)

    def _select(self, node: Select) -> Estimate:
        if node.operand.id not in self.checked.types:  # a name with dots
            self.paths[node.id] = (node.field,)
            return ONE
        cost = self.cost(node.operand)
        if node.is_test:
            return cost
        whole = self._type(node.operand)
        self.paths[node.id] = (*self._path(node.operand), node.field)
        is_looked_up = whole.name == "map" or whole.is_structure or whole.is_type_parameter
        return cost.plus(ONE) if is_looked_up else cost

    def _call(self, node: Call) -> Estimate:
        if node.function == "dyn":
            cost = self.cost(node.arguments[0]).plus(ONE)
            self._copy(node, node.arguments[0])
            return cost
        costs = [self.cost(one) for one in node.arguments]
        overloads = self.checked.overloads.get(node.id, ())
        if not overloads:
            return NOTHING
        is_member = node.target is not None and node.target.id in self.checked.types
        before = self.cost(node.target) if is_member and node.target else NOTHING
        target = self._operand(node.target) if is_member and node.target else None
        arguments = [self._operand(one) for one in node.arguments]
        total, size = Estimate(ENDLESS, 0), None
        for overload in overloads:
            cost, made = self._overload(node, overload, target, arguments, costs)
            total = total.union(cost)
            if made is not None:
                size = made if size is None else size.union(made)
            size = self._indexed(node, overload, size)
            size = size or self._size(node)
        if size is not None:
            self.sizes[node.id] = size
        return before.plus(total)

    def _indexed(self, node: Call, overload: str, size: Estimate | None) -> Estimate | None:
        """Return `size`, or the size of the item if `node` indexes a list or a map.

        None means that the size is unknown.
        """
        if overload not in ("index_list", "index_map"):
            return size
        whole = node.arguments[0]
        step = "@items" if overload == "index_list" else "@values"
        within = self._within(whole)
        self.paths[node.id] = (*self._path(whole), step)
        return within.value if within else None

    def _overload(
        self,
        node: Call,
        overload: str,
        target: Operand | None,
        arguments: list[Operand],
        costs: list[Estimate],
    ) -> tuple[Estimate, Estimate | None]:
        """Return (cost, result size) of a call of one overload; the size is None if unknown.

        `costs` are the costs of evaluating the target and the arguments.
        """
        if overload in ("logical_or", "logical_and"):
            return Estimate(costs[0].low, costs[0].plus(costs[1]).high), None
        if overload == "conditional":
            yes, no = node.arguments[1:]
            self._set_within(node, self._either(yes, no))
            return costs[0].plus(costs[1].union(costs[2])), self._any_size(yes).union(
                self._any_size(no)
            )
        if overload == "add_list":
            self._set_within(node, self._either(*node.arguments))
        own, size = call_cost(node.function, overload, target, arguments)
        for cost in costs:
            own = own.plus(cost)
        return own, size

    def _either(self, one: Node, other: Node) -> _Within | None:
        within = self._within(one)
        return within.union(self._within(other)) if within else None

    def _items(self, node: ListLiteral) -> Estimate:
        cost, item = _LIST, Estimate(ENDLESS if node.items else 0, 0)
        for one in node.items:
            cost = cost.plus(self.cost(one))
            item = item.union(self._any_size(one))
        self.within[node.id] = _Within(is_list=True, key=ONE, value=item)
        return cost

    def _entries(self, node: MapLiteral) -> Estimate:
        if node.type_name:
            cost = _OBJECT
            for entry in node.entries:
                cost = cost.plus(self.cost(entry.value))
            return cost
        start = Estimate(ENDLESS if node.entries else 0, 0)
        cost, key, value = _MAP, start, start
        for entry in node.entries:
            if not isinstance(entry.key, str):
                cost = cost.plus(self.cost(entry.key))
                key = key.union(self._any_size(entry.key))
            cost = cost.plus(self.cost(entry.value))
            value = value.union(self._any_size(entry.value))
        self.within[node.id] = _Within(is_list=False, key=key, value=value)
        return cost

    def _loop(self, node: Comprehension) -> Estimate:
        cost = self.cost(node.range).plus(self.cost(node.initial))
        self._push_value(node.accumulator, node.initial)
        names = self._push_names(node)
        one_round = self.cost(node.condition).plus(self.cost(node.step))
        for name in names:
            self.locals[name].pop()
        cost = cost.plus(self.cost(node.result))
        self.locals[node.accumulator].pop()
        rounds = self._any_size(node.range)
        self._set_loop_size(node, rounds)
        return cost.plus(rounds.times(one_round))

    def _set_loop_size(self, node: Comprehension, rounds: Estimate) -> None:
        if isinstance(node.initial, Literal):
            self._set_size(node, self._size(node.initial))
        elif isinstance(node.initial, ListLiteral | MapLiteral):
            self.sizes[node.id] = rounds
            self._set_within(node, self._within(node.step))

    def _bind(self, node: Comprehension) -> Estimate:
        cost = self.cost(node.range).plus(self.cost(node.initial))
        self._push_value(node.accumulator, node.initial)
        cost = cost.plus(self.cost(node.result))
        self.locals[node.accumulator].pop()
        self._copy(node, node.result)
        return cost

    def _push_names(self, node: Comprehension) -> tuple[str, ...]:
        """Add the variables of a loop to the names in scope; return the variables' names."""
        within, path = self._within(node.range), self._path(node.range)
        is_list = within.is_list if within else self._type(node.range).name == "list"
        keys = within.key if within else None
        values = within.value if within else None
        if not node.second:
            of_key = not is_list
            step = "@keys" if of_key else "@items"
            self._push(node.name, _Local((*path, step), keys if of_key else values))
            return (node.name,)
        self._push(node.name, _Local((*path, "@indices" if is_list else "@keys"), keys))
        self._push(node.second, _Local((*path, "@items" if is_list else "@values"), values))
        return node.name, node.second

    def _push_value(self, name: str, node: Node) -> None:
        self._push(name, _Local(self._path(node), self._size(node), self._within(node)))

    def _push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def _local(self, name: str) -> _Local | None:
        stack = self.locals.get(name)
        return stack[-1] if stack else None

    def _local_of(self, node: Node) -> _Local | None:
        return self._local(node.name) if isinstance(node, Identifier) else None

    def _type(self, node: Node) -> CelType:
        return self.checked.types.get(node.id, DYN)

    def _path(self, node: Node) -> Path:
        local = self._local_of(node)
        return local.path if local else self.paths.get(node.id, ())

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        if path and path[0] == _ACCUMULATOR:
            path = ()
        return Operand(path, self._type(node), self._size(node), node, self.size_of)

    def _any_size(self, node: Node) -> Estimate:
        return self._size(node) or UNKNOWN

    def _size(self, node: Node) -> Estimate | None:
        """Return the size of a node's value; None if it is unknown."""
        found = self.sizes.get(node.id) or _written_size(node)
        if found is not None:
            return found
        path = self._path(node)
        known_size = self.size_of(path) if path else None
        if known_size is not None:
            self.sizes[node.id] = known_size
            return known_size
        if _is_scalar(self._type(node)):
            return ONE
        local = self._local_of(node)
        return local.size if local else None

    def _set_size(self, node: Node, size: Estimate | None) -> None:
        if size is not None:
            self.sizes[node.id] = size

    def _within(self, node: Node) -> _Within | None:
        found = self.within.get(node.id)
        if found is not None:
            return found
        local = self._local_of(node)
        return local.within if local else None

    def _set_within(self, node: Node, within: _Within | None) -> None:
        if within is not None:
            self.within[node.id] = within

    def _copy(self, node: Node, source: Node) -> None:
        self._set_size(node, self._size(source))
        self._set_within(node, self._within(source))


def _is_scalar(type_: CelType) -> bool:
    if type_.name == "optional_type":
        return _is_scalar(type_.parameters[0])
    return type_.name in _SCALARS


def _written_size(node: Node) -> Estimate | None:
    """Return the size of a literal; None for other nodes."""
    match node:
        case Literal(value=str() | bytes() as value):
            return fixed(len(value))
        case Literal():
            return ONE
        case ListLiteral():
            return fixed(len(node.items))
        case MapLiteral(type_name=""):
            return fixed(len(node.entries))
        case _:
            return None
