"""Json: a JSON object as msgspec decodes it, and functions that read fields of such objects."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def at(obj: Any, *path: str) -> Any:
    """Return the value at `path`; None if it is missing."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def text(obj: Any, *path: str) -> str:
    """Return the value at `path` as text; "" if it is missing."""
    value = at(obj, *path)
    return "" if value is None else str(value)


def number(obj: Any, *path: str) -> int:
    """Return the integer at `path`; 0 if there is none."""
    value = at(obj, *path)
    return value if isinstance(value, int) else 0


def items(obj: Any, *path: str) -> list[Any]:
    """Return the list at `path`; [] if there is none."""
    value = at(obj, *path)
    return value if isinstance(value, list) else []


def mapping(obj: Any, *path: str) -> Json:
    """Return the map at `path`; {} if there is none."""
    value = at(obj, *path)
    return value if isinstance(value, dict) else {}


def name_of(obj: Json) -> str:
    """Return `metadata.name` of an object."""
    return text(obj, "metadata", "name")
