"""Rules: what expressions in a custom resource's type say about its values.

`self` is the value at the rule's place, `oldSelf` what was there before; a rule about both is
asked of changes only. Names that are no identifiers of the language are spelled out.

upstream: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from fairlead.api.expression.library import KEPT_CHARACTERS_MAX, environment
from fairlead.api.expression.problem import compile_problem, problem_of
from fairlead.api.text_cache import text_cache
from fairlead.apiserver.custom.checking import is_same, items_before, member_path
from fairlead.apiserver.custom.spelling import spelled
from fairlead.apiserver.custom.structural import ABSENT, Structural
from fairlead.apiserver.custom.temporal import with_times
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.field import duplicate, forbidden, invalid, required

if TYPE_CHECKING:
    from cel_expr_python import cel

Json = dict[str, Any]

RULES_CACHED_MAX: Final = 1_024
# upstream: schema/cel/validation.go; there it is a cost, here a number of iterations
OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
MESSAGE_MAX: Final = 5 * 1024
_OLD: Final = re.compile(r"\boldSelf\b")
# What was there before is an optional value where the rule says so.
_OPTIONAL: Final = "cel.bind(oldSelf, oldSelf == null ? optional.none() : optional.of(oldSelf), {})"


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
        yield from _broken_rules(schema, value, old, path, is_kept=False)
    except _NoMoreRulesError:
        return


def _broken_rules(
    schema: Structural, value: Any, old: Any, path: str, *, is_kept: bool
) -> Iterator[Cause]:
    if value is None or not schema.has_rules:
        return
    if old is not ABSENT:
        is_kept = is_same(value, old)
    yield from _broken_here(schema, value, old, path, is_kept=is_kept)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for key in sorted(value):
            inner = schema.properties.get(key) or schema.additional
            if inner is not None:
                here, was = member_path(schema, path, key), before.get(key, ABSENT)
                yield from _broken_rules(inner, value[key], was, here, is_kept=is_kept)
    elif isinstance(value, list) and schema.items is not None:
        item_before = items_before(schema, old)
        for at, item in enumerate(value):
            was, here = item_before(item), f"{path}[{at}]"
            yield from _broken_rules(schema.items, item, was, here, is_kept=is_kept)


def _broken_here(
    schema: Structural, value: Any, old: Any, path: str, *, is_kept: bool
) -> Iterator[Cause]:
    asked = [rule for rule in schema.rules if not is_kept or _OLD.search(str(rule.get("rule", "")))]
    if not asked:
        return
    seen = {"self": _seen(schema, value)}
    if old is not ABSENT:
        seen["oldSelf"] = _seen(schema, old)
    for rule in asked:
        yield from _broken(rule, schema, value, seen, path)


def _broken(rule: Json, schema: Structural, value: Any, seen: Json, path: str) -> Iterator[Cause]:
    """Whether `value` breaks a rule; `seen` is what expressions see of it and of its past."""
    expression = str(rule.get("rule", ""))
    about_change = bool(_OLD.search(expression))
    is_optional = bool(rule.get("optionalOldSelf"))
    if about_change and "oldSelf" not in seen and not is_optional:
        return
    known = {"self": seen["self"]}
    if about_change or is_optional:
        known["oldSelf"] = seen.get("oldSelf")
    where = path + str(rule.get("fieldPath", ""))
    try:
        result = compiled(_asked(rule, schema, expression)).eval(data=known)
    except (RuntimeError, MemoryError):  # what an evaluation may cost is bounded
        yield invalid(path, schema.type, OUT_OF_BUDGET)
        raise _NoMoreRulesError from None
    if result.type().name() == "ERROR":
        yield invalid(path, schema.type, _failed(rule, problem_of(result)))
    elif result.plain_value() is not True:
        yield _cause(rule, value, _message(rule, schema, known), where)


def _failed(rule: Json, problem: str) -> str:
    """What is said of a rule that could not be asked."""
    told = str(rule.get("message") or rule.get("rule") or "").strip()
    if problem.startswith("no such overload"):
        why = "call arguments did not match a supported operator, function or macro signature for"
        return f"'{problem}': {why} rule: {told}"
    return f"{problem} evaluating rule: {told}"


def _asked(rule: Json, schema: Structural, expression: str) -> str:
    """`expression` as the library is to answer it."""
    text = _OPTIONAL.format(expression) if rule.get("optionalOldSelf") else expression
    return with_times(schema, text)


def _message(rule: Json, schema: Structural, known: Json) -> str:
    expression = str(rule.get("messageExpression") or "")
    if expression:
        said = _text_of(_asked(rule, schema, expression), known)
        if said.strip() and "\n" not in said and len(said) <= MESSAGE_MAX:
            return said
    said = str(rule.get("message") or "").strip()
    return said or f"failed rule: {str(rule.get('rule', '')).strip()}"


def _text_of(expression: str, known: Json) -> str:
    """The text that an expression makes, "" where it makes none."""
    try:
        told = compiled(expression).eval(data=known)
    except (RuntimeError, MemoryError):
        return ""
    return str(told.plain_value()) if told.type().name() == "STRING" else ""


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
        return {
            spelled(key) if key in schema.properties else key: _seen(inner, item)
            if (inner := schema.properties.get(key) or schema.additional)
            else item
            for key, item in value.items()
        }
    if isinstance(value, list) and schema.items is not None:
        return [_seen(schema.items, item) for item in value]
    if schema.type == "number" and isinstance(value, int):
        return float(value)
    if schema.raw.get("format") == "byte" and isinstance(value, str):
        return b64decode(value)
    return value


@lru_cache(maxsize=1)
def _environment() -> cel.Env:
    return environment({"self": "dyn", "oldSelf": "dyn"})


@text_cache(maxsize=RULES_CACHED_MAX, characters_max=KEPT_CHARACTERS_MAX)
def compiled(expression: str) -> cel.Expression:
    """The program of an expression. Raises RuleError."""
    try:
        return _environment().compile(expression)
    except RuntimeError as cause:
        raise RuleError(compile_problem(expression, cause)) from None


def is_verdict(expression: str) -> bool:
    """Whether an expression says yes or no. Raises RuleError."""
    return compiled(expression).return_type().name() in ("BOOL", "DYN")


def is_text(expression: str) -> bool:
    """Whether an expression says something. Raises RuleError."""
    return compiled(expression).return_type().name() in ("STRING", "DYN")
