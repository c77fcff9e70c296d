"""loaded_form: which errors of a stored policy or webhook configuration count."""

from __future__ import annotations

import pytest

from fairlead.apiserver.validation.admissionregistration.loaded_form import check_admission_form

RULE = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
V1 = {"apiVersion": "admissionregistration.k8s.io/v1"}
POLICY = V1 | {
    "kind": "ValidatingAdmissionPolicy",
    "spec": {
        "matchConstraints": {"resourceRules": [RULE]},
        "validations": [{"expression": "true"}],
    },
}
HOOK = {
    "name": "a.b.c",
    "clientConfig": {"url": "https://x.y"},
    "rules": [RULE],
    "sideEffects": "Unknown",
    "admissionReviewVersions": ["v1beta1"],
}
HOOKS = V1 | {"kind": "ValidatingWebhookConfiguration", "webhooks": [HOOK]}


def fields(obj):
    return [cause.field for cause in check_admission_form(obj)]


def test_a_policy_needs_constraints():
    spec = {"validations": [{"expression": "true"}]}
    assert fields(POLICY | {"spec": spec}) == ["spec.matchConstraints"]


@pytest.mark.parametrize("expression", ["fromALaterRelease()", "1 +", "'text'"])
def test_expressions_are_not_compiled(expression):
    spec = POLICY["spec"] | {"validations": [{"expression": expression}]}
    assert fields(POLICY | {"spec": spec}) == []


def test_an_empty_expression_is_an_error():
    spec = POLICY["spec"] | {"validations": [{"expression": " "}]}
    assert fields(POLICY | {"spec": spec}) == ["spec.validations[0].expression"]


@pytest.mark.parametrize("expression", ["fromALaterRelease()", "1 +", "'text'"])
def test_match_conditions_are_not_compiled(expression):
    conditions = [{"name": "a", "expression": expression}]
    assert fields(HOOKS | {"webhooks": [HOOK | {"matchConditions": conditions}]}) == []


def test_a_blank_message_expression_is_an_error():
    """Upstream finds this without compiling the expression."""
    validation = {"expression": "true", "messageExpression": " "}
    spec = POLICY["spec"] | {"validations": [validation]}
    assert fields(POLICY | {"spec": spec}) == ["spec.validations[0].messageExpression"]


def test_webhooks_that_v1beta1_allowed_are_valid():
    """v1beta1 allowed other side effects, duplicate names, and unknown AdmissionReviews."""
    other = HOOK | {"admissionReviewVersions": ["v7"]}
    assert fields(HOOKS | {"webhooks": [HOOK, HOOK, other]}) == []


def test_a_selector_of_a_webhook_may_have_values_that_no_label_has():
    """Kubernetes 1.23 and older accepted such values."""
    selector = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["bad value/x"]}]}
    both = {"namespaceSelector": selector, "objectSelector": selector}
    assert fields(HOOKS | {"webhooks": [HOOK | both]}) == []


def test_selectors_of_policies_have_values_of_labels():
    selector = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["bad value/x"]}]}
    matching = POLICY["spec"]["matchConstraints"] | {"objectSelector": selector}
    assert fields(POLICY | {"spec": POLICY["spec"] | {"matchConstraints": matching}}) == [
        "spec.matchConstraints.objectSelector.matchExpressions[0].values[0]"
    ]


def test_fields_of_webhooks_that_v1_requires():
    bare = {key: HOOK[key] for key in ("name", "clientConfig", "rules")}
    assert fields(HOOKS | {"webhooks": [bare, HOOK | {"sideEffects": "Bogus"}]}) == [
        "webhooks[0].sideEffects",
        "webhooks[0].admissionReviewVersions",
        "webhooks[1].sideEffects",
    ]
    older = {"apiVersion": "admissionregistration.k8s.io/v1beta1", "webhooks": [bare]}
    assert fields(HOOKS | older) == []


def test_names_of_match_conditions_are_unique():
    twice = {"matchConditions": [{"name": "a", "expression": "true"}] * 2}
    assert fields(HOOKS | {"webhooks": [HOOK | twice]}) == ["webhooks[0].matchConditions[1].name"]


@pytest.mark.parametrize(
    ("version", "wrong"),
    [("v1alpha1", []), ("v1beta1", ["spec.paramRef.parameterNotFoundAction"])],
)
def test_only_v1alpha1_has_a_default_for_missing_parameters(version, wrong):
    binding = {
        "apiVersion": f"admissionregistration.k8s.io/{version}",
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "p", "paramRef": {"name": "x"}, "validationActions": ["Deny"]},
    }
    assert fields(binding) == wrong


def test_other_errors_of_webhooks_count():
    wrong = HOOK | {"name": "a", "timeoutSeconds": 31, "clientConfig": {}}
    assert fields(HOOKS | {"webhooks": [wrong]}) == [
        "webhooks[0].name",
        "webhooks[0].timeoutSeconds",
        "webhooks[0].clientConfig",
    ]
