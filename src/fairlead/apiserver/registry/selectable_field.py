"""Readers of the fields that field selectors may name.

upstream: ToSelectableFields and SelectableFields in pkg/registry/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead.api.json import Json

# The value of a field as a field selector compares it.
FieldReader = Callable[[Json], str]


def text_field(*path: str, absent: str = "") -> FieldReader:
    """Reads the field at `path` as text; `absent` where it is missing."""

    def read(obj: Json) -> str:
        value: Any = obj
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            return absent
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read
