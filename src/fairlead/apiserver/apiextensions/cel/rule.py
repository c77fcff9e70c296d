"""Evaluates x-kubernetes-validations: the CEL rules in the schema of a custom resource.

In a rule, `self` is the value that the rule validates, and `oldSelf` is the old value. A rule that
uses oldSelf is a transition rule. If there is no old value, transition rules are skipped, except
those that set optionalOldSelf.

upstream: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.apiextensions.cel.escaped_name import spelled
from fairlead.apiserver.apiextensions.cel.named_format import FUNCTIONS
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, Structural
from fairlead.apiserver.apiextensions.schema.value_validation import (
    is_same,
    items_before,
    member_path,
)
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.meta.field import duplicate, forbidden, invalid, required
from fairlead.cel.cost.runtime_cost import CostBudget, OutOfBudgetError
from fairlead.cel.error import CALL_LIMIT, ExpressionError
from fairlead.cel.program import (
    KEPT_CHARACTERS_MAX,
    OUT_OF_BUDGET,
    CelEnvironment,
    EvaluationResult,
    Program,
)
from fairlead.cel.value import NONE, OptionalValue, duration_of, timestamp_of

RULES_CACHED_MAX: Final = 1_024
MESSAGE_BYTES_MAX: Final = 5 * 1024
_OLD: Final = re.compile(r"\boldSelf\b")
_MIDNIGHT: Final = "T00:00:00Z"


class RuleError(ValueError):
    """A rule does not compile; the error text is the reason."""


class _StopEvaluationError(Exception):
    """The cost limit is reached, so the evaluation of rules stops."""


def broken_rules(schema: Structural, value: Any, old: Any, path: str) -> Iterator[Cause]:
    """Yield an error for each rule that `value` violates; `old` is ABSENT if there is no old value.

    For an unchanged value and its parts, only transition rules are evaluated (ratcheting).
    Evaluation stops at a rule that exceeds the cost limit.
    """
    try:
        yield from _broken_rules(schema, value, old, path, _EvaluationState(CostBudget()))
    except _StopEvaluationError:
        return


class _EvaluationState(Struct, frozen=True):
    """The remaining cost budget, and whether the value or an enclosing value is unchanged."""

    budget: CostBudget
    is_unchanged: bool = False


def _broken_rules(
    schema: Structural, value: Any, old: Any, path: str, state: _EvaluationState
) -> Iterator[Cause]:
    if value is None or not schema.has_rules:
        return
    if old is not ABSENT:
        state = replace(state, is_unchanged=is_same(value, old))
    yield from _broken_rules_of_node(schema, value, old, path, state)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for key in sorted(value):
            inner = schema.properties.get(key) or schema.additional
            if inner is not None:
                inner_path, old_value = member_path(schema, path, key), before.get(key, ABSENT)
                yield from _broken_rules(inner, value[key], old_value, inner_path, state)
    elif isinstance(value, list) and schema.items is not None:
        old_item = items_before(schema, old)
        for index, item in enumerate(value):
            old_value, inner_path = old_item(item), f"{path}[{index}]"
            yield from _broken_rules(schema.items, item, old_value, inner_path, state)


def _broken_rules_of_node(
    schema: Structural, value: Any, old: Any, path: str, state: _EvaluationState
) -> Iterator[Cause]:
    applicable = [
        rule
        for rule in schema.rules
        if not state.is_unchanged or _OLD.search(str(rule.get("rule", "")))
    ]
    if not applicable:
        return
    has_old = old is not ABSENT
    before = _cel_value(schema, old) if has_old else None
    ruled = _RuledValue(schema, value, _cel_value(schema, value), before, path, has_old=has_old)
    for rule in applicable:
        yield from _rule_causes(rule, ruled, state.budget)


class _RuledValue(Struct, frozen=True):
    """A value that rules validate, and the CEL values for `self` and `oldSelf`."""

    schema: Structural
    value: Any
    cel_value: Any
    old_cel_value: Any
    path: str
    has_old: bool

    def evaluate(self, rule: Json, expression: str, budget: CostBudget) -> EvaluationResult:
        """Return the result of an expression of `rule`.

        If `rule` sets optionalOldSelf, `oldSelf` is an optional value. Raises RuleError if the
        expression does not compile. Raises OutOfBudgetError if its cost exceeds `budget`.
        """
        before = self.old_cel_value
        if rule.get("optionalOldSelf"):
            before = OptionalValue(before) if self.has_old else NONE
        return compiled(expression).evaluate({"self": self.cel_value, "oldSelf": before}, budget)


def _rule_causes(rule: Json, ruled: _RuledValue, budget: CostBudget) -> Iterator[Cause]:
    """Yield an error if the value violates `rule`, or if the rule cannot be evaluated."""
    expression, schema, path = str(rule.get("rule", "")), ruled.schema, ruled.path
    if _OLD.search(expression) and not ruled.has_old and not rule.get("optionalOldSelf"):
        return
    try:
        result = ruled.evaluate(rule, expression, budget)
    except OutOfBudgetError:
        yield invalid(path, schema.type, OUT_OF_BUDGET)
        raise _StopEvaluationError from None
    except RuleError as cause:
        yield invalid(path, schema.type, f"rule compile error: compilation failed: {cause}")
        return
    if result.problem:
        yield invalid(path, schema.type, _error_text(rule, result.problem))
        if result.problem == CALL_LIMIT:
            raise _StopEvaluationError
    elif result.value is not True:
        cause_path = path + str(rule.get("fieldPath", ""))
        yield _cause(rule, ruled.value, _message(rule, ruled, budget), cause_path)


def _error_text(rule: Json, problem: str) -> str:
    """Return the error message for a rule that cannot be evaluated because of `problem`."""
    rule_text = str(rule.get("message") or rule.get("rule") or "").strip()
    if problem == CALL_LIMIT:
        explanation = (
            "no further validation rules will be run due to call cost exceeds limit for rule"
        )
        return f"'{problem}': {explanation}: {rule_text}"
    if problem.startswith("no such overload"):
        explanation = (
            "call arguments did not match a supported operator, function or macro signature for"
        )
        return f"'{problem}': {explanation} rule: {rule_text}"
    return f"{problem} evaluating rule: {rule_text}"


def _message(rule: Json, ruled: _RuledValue, budget: CostBudget) -> str:
    expression = str(rule.get("messageExpression") or "")
    if expression:
        message = _message_expression_text(rule, expression, ruled, budget).strip()
        if message and "\n" not in message and len(message.encode()) <= MESSAGE_BYTES_MAX:
            return message
    message = str(rule.get("message") or "").strip()
    return message or f"failed rule: {str(rule.get('rule', '')).strip()}"


def _message_expression_text(
    rule: Json, expression: str, ruled: _RuledValue, budget: CostBudget
) -> str:
    """Return the result of a rule's messageExpression; "" if it fails or is not a string."""
    try:
        result = ruled.evaluate(rule, expression, budget)
    except (OutOfBudgetError, RuleError):
        return ""
    return result.value if isinstance(result.value, str) else ""


def _cause(rule: Json, value: Any, message: str, path: str) -> Cause:
    match rule.get("reason"):
        case "FieldValueForbidden":
            return forbidden(path, message)
        case "FieldValueRequired":
            return required(path, message)
        case "FieldValueDuplicate":
            return duplicate(path, value)
        case _:
            return Cause(
                "FieldValueInvalid", f"Invalid value: {_quoted_value(value)}{message}", path
            )


def _quoted_value(value: Any) -> str:
    """Return the start of a message about `value`, such as `"a": `; "" for an object or a list."""
    if isinstance(value, dict | list):
        return ""
    text = f'"{value}"' if isinstance(value, str) else str(value).lower()
    return f"{text}: "


def _cel_value(schema: Structural, value: Any) -> Any:
    """Return `value` as a CEL value.

    Fields are also accessible by their escaped names. The schema decides the CEL types of numbers
    and strings; for example, a string can be a timestamp.
    """
    if isinstance(value, dict):
        return dict(_cel_fields(schema, value))
    if isinstance(value, list) and schema.items is not None:
        return [_cel_value(schema.items, item) for item in value]
    if schema.type == "number" and isinstance(value, int):
        return float(value)
    return _typed_string(schema.raw.get("format"), value) if isinstance(value, str) else value


def _typed_string(format_: Any, text: str) -> Any:
    """Return `text` as a CEL value of the type that `format_` names, such as a timestamp.

    Returns `text` itself if `format_` names no such type, or if `text` is malformed.

    upstream: apiserver/pkg/cel/common/values.go:UnstructuredToVal
    """
    try:
        match format_:
            case "byte":
                return b64decode(text)
            case "date-time":
                return timestamp_of(text)
            case "date":
                return timestamp_of(text + _MIDNIGHT)
            case "duration":
                return duration_of(text)
            case _:
                return text
    except ValueError:
        return text


def _cel_fields(schema: Structural, value: Json) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        inner = schema.properties.get(key) or schema.additional
        cel_value = item if inner is None else _cel_value(inner, item)
        yield key, cel_value
        if key in schema.properties and spelled(key) != key:
            yield spelled(key), cel_value


@lru_cache(maxsize=1)
def _environment() -> CelEnvironment:
    return CelEnvironment(("self", "oldSelf"), FUNCTIONS)


@text_cache(maxsize=RULES_CACHED_MAX, characters_max=KEPT_CHARACTERS_MAX)
def compiled(expression: str) -> Program:
    """Return the compiled program of an expression. Raises RuleError if it does not compile."""
    try:
        return _environment().program(expression)
    except ExpressionError as cause:
        raise RuleError(str(cause)) from None
