"""loaded_form: which errors of a stored policy or webhook configuration count."""

from __future__ import annotations

import pytest

from fairlead.apiserver.validation.admissionregistration.loaded_form import check_admission_form

RULE = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
POLICY = {
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
}
HOOKS = {"kind": "ValidatingWebhookConfiguration", "webhooks": [HOOK]}


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


def test_webhooks_that_v1beta1_allowed_are_valid():
    """v1beta1 allowed other side effects, duplicate names, and no admissionReviewVersions."""
    assert fields(HOOKS | {"webhooks": [HOOK, HOOK]}) == []


def test_other_errors_of_webhooks_count():
    wrong = HOOK | {"name": "a", "timeoutSeconds": 31, "clientConfig": {}}
    assert fields(HOOKS | {"webhooks": [wrong]}) == [
        "webhooks[0].name",
        "webhooks[0].timeoutSeconds",
        "webhooks[0].clientConfig",
    ]
