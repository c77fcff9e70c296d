"""Numbers as upstream holds them where no type says what they are.

What JSON has without a point is whole if 64 bits hold it; all others are floating. YAML becomes
JSON first, and there a number without a fraction is written without a point.

upstream: sigs.k8s.io/json, sigs.k8s.io/yaml/yaml.go:convertToJSONableObject
"""

from __future__ import annotations

from typing import Any, Final

_INT64: Final = 1 << 63


def as_in_json(value: Any) -> Any:
    """`value`, of YAML, with its numbers so; the same value where they are."""
    return _numbered(value, True)  # noqa: FBT003 - passed on


def as_held(value: Any) -> Any:
    """`value`, of JSON, likewise."""
    return _numbered(value, False)  # noqa: FBT003 - likewise


def _numbered(value: Any, is_yaml: bool) -> Any:  # noqa: FBT001 - likewise
    match value:
        case dict():
            made = {key: _numbered(item, is_yaml) for key, item in value.items()}
            is_same = type(value) is dict and all(made[key] is value[key] for key in made)
            return value if is_same else made
        case list():
            items = [_numbered(item, is_yaml) for item in value]
            return items if any(map(_is_other, items, value)) else value
        case float() if is_yaml and value.is_integer() and -_INT64 <= value < _INT64:
            return int(value)
        case int() if not -_INT64 <= value < _INT64:
            return float(value)
        case _:
            return value


def _is_other(one: Any, other: Any) -> bool:
    return one is not other
