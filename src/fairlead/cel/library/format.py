"""Formats strings: `"%s has %d".format([name, count])`.

    %s any value   %d a whole number   %f %.2f %e a number   %b %o %x %X a number in another base

upstream: cel-go's ext/formatting.go
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any, Final

from fairlead.cel.cost.runtime_cost import CostTracker
from fairlead.cel.value import Duration, Timestamp, TypeValue, Uint, double_text, type_name

_PRECISION: Final = 6
_PRECISION_MAX: Final = 1_000
_PRINT_STEPS: Final = 120  # for each value inside a list or a map


def formatted(tracker: CostTracker, text: str, values: list[Any]) -> str:
    """Return `text` with its clauses, such as `%s`, replaced by `values`. Raises ValueError."""
    return "".join(_pieces(tracker, text, values))


def _pieces(tracker: CostTracker, text: str, values: list[Any]) -> Iterator[str]:
    at = used = 0
    while True:
        plain, percent, _ = text[at:].partition("%")
        yield plain
        if not percent:
            return
        at += len(plain) + 1
        if at >= len(text):
            raise ValueError("unexpected end of format string")
        if text[at] == "%":
            at += 1
            yield "%"
            continue
        precision, at = _precision_at(text, at)
        if used >= len(values):
            raise ValueError(f"index {used} out of range")
        piece = _printed(tracker, text[at], precision, values[used])
        tracker.write(len(piece))
        yield piece
        at, used = at + 1, used + 1


def _precision_at(text: str, at: int) -> tuple[int, int]:
    """Return (precision, position after the precision) of the format clause at `at`.

    A clause without a precision has the precision _PRECISION.
    """
    if text[at] != ".":
        return _PRECISION, at
    end = at + 1
    while end < len(text) and text[end].isdecimal():
        end += 1
    digits = text[at + 1 : end]
    if not digits:
        raise ValueError("error while trying to parse precision: unable to parse precision")
    if end >= len(text):
        raise ValueError("unexpected end of format string")
    return min(int(digits[:6]), _PRECISION_MAX), end


def _printed(tracker: CostTracker, clause: str, precision: int, value: Any) -> str:
    match clause:
        case "s":
            if isinstance(value, list | dict):
                tracker.add_work_within(value, _PRINT_STEPS)
            return text_of(value)
        case "d":
            return _decimal(value)
        case "f":
            return _real("fixed-point", value, f".{precision}f")
        case "e":
            return _real("scientific", value, f".{precision}e")
        case "b":
            return format(_integer("binary", value, bool), "b")
        case "o":
            return format(_integer("octal", value), "o")
        case "x" | "X":
            return _hexadecimal(value, clause)
        case _:
            raise ValueError(f'unrecognized formatting clause "{clause}"')


def _wrong(message: str, value: Any) -> ValueError:
    return ValueError(f"error during formatting: {message}, was given {type_name(value)}")


def _decimal(value: Any) -> str:
    if type(value) is int or type(value) is Uint:
        return str(int(value))
    raise _wrong("decimal clause can only be used on integers", value)


def _integer(clause: str, value: Any, *also: type) -> int:
    if type(value) in (int, Uint, *also):
        return int(value)
    kinds = "integers and bools" if also else "integers"
    raise _wrong(f"{clause} clause can only be used on {kinds}", value)


def _real(clause: str, value: Any, form: str) -> str:
    if type(value) in (float, int, Uint):
        return _infinite(value) or format(float(value), form)
    if value in ("NaN", "Infinity", "-Infinity"):
        return {"NaN": "NaN", "Infinity": "∞", "-Infinity": "-∞"}[value]
    raise _wrong(f"{clause} clause can only be used on doubles", value)


def _infinite(value: float) -> str:
    if isfinite(value):
        return ""
    return "NaN" if value != value else "∞" if value > 0 else "-∞"  # noqa: PLR0124 - not a number


def _hexadecimal(value: Any, clause: str) -> str:
    if isinstance(value, str | bytes):
        raw = value.encode() if isinstance(value, str) else value
        return raw.hex().upper() if clause == "X" else raw.hex()
    if type(value) is int or type(value) is Uint:
        return format(int(value), clause)
    raise _wrong("only integers, byte buffers, and strings can be formatted as hex", value)


def text_of(value: Any) -> str:
    """Return `value` as `%s` prints it; raises ValueError for a type that `%s` does not support."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case bytes():
            return value.decode(errors="replace")
        case int() | Timestamp() | Duration():
            return str(value)
        case float():
            return double_text(value)
        case TypeValue():
            return value.name
        case list() | dict():
            return _container_text(value)
        case _:
            kinds = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and"
            raise _wrong(f"string clause can only be used on {kinds} timestamps", value)


def _container_text(value: list[Any] | dict[Any, Any]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_inner, value))}]"
    entries = sorted((_inner(key), _inner(one)) for key, one in value.items())
    return f"{{{', '.join(f'{key}:{one}' for key, one in entries)}}}"


def _inner(value: Any) -> str:
    """Return the text for a `value` that is an item of a list, or a key or value of a map."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            return f"b{json.dumps(value.decode(errors='replace'), ensure_ascii=False)}"
        case float():
            return f"{value:.6f}"
        case _:
            return text_of(value)
