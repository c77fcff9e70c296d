"""Macros that the library spells out in another way than upstream, or not at all.

upstream: cel-go's cel/library.go:optMap, ext/comprehensions.go
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fairlead.cel.tree import Call, Items, Literal, Loop, Name, Node

_UNUSED, _TARGET, _RESULT = "#unused", "@target", "@result"
_MADE: Final = 1 << 32  # numbers beyond are of nodes that the parser has not made


def exists_one(node: Call) -> Node:
    """`target.exists_one(key, value, test)`, if it is one; upstream has it under two names."""
    if len(node.arguments) != 3 or node.target is None:
        return node
    key, value, test = node.arguments
    if not isinstance(key, Name) or not isinstance(value, Name):
        return node
    at = -_MADE - 8 * node.id
    result, one = Name(at, _RESULT), Literal(at - 1, "int", 1)
    grown = Call(at - 2, "_+_", None, (Name(at - 3, _RESULT), one))
    step = Call(at - 4, "_?_:_", None, (test, grown, Name(at - 5, _RESULT)))
    zero, yes = Literal(at - 6, "int", 0), Literal(at - 7, "bool", value=True)
    last = Call(key.id, "_==_", None, (result, Literal(value.id, "int", 1)))
    return Loop(node.id, key.name, value.name, node.target, _RESULT, zero, yes, step, last)


def is_made(node: Node) -> bool:
    """Whether the library's parser has not made a node, and knows nothing of it."""
    return isinstance(node, Loop) and node.condition.id < -_MADE


def bound_once(node: Call) -> Node:
    """`target.optMap(name, value)`, if it is one: upstream works the target out once."""
    if node.function != "_?_:_" or not isinstance(node.arguments[0], Call):
        return node
    test, made, otherwise = node.arguments
    inner = made.arguments[0] if isinstance(made, Call) and len(made.arguments) == 1 else made
    if not isinstance(inner, Loop) or inner.name != _UNUSED or not isinstance(test, Call):
        return node
    target, value = test.target, inner.initial
    if target is None or isinstance(target, Name) or not isinstance(value, Call):
        return node
    named = Name(-target.id, _TARGET)
    inner = replace(inner, initial=replace(value, target=named))
    made = replace(made, arguments=(inner,)) if isinstance(made, Call) else inner
    result = replace(node, arguments=(replace(test, target=named), made, otherwise))
    empty, no = Items(-inner.range.id, (), ()), Literal(-inner.condition.id, "bool", value=False)
    step = Name(-inner.step.id, _TARGET)
    return Loop(-node.id, _UNUSED, "", empty, _TARGET, target, no, step, result)
