"""Validates x-kubernetes-validations: the fields, CEL types, cost, and use of oldSelf of each rule.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go:
ValidateCustomResourceDefinitionOpenAPISchema
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.cel.declared_type import Declared, declared, variables_of
from fairlead.apiserver.apiextensions.definition.field_path import FieldPathError, field_at
from fairlead.apiserver.apiextensions.definition.rule_cost import RuleCostTotal, multiplied_cost
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
_OLD_SELF: Final = "oldSelf"
_LINE_END: Final = re.compile(r"[\n\r]")


def rule_field_causes(raw: Json, field: str) -> Iterator[Cause]:
    """Yield the errors in the fields of the schema's rules, without compiling their expressions."""
    for index, rule in enumerate(raw.get("x-kubernetes-validations") or ()):
        path = f"{field}.x-kubernetes-validations[{index}]"
        yield from _field_causes(rule, path)
        yield from _field_path_causes(rule, raw, f"{path}.fieldPath")


class RuleContext(Struct, frozen=True):
    """The context of the rules of one schema node.

    `cardinality` is the largest number of values that the node can have in one object; None if the
    number is unbounded. In some enclosing schemas, new values cannot be matched with old values, so
    rules cannot use oldSelf. `uncorrelatable_from` is the path of such a schema; "" if there is
    none. `is_object` is True if the values are API objects.
    """

    cost_total: RuleCostTotal
    cardinality: int | None = 1
    uncorrelatable_from: str = ""
    is_object: bool = False


def expression_causes(raw: Json, field: str, context: RuleContext) -> Iterator[Cause]:
    """Yield the errors of rules that do not compile, cost too much, or use oldSelf wrongly."""
    rules = raw.get("x-kubernetes-validations") or ()
    type_declared = declared(raw, is_object=context.is_object) if rules else None
    if type_declared is None:
        return
    for index, rule in enumerate(rules):
        path = f"{field}.x-kubernetes-validations[{index}]"
        yield from _rule_causes(rule, type_declared, path, context)


def _rule_causes(
    rule: Json, type_declared: Declared, path: str, context: RuleContext
) -> Iterator[Cause]:
    text, variables = str(rule.get("rule") or ""), variables_of(type_declared, rule)
    if not text.strip():
        return
    over_length = list(
        context.cost_total.length_budget.spend(f"{path}.rule", text + _message_of(rule))
    )
    if over_length:
        yield from over_length
        return
    try:
        expression_read = compiled(text, variables, type_declared.structures())
        problem = "" if expression_read.type_ == BOOL else "cel expression must evaluate to a bool"
    except ExpressionError as cause:
        expression_read, problem = None, cause.whole
    if expression_read is None or problem:
        yield _invalid_rule(f"{path}.rule", rule, problem)
    else:
        count = (
            type_declared.cardinality_max if context.cardinality is None else context.cardinality
        )
        cost = multiplied_cost(estimated_cost(expression_read, type_declared.size_of).high, count)
        yield from context.cost_total.charge(f"{path}.rule", "rule", cost)
        yield from _message_expression_causes(rule, type_declared, path, context)
    uses_old_self = (
        expression_read is not None and not problem and _OLD_SELF in expression_read.variables
    )
    yield from _old_self_causes(
        rule, path, context.uncorrelatable_from, uses_old_self=uses_old_self
    )


def _message_of(rule: Json) -> str:
    return str(rule.get("messageExpression") or "")


def _message_expression_causes(
    rule: Json, type_declared: Declared, path: str, context: RuleContext
) -> Iterator[Cause]:
    expression, path_of_message = _message_of(rule), f"{path}.messageExpression"
    if not expression.strip():
        return
    try:
        expression_read = compiled(
            expression, variables_of(type_declared, rule), type_declared.structures()
        )
    except ExpressionError as cause:
        yield _invalid_rule(
            path_of_message, rule, f"messageExpression {cause.whole.removeprefix('program ')}"
        )
        return
    if expression_read.type_ != STRING:
        yield _invalid_rule(path_of_message, rule, "messageExpression must evaluate to a string")
        return
    cost = estimated_cost(expression_read, type_declared.size_of).high
    yield from context.cost_total.charge(path_of_message, "messageExpression", cost)


def _old_self_causes(
    rule: Json, path: str, uncorrelatable_from: str, *, uses_old_self: bool
) -> Iterator[Cause]:
    optional = rule.get("optionalOldSelf")
    if not uses_old_self:
        if optional is not None:
            problem = "may not be set if oldSelf is not used in rule"
            yield invalid(f"{path}.optionalOldSelf", optional, problem)
    elif uncorrelatable_from:
        problem = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
        yield invalid(f"{path}.rule", str(rule.get("rule")), f"{problem} {uncorrelatable_from}")


def _field_path_causes(rule: Json, raw: Json, path: str) -> Iterator[Cause]:
    field_path = str(rule.get("fieldPath") or "")
    if not field_path:
        return
    if not field_path.strip():
        yield invalid(path, field_path, "fieldPath must be non-empty if specified")
    if _LINE_END.search(field_path):
        yield invalid(path, field_path, "fieldPath must not contain line breaks")
    try:
        field_at(field_path, raw)
    except FieldPathError:
        yield invalid(path, field_path, "fieldPath must be a valid path")


def _field_causes(rule: Json, path: str) -> Iterator[Cause]:
    text, message = str(rule.get("rule") or "").strip(), str(rule.get("message") or "")
    if not text:
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        problem = "message must be non-empty if specified"
        yield invalid(f"{path}.message", message, problem)
    elif _LINE_END.search(message.strip()):
        yield invalid(f"{path}.message", message, "message must not contain line breaks")
    elif _LINE_END.search(text) and not message.strip():
        problem = "message must be specified if rule contains line breaks"
        yield required(f"{path}.message", problem)
    expression = str(rule.get("messageExpression") or "")
    if expression and not expression.strip():
        problem = "messageExpression must be non-empty if specified"
        yield required(f"{path}.messageExpression", problem)
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{path}.reason", reason, _REASONS)


def _invalid_rule(path: str, rule: Json, problem: str) -> Cause:
    return invalid(path, shown_rule(rule), problem)
