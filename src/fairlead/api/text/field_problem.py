"""Messages for invalid fields, in upstream's words but without the field's path.

upstream: apimachinery/pkg/util/validation/field/errors.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec


def invalid(value: Any, why: str = "") -> str:
    """Return the message for a value that violates the rule `why`."""
    stated = f"Invalid value: {shown(value)}"
    return f"{stated}: {why}" if why else stated


def required(why: str = "") -> str:
    """Return the message for a missing value; it ends with `why`, if given."""
    return f"Required value: {why}" if why else "Required value"


def not_supported(value: Any, supported: Iterable[str]) -> str:
    """Return the message for a value that is not one of `supported`."""
    known = ", ".join(map(shown, supported))
    return f"Unsupported value: {shown(value)}: supported values: {known}"


def duplicate(value: Any) -> str:
    """Return the message for a value that occurs more than once."""
    return f"Duplicate value: {shown(value)}"


def forbidden(why: str) -> str:
    """Return the message for a field that must not be set."""
    return f"Forbidden: {why}"


def shown(value: Any) -> str:
    """Format a value for messages: text in quotes, numbers without quotes, other values as JSON."""
    if isinstance(value, str):
        return quoted(value)
    text = msgspec.json.encode(value).decode()
    for character in "<>&":  # upstream's JSON is safe to embed in HTML
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def quoted(text: str) -> str:
    """Return `text` in double quotes, with unprintable characters escaped."""
    # upstream: strconv/quote.go:Quote
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


_SHORT: Final = dict(zip('"\\\a\b\f\n\r\t\v', ('"', *"\\abfnrtv"), strict=True))


def _escaped(character: str) -> str:
    if character in _SHORT:
        return f"\\{_SHORT[character]}"
    number = ord(character)
    if character.isprintable():
        return character
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
