"""Validates admission policies (validating and mutating) and their bindings.

upstream: pkg/apis/admissionregistration/validation/validation.go
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.admissionregistration.expression import (
    BOOLEAN,
    OBJECT,
    PATCH,
    TEXT,
    TEXT_OR_NULL,
    ExpressionVariables,
    check_expression,
    check_variable,
)
from fairlead.apiserver.validation.admissionregistration.options import NEW, ValidationOptions
from fairlead.apiserver.validation.admissionregistration.webhook import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    check_conditions,
    check_enum,
    check_rule,
)
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    invalid,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_qualified_name,
    dns_1035_problems,
    dns_subdomain_problems,
    label_selector,
    path_segment_problems,
)
from fairlead.apiserver.validation.meta.selector import check_label_selector

# Patch types of mutating policies, and the field that each requires.
PATCHES: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
ACTIONS: Final = ("Audit", "Deny", "Warn")
REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_NOTHING: Final = "validations or auditAnnotations must contain at least one item"
_BOTH: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the "
    "API response and headers serves no purpose)"
)


def check_policy(obj: Json, options: ValidationOptions = NEW) -> Causes:
    """Yield the errors of a ValidatingAdmissionPolicy."""
    spec = obj["spec"]
    yield from check_enum("spec.failurePolicy", spec.get("failurePolicy"), FAILURE_POLICIES)
    if spec.get("paramKind") is not None:
        yield from _check_parameter("spec.paramKind", spec["paramKind"])
    matching = spec.get("matchConstraints")
    yield from _check_constraints(matching)
    known = _known_variables(spec, options)
    yield from check_conditions("spec.matchConditions", spec.get("matchConditions") or [], known)
    known.variables = {}
    yield from _check_variables(spec.get("variables") or [], known)
    rules, notes = spec.get("validations") or [], spec.get("auditAnnotations") or []
    yield from _check_verdicts(rules, notes, known)


def _known_variables(spec: Json, options: ValidationOptions) -> ExpressionVariables:
    return ExpressionVariables(
        is_compiled=options.compile_expressions, has_params=spec.get("paramKind") is not None
    )


def _check_constraints(matching: Json | None) -> Causes:
    if matching is None:
        yield required("spec.matchConstraints")
        return
    yield from _check_matching("spec.matchConstraints", matching)
    if not matching.get("resourceRules"):
        yield required("spec.matchConstraints.resourceRules")


def _check_variables(variables: list[Json], known: ExpressionVariables) -> Causes:
    for index, variable in enumerate(variables):
        field, name = f"spec.variables[{index}]", variable.get("name", "")
        if not name.strip():
            yield required(f"{field}.name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name):
            yield invalid(f"{field}.name", name, "name is not a valid CEL identifier")
        if not variable.get("expression", "").strip():
            yield required(f"{field}.expression", "expression is not specified")
        said = variable.get("expression", "")
        yield from check_variable(f"{field}.expression", name, said, known)


def check_mutating_policy(obj: Json, options: ValidationOptions = NEW) -> Causes:
    """Yield the errors of a MutatingAdmissionPolicy."""
    spec = obj["spec"]
    yield from check_enum("spec.failurePolicy", spec.get("failurePolicy"), FAILURE_POLICIES)
    if spec.get("paramKind") is not None:
        yield from _check_parameter("spec.paramKind", spec["paramKind"])
    yield from _check_constraints(spec.get("matchConstraints"))
    known = _known_variables(spec, options)
    yield from check_conditions("spec.matchConditions", spec.get("matchConditions") or [], known)
    known.variables = {}
    yield from _check_variables(spec.get("variables") or [], known)
    kind = "admissionregistration.v1.MutatingAdmissionPolicySpec"
    yield from check_fields("spec", kind, spec, "mutations")
    for index, mutation in enumerate(spec.get("mutations") or ()):
        yield from _check_mutation(f"spec.mutations[{index}]", mutation, known.of_mutations())
    yield from check_fields("spec", kind, spec, "reinvocationPolicy")


def _check_mutation(field: str, mutation: Json, known: ExpressionVariables) -> Causes:
    unknown = list(check_fields(field, "admissionregistration.v1.Mutation", mutation, "patchType"))
    if unknown:
        yield from unknown
        return
    type_ = mutation["patchType"]
    for name, key in PATCHES.items():
        said = mutation.get(key)
        if name == type_ and said is None:
            yield required(f"{field}.{key}", f"must be specified when patchType is {type_}")
        elif name == type_ and said is not None:
            text = said.get("expression") or ""
            if not text.strip():
                yield required(f"{field}.{key}.expression", "expression is not specified")
            wanted = PATCH if type_ == "JSONPatch" else OBJECT
            yield from check_expression(f"{field}.{key}.expression", text, wanted, known)
        elif said is not None:
            why = f"must not be specified when patchType is {type_}"
            yield invalid(f"{field}.{key}", {"Expression": said.get("expression", "")}, why)


def check_mutating_binding(obj: Json) -> Causes:
    """Yield the errors of a MutatingAdmissionPolicyBinding."""
    yield from _check_binding(obj["spec"])


def _check_verdicts(rules: list[Json], notes: list[Json], known: ExpressionVariables) -> Causes:
    if not rules and not notes:
        yield required("spec.validations", _NOTHING)
        yield required("spec.auditAnnotations", _NOTHING)
    for index, rule in enumerate(rules):
        yield from _check_validation(f"spec.validations[{index}]", rule, known)
    keys: dict[str, None] = {}
    for index, note in enumerate(notes):
        yield from _check_note(f"spec.auditAnnotations[{index}]", note, known)
        if note.get("key") in keys:
            yield duplicate(f"spec.auditAnnotations[{index}].key", note["key"])
        keys[note.get("key", "")] = None


def _check_note(field: str, note: Json, known: ExpressionVariables) -> Causes:
    if not note.get("key"):
        yield required(f"{field}.key")
    else:
        yield from check_qualified_name(f"{field}.key", note["key"])
    said = note.get("valueExpression", "")
    if not said.strip():
        yield required(f"{field}.valueExpression")
    yield from check_expression(f"{field}.valueExpression", said, TEXT_OR_NULL, known)


def _check_parameter(field: str, parameter: Json) -> Causes:
    text, kind = parameter.get("apiVersion", ""), parameter.get("kind", "")
    where = f"{field}.apiVersion"
    group, _, version = text.rpartition("/")
    if not text:
        yield required(where)
    elif "/" in group:
        yield invalid(where, text, f"unexpected GroupVersion string: {text}")
    else:
        problems = dns_subdomain_problems(group) if group else ()
        if problems:
            yield invalid(where, group, ",".join(problems))
        if not version:
            yield invalid(where, text, "version must be specified")
        elif dns_1035_problems(version):
            yield invalid(where, version, ",".join(dns_1035_problems(version)))
    if not kind:
        yield required(f"{field}.kind")
    elif dns_1035_problems(kind.lower()):
        problems = dns_1035_problems(kind.lower())
        why = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        yield invalid(f"{field}.kind", kind, why)


def _check_matching(field: str, matching: Json) -> Causes:
    yield from check_enum(f"{field}.matchPolicy", matching.get("matchPolicy"), MATCH_POLICIES)
    for key in ("namespaceSelector", "objectSelector"):
        yield from check_label_selector(f"{field}.{key}", label_selector(matching.get(key)))
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(matching.get(key) or ()):
            where = f"{field}.{key}[{index}]"
            names = rule.get("resourceNames") or []
            again = repeated_indexes(names)
            for number, name in enumerate(names):
                for problem in path_segment_problems(name):
                    yield invalid(f"{where}.resourceNames[{number}]", name, problem)
                if number in again:
                    yield duplicate(f"{where}.resourceNames[{number}]", name)
            yield from check_rule(where, rule)


def _check_validation(field: str, rule: Json, known: ExpressionVariables) -> Causes:
    said, computed = rule.get("message", ""), rule.get("messageExpression", "")
    if not rule.get("expression", "").strip():
        yield required(f"{field}.expression", "expression is not specified")
    verdict, name = rule.get("expression", ""), f"{field}.messageExpression"
    yield from check_expression(f"{field}.expression", verdict, BOOLEAN, known)
    yield from check_expression(name, computed, TEXT, known.without_rights())
    if computed and not computed.strip():
        yield invalid(f"{field}.messageExpression", computed, "must be non-empty if specified")
    if said and not said.strip():
        yield invalid(f"{field}.message", said, "message must be non-empty if specified")
    elif "\n" in said.strip() or "\r" in said.strip():
        yield invalid(f"{field}.message", said, "message must not contain line breaks")
    yield from check_enum(f"{field}.reason", rule.get("reason"), REASONS)


def check_validating_binding(obj: Json) -> Causes:
    """Yield the errors of a ValidatingAdmissionPolicyBinding."""
    spec = obj["spec"]
    yield from _check_binding(spec)
    field, actions = "spec.validationActions", spec.get("validationActions") or []
    again = repeated_indexes(actions)
    for index, action in enumerate(actions):
        yield from check_enum(f"{field}[{index}]", action, ACTIONS)
        if index in again:
            yield duplicate(f"{field}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        yield invalid(field, actions, _BOTH)
    if not actions:
        yield required(field, "at least one validation action is required")


def _check_binding(spec: Json) -> Causes:
    kind = "admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec"
    yield from check_fields("spec", kind, spec, "policyName")
    if spec.get("paramRef") is not None:
        yield from _check_reference("spec.paramRef", spec["paramRef"])
    if spec.get("matchResources") is not None:
        yield from _check_matching("spec.matchResources", spec["matchResources"])


def _check_reference(field: str, reference: Json) -> Causes:
    name, selector = reference.get("name", ""), reference.get("selector")
    if name:
        for problem in path_segment_problems(name):
            yield invalid(f"{field}.name", name, problem)
        if selector is not None:
            why = "name and selector are mutually exclusive"
            yield invalid(f"{field}.name", name, why)
    if selector is not None:
        yield from check_label_selector(f"{field}.selector", label_selector(selector))
        if name:
            why = "name and selector are mutually exclusive"
            yield invalid(f"{field}.selector", selector, why)
    if not name and selector is None:
        yield required(field, "one of name or selector must be specified")
    kind = "admissionregistration.v1.ParamRef"
    yield from check_fields(field, kind, reference, "parameterNotFoundAction")
