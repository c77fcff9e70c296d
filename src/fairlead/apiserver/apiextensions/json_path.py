"""Simple JSON paths: `.spec.size`, `.status.conditions[?(@.type=="Ready")].status`, `.a[0].b[*]`.

upstream: k8s.io/client-go/util/jsonpath, without ranges, slices and recursion
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from fairlead.api.text.integer import parse_int64
from fairlead.api.text.text_cache import text_cache

CACHE_SIZE: Final = 512
_STEP: Final = re.compile(
    r"""\.(?P<name>(?:[^.\[\]\\]|\\.)+)
    |\[(?P<index>-?\d+)\]
    |\[(?P<all>\*)\]
    |\['(?P<quoted>[^']*)'\]
    |\[\?\(\s*@(?P<left>(?:\.(?:[^.\[\]=!<>\s()\\]|\\.)+)*)\s*(?P<operator>==|!=)\s*
        (?P<right>"[^"]*"|'[^']*'|true|false|-?\d+)\s*\)\]""",
    re.VERBOSE,
)

Values = list[Any]
Step = Callable[[Any], Values]


class JsonPathError(ValueError):
    """A text is not a simple JSON path."""


class JsonPath(Struct, frozen=True):
    """A parsed path.

    `names` contains the field names of the path; None if the path has other steps, such as `[0]`.
    """

    steps: tuple[Step, ...]
    names: tuple[str, ...] | None

    def find(self, value: Any) -> Values:
        """Return all values in `value` that this path selects; [] if there are none."""
        found = [value]
        for step in self.steps:
            found = [inner for one in found for inner in step(one)]
        return found


@text_cache(maxsize=CACHE_SIZE)
def json_path(text: str) -> JsonPath:
    """Return the parsed path `text`. Raises JsonPathError if it is not a simple JSON path."""
    if not text.startswith("."):
        raise JsonPathError("must be a simple json path starting with .")
    steps: list[Step] = []
    names: list[str] | None = []
    at = 0
    while at < len(text) and text != ".":
        matched = _STEP.match(text, at)
        if matched is None:
            raise JsonPathError("must be a simple json path starting with .")
        steps.append(_step(matched))
        name = matched["name"] or matched["quoted"]
        names = [*names, name.replace("\\", "")] if names is not None and name else None
        at = matched.end()
    return JsonPath(tuple(steps), tuple(names) if names is not None else None)


def plain_path(text: str) -> JsonPath:
    """Return the parsed path `text`, which has only field names and dots, such as `.spec.size`."""
    names = tuple(text.removeprefix(".").split("."))
    return JsonPath(tuple(map(_named, names)), names)


def _step(matched: re.Match[str]) -> Step:
    if matched["all"]:
        return _every
    if matched["index"]:
        return _indexed(_integer(matched["index"]))
    if matched["operator"]:
        return _filtered(matched)
    return _named((matched["name"] or matched["quoted"] or "").replace("\\", ""))


def _named(name: str) -> Step:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _indexed(index: int) -> Step:
    def step(value: Any) -> Values:
        inside = isinstance(value, list) and -len(value) <= index < len(value)
        return [value[index]] if inside else []

    return step


def _every(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _filtered(matched: re.Match[str]) -> Step:
    left = json_path(matched["left"] or ".")
    right, is_equal = _literal(matched["right"]), matched["operator"] == "=="

    def step(value: Any) -> Values:
        return [item for item in _every(value) if (left.find(item) == [right]) == is_equal]

    return step


def _literal(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1] if text[0] in "\"'" else _integer(text)


def _integer(text: str) -> int:
    number = parse_int64(text)
    if number is None:
        raise JsonPathError(f"{text[:30]} is not an integer of 64 bits")
    return number
