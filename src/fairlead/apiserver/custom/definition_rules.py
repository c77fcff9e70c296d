"""Whether the rules in a definition can be asked, and what they say when they are broken.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go:
ValidateCustomResourceDefinitionOpenAPISchema
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from fairlead.apiserver.custom.rules import RuleError, is_text, is_verdict
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.field import invalid, not_supported, required

Json = dict[str, Any]

_REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
# A rule as upstream's language shows it in a refusal.
_SHOWN: Final = (
    ("Rule", "rule", ""),
    ("Message", "message", ""),
    ("MessageExpression", "messageExpression", ""),
    ("Reason", "reason", None),
    ("FieldPath", "fieldPath", ""),
    ("OptionalOldSelf", "optionalOldSelf", None),
)


def wrong_rules(raw: Json, field: str) -> Iterator[Cause]:
    """What is wrong with the rules of the schema that stands at `field`."""
    for at, rule in enumerate(raw.get("x-kubernetes-validations") or ()):
        yield from _wrong_words(rule, f"{field}.x-kubernetes-validations[{at}]")
        yield from _wrong_expressions(rule, f"{field}.x-kubernetes-validations[{at}]")


def _wrong_words(rule: Json, place: str) -> Iterator[Cause]:
    text, message = str(rule.get("rule") or "").strip(), str(rule.get("message") or "")
    if not text:
        yield required(f"{place}.rule", "rule is not specified")
    elif message and not message.strip():
        why = "message must be non-empty if specified"
        yield invalid(f"{place}.message", message, why)
    elif "\n" in message.strip():
        yield invalid(f"{place}.message", message, "message must not contain line breaks")
    elif "\n" in text and not message:
        why = "message must be specified if rule contains line breaks"
        yield required(f"{place}.message", why)
    expression = str(rule.get("messageExpression") or "")
    if expression and not expression.strip():
        why = "messageExpression must be non-empty if specified"
        yield required(f"{place}.messageExpression", why)
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{place}.reason", reason, _REASONS)


def _wrong_expressions(rule: Json, place: str) -> Iterator[Cause]:
    text = str(rule.get("rule") or "")
    if not text.strip():
        return
    try:
        if not is_verdict(text):
            yield _about(f"{place}.rule", rule, "cel expression must evaluate to a bool")
    except RuleError as cause:
        yield _about(f"{place}.rule", rule, f"compilation failed: {cause}")
    expression = str(rule.get("messageExpression") or "")
    if not expression.strip():
        return
    name = f"{place}.messageExpression"
    try:
        if not is_text(expression):
            yield _about(name, rule, "messageExpression must evaluate to a string")
    except RuleError as cause:
        yield _about(name, rule, f"messageExpression compilation failed: {cause}")


def _about(place: str, rule: Json, why: str) -> Cause:
    shown = {name: rule.get(key, zero) for name, key, zero in _SHOWN}
    text = json.dumps(shown, separators=(",", ":"))
    return Cause("FieldValueInvalid", f"Invalid value: {text}: {why}", place)
