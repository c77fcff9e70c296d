"""ValidatingAdmissionPolicy: refuses requests that violate CEL expressions.

The validationActions of a binding decide whether a violation leads to a refusal, a warning or an
audit annotation.

upstream: apiserver/pkg/admission/plugin/policy/validating/{dispatcher,validator}.go
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.admission.cel.admission_request import convert_objects
from fairlead.apiserver.admission.cel.environment import ExpressionContext
from fairlead.apiserver.admission.match import has_false_condition, is_exempt
from fairlead.apiserver.admission.policy.match import (
    PolicyMatch,
    expression_context,
    policy_matches,
)
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    VALIDATING_ADMISSION_POLICY,
    VALIDATING_ADMISSION_POLICY_BINDING,
)
from fairlead.apiserver.storage.storage import Storage
from fairlead.apiserver.suspension import WebhookCalls

MESSAGE_BYTES_MAX: Final = 5 << 10
ANNOTATION_BYTES_MAX: Final = 10 << 10
_INVALID: Final = "Invalid"
_CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
_CODE_DEFAULT: Final = 422
_FAILURE_ANNOTATION: Final = "validation.policy.admission.k8s.io/validation_failure"


class _Decision(Struct, frozen=True):
    """A violated rule of a policy, or an error.

    `index` is the index of the rule in the policy's validations; 0 if the error concerns no rule.
    """

    message: str
    reason: str = ""
    index: int = 0


class _Denial(Struct, frozen=True):
    match: PolicyMatch
    decision: _Decision

    @property
    def message(self) -> str:
        """The message of the refusal."""
        name, binding = self.match.policy["metadata"]["name"], self.match.binding
        through = f" with binding '{binding['metadata']['name']}'" if binding else ""
        return (
            f"ValidatingAdmissionPolicy '{name}'{through} denied request: {self.decision.message}"
        )


class ValidatingAdmissionPolicy:
    """The admission plugin `ValidatingAdmissionPolicy`."""

    CHECKS_ONLY: ClassVar[bool] = True
    HANDLES_CONNECT: ClassVar[bool] = True

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> WebhookCalls[Json]:
        """Refuse the request if any policy denies it.

        Raises ApiError. The `reason` of the violated rule decides the HTTP status code; if the rule
        has no reason, the code is 422.
        """
        if attributes.write.user is None or is_exempt(attributes.kind):
            return attributes.obj
        policies, bindings = VALIDATING_ADMISSION_POLICY, VALIDATING_ADMISSION_POLICY_BINDING
        result: list[_Denial] = []
        for match in policy_matches(policies, bindings, attributes, storage):
            yield from convert_objects(attributes, match.kind)
            result += _denials(match, attributes, storage)
        if result:
            raise _refusal(attributes, result[0])
        return attributes.obj


def _denials(
    match: PolicyMatch, attributes: AdmissionAttributes, storage: Storage
) -> Iterator[_Denial]:
    """Yield the denials of one policy, and send its warnings and audit annotations."""
    if match.problem:
        if not match.ignores_failure:
            yield _Denial(match, _Decision(match.problem))
        return
    annotations: dict[str, list[str]] = {}
    for params in match.params:
        context = expression_context(match, attributes, params, storage)
        for decision in _decisions(match, context):
            yield from _enforce(match, decision, attributes)
        for problem in _audit_annotations(match, context, annotations):
            yield _Denial(match, _Decision(problem))
    name = match.policy["metadata"]["name"]
    for key, values in annotations.items():
        attributes.write.annotate(f"{name}/{key}", ", ".join(values))


def _decisions(match: PolicyMatch, context: ExpressionContext) -> Iterator[_Decision]:
    spec = match.policy["spec"]
    conditions = spec.get("matchConditions") or ()
    try:
        if has_false_condition(conditions, context):
            return
    except ValueError as cause:
        if not match.ignores_failure:
            yield _Decision(str(cause))
        return
    for index, rule in enumerate(spec.get("validations") or ()):
        result = context.evaluate(rule["expression"])
        if result.problem:
            if not match.ignores_failure:
                yield _Decision(result.problem, index=index)
        elif result.value is not True:
            yield _Decision(_message(rule, context), rule.get("reason") or _INVALID, index)


def _message(rule: Json, context: ExpressionContext) -> str:
    expression = rule.get("messageExpression")
    if expression:
        message = context.evaluate(expression).value
        text = message.strip() if isinstance(message, str) else ""
        if text and "\n" not in text and len(text.encode()) <= MESSAGE_BYTES_MAX:
            return text
    text = str(rule.get("message") or "").strip()
    return text or f"failed expression: {rule['expression'].strip()}"


def _enforce(
    match: PolicyMatch, decision: _Decision, attributes: AdmissionAttributes
) -> Iterator[_Denial]:
    """Carry out the binding's validationActions for one violation; Deny yields a denial."""
    binding = match.binding or {}
    name, binding_name = match.policy["metadata"]["name"], binding["metadata"]["name"]
    actions = binding["spec"].get("validationActions") or ()
    if "Deny" in actions:
        yield _Denial(match, decision)
    if "Audit" in actions:
        failure = {
            "message": decision.message,
            "policy": name,
            "binding": binding_name,
            "expressionIndex": decision.index,
            "validationActions": list(actions),
        }
        attributes.write.annotate(_FAILURE_ANNOTATION, json.dumps([failure], separators=(",", ":")))
    if "Warn" in actions:
        attributes.write.warn(
            f"Validation failed for ValidatingAdmissionPolicy '{name}' "
            f"with binding '{binding_name}': {decision.message}"
        )


def _audit_annotations(
    match: PolicyMatch, context: ExpressionContext, annotations: dict[str, list[str]]
) -> Iterator[str]:
    """Add the policy's audit annotations to `annotations`; yield an error for each failure."""
    for row in match.policy["spec"].get("auditAnnotations") or ():
        expression = row["valueExpression"]
        result = context.evaluate(expression)
        if result.problem:
            if not match.ignores_failure:
                yield result.problem
        elif isinstance(result.value, str):
            text = result.value.strip()[:ANNOTATION_BYTES_MAX]
            values = annotations.setdefault(row["key"], [])
            if text and text not in values:
                values.append(text)
        elif result.value is not None:
            yield (
                f"valueExpression '{expression}' resulted in unsupported return type: "
                f"{type(result.value).__name__}. Return type must be either string or null."
            )
    for key in [key for key, values in annotations.items() if not values]:
        del annotations[key]


def _refusal(attributes: AdmissionAttributes, denial: _Denial) -> ApiError:
    meta = attributes.obj.get("metadata") or {}
    name = attributes.name or meta.get("generateName") or "Unknown"
    reason = denial.decision.reason or _INVALID
    code = _CODES.get(reason, _CODE_DEFAULT)
    resource = attributes.kind.resource
    details_of_object = {
        "name": name,
        "group": attributes.kind.stored_group,
        "kind": attributes.kind.plural,
    }
    details = {key: value for key, value in details_of_object.items() if value}
    details["causes"] = [{"message": denial.message}]
    message = f'{resource} "{name}" is forbidden: {denial.message}'
    return ApiError(reason, code, message, details=details)
