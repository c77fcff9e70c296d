"""The types of expressions, and the assignment of types to type parameters.

Types are written as the checker prints them: `list(int)`, `map(string, dyn)`, `optional_type(A)`.
Single capital letters, and names that begin with `_var`, are type parameters, such as `A` in the
declaration `_==_(A, A)`. Worked example: `[1] == dyn(x)`

    list(int) for A     A has no type yet; A := list(int)
    dyn       for A     A is list(int); dyn fits it and is more general; A := dyn

Both arguments fit, so the call is well typed. In `[1] == 'a'`, string does not fit list(int), so no
overload fits.

upstream: cel-go's checker/types.go, common/types/types.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import is_
from typing import Final

TYPE_SIZE_MAX: Final = 128
_PARAMETER: Final = re.compile(r"[A-Z]|_var\d+")
_TOKEN: Final = re.compile(r"[(),]|[^(),\s]+")
_WORDS_SHOWN: Final = {"error": "!error!", "null_type": "null"}
_LONG: Final = {
    "any": "google.protobuf.Any",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}
_NULLABLE: Final = frozenset({"optional_type", "timestamp", "duration", "null_type"})
# types without parameters that are not structures
_PLAIN: Final = frozenset(
    {"any", "bool", "bytes", "double", "duration", "dyn", "error", "int", "list", "map", "net.CIDR"}
    | {"net.IP", "null_type", "string", "timestamp", "type", "uint"}
)


class TypeSizeError(Exception):
    """Raised if a type would contain more than TYPE_SIZE_MAX types."""


@dataclass(frozen=True, slots=True)
class CelType:
    """A type: its name, and in `parameters` the types inside its parentheses.

    For example, `map(string, int)` has the name `map` and the parameters `string` and `int`.
    `size` is the number of types in a type, including the type itself. Creating a type with a size
    above TYPE_SIZE_MAX raises TypeSizeError. Without this limit, a short expression could have a
    huge type: each `.map(x, {x: x})` in a chain doubles the size. `is_type_parameter` means
    that any type may replace this type. `is_ground` means that this type contains no type
    parameters.
    """

    name: str
    parameters: tuple[CelType, ...] = ()
    size: int = field(default=1, init=False, compare=False, repr=False)
    is_type_parameter: bool = field(default=False, init=False, compare=False, repr=False)
    is_ground: bool = field(default=True, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Compute the fields that follow from the name and the parameters."""
        size = 1 + sum([one.size for one in self.parameters])
        if size > TYPE_SIZE_MAX:
            raise TypeSizeError
        is_parameter = _PARAMETER.fullmatch(self.name) is not None
        is_ground = not is_parameter and all(one.is_ground for one in self.parameters)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "is_type_parameter", is_parameter)
        object.__setattr__(self, "is_ground", is_ground)

    @property
    def is_open(self) -> bool:
        """Whether the type is dyn, any or error; these types fit every other type."""
        return self.name in ("dyn", "any", "error")

    @property
    def is_structure(self) -> bool:
        """Whether the type has named fields."""
        return self.name not in _PLAIN and not self.parameters and not self.is_type_parameter

    @property
    def may_be_null(self) -> bool:
        """Whether null is a value of the type."""
        return self.name in _NULLABLE or self.name.startswith("net.") or self.is_structure

    @property
    def full_name(self) -> str:
        """The type's name in errors such as `must evaluate to bool but got list(int)`.

        Protobuf types have their full names, such as `google.protobuf.Timestamp`.
        """
        return _written(
            self, _LONG.get(self.name, self.name), [one.full_name for one in self.parameters]
        )

    def __str__(self) -> str:
        """Return the type as the checker prints it."""
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
    """Return the type of lists whose items have the type `item`."""
    return CelType("list", (item,))


def map_of(key: CelType, value: CelType) -> CelType:
    """Return the map type with keys of the type `key` and values of the type `value`."""
    return CelType("map", (key, value))


def optional_of(value: CelType) -> CelType:
    """Return CEL's type `optional_type` for values of the type `value`."""
    return CelType("optional_type", (value,))


@lru_cache(maxsize=512)
def parse_type(text: str) -> CelType:
    """Parse the text of a type, such as `map(string, list(int))`."""
    return _read(iter(_TOKEN.findall(text)))[0]


def parse_types(text: str) -> tuple[CelType, ...]:
    """Parse types separated by commas."""
    return parse_type(f"all({text})").parameters if text else ()


def _read(tokens: Iterator[str]) -> tuple[CelType, str]:
    """Parse a type; return (the type, the token after it)."""
    name, after = next(tokens), next(tokens, "")
    if after != "(":
        return CelType(name), after
    inner = []
    while after != ")":
        one, after = _read(tokens)
        inner.append(one)
    return CelType(name, tuple(inner)), next(tokens, "")


def unwrapped(type_: CelType) -> tuple[CelType, bool]:
    """Return (type of the value, True) for an optional type; (`type_`, False) for other types."""
    return (type_.parameters[0], True) if type_.name == "optional_type" else (type_, False)


class TypeSubstitution:
    """The types that have been assigned to type parameters."""

    def __init__(self, known: dict[CelType, CelType] | None = None) -> None:
        """Start with `known`, the types of some type parameters."""
        self._known = dict(known or {})
        # parameters bound by the last `fit`
        self._replaced: list[tuple[CelType, CelType | None]] = []
        self._made = 0

    def fresh(self) -> CelType:
        """Return a new type parameter."""
        self._made += 1
        return CelType(f"_var{self._made - 1}")

    def fit(self, given: Sequence[CelType], wanted: Sequence[CelType]) -> bool:
        """Return whether each type in `given` fits the type at the same position in `wanted`.

        If all of them fit, this method binds the type parameters in `given` and `wanted` to types.
        Otherwise, the bindings stay unchanged.
        """
        self._replaced.clear()
        if len(given) == len(wanted) and all(map(self._fits, given, wanted)):
            return True
        for parameter, before in reversed(self._replaced):
            if before is None:
                del self._known[parameter]
            else:
                self._known[parameter] = before
        return False

    def filled(self, type_: CelType, *, is_final: bool = False) -> CelType:
        """Return `type_` with its bound type parameters replaced by their types.

        If `is_final` is True, unbound type parameters become dyn.
        """
        if type_.is_ground:
            return type_
        if type_.is_type_parameter:
            found = self._known.get(type_)
            if found is not None:
                return self.filled(found, is_final=is_final)
            return DYN if is_final else type_
        inner = tuple([self.filled(one, is_final=is_final) for one in type_.parameters])
        is_same = all(map(is_, inner, type_.parameters))
        return type_ if is_same else CelType(type_.name, inner)

    def final(self, type_: CelType, known: dict[int, CelType]) -> CelType:
        """Return `type_`; bound type parameters become their types, and unbound ones become dyn.

        The result equals that of `filled(type_, is_final=True)`. `known` caches the results by the
        `id()` of the type object.

        One type object can be a part of the types of many syntax nodes. If all calls use the same
        `known`, each object is filled only once, so the total time is linear in the number of
        syntax nodes.
        """
        found = known.get(id(type_))
        if found is None:
            bound = self._known.get(type_) if type_.is_type_parameter else None
            if type_.is_ground:
                found = type_
            elif bound is not None:
                found = self.final(bound, known)
            elif type_.is_type_parameter:
                found = DYN
            else:
                inner = tuple([self.final(one, known) for one in type_.parameters])
                found = CelType(type_.name, inner)
            known[id(type_)] = found
        return found

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
        """Return (whether `type_` fits `parameter`, whether `parameter` was already bound).

        If `type_` fits, an unbound `parameter` is bound to `type_`. If `parameter` was already
        bound, it is bound to the more general of its old type and `type_`. A parameter is never
        bound to a type that contains the parameter.
        """
        if type_ == parameter:
            return True, True
        known = self._known.get(parameter)
        if known is None:
            if self._is_in(parameter, type_):
                return False, False
            self._bind(parameter, type_)
            return True, False
        if type_ == known:
            return True, True
        if not self._fits(type_, known):
            return False, True
        wider = most_general(type_, known)
        if not self._is_in(parameter, wider):
            self._bind(parameter, wider)
        return True, True

    def _bind(self, parameter: CelType, type_: CelType) -> None:
        self._replaced.append((parameter, self._known.get(parameter)))
        self._known[parameter] = type_

    def _is_in(self, parameter: CelType, type_: CelType) -> bool:
        if type_.is_ground:
            return False
        if type_ == parameter:
            return True
        if type_.is_type_parameter:
            found = self._known.get(type_)
            return found is not None and self._is_in(parameter, found)
        return any(self._is_in(parameter, one) for one in type_.parameters)


def most_general(left: CelType, right: CelType) -> CelType:
    """Return the more general one of two types that fit each other."""
    return left if _is_more_general(left, right) else right


def _is_more_general(one: CelType, other: CelType) -> bool:
    if one.name in ("dyn", "any") or one.is_type_parameter:
        return True
    if other.name in ("dyn", "any") or other.is_type_parameter:
        return False
    if one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    if one.name == "type":
        return True
    return all(map(_is_more_general, one.parameters, other.parameters))
