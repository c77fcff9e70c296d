"""What can be wrong with a field, in upstream's words; the field's path stands elsewhere.

upstream: apimachinery/pkg/util/validation/field/errors.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec


def invalid(value: Any, why: str = "") -> str:
    """The value breaks a rule."""
    stated = f"Invalid value: {shown(value)}"
    return f"{stated}: {why}" if why else stated


def required(why: str = "") -> str:
    """The value is missing."""
    return f"Required value: {why}" if why else "Required value"


def not_supported(value: Any, supported: Iterable[str]) -> str:
    """The value is none of those there are."""
    known = ", ".join(map(shown, supported))
    return f"Unsupported value: {shown(value)}: supported values: {known}"


def duplicate(value: Any) -> str:
    """The value is there already."""
    return f"Duplicate value: {shown(value)}"


def forbidden(why: str) -> str:
    """There may be no such value here."""
    return f"Forbidden: {why}"


def shown(value: Any) -> str:
    """Text in quotes, numbers bare, everything else as JSON."""
    if isinstance(value, str):
        return f'"{value}"'
    return msgspec.json.encode(value).decode()
