"""Checks types: finds the type of each expression, the overloads of each call, and type errors.

A call is well typed if its arguments fit at least one overload of its function. If the type of an
argument is known only at run time, several overloads may fit. The type of the call is then their
common result type, or dyn if their result types differ.

upstream: cel-go's checker/checker.go, errors.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from fairlead.cel.check.declarations import Signature, signatures
from fairlead.cel.check.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    CelType,
    TypeSubstitution,
    list_of,
    map_of,
    most_general,
    optional_of,
    parse_type,
    unwrapped,
)
from fairlead.cel.syntax.syntax_tree import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Node,
    Select,
    Tree,
    path_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Fields = Mapping[str, Mapping[str, CelType]]

# upstream: common/types/provider.go, and what Kubernetes' libraries add
_TYPES: Final = {
    **{one: parse_type(one) for one in ("bool", "bytes", "double", "int", "string", "uint")},
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": parse_type("null_type"),
    "type": parse_type("type"),
    "optional_type": optional_of(DYN),
    "google.protobuf.Duration": parse_type("duration"),
    "google.protobuf.Timestamp": parse_type("timestamp"),
    "net.CIDR": parse_type("net.CIDR"),
    "net.IP": parse_type("net.IP"),
}
_LOGICAL: Final = ("_&&_", "_||_")
_OPTIONAL_FIELD: Final = "_?._"


class Checked(Struct):
    """A checked expression: the type and the possible overloads of each node, by node id.

    `problems` are type errors, each with its position in characters; `variables` are the variables
    that the expression uses.
    """

    root: Node
    types: dict[int, CelType]
    overloads: dict[int, tuple[str, ...]]
    variables: set[str]
    problems: list[tuple[int, str]]

    @property
    def type_(self) -> CelType:
        """The type of the whole expression."""
        return self.types[self.root.id]


def checked(tree: Tree, variables: Mapping[str, CelType], fields: Fields) -> Checked:
    """Check an expression over `variables`; `fields` maps structured types to their fields.

    `problems` of the result are ordered by position. Raises TypeSizeError if a type becomes too
    large.
    """
    checker = _Checker(tree, dict(variables), fields)
    checker.check(tree.root)
    known: dict[int, CelType] = {}
    types = {own: checker.bound.final(one, known) for own, one in checker.types.items()}
    problems = sorted(checker.problems, key=lambda problem: problem[0])
    return Checked(tree.root, types, checker.overloads, checker.named, problems)


class _Checker(Struct):
    tree: Tree
    variables: dict[str, CelType]
    fields: Fields
    bound: TypeSubstitution = field(default_factory=TypeSubstitution)
    types: dict[int, CelType] = field(default_factory=dict)
    overloads: dict[int, tuple[str, ...]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    problems: list[tuple[int, str]] = field(default_factory=list)
    scope: dict[str, CelType] = field(default_factory=dict)

    def check(self, node: Node) -> CelType:
        """Return the type of a node, after checking the nodes below it."""
        type_ = self.types[node.id] = self._type(node)
        return type_

    def _type(self, node: Node) -> CelType:
        match node:
            case Literal():
                return CelType(node.type_name)
            case Identifier():
                return self._name(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._items(node)
            case MapLiteral():
                return self._entries(node) if not node.type_name else self._object(node)
            case Comprehension():
                return self._loop(node)

    def _problem(self, node: Node, text: str) -> None:
        self.problems.append((self.tree.places.get(node.id, 0), text))

    def _name(self, node: Identifier) -> CelType:
        found = self.scope.get(node.name) or self._global(node.name)
        if found is not None:
            return found
        self._problem(node, f"undeclared reference to '{node.name}' (in container '')")
        return ERROR

    def _global(self, name: str) -> CelType | None:
        name = name.removeprefix(".")
        found = self.variables.get(name)
        if found is not None:
            self.named.add(name)
            return found
        if name in _TYPES:
            return CelType("type", (_TYPES[name],))
        return CelType("type", (CelType(name),)) if name in self.fields else None

    def _select(self, node: Select) -> CelType:
        path = None if node.is_test else path_of(node)
        if path and path.partition(".")[0] not in self.scope:
            found = self._global(path)
            if found is not None:
                return found
        type_ = self._field(node, node.operand, node.field)
        return BOOL if node.is_test else self.bound.filled(type_)

    def _field(self, node: Node, operand: Node, name: str, *, is_optional: bool = False) -> CelType:
        """Return the type of the field `name` of `operand`.

        The result is an optional type if `is_optional` is set or the operand has an optional type.
        """
        whole, was_optional = unwrapped(self.bound.filled(self.check(operand)))
        found = DYN
        if whole.name == "map":
            found = whole.parameters[1]
        elif whole.is_structure:
            found = self._declared(node, whole, name)
        elif whole.is_type_parameter:
            self.bound.fit([DYN], [whole])
        elif not whole.is_open:
            self._problem(node, f"type '{whole}' does not support field selection")
        return optional_of(found) if was_optional or is_optional else found

    def _declared(self, node: Node, whole: CelType, name: str) -> CelType:
        fields = self.fields.get(whole.name)
        if fields is None:
            self._problem(node, f"unexpected failed resolution of '{whole.name}'")
            return ERROR
        if name not in fields:
            self._problem(node, f"undefined field '{name}'")
        return fields.get(name, ERROR)

    def _call(self, node: Call) -> CelType:
        if node.function == _OPTIONAL_FIELD:
            return self._optional_field(node)
        for argument in node.arguments:
            self.check(argument)
        known, target = signatures(), node.target
        path = path_of(target) if target is not None else ""
        if path and f"{path}.{node.function}" in known:
            return self._resolved(node, f"{path}.{node.function}", node.arguments)
        if target is not None:
            self.check(target)
        if node.function not in known:
            text = f"undeclared reference to '{node.function}' (in container '')"
            self._problem(node, text)
            return ERROR
        given = node.arguments if target is None else (target, *node.arguments)
        return self._resolved(node, node.function, given, is_member=target is not None)

    def _optional_field(self, node: Call) -> CelType:
        operand, name = node.arguments
        if not isinstance(name, Literal) or not isinstance(name.value, str):
            self._problem(name, f"unsupported optional field selection: {name}")
            return ERROR
        type_ = self._field(node, operand, name.value, is_optional=True)
        self.overloads[node.id] = ("select_optional_field",)
        return self.bound.filled(type_)

    def _resolved(
        self, node: Call, name: str, given: Sequence[Node], *, is_member: bool = False
    ) -> CelType:
        """Return the result type of a call of the function `name` with the arguments `given`.

        If `is_member` is set, the first argument is the value on which the function is called.
        """
        if name in _LOGICAL:
            return self._logical(node)
        types = [self.types[one.id] for one in given]
        found, result = [], None
        for one in signatures()[name]:
            made = self._fitting(one, types) if one.is_member == is_member else None
            if made is None:
                continue
            found.append(one.id)
            if result is None:
                result = made
            elif result not in (DYN, made):
                result = DYN
        if result is None:
            self._no_overload(node, name, types, is_member=is_member)
            return ERROR
        self.overloads[node.id] = tuple(found)
        return result

    def _fitting(self, one: Signature, types: list[CelType]) -> CelType | None:
        """Return the result type of the overload `one`; None if it does not accept `types`."""
        taken, result = _instance(one, self.bound)
        return self.bound.filled(result) if self.bound.fit(types, taken) else None

    def _logical(self, node: Call) -> CelType:
        is_wrong = False
        for one in node.arguments:
            type_ = self.types[one.id]
            if not self.bound.fit([type_], [BOOL]):
                self._problem(one, f"expected type 'bool' but found '{type_}'")
                is_wrong = True
        self.overloads[node.id] = ("logical_and" if node.function == "_&&_" else "logical_or",)
        return ERROR if is_wrong else BOOL

    def _no_overload(self, node: Call, name: str, types: list[CelType], *, is_member: bool) -> None:
        shown = [str(self.bound.filled(one, is_final=True)) for one in types]
        target = f"{shown.pop(0)}." if is_member else ""
        given = f"{target}({', '.join(shown)})"
        self._problem(node, f"found no matching overload for '{name}' applied to '{given}'")

    def _items(self, node: ListLiteral) -> CelType:
        found: CelType | None = None
        for at, one in enumerate(node.items):
            type_ = self.check(one)
            if at in node.optional:
                type_ = self._unwrapped(one, type_)
            found = self._joined(found, type_)
        return list_of(found or self.bound.fresh())

    def _unwrapped(self, node: Node, type_: CelType) -> CelType:
        inner, is_optional = unwrapped(type_)
        if not is_optional and inner != DYN:
            self._problem(node, f"expected type '{optional_of(inner)}' but found '{inner}'")
        return inner

    def _joined(self, before: CelType | None, type_: CelType) -> CelType:
        """Return the item type of a list after an item of the type `type_` is added.

        `before` is the item type of the list without this item; None if the list was empty.
        """
        if before is None:
            return type_
        return most_general(before, type_) if self.bound.fit([before], [type_]) else DYN

    def _entries(self, node: MapLiteral) -> CelType:
        key: CelType | None = None
        value: CelType | None = None
        for entry in node.entries:
            if not isinstance(entry.key, str):
                key = self._joined(key, self.check(entry.key))
            value = self._joined(value, self._value(entry))
        return map_of(key or self.bound.fresh(), value or self.bound.fresh())

    def _value(self, entry: MapEntry) -> CelType:
        type_ = self.check(entry.value)
        return self._unwrapped(entry.value, type_) if entry.is_optional else type_

    def _object(self, node: MapLiteral) -> CelType:
        known = self.fields.get(node.type_name)
        if known is None:
            self._problem(node, f"undeclared reference to '{node.type_name}' (in container '')")
            return ERROR
        for entry in node.entries:
            type_ = self._value(entry)
            wanted = known.get(str(entry.key), ERROR)
            place = self.tree.places.get(entry.id, 0)
            if str(entry.key) not in known:
                self.problems.append((place, f"undefined field '{entry.key}'"))
            elif not self.bound.fit([wanted], [type_]):
                text = f"expected type of field '{entry.key}' is '{wanted}' but provided type is"
                self.problems.append((place, f"{text} '{type_}'"))
        return CelType(node.type_name)

    def _loop(self, node: Comprehension) -> CelType:
        ranged = self.bound.filled(self.check(node.range))
        made = self.check(node.initial)
        names = self._names(node, ranged)
        with self._scope({node.accumulator: made}):
            with self._scope(names):
                self.check(node.condition)
                self._assert(node.condition, BOOL)
                self.check(node.step)
                self._assert(node.step, made)
            return self.bound.filled(self.check(node.result))

    def _names(self, node: Comprehension, ranged: CelType) -> dict[str, CelType]:
        """Return the types of the variables in a loop over a value of the type `ranged`."""
        if ranged.name == "list":
            first, second = (INT if node.second else ranged.parameters[0]), ranged.parameters[0]
        elif ranged.name == "map":
            first, second = ranged.parameters
        elif ranged.is_open or ranged.is_type_parameter:
            self.bound.fit([DYN], [ranged])
            first = second = DYN
        else:
            why = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self._problem(node.range, f"expression of type '{ranged}' {why}")
            first = second = ERROR
        return {node.name: first, node.second: second} if node.second else {node.name: first}

    def _assert(self, node: Node, wanted: CelType) -> None:
        type_ = self.types[node.id]
        if not self.bound.fit([wanted], [type_]):
            self._problem(node, f"expected type '{wanted}' but found '{type_}'")

    @contextmanager
    def _scope(self, names: dict[str, CelType]) -> Iterator[None]:
        before = dict(self.scope)
        self.scope.update(names)
        try:
            yield
        finally:
            self.scope = before


def _instance(one: Signature, bound: TypeSubstitution) -> tuple[list[CelType], CelType]:
    """Return (argument types, result type) of the overload `one`.

    Each type parameter in these types is replaced by a new type parameter, which `bound` creates.
    """
    fresh: dict[CelType, CelType] = {}
    for type_ in (*one.taken, one.result):
        _rename(type_, fresh, bound)
    renamed = TypeSubstitution(fresh)
    return [renamed.filled(type_) for type_ in one.taken], renamed.filled(one.result)


def _rename(type_: CelType, fresh: dict[CelType, CelType], bound: TypeSubstitution) -> None:
    if type_.is_type_parameter and type_ not in fresh:
        fresh[type_] = bound.fresh()
    for inner in type_.parameters:
        _rename(inner, fresh, bound)
