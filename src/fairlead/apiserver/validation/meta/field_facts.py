"""Checks single fields against the facts in `api/data/facts`, with upstream's error texts.

For example, the facts about a field say which values are allowed and whether the field is required.

The validators of each API group call these checks in upstream's order, because kubectl prints the
errors in that order.

upstream: apimachinery/pkg/api/validate/{enum,limits,required}.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.api.facts import FieldFacts, facts_of
from fairlead.api.json import Json
from fairlead.api.label import label_key_problems, label_value_problems
from fairlead.apiserver.error import Cause
from fairlead.apiserver.schema.keyword import broken_keywords
from fairlead.apiserver.validation.meta.field import (
    Causes,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.meta.format import (
    caseless_dns_subdomain_problems,
    check_unchanged,
    dns_1035_problems,
    dns_label_problems,
    dns_subdomain_problems,
    path_segment_problems,
    port_name_problems,
    shown_as,
    too_long,
    too_many,
)

_FORMATS: Final[Mapping[str, Callable[[str], tuple[str, ...]]]] = {
    "dns-label": dns_label_problems,
    "dns-1035-label": dns_1035_problems,
    "dns-subdomain": dns_subdomain_problems,
    "dns-subdomain-caseless": caseless_dns_subdomain_problems,
    "label-value": label_value_problems,
    "path-segment": path_segment_problems,
    "port-name": port_name_problems,
    "qualified-name": label_key_problems,
}


def check_fields(field: str, type_name: str, obj: Json, *names: str) -> Causes:
    """Yield the errors of the fields `names` of `obj`, in the order of `names`.

    `obj`, at the path `field`, is of the type `type_name`, such as `core.v1.Container`. If `names`
    is empty, all fields that `api/data/facts` lists for this type are checked, in the order of that
    list. Raises KeyError for a name that is not listed.
    """
    facts = facts_of(type_name).fields
    for name in names or facts:
        yield from check_field(f"{field}.{name}" if field else name, facts[name], obj.get(name))


def check_field(field: str, facts: FieldFacts, value: Any) -> Causes:
    """Yield the errors of `value`, the value of the field at the path `field`."""
    if facts.is_zero and value is None:
        value = 0
    if value is None or (value == "" and not facts.checks_empty):
        value = None
    is_empty = value in (None, "", [], {}) or (facts.is_zero and value == 0)
    if facts.required is not None and is_empty:
        yield required(field, facts.required)
        return
    if value is None:
        if facts.is_listed:
            yield not_supported(field, "", facts.values)
        return
    for keyword, _ in broken_keywords(facts.keywords, value, _no_patterns):
        yield _cause(field, facts, keyword, value)
    if facts.format:
        for problem in _FORMATS[facts.format](value):
            yield invalid(field, value, problem)


def check_immutable(type_name: str, old: Json, new: Json) -> Causes:
    """Yield an error for each immutable field that differs between `old` and `new`.

    `old` and `new` are objects of the type `type_name`.
    """
    for fixed in facts_of(type_name).immutable:
        before, after = _value(old, fixed.path), _value(new, fixed.path)
        if not list(check_unchanged(fixed.path, before, after)):
            continue
        if fixed.forbids:
            yield forbidden(fixed.name, fixed.words)
        else:
            shown = shown_as(fixed.shape, after) if fixed.shape else after
            yield invalid(fixed.name, shown, fixed.words)


def _value(obj: Json, path: str) -> Any:
    value: Any = obj
    for name in path.split("."):
        value = (value or {}).get(name)
    return value


def _no_patterns(pattern: str, text: str) -> bool:
    raise AssertionError(f"no fact has a pattern: {pattern}, {text}")


def _cause(field: str, facts: FieldFacts, keyword: str, value: Any) -> Cause:
    least, most = facts.keywords.get("minimum"), facts.keywords.get("maximum")
    match keyword:
        case "enum" if not facts.words:
            return not_supported(field, value, facts.values)
        case "maxLength":
            return too_long(field, facts.keywords["maxLength"])
        case "maxItems" | "maxProperties":
            return too_many(field, len(value), facts.keywords[keyword])
        case _ if facts.words:
            return invalid(field, value, facts.words)
        case _ if least is not None and most is not None:
            return invalid(field, value, f"must be between {least} and {most}, inclusive")
        case "minimum":
            return invalid(field, value, f"must be greater than or equal to {least}")
        case _:
            return invalid(field, value, f"must be less than or equal to {most}")
