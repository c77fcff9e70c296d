"""What can be wrong with a field, in upstream's words.

upstream: apimachinery/pkg/util/validation/field/errors.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from fairlead.apiserver.error import Cause

Causes = Iterable[Cause]


def invalid(field: str, value: Any, why: str = "") -> Cause:
    """The value breaks a rule."""
    stated = f"Invalid value: {_shown(value)}"
    return Cause("FieldValueInvalid", f"{stated}: {why}" if why else stated, field)


def required(field: str, why: str = "") -> Cause:
    """The value is missing."""
    return Cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", field)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> Cause:
    """The value is none of those there are."""
    known = ", ".join(_shown(text) for text in supported)
    message = f"Unsupported value: {_shown(value)}: supported values: {known}"
    return Cause("FieldValueNotSupported", message, field)


def duplicate(field: str, value: Any) -> Cause:
    """The value is there already."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {_shown(value)}", field)


def forbidden(field: str, why: str) -> Cause:
    """There may be no such value here."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)


def non_negative(field: str, value: int) -> Causes:
    """`value` must be 0 or more."""
    if value < 0:
        yield invalid(field, value, "must be greater than or equal to 0")


def _shown(value: Any) -> str:
    """Text in quotes, numbers bare, everything else as JSON."""
    if isinstance(value, str):
        return f'"{value}"'
    return msgspec.json.encode(value).decode()
