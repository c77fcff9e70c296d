"""Readers of the fields that field selectors may name.

upstream: ToSelectableFields and SelectableFields in pkg/registry/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead.api.json import Json

# Returns the value of a field as field selectors compare it.
FieldReader = Callable[[Json], str]


def text_field(*path: str, absent: str = "") -> FieldReader:
    """Read the field at `path` as text; `absent` if it is missing."""

    def read(obj: Json) -> str:
        value: Any = obj
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            return absent
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read
