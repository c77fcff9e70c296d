"""ArgumentReader: reads the value of a plugin's argument from the configuration.

If a value is invalid, the plugin uses its default, as in upstream. Upstream then writes a line to
the log of the scheduler. Fairlead adds a note to its answers.
upstream: pkg/scheduler/framework/arguments.go: GetInt, GetBool
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

from msgspec import Struct

from fairlead.api.text.integer import parse_int64

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")


T = TypeVar("T")


class ArgumentReader(Struct, Generic[T], frozen=True):
    """Reads values of one type; `expected` describes the valid texts, such as "an integer".

    `parse` returns None if a text is invalid.
    """

    expected: str
    parse: Callable[[str], T | None]

    def read(self, arguments: Mapping[str, str], key: str, default: T) -> T:
        """Return the value of the argument `key`, or `default` if it is missing or invalid."""
        text = arguments.get(key)
        value = None if text is None else self.parse(text)
        return default if value is None else value


def _parse_boolean(text: str) -> bool | None:
    # upstream: Go's strconv.ParseBool
    return True if text in _TRUE else False if text in _FALSE else None


def _parse_weight(text: str) -> int | None:
    number = parse_int64(text)
    return number if number is not None and number >= 0 else None


ANY_TEXT: Final = ArgumentReader("a text", str)
BOOLEAN: Final = ArgumentReader("true or false", _parse_boolean)
INTEGER: Final = ArgumentReader("an integer", parse_int64)
WEIGHT: Final = ArgumentReader("an integer of at least 0", _parse_weight)
