"""Retelling: calls that the library cannot answer, in terms of what it can.

    map.transformMap(…)            a list of entries, of which ours makes a map
    list.indexOf(item)             the library has it of texts only
    optional.unwrap(list)          a loop
    string(ip(…))                  addresses are maps to the library
    semver(text, true)             a function of one argument is another one
    text.charAt(9)                 what is said of a place that is none
    format.uuid().validate(text)   the problems, if there are any
    map.exists_one(key, value, …)  the library calls it existsOne
    "%s".format([list])            texts in lists are quoted

upstream: cel-go's ext/{comprehensions,lists,strings}.go, cel/library.go;
apiserver/pkg/cel/library/format.go
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fairlead.cel.macro import is_made
from fairlead.cel.signature import signatures
from fairlead.cel.tree import (
    Call,
    Entries,
    Items,
    Literal,
    Loop,
    Name,
    Node,
    Select,
    nodes,
    path_of,
)

_ADDRESSES: Final = ("ip", "cidr", "masked")
_FORMAT: Final = "format."
_INSERT: Final = "cel.@mapInsert"
_WITH_KEY: Final = 3
_IT, _RESULT, _UNUSED = "@it", "@result", "#unused"


def needs_retelling(root: Node) -> bool:
    """Whether there is such a call in an expression as its parser has read it."""
    return any(
        is_made(node) or (isinstance(node, Call) and _teller(node) is not None)
        for node in nodes(root)
    )


def retold(node: Node) -> Node:
    """The same expression in calls that the library answers."""
    match node:
        case Select():
            return replace(node, operand=retold(node.operand))
        case Call():
            return _retold_call(node)
        case Items():
            return replace(node, items=tuple(map(retold, node.items)))
        case Entries():
            return replace(node, entries=tuple(
                replace(
                    one,
                    key=one.key if isinstance(one.key, str) else retold(one.key),
                    value=retold(one.value),
                )
                for one in node.entries
            ))  # fmt: skip
        case Loop():
            return _retold_loop(node)
        case _:
            return node


def _retold_loop(node: Loop) -> Loop:
    insertion = _insertion(node.step)
    if insertion is not None:
        node = _gathering(node, insertion)
    return replace(
        node,
        range=retold(node.range),
        initial=retold(node.initial),
        condition=retold(node.condition),
        step=retold(node.step),
        result=retold(node.result),
    )


def _insertion(step: Node) -> Call | None:
    """What puts something into the map that a loop makes, if it makes one."""
    if isinstance(step, Call) and step.function == "_?_:_":
        step = step.arguments[1]
    return step if isinstance(step, Call) and _name(step) == _INSERT else None


def _gathering(node: Loop, insertion: Call) -> Loop:
    """The loop with a list in place of its map, since the library makes a map anew each time."""
    function = "@map" if len(insertion.arguments) == _WITH_KEY else "@merge"
    made = Call(0, function, None, (node.result,))
    return replace(node, initial=Items(node.initial.id, (), ()), result=made)


def _retold_call(node: Call) -> Node:
    name = _name(node)
    target = None if name != node.function or node.target is None else retold(node.target)
    call = Call(node.id, name, target, tuple(map(retold, node.arguments)))
    tell = _teller(call)
    return call if tell is None else tell(call)


def _name(node: Call) -> str:
    """The name of a function with what stands before it, where that belongs to the name."""
    before = path_of(node.target) if node.target is not None else ""
    whole = f"{before}.{node.function}"
    return whole if before and whole in signatures() else node.function


def _teller(node: Call) -> Callable[[Call], Node] | None:
    """What tells a call in other words, None where it can stay."""
    name, count = _name(node), len(node.arguments)
    if name.startswith(_FORMAT) and name != "format.named":
        return _constant_format
    if name == "string" and count == 1:
        return _text if _is_address(node.arguments[0]) else None
    if name in ("indexOf", "lastIndexOf"):
        return _place if count == 1 else _ours
    if name in ("semver", "isSemver"):
        return _ours if count == 2 else None
    return _TELLERS.get(name)


def _is_address(node: Node) -> bool:
    return isinstance(node, Call) and node.function in _ADDRESSES


def _ours(node: Call) -> Node:
    """A function of ours with the arguments of another, the target first."""
    given = node.arguments if node.target is None else (node.target, *node.arguments)
    return Call(node.id, f"@{node.function}", None, given)


def _text(node: Call) -> Node:
    return Call(node.id, "@text", None, node.arguments)


def _appended(node: Call) -> Node:
    """What `_gathering` makes of an insertion: a key and a value, or a map, one item more."""
    whole, *new = node.arguments
    item = new[0] if len(new) == 1 else _held(*new)
    return Call(node.id, "_+_", None, (whole, _held(item)))


def _held(*items: Node) -> Node:
    """A list of values, since functions of ours are not found by values of any kind."""
    return Items(0, items, ())


def _printed(node: Call) -> Node:
    return replace(node, arguments=(Call(0, "@printable", None, node.arguments),))


def _constant_format(node: Call) -> Node:
    name = node.function.removeprefix(_FORMAT)
    return Call(node.id, "@format", None, (Literal(0, "string", name),))


def _named_format(node: Call) -> Node:
    return _present(Call(node.id, "@format", None, node.arguments))


def _validated(node: Call) -> Node:
    return _present(_ours(node))


def _present(node: Node) -> Node:
    """An optional value, which is absent where `node` comes to nothing."""
    return Call(0, "optional.ofNonZeroValue", None, (node,))


def _place(node: Call) -> Node:
    """Of a list it is ours, of a text the library's."""
    if node.target is None:
        return node
    it = Name(0, _IT)
    kind = Call(0, "type", None, (it,))
    is_list = Call(0, "_==_", None, (kind, Name(0, "list")))
    ours = Call(0, f"@{node.function}", None, (it, _held(*node.arguments)))
    result = Call(0, "_?_:_", None, (is_list, ours, replace(node, target=it)))
    no = Literal(0, "bool", value=False)
    return Loop(node.id, _UNUSED, "", Items(0, (), ()), _IT, node.target, no, it, result)


def _unwrapped(node: Call) -> Node:
    """A list of what is there of a list of optional values."""
    items = node.arguments[0] if node.target is None else node.target
    it, result = Name(0, _IT), Name(0, _RESULT)
    value = Items(0, (Call(0, "value", it, ()),), ())
    grown = Call(0, "_+_", None, (result, value))
    step = Call(0, "_?_:_", None, (Call(0, "hasValue", it, ()), grown, result))
    yes = Literal(0, "bool", value=True)
    return Loop(node.id, _IT, "", items, _RESULT, Items(0, (), ()), yes, step, result)


_TELLERS: Final[dict[str, Callable[[Call], Node]]] = {
    _INSERT: _appended,
    "format.named": _named_format,
    "validate": _validated,
    "charAt": _ours,
    "format": _printed,
    "substring": _ours,
    "optional.unwrap": _unwrapped,
    "unwrapOpt": _unwrapped,
}
