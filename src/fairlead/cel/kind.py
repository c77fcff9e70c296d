"""Kind: the type of an expression, and which kinds go together.

A kind is written as CEL's checker prints it: `list(int)`, `map(string, dyn)`, `optional_type(A)`.
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
class Kind:
    """A type by its name and the kinds that it is made of."""

    name: str
    made_of: tuple[Kind, ...] = ()

    @property
    def is_parameter(self) -> bool:
        """Whether it stands for any kind."""
        return _PARAMETER.fullmatch(self.name) is not None

    @property
    def is_open(self) -> bool:
        """Whether anything goes with it."""
        return self.name in ("dyn", "any", "error")

    @property
    def is_structure(self) -> bool:
        """Whether it has fields with names."""
        return self.name not in _PLAIN and not self.made_of and not self.is_parameter

    @property
    def may_be_null(self) -> bool:
        """Whether null is one."""
        return self.name in _NULLABLE or self.name.startswith("net.") or self.is_structure

    @property
    def named(self) -> str:
        """As results are named: with the whole names of times."""
        return _written(self, _LONG.get(self.name, self.name), [one.named for one in self.made_of])

    def __str__(self) -> str:
        """As the checker prints it."""
        shown = _WORDS_SHOWN.get(self.name, self.name)
        return _written(self, shown, [str(one) for one in self.made_of])


def _written(kind: Kind, name: str, inner: list[str]) -> str:
    return f"{name}({', '.join(inner)})" if kind.made_of else name


DYN: Final = Kind("dyn")
ERROR: Final = Kind("error")
NULL: Final = Kind("null_type")
BOOL: Final = Kind("bool")
INT: Final = Kind("int")
STRING: Final = Kind("string")
BYTES: Final = Kind("bytes")


def list_of(item: Kind) -> Kind:
    """A list."""
    return Kind("list", (item,))


def map_of(key: Kind, value: Kind) -> Kind:
    """A map."""
    return Kind("map", (key, value))


def optional_of(value: Kind) -> Kind:
    """What may be absent."""
    return Kind("optional_type", (value,))


@lru_cache(maxsize=512)
def kind_of(text: str) -> Kind:
    """The kind that is written so."""
    return _read(iter(_TOKEN.findall(text)))[0]


def kinds_of(text: str) -> tuple[Kind, ...]:
    """Several, with commas between them."""
    return kind_of(f"all({text})").made_of if text else ()


def _read(tokens: Iterator[str]) -> tuple[Kind, str]:
    """A kind, and what comes after it."""
    name, after = next(tokens), next(tokens, "")
    if after != "(":
        return Kind(name), after
    inner = []
    while after != ")":
        one, after = _read(tokens)
        inner.append(one)
    return Kind(name, tuple(inner)), next(tokens, "")


def unwrapped(kind: Kind) -> tuple[Kind, bool]:
    """What an optional kind is of, and whether it is one."""
    return (kind.made_of[0], True) if kind.name == "optional_type" else (kind, False)


class Bindings:
    """What parameters have been found to stand for."""

    def __init__(self, known: dict[Kind, Kind] | None = None) -> None:
        """Begin with those that are known."""
        self._known = dict(known or {})
        self._made = 0

    def fresh(self) -> Kind:
        """A new parameter."""
        self._made += 1
        return Kind(f"_var{self._made - 1}")

    def fit(self, given: Sequence[Kind], wanted: Sequence[Kind]) -> bool:
        """Whether each of `given` can stand for its one of `wanted`; if so, remember how."""
        before = dict(self._known)
        if len(given) == len(wanted) and all(map(self._fits, given, wanted)):
            return True
        self._known = before
        return False

    def filled(self, kind: Kind, *, is_final: bool = False) -> Kind:
        """`kind` with what its parameters stand for; in the end unknown ones are anything."""
        found = self._known.get(kind)
        if found is not None:
            return self.filled(found, is_final=is_final)
        if kind.is_parameter:
            return DYN if is_final else kind
        if not kind.made_of:
            return kind
        return Kind(kind.name, tuple(self.filled(one, is_final=is_final) for one in kind.made_of))

    def _fits(self, one: Kind, other: Kind) -> bool:
        if other.is_parameter:
            fits, is_known = self._substitutes(one, other)
            if fits or is_known:
                return fits
        if one.is_parameter:
            return self._substitutes(other, one)[0]
        if one.is_open or other.is_open:
            return True
        if one == NULL:
            return other.may_be_null
        if other == NULL:
            return one.may_be_null
        if one.name == "type" and other.name == "type":
            return True
        if one.name != other.name or len(one.made_of) != len(other.made_of):
            return False
        return all(map(self._fits, one.made_of, other.made_of))

    def _substitutes(self, kind: Kind, parameter: Kind) -> tuple[bool, bool]:
        """Whether a parameter can stand for `kind`, and whether it stood for something."""
        if kind == parameter:
            return True, True
        known = self._known.get(parameter)
        if known is None:
            if self._is_in(parameter, kind):
                return False, False
            self._known[parameter] = kind
            return True, False
        if kind == known:
            return True, True
        if not self._fits(kind, known):
            return False, True
        wider = most_general(kind, known)
        if not self._is_in(parameter, wider):
            self._known[parameter] = wider
        return True, True

    def _is_in(self, parameter: Kind, kind: Kind) -> bool:
        if kind == parameter:
            return True
        if kind.is_parameter:
            found = self._known.get(kind)
            return found is not None and self._is_in(parameter, found)
        return any(self._is_in(parameter, one) for one in kind.made_of)


def most_general(one: Kind, other: Kind) -> Kind:
    """The one of two kinds, which go together, that says less."""
    return one if _says_less(one, other) else other


def _says_less(one: Kind, other: Kind) -> bool:
    if one.name in ("dyn", "any") or one.is_parameter:
        return True
    if other.name in ("dyn", "any") or other.is_parameter:
        return False
    if one.name != other.name or len(one.made_of) != len(other.made_of):
        return False
    if one.name == "type":
        return True
    return all(map(_says_less, one.made_of, other.made_of))
