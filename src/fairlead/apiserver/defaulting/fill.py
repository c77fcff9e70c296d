"""Sets the values of absent fields. A field that is an empty string counts as absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairlead.api.json import Json

Rule = Callable[[Json], Json]


def filled(obj: Json, defaults: Mapping[str, Any]) -> Json:
    """Return `obj` with the values in `defaults` for those fields that are absent, null or ""."""
    missing = {key: value for key, value in defaults.items() if obj.get(key) in (None, "")}
    return {**obj, **missing} if missing else obj


def filling(**defaults: Any) -> Rule:
    """Return a rule that calls the function `filled` with an object and `defaults`."""
    return lambda obj: filled(obj, defaults)


def replaced(obj: Json, key: str, value: Any) -> Json:
    """Return a copy of `obj` with `key` set to `value`.

    Returns `obj` itself if `obj[key]` is already `value` (the same Python object).
    """
    return obj if key in obj and obj[key] is value else {**obj, key: value}
