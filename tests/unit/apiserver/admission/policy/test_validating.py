"""ValidatingAdmissionPolicy: refusals, warnings and audit annotations."""

from __future__ import annotations

import json

import pytest

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.policy.validating import ValidatingAdmissionPolicy
from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.auth.authorizer import AccessDecision
from fairlead.apiserver.error import ApiError

ALICE = authenticated("alice")
GROUP = "admissionregistration.k8s.io/v1"
RULE = {
    "operations": ["*"],
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "resources": ["deployments"],
}
DENIED = (
    "deployments.apps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied "
    "request: "
)


@pytest.fixture
def policed(gate, obj):
    """Makes gates with a bound policy that has these rules."""

    def policed(*validations, binding=None, **spec):
        spec = {
            "matchConstraints": {"resourceRules": [RULE]},
            "validations": list(validations),
        } | spec
        bound = {"policyName": "p", "validationActions": ["Deny"]} | (binding or {})
        return gate(ValidatingAdmissionPolicy()).has(
            obj("ValidatingAdmissionPolicy", "p", "", GROUP, spec=spec),
            obj("ValidatingAdmissionPolicyBinding", "b", "", GROUP, spec=bound),
        )

    return policed


@pytest.fixture
def deployment(obj):
    """Makes Deployments with this number of replicas."""
    return lambda replicas=1, **meta: obj(
        "Deployment", version="apps/v1", metadata=meta, spec={"replicas": replicas}
    )


def rule(expression="object.spec.replicas <= 5", **more):
    return {"expression": expression, **more}


def test_an_object_that_satisfies_all_validations_is_admitted(policed, deployment):
    policed(rule()).admits(deployment(5), user=ALICE)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (rule(" object.spec.replicas <= 5 "), "failed expression: object.spec.replicas <= 5"),
        (rule(message=" too many "), "too many"),
        (rule(messageExpression="'at most ' + string(5)", message="m"), "at most 5"),
        (rule(messageExpression="'two\\nlines'", message="m"), "m"),
        (rule(messageExpression="object.nope", message="m"), "m"),
        (
            rule("object.nope == 1"),
            "expression 'object.nope == 1' resulted in error: no such key: nope",
        ),
    ],
    ids=["expression", "message", "text", "lines", "no text", "error"],
)
def test_an_object_that_violates_a_validation_is_refused(policed, deployment, broken, why):
    with pytest.raises(ApiError) as refused:
        policed(broken).admits(deployment(6), user=ALICE)
    error = refused.value
    assert (error.message, error.code, error.reason) == (DENIED + why, 422, "Invalid")
    said = error.message.partition("forbidden: ")[2]
    assert error.details == {
        "name": "x",
        "group": "apps",
        "kind": "deployments",
        "causes": [{"message": said}],
    }


def test_the_reason_of_a_validation_is_the_reason_of_the_refusal(policed, deployment):
    with pytest.raises(ApiError) as refused:
        policed(rule(reason="Forbidden")).admits(deployment(6), user=ALICE)
    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")


def test_an_evaluation_error_is_ignored_if_the_failure_policy_is_ignore(policed, deployment):
    policed(rule("object.nope == 1"), failurePolicy="Ignore").admits(deployment(), user=ALICE)
    found = policed(rule(), failurePolicy="Ignore")
    assert found.refusal(deployment(6), user=ALICE).startswith(DENIED)


def test_request_old_object_and_namespace_object_are_available(policed, deployment, obj):
    rules = (
        rule("request.userInfo.username == 'alice' && request.operation == 'UPDATE'"),
        rule("object.spec.replicas >= oldObject.spec.replicas"),
        rule("namespaceObject.metadata.labels.env == 'test'"),
    )
    found = policed(*rules).has(obj("Namespace", "n", "", metadata={"labels": {"env": "test"}}))
    found.admits(deployment(2), Operation.UPDATE, old=deployment(1), user=ALICE)
    refusal = found.refusal(deployment(1), Operation.UPDATE, old=deployment(2), user=ALICE)
    assert "oldObject.spec.replicas" in refusal


def test_variables_are_evaluated_lazily(policed, deployment):
    variables = [
        {"name": "bad", "expression": "object.nope"},
        {"name": "count", "expression": "object.spec.replicas"},
        {"name": "twice", "expression": "variables.count * 2"},
    ]
    found = policed(rule("variables.twice <= 10"), variables=variables)
    found.admits(deployment(5), user=ALICE)
    assert "variables.twice" in found.refusal(deployment(6), user=ALICE)
    refusal = policed(rule("variables.bad"), variables=variables).refusal(deployment(), user=ALICE)
    assert 'composited variable "bad" fails to evaluate: ' in refusal


@pytest.mark.parametrize(
    ("first", "step", "count"),
    [
        ("'12345678'", "variables.{0} + variables.{0}", 40),
        (f"['{'x' * 9_999}']", "[variables.{0}, variables.{0}]", 60),
        ("[1]", "[variables.{0}]", 1_000),
    ],
)
def test_the_size_of_variables_is_limited(policed, deployment, first, step, count):
    """Each variable is only a little larger than the previous ones."""
    steps = [step.format(f"v{number}") for number in range(count)]
    expressions = enumerate([first, *steps])
    variables = [{"name": f"v{at}", "expression": text} for at, text in expressions]
    found = policed(rule(f"variables.v{count} == null"), variables=variables)
    assert "running out of cost budget" in found.refusal(deployment(), user=ALICE)


def test_a_chain_of_a_thousand_variables_is_evaluated(policed, deployment):
    names = [{"name": f"v{at}", "expression": f"variables.v{at - 1}"} for at in range(1, 1_000)]
    variables = [{"name": "v0", "expression": "object.spec.replicas"}, *names]
    policed(rule("variables.v999 == 5"), variables=variables).admits(deployment(5), user=ALICE)


@pytest.mark.parametrize("other", ["own", "later"])
def test_a_variable_can_use_only_previous_variables(policed, deployment, other):
    variables = [
        {"name": "own", "expression": f"variables.{other}"},
        {"name": "later", "expression": "true"},
    ]
    found = policed(rule("variables.own"), variables=variables)
    assert f"no such key: {other}" in found.refusal(deployment(), user=ALICE)


def test_a_policy_is_skipped_if_a_match_condition_is_false(policed, deployment):
    conditions = [{"name": "c", "expression": "request.userInfo.username != 'alice'"}]
    policed(rule("false"), matchConditions=conditions).admits(deployment(), user=ALICE)


@pytest.mark.parametrize(
    "constraints",
    [
        {"resourceRules": [{**RULE, "operations": ["DELETE"]}]},
        {"resourceRules": [RULE], "excludeResourceRules": [{**RULE, "resourceNames": ["x"]}]},
        {"resourceRules": [RULE], "objectSelector": {"matchLabels": {"a": "b"}}},
    ],
    ids=["operation", "excluded", "labels"],
)
def test_a_policy_is_skipped_if_its_match_constraints_do_not_match(
    policed, deployment, constraints
):
    policed(rule("false"), matchConstraints=constraints).admits(deployment(), user=ALICE)


def test_a_binding_can_narrow_the_matched_resources(policed, deployment, obj):
    wanted = {"matchResources": {"namespaceSelector": {"matchLabels": {"env": "prod"}}}}
    found = policed(rule("false"), binding=wanted)
    found.has(obj("Namespace", "n", "")).admits(deployment(), user=ALICE)
    found.has(obj("Namespace", "n", "", metadata={"labels": {"env": "prod"}}))
    assert found.refusal(deployment(), user=ALICE).startswith(DENIED)


PARAMS = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
LIMIT = "object.spec.replicas <= int(params.data.max)"


def limit(obj, name, most, **meta):
    return obj("ConfigMap", name, data={"max": most}, metadata=meta)


def test_a_binding_selects_a_parameter_by_name(policed, deployment, obj):
    found = policed(rule(LIMIT), binding={"paramRef": {"name": "l"}}, **PARAMS)
    found.has(limit(obj, "l", "3")).admits(deployment(3), user=ALICE)
    assert found.refusal(deployment(4), user=ALICE).startswith(DENIED)


def test_a_binding_selects_parameters_by_labels_and_each_is_evaluated(policed, deployment, obj):
    reference = {"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"}
    found = policed(rule(LIMIT), binding={"paramRef": reference}, **PARAMS)
    assert found.refusal(deployment(1), user=ALICE) == (
        f"{DENIED}failed to configure binding: no params found for policy binding with `Deny` "
        "parameterNotFoundAction"
    )
    found.has(limit(obj, "l", "3", labels={"a": "b"}), limit(obj, "m", "2", labels={"a": "b"}))
    found.admits(deployment(2), user=ALICE)
    assert found.refusal(deployment(3), user=ALICE).startswith(DENIED)


def test_a_missing_parameter_is_ignored_if_the_not_found_action_is_allow(policed, deployment):
    reference = {"name": "l", "parameterNotFoundAction": "Allow"}
    policed(rule(LIMIT), binding={"paramRef": reference}, **PARAMS).admits(
        deployment(9), user=ALICE
    )


def test_an_unknown_param_kind_is_a_configuration_failure(policed, deployment):
    unknown = {"paramKind": {"apiVersion": "example.com/v1", "kind": "Limit"}}
    assert policed(rule(), **unknown).refusal(deployment(), user=ALICE) == (
        "deployments.apps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: "
        "failed to configure policy: failed to find resource referenced by paramKind: "
        "'example.com/v1, Kind=Limit'"
    )
    policed(rule(), failurePolicy="Ignore", **unknown).admits(deployment(), user=ALICE)


def test_a_binding_can_warn_and_audit_instead_of_denying(policed, deployment):
    found = policed(rule(message="too many"), binding={"validationActions": ["Warn", "Audit"]})
    found.admits(deployment(6), user=ALICE)
    assert found.warnings == [
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': too many"
    ]
    [failure] = json.loads(found.notes["validation.policy.admission.k8s.io/validation_failure"])
    assert (failure["message"], failure["expressionIndex"]) == ("too many", 0)


def test_audit_annotations_are_recorded(policed, deployment):
    annotations = [
        {"key": "count", "valueExpression": "'has ' + string(object.spec.replicas)"},
        {"key": "none", "valueExpression": "null"},
    ]
    found = policed(auditAnnotations=annotations)
    found.admits(deployment(2), user=ALICE)
    assert found.notes == {"p/count": "has 2"}


def test_a_policy_without_a_binding_has_no_effect(gate, obj, deployment):
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [rule("false")]}
    found = gate(ValidatingAdmissionPolicy()).has(
        obj("ValidatingAdmissionPolicy", "p", "", GROUP, spec=spec)
    )
    found.admits(deployment(), user=ALICE)


def test_a_deletion_is_validated_with_the_old_object(policed, deployment):
    found = policed(rule("object == null && oldObject.spec.replicas == 0"))
    found.admits(deployment(0), Operation.DELETE, user=ALICE)
    assert found.refusal(deployment(1), Operation.DELETE, user=ALICE).startswith(DENIED)


@pytest.mark.parametrize(
    ("expression", "is_allowed"),
    [
        ("authorizer.group('').resource('pods').namespace('n').check('create').allowed()", True),
        ("authorizer.group('').resource('pods').namespace('m').check('create').allowed()", False),
        ("authorizer.requestResource.check('approve').allowed()", True),
        ("authorizer.requestResource.check('sell').allowed()", False),
        ("authorizer.path('/metrics').check('get').allowed()", True),
        ("authorizer.serviceAccount('n', 'a').path('/metrics').check('get').allowed()", False),
        ("authorizer.requestResource.check('sell').reason() == 'no'", True),
        ("authorizer.requestResource.check('sell').errored()", False),
    ],
)
def test_the_authorizer_is_available_to_expressions(policed, deployment, expression, is_allowed):
    class Rights:
        """Alice may create pods in n, approve the deployment x, and get /metrics."""

        def verdict(self, attributes):
            known = (
                ("alice", "create", "", "", "pods", "n", ""),
                ("alice", "approve", "", "apps", "deployments", "n", "x"),
                ("alice", "get", "/metrics", "", "", "", ""),
            )
            wanted = (
                attributes.user.name, attributes.verb, attributes.path, attributes.group,
                attributes.resource, attributes.namespace, attributes.name,
            )  # fmt: skip
            return AccessDecision(allowed=wanted in known, reason="no")

    about = {"user": ALICE, "rights": Rights()}
    found = policed(rule(expression))
    if is_allowed:
        found.admits(deployment(), **about)
    else:
        assert "failed expression" in found.refusal(deployment(), **about)
