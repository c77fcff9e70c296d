"""What is wrong with a value of a custom resource's type, in upstream's words.

upstream: k8s.io/kube-openapi/pkg/validation/validate/{schema,object,type,values}.go, and
apiextensions-apiserver/pkg/apiserver/validation/validation.go:kubeOpenAPIResultToFieldErrors
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from fairlead.api.text.pattern import compiled_pattern
from fairlead.apiserver.apiextensions.schema.format import has_format
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, Structural
from fairlead.apiserver.cost_budget import CostBudget
from fairlead.apiserver.error import Cause
from fairlead.apiserver.json_equality import canonical_key, json_equal
from fairlead.apiserver.schema.keyword import broken_keywords
from fairlead.apiserver.validation.meta.field import duplicate, invalid, not_supported, required

# A budget unit is the work of some nanoseconds.
VALIDATION_COST_MAX: Final = 500_000_000
ALTERNATIVE_COST: Final = 4_000  # of a schema in anyOf, oneOf, allOf or not
_PATH_CHARACTERS_PER_UNIT: Final = 8  # that are copied meanwhile
# Errors that belong to no field.
NOWHERE: Final = "<nil>"
_INT64: Final = (-(2**63), 2**63 - 1)
_RANGES: Final = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
# What a value should do that breaks a keyword.
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


def checked(
    schema: Structural, value: Any, path: str, old: Any = ABSENT, budget: CostBudget | None = None
) -> Iterator[Cause]:
    """What is wrong with `value`; `path` is "" for the object itself.

    A value that equals `old` is valid even if it is wrong (ratcheting). Raises
    CostBudgetExceededError if validation costs more than `budget`.
    """
    budget = budget or CostBudget(VALIDATION_COST_MAX)
    budget.charge(len(path) // _PATH_CHARACTERS_PER_UNIT)
    # upstream: pkg/apiserver/validation/ratcheting.go:ratchetingValueValidator
    if (value is None and schema.is_nullable) or is_same(value, old):
        return
    yield from _wrong_type(schema, value, path)
    yield from _wrong_range(schema, value, path)
    yield from _wrong_items(schema, value, path, old, budget)
    yield from _wrong_keywords(schema, value, path, budget)
    yield from _wrong_format(schema, value, path)
    yield from _wrong_fields(schema, value, path, old, budget)
    yield from _wrong_alternatives(schema, value, path, budget)


def is_same(value: Any, old: Any) -> bool:
    """Whether a value is what it was."""
    return old is not ABSENT and json_equal(value, old)


def items_before(schema: Structural, old: Any) -> Callable[[Any], Any]:
    """Tells what an item of a list with keys was; items of other lists have no past."""
    keys = schema.raw.get("x-kubernetes-list-map-keys")
    if not keys or not isinstance(old, list):
        return lambda _: ABSENT

    def named(item: Any) -> str | bytes:
        return canonical_key([item.get(key) for key in keys] if isinstance(item, dict) else item)

    known = {named(was): was for was in reversed(old) if isinstance(was, dict)}
    return lambda item: known.get(named(item), ABSENT)


def type_of(value: Any) -> str:
    """The name of a value's type in OpenAPI."""
    return "null" if value is None else _TYPES.get(type(value), "object")


def _wrong_type(schema: Structural, value: Any, path: str) -> Iterator[Cause]:
    wanted = "integer,string" if schema.is_int_or_string else schema.type
    found = type_of(value)
    fits = found in wanted.split(",") or (found == "integer" and wanted == "number")
    if wanted and not fits:
        why = f'{path} in body must be of type {wanted}: "{found}"'
        yield Cause("FieldValueTypeInvalid", f'Invalid value: "{found}": {why}', path)


def _wrong_range(schema: Structural, value: Any, path: str) -> Iterator[Cause]:
    """Whether an integer is one, of so many bits."""
    # upstream: kube-openapi/pkg/validation/validate/values.go:IsValueValidAgainstRange
    if schema.type != "integer" or isinstance(value, bool) or not isinstance(value, int | float):
        return
    name = schema.raw.get("format", "")
    least, most = _RANGES.get(name, _INT64)
    if (isinstance(value, float) and not value.is_integer()) or not least <= value <= most:
        form = f"with format {name}" if name else "(default format)"
        text = f'Invalid value: "": Checked value must be of type integer {form} in {path}'
        yield Cause("FieldValueInvalid", text, NOWHERE)


def _wrong_keywords(
    schema: Structural, value: Any, path: str, budget: CostBudget
) -> Iterator[Cause]:
    """What the value breaks of the schema's bounds, patterns and enumerations."""
    for keyword, bound in broken_keywords(schema.raw, value, partial(_matches, budget)):
        yield _keyword_cause(schema, keyword, bound, value, path)


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
            bound, keyword = _shown(bound), f"exclusive {keyword}" if is_exclusive else keyword
        case _:
            pass
    return invalid(path, value, f"{path} in body should {_WORDS[keyword].format(bound)}")


def _wrong_format(schema: Structural, value: Any, path: str) -> Iterator[Cause]:
    name = schema.raw.get("format", "")
    if isinstance(value, str) and schema.type == "string" and not has_format(value, name):
        text = f'Invalid value: "{value}": {path} in body must be of type {name}: "{value}"'
        yield Cause("FieldValueTypeInvalid", text, path)


def _matches(budget: CostBudget, pattern: str, value: str) -> bool:
    """Whether a pattern is somewhere in `value`; one that cannot be read matches nothing."""
    try:
        program = compiled_pattern(pattern)
    except ValueError:
        return False
    budget.charge(program.programsize * len(value))
    return program.search(value) is not None


def _shown(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _wrong_items(
    schema: Structural, value: Any, path: str, old: Any, budget: CostBudget
) -> Iterator[Cause]:
    if not isinstance(value, list):
        return
    if schema.items is not None:
        before = items_before(schema, old)
        for at, item in enumerate(value):
            yield from checked(schema.items, item, f"{path}[{at}]", before(item), budget)


def _too_many(path: str, there: int, most: int) -> Cause:
    text = f"Too many: {there}: must have at most {most} items"
    return Cause("FieldValueTooMany", text, path)


def _wrong_fields(
    schema: Structural, value: Any, path: str, old: Any, budget: CostBudget
) -> Iterator[Cause]:
    if not isinstance(value, dict):
        return
    before = old if isinstance(old, dict) else {}
    for key in sorted(value):
        inner = schema.properties.get(key) or schema.additional
        if inner is not None:
            was = before.get(key, ABSENT)
            yield from checked(inner, value[key], _member(path, key), was, budget)
    for key in schema.raw.get("required") or ():
        if key not in value:
            yield required(_member(path, key))


def _member(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _wrong_alternatives(
    schema: Structural, value: Any, path: str, budget: CostBudget
) -> Iterator[Cause]:
    """Schemas that say more about a value whose type is known already."""
    for one in schema.all_of:
        budget.charge(ALTERNATIVE_COST)
        yield from checked(one, value, path, ABSENT, budget)
    if (
        schema.any_of
        and not schema.is_int_or_string
        and not _fitting(schema.any_of, value, path, budget)
    ):
        yield _junction(path, "must validate at least one schema (anyOf)")
    if schema.one_of:
        fitting = _fitting(schema.one_of, value, path, budget)
        if fitting != 1:
            found = f"Found {fitting} valid alternatives" if fitting else "Found none valid"
            yield _junction(path, f"must validate one and only one schema (oneOf). {found}")
    if schema.negated and _fitting(schema.negated, value, path, budget):
        yield _junction(path, "must not validate the schema (not)")


def _fitting(schemas: tuple[Structural, ...], value: Any, path: str, budget: CostBudget) -> int:
    """How many of the schemas `value` keeps to."""
    budget.charge(ALTERNATIVE_COST * len(schemas))
    return sum(not any(checked(one, value, path, ABSENT, budget)) for one in schemas)


def _junction(path: str, why: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "": "{path}" {why}', NOWHERE)


def repeated_items(schema: Structural, value: Any, path: str) -> Iterator[Cause]:
    """Items of sets and maps that are there more than once."""
    # upstream: apiserver/schema/listtype/validation.go:ValidateListSetsAndMaps
    if isinstance(value, dict):
        for key in sorted(value):
            inner = schema.properties.get(key) or schema.additional
            if inner is not None:
                yield from repeated_items(inner, value[key], member_path(schema, path, key))
    elif isinstance(value, list) and schema.items is not None:
        yield from _repeated(schema, value, path)
        for at, item in enumerate(value):
            yield from repeated_items(schema.items, item, f"{path}[{at}]")


def member_path(schema: Structural, path: str, key: str) -> str:
    """Where a member of an object is: fields have names, members of maps have keys."""
    return _member(path, key) if key in schema.properties else f"{path}[{key}]"


def _repeated(schema: Structural, value: list[Any], path: str) -> Iterator[Cause]:
    list_type = schema.raw.get("x-kubernetes-list-type")
    if list_type not in ("set", "map"):
        return
    keys = schema.raw.get("x-kubernetes-list-map-keys") or ()
    seen: set[str | bytes] = set()
    for at, item in enumerate(value):
        what = item
        if list_type == "map" and isinstance(item, dict):
            what = {key: item[key] for key in keys if key in item}
        if canonical_key(what) in seen:
            yield duplicate(f"{path}[{at}]", what)
        seen.add(canonical_key(what))
