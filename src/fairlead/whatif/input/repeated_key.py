"""Finds a key that an object in a JSON file has twice.

In a hand-written file, one of the two values is a mistake. The JSON decoder keeps only the last
value. Only small files are searched, because the search would slow down the reading of large dumps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from fairlead.whatif.input.error import InputError

CHARACTERS_MAX: Final = 1 << 20


class _Repeated(dict[str, Any]):
    """A JSON object that has a key twice; the attribute `key` is that key."""

    key = ""


def require_distinct_keys(source: str, text: str) -> None:
    """Raise InputError for the first object of the valid JSON `text` that has a key twice.

    `source` names the file in the message. Texts of more than CHARACTERS_MAX are not searched.
    """
    if len(text) > CHARACTERS_MAX:
        return
    try:
        # Numbers remain texts: Python refuses to convert very long ones.
        whole = json.loads(text, object_pairs_hook=_object_of, parse_int=str, parse_float=str)
        found = _first_repeated(whole)
    except RecursionError:
        return  # No Kubernetes object is nested so deeply.
    if found is not None:
        key, name, field = found
        problem = f"the key {key!r} is given twice"
        raise InputError(source, problem, object_name=name, field=field.removeprefix("."))


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    repeated = _Repeated(value)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            repeated.key = key
            break
        seen.add(key)
    return repeated


def _first_repeated(value: Any) -> tuple[str, str, str] | None:
    """Return (repeated key, title of the Kubernetes object with it, path in that object).

    Return None if no object has a key twice. In `value`, the decoder has made a `_Repeated` of each
    object that has a key twice. Example: `("image", "Deployment shop/web",
    ".spec.template.spec.containers[0]")`.
    """
    if isinstance(value, _Repeated):
        return value.key, _title(value), ""
    parts: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        parts = ((f".{key}", part) for key, part in value.items())
    elif isinstance(value, list):
        parts = ((f"[{number}]", part) for number, part in enumerate(value))
    for step, part in parts:
        found = _first_repeated(part)
        if found is not None:
            key, name, field = found
            return found if name else (key, _title(value), f"{step}{field}")
    return None


def _title(value: Any) -> str:
    """Return a name such as `Deployment shop/web`; "" if `value` is not a Kubernetes object."""
    match value:
        case {"kind": str(kind), "metadata": {"name": str(name), "namespace": str(namespace)}}:
            return f"{kind} {namespace}/{name}"
        case {"kind": str(kind), "metadata": {"name": str(name)}}:
            return f"{kind} {name}"
    return ""
