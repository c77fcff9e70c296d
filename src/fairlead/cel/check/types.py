"""CelType: the type of an expression, and which types go together.

A type_ is written as CEL's checker prints it: `list(int)`, `map(string, dyn)`, `optional_type(A)`.
Single capital letters, and names that begin with `_var`, are parameters.

upstream: cel-go's checker/types.go, common/types/types.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_PARAMETER: Final = re.compile(r"[A-Z]|_var\d+")
_TOKEN: Final = re.compile(r"[(),]|[^(),\s]+")
_WORDS_SHOWN: Final = {"error": "!error!", "null_type": "null"}
_LONG: Final = {
    "any": "google.protobuf.Any",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}
_NULLABLE: Final = frozenset({"optional_type", "timestamp", "duration", "null_type"})
# Kinds that are no structures although they have no parameters.
_PLAIN: Final = frozenset(
    {"any", "bool", "bytes", "double", "duration", "dyn", "error", "int", "list", "map", "net.CIDR"}
    | {"net.IP", "null_type", "string", "timestamp", "type", "uint"}
)


@dataclass(frozen=True, slots=True)
class CelType:
    """A type by its name and the types that it is made of."""

    name: str
    parameters: tuple[CelType, ...] = ()

    @property
    def is_type_parameter(self) -> bool:
        """Whether it stands for any type_."""
        return _PARAMETER.fullmatch(self.name) is not None

    @property
    def is_open(self) -> bool:
        """Whether anything goes with it."""
        return self.name in ("dyn", "any", "error")

    @property
    def is_structure(self) -> bool:
        """Whether it has fields with names."""
        return self.name not in _PLAIN and not self.parameters and not self.is_type_parameter

    @property
    def may_be_null(self) -> bool:
        """Whether null is one."""
        return self.name in _NULLABLE or self.name.startswith("net.") or self.is_structure

    @property
    def full_name(self) -> str:
        """As results are named: with the whole names of times."""
        return _written(
            self, _LONG.get(self.name, self.name), [one.full_name for one in self.parameters]
        )

    def __str__(self) -> str:
        """As the checker prints it."""
        shown = _WORDS_SHOWN.get(self.name, self.name)
        return _written(self, shown, [str(one) for one in self.parameters])


def _written(type_: CelType, name: str, inner: list[str]) -> str:
    return f"{name}({', '.join(inner)})" if type_.parameters else name


DYN: Final = CelType("dyn")
ERROR: Final = CelType("error")
NULL: Final = CelType("null_type")
BOOL: Final = CelType("bool")
INT: Final = CelType("int")
STRING: Final = CelType("string")
BYTES: Final = CelType("bytes")


def list_of(item: CelType) -> CelType:
    """A list."""
    return CelType("list", (item,))


def map_of(key: CelType, value: CelType) -> CelType:
    """A map."""
    return CelType("map", (key, value))


def optional_of(value: CelType) -> CelType:
    """What may be absent."""
    return CelType("optional_type", (value,))


@lru_cache(maxsize=512)
def parse_type(text: str) -> CelType:
    """The type_ that is written so."""
    return _read(iter(_TOKEN.findall(text)))[0]


def parse_types(text: str) -> tuple[CelType, ...]:
    """Several, with commas between them."""
    return parse_type(f"all({text})").parameters if text else ()


def _read(tokens: Iterator[str]) -> tuple[CelType, str]:
    """A type_, and what comes after it."""
    name, after = next(tokens), next(tokens, "")
    if after != "(":
        return CelType(name), after
    inner = []
    while after != ")":
        one, after = _read(tokens)
        inner.append(one)
    return CelType(name, tuple(inner)), next(tokens, "")


def unwrapped(type_: CelType) -> tuple[CelType, bool]:
    """What an optional type_ is of, and whether it is one."""
    return (type_.parameters[0], True) if type_.name == "optional_type" else (type_, False)


class TypeSubstitution:
    """What parameters have been found to stand for."""

    def __init__(self, known: dict[CelType, CelType] | None = None) -> None:
        """Begin with those that are known."""
        self._known = dict(known or {})
        self._made = 0

    def fresh(self) -> CelType:
        """A new parameter."""
        self._made += 1
        return CelType(f"_var{self._made - 1}")

    def fit(self, given: Sequence[CelType], wanted: Sequence[CelType]) -> bool:
        """Whether each of `given` can stand for its one of `wanted`; if so, remember how."""
        before = dict(self._known)
        if len(given) == len(wanted) and all(map(self._fits, given, wanted)):
            return True
        self._known = before
        return False

    def filled(self, type_: CelType, *, is_final: bool = False) -> CelType:
        """`type_` with what its parameters stand for; in the end unknown ones are anything."""
        found = self._known.get(type_)
        if found is not None:
            return self.filled(found, is_final=is_final)
        if type_.is_type_parameter:
            return DYN if is_final else type_
        if not type_.parameters:
            return type_
        return CelType(
            type_.name, tuple(self.filled(one, is_final=is_final) for one in type_.parameters)
        )

    def _fits(self, one: CelType, other: CelType) -> bool:
        if other.is_type_parameter:
            fits, is_known = self._substitutes(one, other)
            if fits or is_known:
                return fits
        if one.is_type_parameter:
            return self._substitutes(other, one)[0]
        if one.is_open or other.is_open:
            return True
        if one == NULL:
            return other.may_be_null
        if other == NULL:
            return one.may_be_null
        if one.name == "type" and other.name == "type":
            return True
        if one.name != other.name or len(one.parameters) != len(other.parameters):
            return False
        return all(map(self._fits, one.parameters, other.parameters))

    def _substitutes(self, type_: CelType, parameter: CelType) -> tuple[bool, bool]:
        """Whether a parameter can stand for `type_`, and whether it stood for something."""
        if type_ == parameter:
            return True, True
        known = self._known.get(parameter)
        if known is None:
            if self._is_in(parameter, type_):
                return False, False
            self._known[parameter] = type_
            return True, False
        if type_ == known:
            return True, True
        if not self._fits(type_, known):
            return False, True
        wider = most_general(type_, known)
        if not self._is_in(parameter, wider):
            self._known[parameter] = wider
        return True, True

    def _is_in(self, parameter: CelType, type_: CelType) -> bool:
        if type_ == parameter:
            return True
        if type_.is_type_parameter:
            found = self._known.get(type_)
            return found is not None and self._is_in(parameter, found)
        return any(self._is_in(parameter, one) for one in type_.parameters)


def most_general(one: CelType, other: CelType) -> CelType:
    """The one of two types, which go together, that says less."""
    return one if _says_less(one, other) else other


def _says_less(one: CelType, other: CelType) -> bool:
    if one.name in ("dyn", "any") or one.is_type_parameter:
        return True
    if other.name in ("dyn", "any") or other.is_type_parameter:
        return False
    if one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    if one.name == "type":
        return True
    return all(map(_says_less, one.parameters, other.parameters))
