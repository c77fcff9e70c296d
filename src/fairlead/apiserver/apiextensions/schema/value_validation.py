"""Validates the values of custom resources against their schemas, with kube-openapi's messages.

upstream: k8s.io/kube-openapi/pkg/validation/validate/{schema,object,type,values}.go, and
apiextensions-apiserver/pkg/apiserver/validation/validation.go:kubeOpenAPIResultToFieldErrors
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from typing import Any, Final

from fairlead.api.text.pattern import compiled_pattern
from fairlead.api.timestamp import parse_duration, parse_timestamp
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, Structural
from fairlead.apiserver.error import Cause
from fairlead.apiserver.json_equality import canonical_key, json_equal
from fairlead.apiserver.schema.keyword import broken_keywords
from fairlead.apiserver.validation.meta.field import duplicate, invalid, not_supported, required
from fairlead.cel.cost.runtime_cost import CostBudget

# --- formats -------------------------------------------------------------------------------------

# upstream: k8s.io/kube-openapi/pkg/validation/strfmt/default.go, format.go

_HOSTNAME: Final = re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9-]+)*")
_MAC: Final = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}")
_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:|/)\S*")
_DURATION: Final = re.compile(r"\d+\s*(ns|us|µs|ms|s|m|h|d|w|\w+)")


def _parses_with(read: Callable[[str], object]) -> Callable[[str], bool]:
    """Return a function that returns whether `read` can parse a text."""

    def has_format_(text: str) -> bool:
        try:
            read(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return has_format_


def _is_duration(text: str) -> bool:
    return _parses_with(parse_duration)(text) or _DURATION.fullmatch(text) is not None


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "byte": _parses_with(lambda text: base64.b64decode(text, validate=True)),
    "cidr": _parses_with(lambda text: ipaddress.ip_network(text, strict=False)),
    "date": _parses_with(date.fromisoformat),
    "date-time": _parses_with(parse_timestamp),
    "duration": _is_duration,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
    "ipv4": _parses_with(ipaddress.IPv4Address),
    "ipv6": _parses_with(ipaddress.IPv6Address),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uri": lambda text: _URI.fullmatch(text) is not None,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
}


def has_format(text: str, name: str) -> bool:
    """Return whether `text` has the format `name`; True for an unknown format."""
    has_format_ = _FORMATS.get(name.replace("datetime", "date-time"))
    return has_format_ is None or has_format_(text)


# One unit of the budget is the work of a few nanoseconds.
VALIDATION_COST_MAX: Final = 500_000_000
ALTERNATIVE_COST: Final = 4_000  # the cost of one schema in anyOf, oneOf, allOf or not
_PATH_CHARACTERS_PER_UNIT: Final = 8  # this number of path characters costs one unit
# The field of errors that do not concern a single field.
NIL_PATH: Final = "<nil>"
_INT64: Final = (-(2**63), 2**63 - 1)
_RANGES: Final = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
# The end of the error message for a value that violates a keyword.
_WORDS: Final = {
    "minLength": "be at least {} chars long",
    "pattern": "match '{}'",
    "minItems": "have at least {} items",
    "minProperties": "have at least {} properties",
    "multipleOf": "be a multiple of {}",
    "minimum": "be greater than or equal to {}",
    "exclusive minimum": "be greater than {}",
    "maximum": "be less than or equal to {}",
    "exclusive maximum": "be less than {}",
}
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


def value_causes(
    schema: Structural, value: Any, path: str, old: Any = ABSENT, budget: CostBudget | None = None
) -> Iterator[Cause]:
    """Yield the errors of `value`; `path` is "" for the whole object.

    A value that equals `old` is always accepted (ratcheting). Raises OutOfBudgetError if validation
    costs more than `budget`.
    """
    budget = budget or CostBudget(VALIDATION_COST_MAX)
    budget.spend(len(path) // _PATH_CHARACTERS_PER_UNIT)
    # upstream: pkg/apiserver/validation/ratcheting.go:ratchetingValueValidator
    if (value is None and schema.is_nullable) or is_same(value, old):
        return
    yield from _type_causes(schema, value, path)
    yield from _range_causes(schema, value, path)
    yield from _item_causes(schema, value, path, old, budget)
    for keyword, bound in broken_keywords(schema.raw, value, partial(_matches, budget)):
        yield _keyword_cause(schema, keyword, bound, value, path)
    yield from _format_causes(schema, value, path)
    yield from _property_causes(schema, value, path, old, budget)
    yield from _junction_causes(schema, value, path, budget)


def is_same(value: Any, old: Any) -> bool:
    """Return whether `value` equals `old`; False if `old` is ABSENT."""
    return old is not ABSENT and json_equal(value, old)


def items_before(schema: Structural, old: Any) -> Callable[[Any], Any]:
    """Return a function that maps a list item to the item of `old` with the same key values.

    `old` is the list before an update. The function returns ABSENT if `old` has no such item. The
    function always returns ABSENT if `schema` declares no keys; only lists of type map have keys.
    """
    keys = schema.raw.get("x-kubernetes-list-map-keys")
    if not keys or not isinstance(old, list):
        return lambda _: ABSENT

    def item_key(item: Any) -> str | bytes:
        return canonical_key([item.get(key) for key in keys] if isinstance(item, dict) else item)

    known = {
        item_key(old_item): old_item for old_item in reversed(old) if isinstance(old_item, dict)
    }
    return lambda item: known.get(item_key(item), ABSENT)


def type_of(value: Any) -> str:
    """Return the OpenAPI name of the type of `value`."""
    return "null" if value is None else _TYPES.get(type(value), "object")


def _type_causes(schema: Structural, value: Any, path: str) -> Iterator[Cause]:
    type_required = "integer,string" if schema.is_int_or_string else schema.type
    found = type_of(value)
    has_type = found in type_required.split(",") or (
        found == "integer" and type_required == "number"
    )
    if type_required and not has_type:
        problem = f'{path} in body must be of type {type_required}: "{found}"'
        yield Cause("FieldValueTypeInvalid", f'Invalid value: "{found}": {problem}', path)


def _range_causes(schema: Structural, value: Any, path: str) -> Iterator[Cause]:
    """Yield an error for an integer outside the range of its format."""
    # upstream: kube-openapi/pkg/validation/validate/values.go:IsValueValidAgainstRange
    if schema.type != "integer" or isinstance(value, bool) or not isinstance(value, int | float):
        return
    name = schema.raw.get("format", "")
    minimum, maximum = _RANGES.get(name, _INT64)
    if (isinstance(value, float) and not value.is_integer()) or not minimum <= value <= maximum:
        format_text = f"with format {name}" if name else "(default format)"
        text = f'Invalid value: "": Checked value must be of type integer {format_text} in {path}'
        yield Cause("FieldValueInvalid", text, NIL_PATH)


def _keyword_cause(schema: Structural, keyword: str, bound: Any, value: Any, path: str) -> Cause:
    match keyword:
        case "maxLength":
            text = f"Too long: may not be more than {bound} bytes"
            return Cause("FieldValueTooLong", text, path)
        case "maxItems" | "maxProperties":
            return _too_many(path, len(value), bound)
        case "enum":
            return not_supported(path, value, [str(choice) for choice in bound])
        case "minimum" | "maximum" | "multipleOf":
            is_exclusive = schema.raw.get(f"exclusive{keyword.capitalize()}")
            bound, keyword = (
                _number_text(bound),
                f"exclusive {keyword}" if is_exclusive else keyword,
            )
        case _:
            pass
    return invalid(path, value, f"{path} in body should {_WORDS[keyword].format(bound)}")


def _format_causes(schema: Structural, value: Any, path: str) -> Iterator[Cause]:
    name = schema.raw.get("format", "")
    if isinstance(value, str) and schema.type == "string" and not has_format(value, name):
        text = f'Invalid value: "{value}": {path} in body must be of type {name}: "{value}"'
        yield Cause("FieldValueTypeInvalid", text, path)


def _matches(budget: CostBudget, pattern: str, value: str) -> bool:
    """Return whether `pattern` matches a part of `value`; False if the pattern is invalid."""
    try:
        program = compiled_pattern(pattern)
    except ValueError:
        return False
    budget.spend(program.programsize * len(value))
    return program.search(value) is not None


def _number_text(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _item_causes(
    schema: Structural, value: Any, path: str, old: Any, budget: CostBudget
) -> Iterator[Cause]:
    if not isinstance(value, list):
        return
    if schema.items is not None:
        before = items_before(schema, old)
        for index, item in enumerate(value):
            yield from value_causes(schema.items, item, f"{path}[{index}]", before(item), budget)


def _too_many(path: str, length: int, maximum: int) -> Cause:
    text = f"Too many: {length}: must have at most {maximum} items"
    return Cause("FieldValueTooMany", text, path)


def _property_causes(
    schema: Structural, value: Any, path: str, old: Any, budget: CostBudget
) -> Iterator[Cause]:
    if not isinstance(value, dict):
        return
    before = old if isinstance(old, dict) else {}
    for key in sorted(value):
        inner = schema.properties.get(key) or schema.additional
        if inner is not None:
            old_item = before.get(key, ABSENT)
            yield from value_causes(inner, value[key], _member(path, key), old_item, budget)
    for key in schema.raw.get("required") or ():
        if key not in value:
            yield required(_member(path, key))


def _member(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _junction_causes(
    schema: Structural, value: Any, path: str, budget: CostBudget
) -> Iterator[Cause]:
    """Yield the errors of `value` under the `allOf`, `anyOf`, `oneOf` and `not` of `schema`."""
    for alternative in schema.all_of:
        budget.spend(ALTERNATIVE_COST)
        yield from value_causes(alternative, value, path, ABSENT, budget)
    if (
        schema.any_of
        and not schema.is_int_or_string
        and not _matching_count(schema.any_of, value, path, budget)
    ):
        yield _junction_cause(path, "must validate at least one schema (anyOf)")
    if schema.one_of:
        matching = _matching_count(schema.one_of, value, path, budget)
        if matching != 1:
            found = f"Found {matching} valid alternatives" if matching else "Found none valid"
            yield _junction_cause(path, f"must validate one and only one schema (oneOf). {found}")
    if schema.negated and _matching_count(schema.negated, value, path, budget):
        yield _junction_cause(path, "must not validate the schema (not)")


def _matching_count(
    schemas: tuple[Structural, ...], value: Any, path: str, budget: CostBudget
) -> int:
    """Return the number of `schemas` under which `value` is valid."""
    budget.spend(ALTERNATIVE_COST * len(schemas))
    return sum(
        not any(value_causes(alternative, value, path, ABSENT, budget)) for alternative in schemas
    )


def _junction_cause(path: str, problem: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "": "{path}" {problem}', NIL_PATH)


def duplicate_item_causes(schema: Structural, value: Any, path: str) -> Iterator[Cause]:
    """Yield an error for each repeated item in a list of type set or map, at any depth."""
    # upstream: apiserver/schema/listtype/validation.go:ValidateListSetsAndMaps
    if isinstance(value, dict):
        for key in sorted(value):
            inner = schema.properties.get(key) or schema.additional
            if inner is not None:
                yield from duplicate_item_causes(inner, value[key], member_path(schema, path, key))
    elif isinstance(value, list) and schema.items is not None:
        yield from _repeated(schema, value, path)
        for index, item in enumerate(value):
            yield from duplicate_item_causes(schema.items, item, f"{path}[{index}]")


def member_path(schema: Structural, path: str, key: str) -> str:
    """Return the path of the member `key`: `.key` for a declared field, `[key]` for a map's key."""
    return _member(path, key) if key in schema.properties else f"{path}[{key}]"


def _repeated(schema: Structural, value: list[Any], path: str) -> Iterator[Cause]:
    list_type = schema.raw.get("x-kubernetes-list-type")
    if list_type not in ("set", "map"):
        return
    keys = schema.raw.get("x-kubernetes-list-map-keys") or ()
    seen: set[str | bytes] = set()
    for index, item in enumerate(value):
        what = item
        if list_type == "map" and isinstance(item, dict):
            what = {key: item[key] for key in keys if key in item}
        if canonical_key(what) in seen:
            yield duplicate(f"{path}[{index}]", what)
        seen.add(canonical_key(what))
