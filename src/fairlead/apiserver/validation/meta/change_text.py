"""Formats the differences between two values, as the errors of refused updates print them.

upstream: staging/src/k8s.io/apimachinery/pkg/util/diff/diff.go:Diff
"""

from __future__ import annotations

import json
from difflib import unified_diff
from typing import Any

from msgspec.json import encode

from fairlead.apiserver.schema.gojson.internal_type import as_internal
from fairlead.apiserver.schema.model import schemas

_CONTEXT_LINES = 3
_BYTES_MAX = 128 << 10  # The time to compare two texts grows with the square of their length.


def internal_of(definition: str, value: Any) -> Any:
    """Return `value` as upstream's errors print it, with the fields of its internal Go type.

    `definition` is the type of `value`, such as `core.v1.PodSpec`.
    """
    return as_internal(schemas().of_definition(f"io.k8s.api.{definition}"), value)


def change_text(before: Any, after: Any) -> str:
    """Return a unified diff of the JSON of `before` and `after`, without the diff's header.

    If the JSON of one of the values is longer than 128 KiB, a placeholder is returned.
    """
    if max(len(encode(before)), len(encode(after))) > _BYTES_MAX:
        return "(more than a refusal can show)"
    lines = list(unified_diff(_lines(before), _lines(after), n=_CONTEXT_LINES))
    return "".join(lines[2:])  # The header with file names is left out.


def _lines(value: Any) -> list[str]:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return [f"{line}\n" for line in text.split("\n")]
