"""Checks a single value against the keywords of a JSON schema.

The keywords are OpenAPI's. Keywords come from the schema of a custom resource, or from the facts
about a field of a built-in type (`api.facts`).

upstream: k8s.io/kube-openapi/pkg/validation/validate/{schema,values}.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Broken = tuple[str, Any]
"""A keyword and its value in the schema, such as `("maxLength", 63)`."""


def broken_keywords(
    keywords: Mapping[str, Any], value: Any, matches: Callable[[str, str], bool]
) -> Iterator[Broken]:
    """Yield (keyword, value of the keyword) for each keyword that `value` violates.

    If a string violates several of minLength, maxLength and pattern, only one is yielded.
    `matches(pattern, text)` returns whether the text contains a match of the pattern.
    """
    match value:
        case bool():
            pass
        case str():
            yield from _broken_by_text(keywords, value, matches)
        case int() | float():
            yield from _broken_by_number(keywords, value)
        case list() | dict():
            yield from _broken_by_count(keywords, value)
        case _:
            pass
    choices = keywords.get("enum")
    if choices and not any(_is_choice(value, choice) for choice in choices):
        yield "enum", choices


def _broken_by_text(
    keywords: Mapping[str, Any], text: str, matches: Callable[[str, str], bool]
) -> Iterator[Broken]:
    """Yield (keyword, value) of the first length limit or pattern that `text` violates."""
    least, most = keywords.get("minLength"), keywords.get("maxLength")
    pattern = keywords.get("pattern")
    if most is not None and len(text) > most:
        yield "maxLength", most
    elif least is not None and len(text) < least:
        yield "minLength", least
    elif pattern and not matches(pattern, text):
        yield "pattern", pattern


def _broken_by_number(keywords: Mapping[str, Any], number: float) -> Iterator[Broken]:
    factor = keywords.get("multipleOf")
    least, most = keywords.get("minimum"), keywords.get("maximum")
    if factor and (number / factor) % 1:
        yield "multipleOf", factor
    if least is not None and (number <= least if _excludes(keywords, "Min") else number < least):
        yield "minimum", least
    if most is not None and (number >= most if _excludes(keywords, "Max") else number > most):
        yield "maximum", most


def _excludes(keywords: Mapping[str, Any], bound: str) -> bool:
    return bool(keywords.get(f"exclusive{bound}imum"))


def _broken_by_count(keywords: Mapping[str, Any], value: Any) -> Iterator[Broken]:
    what = "Items" if isinstance(value, list) else "Properties"
    at_least, at_most = f"min{what}", f"max{what}"
    least, most = keywords.get(at_least), keywords.get(at_most)
    if least is not None and len(value) < least:
        yield at_least, least
    if most is not None and len(value) > most:
        yield at_most, most


def _is_choice(value: Any, choice: Any) -> bool:
    # The number 1 equals 1.0, but not true.
    # upstream: k8s.io/kube-openapi/pkg/validation/validate/values.go:Enum
    return bool(value == choice) and isinstance(value, bool) == isinstance(choice, bool)
