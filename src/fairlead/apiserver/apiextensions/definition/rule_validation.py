"""Whether the rules in a definition can be asked, and what they say when they are broken.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go:
ValidateCustomResourceDefinitionOpenAPISchema
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.cel.declared_type import Declared, declared, variables_of
from fairlead.apiserver.apiextensions.definition.field_path import FieldPathError, field_at
from fairlead.apiserver.apiextensions.definition.rule_cost import Bill, repeated
from fairlead.apiserver.error import Cause
from fairlead.apiserver.gotext.definition import shown_rule
from fairlead.apiserver.validation.meta.field import invalid, not_supported, required
from fairlead.cel.check.types import BOOL, STRING
from fairlead.cel.compiler import compiled
from fairlead.cel.cost.expression_estimate import estimated_cost
from fairlead.cel.error import ExpressionError

_REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
_PAST: Final = "oldSelf"
_LINE_END: Final = re.compile(r"[\n\r]")


def wrong_words(raw: Json, field: str) -> Iterator[Cause]:
    """What is wrong with what goes with the rules of the schema that stands at `field`."""
    for at, rule in enumerate(raw.get("x-kubernetes-validations") or ()):
        place = f"{field}.x-kubernetes-validations[{at}]"
        yield from _wrong_words(rule, place)
        yield from _wrong_path(rule, raw, f"{place}.fieldPath")


@dataclass(frozen=True, slots=True)
class Asking:
    """Where rules are asked, and what they cost there.

    `cardinality` is how many values of the type there may be, None where nothing bounds them;
    where items have no past, what is below `no_past_below` cannot be asked about it.
    """

    bill: Bill
    cardinality: int | None = 1
    no_past_below: str = ""
    is_object: bool = False


def wrong_expressions(raw: Json, field: str, asking: Asking) -> Iterator[Cause]:
    """Rules that cannot be asked, or cost too much."""
    rules = raw.get("x-kubernetes-validations") or ()
    known = declared(raw, is_object=asking.is_object) if rules else None
    if known is None:
        return
    for at, rule in enumerate(rules):
        place = f"{field}.x-kubernetes-validations[{at}]"
        yield from _wrong_expressions(rule, known, place, asking)


def _wrong_expressions(rule: Json, known: Declared, place: str, asking: Asking) -> Iterator[Cause]:
    text, variables = str(rule.get("rule") or ""), variables_of(known, rule)
    if not text.strip():
        return
    too_much = list(asking.bill.reading.take(f"{place}.rule", text + _message_of(rule)))
    if too_much:
        yield from too_much
        return
    try:
        asked = compiled(text, variables, known.structures())
        problem = "" if asked.type_ == BOOL else "cel expression must evaluate to a bool"
    except ExpressionError as cause:
        asked, problem = None, cause.whole
    if asked is None or problem:
        yield _about(f"{place}.rule", rule, problem)
    else:
        times = known.cardinality_max if asking.cardinality is None else asking.cardinality
        cost = repeated(estimated_cost(asked, known.size_of).high, times)
        yield from asking.bill.charge(f"{place}.rule", "rule", cost)
        yield from _wrong_message(rule, known, place, asking)
    names_past = asked is not None and not problem and _PAST in asked.variables
    yield from _wrong_past(rule, place, asking.no_past_below, names_past=names_past)


def _message_of(rule: Json) -> str:
    return str(rule.get("messageExpression") or "")


def _wrong_message(rule: Json, known: Declared, place: str, asking: Asking) -> Iterator[Cause]:
    expression, name = _message_of(rule), f"{place}.messageExpression"
    if not expression.strip():
        return
    try:
        asked = compiled(expression, variables_of(known, rule), known.structures())
    except ExpressionError as cause:
        yield _about(name, rule, f"messageExpression {cause.whole.removeprefix('program ')}")
        return
    if asked.type_ != STRING:
        yield _about(name, rule, "messageExpression must evaluate to a string")
        return
    cost = estimated_cost(asked, known.size_of).high
    yield from asking.bill.charge(name, "messageExpression", cost)


def _wrong_past(rule: Json, place: str, no_past_below: str, *, names_past: bool) -> Iterator[Cause]:
    optional = rule.get("optionalOldSelf")
    if not names_past:
        if optional is not None:
            why = "may not be set if oldSelf is not used in rule"
            yield invalid(f"{place}.optionalOldSelf", optional, why)
    elif no_past_below:
        why = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
        yield invalid(f"{place}.rule", str(rule.get("rule")), f"{why} {no_past_below}")


def _wrong_path(rule: Json, raw: Json, place: str) -> Iterator[Cause]:
    path = str(rule.get("fieldPath") or "")
    if not path:
        return
    if not path.strip():
        yield invalid(place, path, "fieldPath must be non-empty if specified")
    if _LINE_END.search(path):
        yield invalid(place, path, "fieldPath must not contain line breaks")
    try:
        field_at(path, raw)
    except FieldPathError:
        yield invalid(place, path, "fieldPath must be a valid path")


def _wrong_words(rule: Json, place: str) -> Iterator[Cause]:
    text, message = str(rule.get("rule") or "").strip(), str(rule.get("message") or "")
    if not text:
        yield required(f"{place}.rule", "rule is not specified")
    elif message and not message.strip():
        why = "message must be non-empty if specified"
        yield invalid(f"{place}.message", message, why)
    elif _LINE_END.search(message.strip()):
        yield invalid(f"{place}.message", message, "message must not contain line breaks")
    elif _LINE_END.search(text) and not message.strip():
        why = "message must be specified if rule contains line breaks"
        yield required(f"{place}.message", why)
    expression = str(rule.get("messageExpression") or "")
    if expression and not expression.strip():
        why = "messageExpression must be non-empty if specified"
        yield required(f"{place}.messageExpression", why)
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{place}.reason", reason, _REASONS)


def _about(place: str, rule: Json, why: str) -> Cause:
    return invalid(place, shown_rule(rule), why)
