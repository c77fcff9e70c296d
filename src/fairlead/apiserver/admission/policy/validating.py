"""ValidatingAdmissionPolicy: rules in CEL that requests must keep.

A policy says nothing until a binding puts it to work, on what the binding selects and with its
parameters. What breaks a rule is refused, warned of, or noted in the audit log, as the binding
wants.

upstream: apiserver/pkg/admission/plugin/policy/validating/{dispatcher,validator}.go
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked
from fairlead.apiserver.admission.cel.environment import Scope
from fairlead.apiserver.admission.match import failing, is_exempt
from fairlead.apiserver.admission.policy.match import Match, matches, scope_of
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    VALIDATING_ADMISSION_POLICY,
    VALIDATING_ADMISSION_POLICY_BINDING,
)
from fairlead.apiserver.storage.storage import Storage

MESSAGE_BYTES_MAX: Final = 5 << 10
ANNOTATION_BYTES_MAX: Final = 10 << 10
_INVALID: Final = "Invalid"
_CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
_CODE_OTHERWISE: Final = 422
_FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"


@dataclass(frozen=True, slots=True)
class _Decision:
    """A rule that is broken, or that could not be asked; `at` is its place in the policy."""

    message: str
    reason: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class _Denial:
    match: Match
    decision: _Decision

    @property
    def message(self) -> str:
        """Who refuses, and why."""
        name, binding = self.match.policy["metadata"]["name"], self.match.binding
        bound = f" with binding '{binding['metadata']['name']}'" if binding else ""
        return f"ValidatingAdmissionPolicy '{name}'{bound} denied request: {self.decision.message}"


class ValidatingPolicies:
    """The admission plugin."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Refuse what any policy refuses. Raises ApiError."""
        if asked.about.write.user is None or is_exempt(asked.kind):
            return asked.obj
        policies, bindings = VALIDATING_ADMISSION_POLICY, VALIDATING_ADMISSION_POLICY_BINDING
        found = [
            denial
            for match in matches(policies, bindings, asked, storage)
            for denial in _denials(match, asked, storage)
        ]
        if found:
            raise _refusal(asked, found[0])
        return asked.obj


def _denials(match: Match, asked: Asked, storage: Storage) -> Iterator[_Denial]:
    """What `match` refuses; what it warns of or notes is told on the way."""
    if match.problem:
        if not match.may_fail:
            yield _Denial(match, _Decision(match.problem))
        return
    annotations: dict[str, list[str]] = {}
    for params in match.params:
        scope = scope_of(match, asked, params, storage)
        for decision in _decisions(match, scope):
            yield from _acted(match, decision, asked)
        for problem in _annotated(match, scope, annotations):
            yield _Denial(match, _Decision(problem))
    name = match.policy["metadata"]["name"]
    for key, values in annotations.items():
        asked.about.write.annotate(f"{name}/{key}", ", ".join(values))


def _decisions(match: Match, scope: Scope) -> Iterator[_Decision]:
    spec = match.policy["spec"]
    conditions = spec.get("matchConditions") or ()
    try:
        if failing(conditions, scope):
            return
    except ValueError as cause:
        if not match.may_fail:
            yield _Decision(str(cause))
        return
    for at, rule in enumerate(spec.get("validations") or ()):
        found = scope.evaluated(rule["expression"])
        if found.problem:
            if not match.may_fail:
                yield _Decision(found.problem, at=at)
        elif found.value is not True:
            yield _Decision(_message(rule, scope), rule.get("reason") or _INVALID, at)


def _message(rule: Json, scope: Scope) -> str:
    expression = rule.get("messageExpression")
    if expression:
        said = scope.evaluated(expression).value
        text = said.strip() if isinstance(said, str) else ""
        if text and "\n" not in text and len(text.encode()) <= MESSAGE_BYTES_MAX:
            return text
    text = str(rule.get("message") or "").strip()
    return text or f"failed expression: {rule['expression'].strip()}"


def _acted(match: Match, decision: _Decision, asked: Asked) -> Iterator[_Denial]:
    """What the binding makes of a broken rule."""
    binding = match.binding or {}
    name, bound = match.policy["metadata"]["name"], binding["metadata"]["name"]
    actions = binding["spec"].get("validationActions") or ()
    if "Deny" in actions:
        yield _Denial(match, decision)
    if "Audit" in actions:
        failure = {
            "message": decision.message,
            "policy": name,
            "binding": bound,
            "expressionIndex": decision.at,
            "validationActions": list(actions),
        }
        asked.about.write.annotate(_FAILURES, json.dumps([failure], separators=(",", ":")))
    if "Warn" in actions:
        asked.about.write.warn(
            f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{bound}': "
            f"{decision.message}"
        )


def _annotated(match: Match, scope: Scope, annotations: dict[str, list[str]]) -> Iterator[str]:
    """Note what the policy wants noted; gives what could not be told."""
    for row in match.policy["spec"].get("auditAnnotations") or ():
        expression = row["valueExpression"]
        found = scope.evaluated(expression)
        if found.problem:
            if not match.may_fail:
                yield found.problem
        elif isinstance(found.value, str):
            text = found.value.strip()[:ANNOTATION_BYTES_MAX]
            values = annotations.setdefault(row["key"], [])
            if text and text not in values:
                values.append(text)
        elif found.value is not None:
            yield (
                f"valueExpression '{expression}' resulted in unsupported return type: "
                f"{type(found.value).__name__}. Return type must be either string or null."
            )
    for key in [key for key, values in annotations.items() if not values]:
        del annotations[key]


def _refusal(asked: Asked, denial: _Denial) -> ApiError:
    meta = asked.obj.get("metadata") or {}
    name = asked.name or meta.get("generateName") or "Unknown"
    reason = denial.decision.reason or _INVALID
    code = _CODES.get(reason, _CODE_OTHERWISE)
    resource = asked.kind.resource
    named = {"name": name, "group": asked.kind.stored_group, "kind": asked.kind.plural}
    details = {key: value for key, value in named.items() if value}
    details["causes"] = [{"message": denial.message}]
    message = f'{resource} "{name}" is forbidden: {denial.message}'
    return ApiError(reason, code, message, details=details)
