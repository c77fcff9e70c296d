"""Fills in values for absent fields; an empty string counts as absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairlead.api.json import Json

Rule = Callable[[Json], Json]


def filled(obj: Json, defaults: Mapping[str, Any]) -> Json:
    """Return `obj` with the missing `defaults`; `obj` itself if none is missing."""
    missing = {key: value for key, value in defaults.items() if obj.get(key) in (None, "")}
    return {**obj, **missing} if missing else obj


def filling(**defaults: Any) -> Rule:
    """Return a rule that fills in the given values."""
    return lambda obj: filled(obj, defaults)


def replaced(obj: Json, key: str, value: Any) -> Json:
    """Return `obj` with `key` set; `obj` itself if it has that value already."""
    return obj if key in obj and obj[key] is value else {**obj, key: value}
