"""Texts of the columns that several kinds have; any field of an object may be missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.json import Json, items, mapping, text
from fairlead.api.selector import format_requirement

NONE: Final = "<none>"
UNSET: Final = "<unset>"
MORE_MAX: Final = 3


def has_condition(obj: Json, kind: str) -> bool:
    """Return whether the condition of type `kind` is True."""
    return any(
        condition.get("type") == kind and condition.get("status") == "True"
        for condition in items(obj, "status", "conditions")
    )


def labels(values: Json) -> str:
    """Return labels as `a=b,c=d`, or `<none>`."""
    # upstream: apimachinery/pkg/labels/labels.go:FormatLabels
    return ",".join(f"{key}={values[key]}" for key in sorted(values)) or NONE


def selector_text(selector: Json | None) -> str:
    """Return a label selector as `a=b,c in (d,e),!f`; "" for an empty selector."""
    # upstream: apimachinery/pkg/labels/selector.go:Requirement.String
    selector = selector or {}
    terms = [(key, f"{key}={value}") for key, value in mapping(selector, "matchLabels").items()]
    terms += [
        (key, format_requirement(key, text(expression, "operator"), items(expression, "values")))
        for expression in items(selector, "matchExpressions")
        for key in [text(expression, "key")]
    ]
    return ",".join(term for _, term in sorted(terms, key=lambda term: term[0]))


def first_few(values: Iterable[str], *, count_max: int = MORE_MAX) -> str:
    """Return the first `count_max` values and the number of other values: `a,b,c + 2 more...`."""
    all_values = list(values)
    shown = ",".join(all_values[:count_max])
    if len(all_values) <= count_max:
        return shown
    return f"{shown} + {len(all_values) - count_max} more..."


def container_names(spec: Json) -> str:
    """Return the names of a pod's containers, joined with commas."""
    return ",".join(text(container, "name") for container in items(spec, "containers"))


def container_images(spec: Json) -> str:
    """Return the images of a pod's containers, joined with commas."""
    return ",".join(text(container, "image") for container in items(spec, "containers"))
