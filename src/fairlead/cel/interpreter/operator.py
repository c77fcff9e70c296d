"""The operators, and access to fields and items.

An operator is a function that creates the closure of a call from the closures of its operands.
Integers have 64 bits; overflow is an error. Division truncates towards zero.

upstream: cel-go's common/types/{int,uint,double,overflow,list,map,optional}.go
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from math import ceil, fmod, inf, nan
from typing import Any, Final

from fairlead.cel.cost.runtime_cost import TEXT_COST, size_of
from fairlead.cel.error import CelError, no_overload, no_such_key
from fairlead.cel.interpreter.run import Evaluate, Run
from fairlead.cel.value import (
    ABSENT,
    INT_MAX,
    INT_MIN,
    NONE,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    UINT_MAX,
    Duration,
    OptionalValue,
    Timestamp,
    Uint,
    found_in,
    is_equal,
    is_ordered,
    type_name,
)

Make = Callable[..., Evaluate]

_EQUAL_STEPS: Final = 30  # steps for comparing two values within lists or maps
_PLAIN: Final = frozenset({str, int, bool, float, Uint, bytes, type(None)})


# Equality and order.


def _equality(one: Evaluate, other: Evaluate, *, is_wanted: bool) -> Evaluate:
    def equality(run: Run) -> bool:
        left, right = one(run), other(run)
        kind = type(left)
        if kind is type(right) and kind in _PLAIN:
            size = min(len(left), len(right)) if kind is str or kind is bytes else 1
            run.cost += 1 if size <= 10 and size else ceil(size * TEXT_COST)
            return (left == right) is is_wanted
        run.charge(ceil(min(size_of(left), size_of(right)) * TEXT_COST))
        if isinstance(left, list | dict):
            run.add_work_within(left, _EQUAL_STEPS)
        return is_equal(left, right) is is_wanted

    return equality


def _comparison(compare: Callable[[Any, Any], bool]) -> Make:
    def made(one: Evaluate, other: Evaluate) -> Evaluate:
        def comparison(run: Run) -> bool:
            left, right = one(run), other(run)
            kind = type(left)
            if kind is not type(right) or kind is not int:
                if not is_ordered(left, right):
                    raise no_overload()
                if kind is str or kind is bytes:
                    run.charge(ceil(min(len(left), len(right)) * TEXT_COST))
                    return compare(left, right)
            run.cost += 1
            return compare(left, right)

        return comparison

    return made


# Arithmetic.


def checked_int(number: int) -> int:
    """Return `number` if it fits into a signed 64-bit integer, otherwise raise CelError."""
    if INT_MIN <= number <= INT_MAX:
        return number
    raise CelError("integer overflow")


def checked_uint(number: int) -> Uint:
    """Return `number` if it fits into an unsigned 64-bit integer, otherwise raise CelError."""
    if 0 <= number <= UINT_MAX:
        return Uint(number)
    raise CelError("unsigned integer overflow")


def checked_duration(nanos: int) -> Duration:
    """Return a Duration of `nanos` ns; raise CelError if `nanos` does not fit into 64 bits."""
    if INT_MIN <= nanos <= INT_MAX:
        return Duration(nanos)
    raise CelError("duration overflow")


def checked_timestamp(nanos: int) -> Timestamp:
    """Return `nanos` as a Timestamp if its year is 1 to 9999, otherwise raise CelError."""
    if TIMESTAMP_MIN <= nanos <= TIMESTAMP_MAX:
        return Timestamp(nanos)
    raise CelError("timestamp overflow")


def sum_of(left: Any, right: Any) -> Any:
    """Return `left + right`, where the operands are numbers, times or durations.

    Raises CelError for other types, and if the result does not fit into its type.
    """
    match left, right:
        case Duration(), Duration():
            return checked_duration(left.nanos + right.nanos)
        case (Timestamp(), Duration()) | (Duration(), Timestamp()):
            return checked_timestamp(left.nanos + right.nanos)
        case _:
            return _number(left, right, python.add)


def _number(one: Any, other: Any, operate: Callable[[Any, Any], Any]) -> Any:
    """Return the result of `operate` on two numbers of the same type.

    Raises CelError for other operands, and if the result does not fit into the type.
    """
    kind = type(one)
    if kind is type(other):
        if kind is int:
            return checked_int(operate(one, other))
        if kind is float:
            return operate(one, other)
        if kind is Uint:
            return checked_uint(operate(int(one), int(other)))
    raise no_overload()


def _addition(one: Evaluate, other: Evaluate) -> Evaluate:
    def addition(run: Run) -> Any:
        left, right = one(run), other(run)
        kind = type(left)
        if kind is type(right):
            if kind is str or kind is bytes:
                run.charge(ceil((len(left) + len(right)) * TEXT_COST))
                return left + right
            if kind is list:
                run.charge(1)
                run.add_work(len(left) + len(right))
                return left + right
        run.cost += 1
        return sum_of(left, right)

    return addition


def _difference(one: Any, other: Any) -> Any:
    match one, other:
        case Duration(), Duration():
            return checked_duration(one.nanos - other.nanos)
        case Timestamp(), Duration():
            return checked_timestamp(one.nanos - other.nanos)
        case Timestamp(), Timestamp():
            return checked_duration(one.nanos - other.nanos)
        case _:
            return _number(one, other, python.sub)


def _product(one: Any, other: Any) -> Any:
    return _number(one, other, python.mul)


def _quotient(one: Any, other: Any) -> Any:
    return _number(one, other, _divided)


def _divided(one: Any, other: Any) -> Any:
    if type(one) is float:
        if other:
            return one / other
        if not one or one != one:  # noqa: PLR0124 - not a number
            return nan
        is_negative = (one < 0) != (str(other)[0] == "-")
        return -inf if is_negative else inf
    if not other:
        raise CelError("division by zero")
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _remainder(one: Any, other: Any) -> Any:
    if type(one) is float:
        raise no_overload()
    return _number(one, other, _modulo)


def _modulo(one: int, other: int) -> int:
    if not other:
        raise CelError("modulus by zero")
    if one == INT_MIN and other == -1:
        raise CelError("integer overflow")
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


def _plain(operate: Callable[[Any, Any], Any]) -> Make:
    """Return a function that creates the closure of an operator with a cost of one unit."""

    def made(one: Evaluate, other: Evaluate) -> Evaluate:
        def operation(run: Run) -> Any:
            left, right = one(run), other(run)
            run.cost += 1
            return operate(left, right)

        return operation

    return made


def _negation(one: Evaluate) -> Evaluate:
    def negation(run: Run) -> Any:
        value = one(run)
        run.cost += 1
        if type(value) is int:
            return checked_int(-value)
        if type(value) is float:
            return -value
        raise no_overload()

    return negation


def _logical_not(one: Evaluate) -> Evaluate:
    def logical_not(run: Run) -> bool:
        value = one(run)
        run.cost += 1
        if type(value) is bool:
            return not value
        raise no_overload()

    return logical_not


def _not_strictly_false(one: Evaluate) -> Evaluate:
    """Return the closure of `@not_strictly_false`.

    The closure returns False if the operand is False. For every other value of the operand, and for
    an error, the closure returns True.
    """

    def not_strictly_false(run: Run) -> bool:
        run.cost += 1
        try:
            return one(run) is not False
        except CelError:
            return True

    return not_strictly_false


# Fields and items.


def _membership(one: Evaluate, other: Evaluate) -> Evaluate:
    def membership(run: Run) -> bool:
        sought, whole = one(run), other(run)
        if isinstance(whole, list):
            run.charge(len(whole))
            if type(sought) is str:
                return sought in whole
            if isinstance(sought, list | dict):
                run.add_work_within(whole, _EQUAL_STEPS)
            return any(is_equal(sought, item) for item in whole)
        if isinstance(whole, dict):
            run.cost += 1
            return found_in(whole, sought) is not ABSENT
        raise no_overload()

    return membership


def element(whole: Any, key: Any) -> Any:
    """Return `whole[key]`: a field, an item of a list or an entry of a map. Raises CelError.

    If `whole` is an optional value, the result is also an optional value.
    """
    if isinstance(whole, dict):
        found = found_in(whole, key)
        if found is ABSENT:
            raise no_such_key(key)
        return found
    if isinstance(whole, list):
        at = _place(key)
        if 0 <= at < len(whole):
            return whole[at]
        raise CelError(f"index out of bounds: {at}")
    if type(whole) is OptionalValue:
        return optional_element(whole, key)
    raise no_such_key(key)


def optional_element(whole: Any, key: Any) -> OptionalValue:
    """Return `whole[?key]` or `whole.?key`: an optional value, absent if there is no such key."""
    if type(whole) is OptionalValue:
        if not whole.is_present:
            return NONE
        whole = whole.value
    if isinstance(whole, dict):
        found = found_in(whole, key)
        return NONE if found is ABSENT else OptionalValue(found)
    if isinstance(whole, list):
        at = _place(key)
        return OptionalValue(whole[at]) if 0 <= at < len(whole) else NONE
    return NONE


def _place(key: Any) -> int:
    if type(key) is int or type(key) is Uint:
        return int(key)
    if type(key) is float:
        if key == fmod(key, INT_MAX) and key.is_integer():
            return int(key)
        raise CelError(f"unsupported index value {key} in list")
    raise CelError(f"unsupported index type '{type_name(key)}' in list")


UNARY: Final[dict[str, Make]] = {
    "!_": _logical_not,
    "-_": _negation,
    "@not_strictly_false": _not_strictly_false,
}
BINARY: Final[dict[str, Make]] = {
    "_==_": lambda one, other: _equality(one, other, is_wanted=True),
    "_!=_": lambda one, other: _equality(one, other, is_wanted=False),
    "_<_": _comparison(python.lt),
    "_<=_": _comparison(python.le),
    "_>_": _comparison(python.gt),
    "_>=_": _comparison(python.ge),
    "_+_": _addition,
    "_-_": _plain(_difference),
    "_*_": _plain(_product),
    "_/_": _plain(_quotient),
    "_%_": _plain(_remainder),
    "@in": _membership,
}
