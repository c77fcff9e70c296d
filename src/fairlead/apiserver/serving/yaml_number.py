"""Numbers of YAML as they are once upstream has made JSON of them.

A number without a fraction is written without a point, and what JSON has without a point is whole
if 64 bits hold it; all others are floating.

upstream: sigs.k8s.io/yaml/yaml.go:convertToJSONableObject, sigs.k8s.io/json
"""

from __future__ import annotations

from typing import Any, Final

_INT64: Final = 1 << 63


def as_in_json(value: Any) -> Any:
    """`value` with its numbers so; the same value where they are."""
    match value:
        case dict():
            made = {key: as_in_json(item) for key, item in value.items()}
            return made if any(made[key] is not value[key] for key in made) else value
        case list():
            items = list(map(as_in_json, value))
            return items if any(map(_is_other, items, value)) else value
        case float() if value.is_integer() and -_INT64 <= value < _INT64:
            return int(value)
        case int() if not -_INT64 <= value < _INT64:
            return float(value)
        case _:
            return value


def _is_other(one: Any, other: Any) -> bool:
    return one is not other
