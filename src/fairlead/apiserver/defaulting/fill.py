"""Sets the values of absent fields. A field that is an empty string counts as absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairlead.api.json import Json

Rule = Callable[[Json], Json]


def filled(obj: Json, defaults: Mapping[str, Any]) -> Json:
    """Return `obj` with the `defaults` that it lacks; `obj` itself if no default is missing."""
    missing = {key: value for key, value in defaults.items() if obj.get(key) in (None, "")}
    return {**obj, **missing} if missing else obj


def filling(**defaults: Any) -> Rule:
    """Return a rule that sets `defaults` in the fields that an object lacks."""
    return lambda obj: filled(obj, defaults)


def replaced(obj: Json, key: str, value: Any) -> Json:
    """Return `obj` with `key` set to `value`; `obj` itself if it already has this value."""
    return obj if key in obj and obj[key] is value else {**obj, key: value}
