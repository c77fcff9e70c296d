"""Filling in: values for fields that say nothing. An empty text says nothing, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairlead.api.json import Json

Rule = Callable[[Json], Json]


def filled(obj: Json, defaults: Mapping[str, Any]) -> Json:
    """`obj` with those of `defaults` that it lacks; itself when it lacks none."""
    missing = {key: value for key, value in defaults.items() if obj.get(key) in (None, "")}
    return {**obj, **missing} if missing else obj


def filling(**defaults: Any) -> Rule:
    """The rule that fills these in."""
    return lambda obj: filled(obj, defaults)


def replaced(obj: Json, key: str, value: Any) -> Json:
    """`obj` with `key` set; itself when it is set so already."""
    return obj if key in obj and obj[key] is value else {**obj, key: value}
