"""Rules: what expressions in a custom resource's type say about its values.

`self` is the value at the rule's place, `oldSelf` what was there before; a rule about both is
asked of changes only. Names that are no identifiers of the language are spelled out. Texts whose
type says that they are instants or durations are such values to rules.

upstream: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

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
MESSAGE_MAX: Final = 5 * 1024
_OLD: Final = re.compile(r"\boldSelf\b")
_MIDNIGHT: Final = "T00:00:00Z"


class RuleError(ValueError):
    """A rule that cannot be compiled; the text says why."""


class _NoMoreRulesError(Exception):
    """An evaluation cost more than it may."""


def broken_rules(schema: Structural, value: Any, old: Any, path: str) -> Iterator[Cause]:
    """The rules that `value` breaks; `old` is ABSENT for a new value.

    What is as it was, or part of such a value, may break rules but those of changes. After a rule
    that costs too much no other is asked.
    """
    try:
        yield from _broken_rules(schema, value, old, path, _Going(CostBudget()))
    except _NoMoreRulesError:
        return


@dataclass(frozen=True, slots=True)
class _Going:
    """What is left for the rules of an object, and whether what is here is part of a kept value."""

    budget: CostBudget
    is_kept: bool = False


def _broken_rules(
    schema: Structural, value: Any, old: Any, path: str, going: _Going
) -> Iterator[Cause]:
    if value is None or not schema.has_rules:
        return
    if old is not ABSENT:
        going = replace(going, is_kept=is_same(value, old))
    yield from _broken_here(schema, value, old, path, going)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for key in sorted(value):
            inner = schema.properties.get(key) or schema.additional
            if inner is not None:
                here, was = member_path(schema, path, key), before.get(key, ABSENT)
                yield from _broken_rules(inner, value[key], was, here, going)
    elif isinstance(value, list) and schema.items is not None:
        item_before = items_before(schema, old)
        for at, item in enumerate(value):
            was, here = item_before(item), f"{path}[{at}]"
            yield from _broken_rules(schema.items, item, was, here, going)


def _broken_here(
    schema: Structural, value: Any, old: Any, path: str, going: _Going
) -> Iterator[Cause]:
    asked = [
        rule for rule in schema.rules if not going.is_kept or _OLD.search(str(rule.get("rule", "")))
    ]
    if not asked:
        return
    has_old = old is not ABSENT
    before = _seen(schema, old) if has_old else None
    place = _Place(schema, value, _seen(schema, value), before, path, has_old=has_old)
    for rule in asked:
        yield from _broken(rule, place, going.budget)


@dataclass(frozen=True, slots=True)
class _Place:
    """A value with what expressions see of it and of its past."""

    schema: Structural
    value: Any
    seen: Any
    seen_before: Any
    path: str
    has_old: bool

    def answer(self, rule: Json, expression: str, budget: CostBudget) -> EvaluationResult:
        """What an expression of a rule evaluates to. Raises RuleError and OutOfBudgetError.

        `oldSelf` is an optional value where the rule says so.
        """
        before = self.seen_before
        if rule.get("optionalOldSelf"):
            before = OptionalValue(before) if self.has_old else NONE
        return compiled(expression).evaluate({"self": self.seen, "oldSelf": before}, budget)


def _broken(rule: Json, place: _Place, budget: CostBudget) -> Iterator[Cause]:
    """Whether the value breaks a rule."""
    expression, schema, path = str(rule.get("rule", "")), place.schema, place.path
    if _OLD.search(expression) and not place.has_old and not rule.get("optionalOldSelf"):
        return
    try:
        answer = place.answer(rule, expression, budget)
    except OutOfBudgetError:
        yield invalid(path, schema.type, OUT_OF_BUDGET)
        raise _NoMoreRulesError from None
    except RuleError as cause:
        yield invalid(path, schema.type, f"rule compile error: compilation failed: {cause}")
        return
    if answer.problem:
        yield invalid(path, schema.type, _failed(rule, answer.problem))
        if answer.problem == CALL_LIMIT:
            raise _NoMoreRulesError
    elif answer.value is not True:
        where = path + str(rule.get("fieldPath", ""))
        yield _cause(rule, place.value, _message(rule, place, budget), where)


def _failed(rule: Json, problem: str) -> str:
    """What is said of a rule that could not be asked."""
    told = str(rule.get("message") or rule.get("rule") or "").strip()
    if problem == CALL_LIMIT:
        why = "no further validation rules will be run due to call cost exceeds limit for rule"
        return f"'{problem}': {why}: {told}"
    if problem.startswith("no such overload"):
        why = "call arguments did not match a supported operator, function or macro signature for"
        return f"'{problem}': {why} rule: {told}"
    return f"{problem} evaluating rule: {told}"


def _message(rule: Json, place: _Place, budget: CostBudget) -> str:
    expression = str(rule.get("messageExpression") or "")
    if expression:
        said = _text_of(rule, expression, place, budget)
        if said.strip() and "\n" not in said and len(said) <= MESSAGE_MAX:
            return said
    said = str(rule.get("message") or "").strip()
    return said or f"failed rule: {str(rule.get('rule', '')).strip()}"


def _text_of(rule: Json, expression: str, place: _Place, budget: CostBudget) -> str:
    """The text that an expression makes, "" where it makes none."""
    try:
        answer = place.answer(rule, expression, budget)
    except (OutOfBudgetError, RuleError):
        return ""
    return answer.value if isinstance(answer.value, str) else ""


def _cause(rule: Json, value: Any, said: str, path: str) -> Cause:
    match rule.get("reason"):
        case "FieldValueForbidden":
            return forbidden(path, said)
        case "FieldValueRequired":
            return required(path, said)
        case "FieldValueDuplicate":
            return duplicate(path, value)
        case _:
            return Cause("FieldValueInvalid", f"Invalid value: {_shown(value)}{said}", path)


def _shown(value: Any) -> str:
    """Objects and lists are not repeated in a refusal."""
    if isinstance(value, dict | list):
        return ""
    text = f'"{value}"' if isinstance(value, str) else str(value).lower()
    return f"{text}: "


def _seen(schema: Structural, value: Any) -> Any:
    """`value` as expressions see it: with names that they can say, numbers of the right type."""
    if isinstance(value, dict):
        return dict(_seen_fields(schema, value))
    if isinstance(value, list) and schema.items is not None:
        return [_seen(schema.items, item) for item in value]
    if schema.type == "number" and isinstance(value, int):
        return float(value)
    return _read_text(schema.raw.get("format"), value) if isinstance(value, str) else value


def _read_text(form: Any, text: str) -> Any:
    """A text as the value that its format says.

    upstream: apiserver/pkg/cel/common/values.go:UnstructuredToVal
    """
    try:
        match form:
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


def _seen_fields(schema: Structural, value: Json) -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        inner = schema.properties.get(key) or schema.additional
        seen = item if inner is None else _seen(inner, item)
        yield key, seen
        if key in schema.properties and spelled(key) != key:
            yield spelled(key), seen


@lru_cache(maxsize=1)
def _environment() -> CelEnvironment:
    return CelEnvironment(("self", "oldSelf"), FUNCTIONS)


@text_cache(maxsize=RULES_CACHED_MAX, characters_max=KEPT_CHARACTERS_MAX)
def compiled(expression: str) -> Program:
    """The program of an expression. Raises RuleError."""
    try:
        return _environment().program(expression)
    except ExpressionError as cause:
        raise RuleError(str(cause)) from None
