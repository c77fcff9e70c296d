"""Pod failure policies and success policies of Jobs.

upstream: pkg/apis/batch/validation/validation.go:validatePodFailurePolicy, validateSuccessPolicy
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.batch.index_interval import IndexTextError, index_intervals
from fairlead.apiserver.validation.meta.change_text import internal_of
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    invalid,
    not_supported,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.format import (
    check_at_least,
    check_qualified_name,
    too_long,
    too_many,
)

ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS: Final = ("In", "NotIn")
STATUSES: Final = ("False", "True", "Unknown")
RULES_MAX: Final = 20
INDEXES_TEXT_MAX: Final = 64 * 1024
ONLY_INDEXED: Final = "requires indexed completion mode"
EXIT_CODES_MAX: Final = 255


def check_failure_policy(field: str, spec: Json) -> Causes:
    """A pod failure policy."""
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or []
    if len(rules) > RULES_MAX:
        yield too_many(f"{field}.rules", len(rules), RULES_MAX)
    names = _container_names(spec["template"]["spec"]) if rules else set()
    for index, rule in enumerate(rules):
        where = f"{field}.rules[{index}]"
        yield from _check_action(f"{where}.action", rule.get("action", ""), spec)
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
        if codes is not None:
            yield from _check_codes(f"{where}.onExitCodes", codes, names)
        yield from _check_conditions(f"{where}.onPodConditions", conditions)
        if codes is not None and conditions:
            yield _bare(where, "specifying both OnExitCodes and OnPodConditions is not supported")
        elif codes is None and not conditions:
            yield _bare(where, "specifying one of OnExitCodes and OnPodConditions is required")


def _check_action(field: str, action: str, spec: Json) -> Causes:
    if not action:
        yield required(field, f"valid values: {_quoted(ACTIONS)}")
    elif action not in ACTIONS:
        yield not_supported(field, action, ACTIONS)
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        yield invalid(field, action, "requires the backoffLimitPerIndex to be set")


def _quoted(words: tuple[str, ...]) -> str:
    """A list of texts as Go prints it."""
    return "[" + " ".join(f'"{word}"' for word in words) + "]"


def _container_names(template: Json) -> set[str]:
    both = [*(template.get("containers") or ()), *(template.get("initContainers") or ())]
    return {container.get("name", "") for container in both}


def _check_codes(field: str, codes: Json, names: AbstractSet[str]) -> Causes:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    if not operator:
        yield required(f"{field}.operator", f"valid values: {_quoted(OPERATORS)}")
    elif operator not in OPERATORS:
        yield not_supported(f"{field}.operator", operator, OPERATORS)
    name = codes.get("containerName")
    if name is not None and name not in names:
        why = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{field}.containerName", name, why)
    if not values:
        yield invalid(f"{field}.values", codes.get("values"), "at least one value is required")
    elif len(values) > EXIT_CODES_MAX:
        yield too_many(f"{field}.values", len(values), EXIT_CODES_MAX)
    again = repeated_indexes(values)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            why = "must not be 0 for the In operator"
            yield invalid(f"{field}.values[{index}]", value, why)
        if index in again:
            yield duplicate(f"{field}.values[{index}]", value)
    if values != sorted(values):
        yield invalid(f"{field}.values", values, "must be ordered")


def _check_conditions(field: str, conditions: list[Json]) -> Causes:
    if len(conditions) > RULES_MAX:
        yield too_many(field, len(conditions), RULES_MAX)
    for index, pattern in enumerate(conditions):
        where = f"{field}[{index}]"
        yield from check_qualified_name(f"{where}.type", pattern.get("type", ""))
        status = pattern.get("status", "")
        if not status:
            yield required(f"{where}.status", f"valid values: {_quoted(STATUSES)}")
        elif status not in STATUSES:
            yield not_supported(f"{where}.status", status, STATUSES)


def _bare(field: str, why: str) -> Cause:
    """A refusal that does not show the value."""
    return Cause("FieldValueInvalid", f"Invalid value: {why}", field)


def check_success_policy(field: str, spec: Json) -> Causes:
    """A success policy."""
    policy = spec.get("successPolicy")
    if policy is None:
        return
    rules = policy.get("rules") or []
    if spec.get("completionMode") != "Indexed":
        shown = internal_of("batch.v1.SuccessPolicy", policy)
        for rule, given in zip(shown["Rules"] or (), rules, strict=False):
            rule["SucceededIndexes"] = given.get("succeededIndexes")  # a pointer
        yield invalid(field, shown, ONLY_INDEXED)
        return
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{field}.rules", why)
    if len(rules) > RULES_MAX:
        yield too_many(f"{field}.rules", len(rules), RULES_MAX)
    for index, rule in enumerate(rules):
        yield from _check_success(f"{field}.rules[{index}]", rule, spec.get("completions") or 0)


def _check_success(field: str, rule: Json, completions: int) -> Causes:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        why = "at least one of succeededCount or succeededIndexes must be specified"
        yield required(field, why)
    total = 0
    if indexes is not None:
        if len(indexes) > INDEXES_TEXT_MAX:
            yield too_long(f"{field}.succeededIndexes", INDEXES_TEXT_MAX)
        try:
            intervals = index_intervals(indexes, completions)
            total = sum(last - first + 1 for first, last in intervals)
        except IndexTextError as cause:
            why = f"error parsing succeededIndexes: {cause}"
            yield invalid(f"{field}.succeededIndexes", indexes, why)
    if count is None:
        return
    where = f"{field}.succeededCount"
    yield from check_at_least(where, count, 0)
    bound = "must be less than or equal to {} (the number of {})"
    if count > completions:
        yield invalid(where, count, bound.format(completions, "specified completions"))
    if indexes is not None and count > total:
        what = "indexes in the specified succeededIndexes field"
        yield invalid(where, count, bound.format(total, what))
