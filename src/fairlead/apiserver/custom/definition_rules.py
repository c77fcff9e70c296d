"""Whether the rules in a definition can be asked, and what they say when they are broken.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go:
ValidateCustomResourceDefinitionOpenAPISchema
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from fairlead.apiserver.custom.definition_path import FieldPathError, field_at
from fairlead.apiserver.custom.definition_shown import shown_rule
from fairlead.apiserver.custom.rules import RuleError, is_text, is_verdict
from fairlead.apiserver.custom.spelling import spelled
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.field import invalid, not_supported, required

Json = dict[str, Any]

_REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
# What may stand where a rule speaks of a field of its value.
_FIELDS: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\bself((?:\.[A-Za-z_]\w*)+)(\(?)"""
)
_OLD: Final = re.compile(r"\boldSelf\b")
_LINE_END: Final = re.compile(r"[\n\r]")
_IDENTITY: Final[Json] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    },
}


def wrong_words(raw: Json, field: str) -> Iterator[Cause]:
    """What is wrong with what goes with the rules of the schema that stands at `field`."""
    for at, rule in enumerate(raw.get("x-kubernetes-validations") or ()):
        place = f"{field}.x-kubernetes-validations[{at}]"
        yield from _wrong_words(rule, place)
        yield from _wrong_path(rule, raw, f"{place}.fieldPath")


def wrong_expressions(
    raw: Json, field: str, no_past_below: str = "", *, is_object: bool = False
) -> Iterator[Cause]:
    """Rules that cannot be asked; where items have no past, they cannot be asked about it."""
    for at, rule in enumerate(raw.get("x-kubernetes-validations") or ()):
        place = f"{field}.x-kubernetes-validations[{at}]"
        yield from _wrong_expressions(rule, raw, place, is_object=is_object)
        yield from _wrong_past(rule, place, no_past_below)


def _wrong_past(rule: Json, place: str, no_past_below: str) -> Iterator[Cause]:
    text, optional = str(rule.get("rule") or ""), rule.get("optionalOldSelf")
    if not _OLD.search(text):
        if optional is not None:
            why = "may not be set if oldSelf is not used in rule"
            yield invalid(f"{place}.optionalOldSelf", optional, why)
    elif no_past_below:
        why = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
        yield invalid(f"{place}.rule", text, f"{why} {no_past_below}")


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


def _wrong_expressions(rule: Json, raw: Json, place: str, *, is_object: bool) -> Iterator[Cause]:
    text = str(rule.get("rule") or "")
    unknown = _unknown_field(text, raw, is_object=is_object)
    try:
        says, problem = is_verdict(text), unknown
    except RuleError as cause:
        says, problem = True, str(cause) if "Syntax error" in str(cause) else unknown or str(cause)
    if problem:
        yield _about(f"{place}.rule", rule, f"compilation failed: {problem}")
    elif not says:
        yield _about(f"{place}.rule", rule, "cel expression must evaluate to a bool")
    expression = str(rule.get("messageExpression") or "")
    if not expression.strip():
        return
    name = f"{place}.messageExpression"
    try:
        if not is_text(expression):
            yield _about(name, rule, "messageExpression must evaluate to a string")
    except RuleError as cause:
        yield _about(name, rule, f"messageExpression compilation failed: {cause}")


def _unknown_field(text: str, raw: Json, *, is_object: bool) -> str:
    """What the compiler says of the first field that a rule's value does not have; else nothing."""
    known = {**raw, "x-kubernetes-embedded-resource": True} if is_object else raw
    for found in _FIELDS.finditer(text):
        here, at = known, found.start() + len("self")
        names = (found[1] or ".").split(".")[1:]
        for name in names[:-1] if found[2] else names:
            if here.get("type") != "object" or isinstance(here.get("additionalProperties"), dict):
                break
            fields = _fields_of(here)
            if name and name not in fields:
                return _pointed(text, at, f"undefined field '{name}'")
            here, at = fields.get(name, {}), at + 1 + len(name)
    return ""


def _fields_of(raw: Json) -> Json:
    fields = {spelled(key): inner for key, inner in (raw.get("properties") or {}).items()}
    return fields | _IDENTITY if raw.get("x-kubernetes-embedded-resource") else fields


def _pointed(text: str, at: int, why: str) -> str:
    lines = text[:at].split("\n")
    column = len(lines[-1])
    line = text.split("\n")[len(lines) - 1]
    return f"ERROR: <input>:{len(lines)}:{column + 1}: {why}\n | {line}\n | {'.' * column}^"


def _about(place: str, rule: Json, why: str) -> Cause:
    return invalid(place, shown_rule(rule), why)
