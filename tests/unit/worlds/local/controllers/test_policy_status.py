"""The status of ValidatingAdmissionPolicies."""

from __future__ import annotations

import pytest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"


def policy(expression, *resources, group="apps", **spec):
    rule = {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": list(resources),
    }
    matched = {"matchConstraints": {"resourceRules": [rule]}}
    checks = {"validations": [{"expression": expression}]}
    return {"metadata": {"name": "p"}, "spec": {**matched, **checks, **spec}}


@pytest.fixture
def cluster(make_cluster):
    return make_cluster(nodes=1)


def checked(cluster, body):
    """Create a policy; return the warnings in its status."""
    cluster.ask("POST", POLICIES, body)
    status = cluster.ask("GET", f"{POLICIES}/p")["status"]
    assert status["observedGeneration"] == 1
    return status["typeChecking"].get("expressionWarnings", [])


def test_the_status_has_the_generation_of_the_newest_spec(cluster):
    assert checked(cluster, policy("object.spec.replicas <= 5", "deployments")) == []
    patch = {"spec": {"validations": [{"expression": "object.spec.size <= 5"}]}}
    cluster.ask("PATCH", f"{POLICIES}/p", patch, "application/merge-patch+json")
    status = cluster.ask("GET", f"{POLICIES}/p")["status"]
    assert status["observedGeneration"] == 2
    assert len(status["typeChecking"]["expressionWarnings"]) == 1


def test_each_matched_kind_is_checked(cluster):
    body = policy("object.spec.replicas <= 5", "deployments", "daemonsets", "deployments/scale")
    assert checked(cluster, body) == [
        {
            "fieldRef": "spec.validations[0].expression",
            "warning": (
                "apps/v1, Kind=DaemonSet: ERROR: <input>:1:12: undefined field 'replicas'\n"
                " | object.spec.replicas <= 5\n"
                " | ...........^\n"
            ),
        }
    ]


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("object.spec.replicas == 'a'", "found no matching overload for '_==_'"),
        ("variables.size == 'a'", "found no matching overload for '_==_'"),
        ("variables.pod.containers.all(c, c.image != '')", ""),
        ("variables.broken == 1", ""),
        ("params.data.a == 'b' && object.metadata.namespace == oldObject.metadata.name", ""),
        ("params.spec.a == 'b'", "undefined field 'spec'"),
        ("object.spec.strategy.rollingUpdate.maxSurge == 1", ""),
        ("object.metadata.creationTimestamp.getFullYear() > 2000", ""),
        ("request.userInfo.username != namespaceObject.metadata.name", ""),
    ],
)
def test_variables_have_the_types_of_the_matched_kind(cluster, expression, problem):
    variables = {
        "size": "object.spec.replicas",
        "pod": "object.spec.template.spec",
        "broken": "object.spec.nothing",
    }
    rows = [{"name": name, "expression": text} for name, text in variables.items()]
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    body = policy(expression, "deployments", variables=rows, paramKind=kind)
    warnings = [one["warning"] for one in checked(cluster, body)]
    assert problem in "".join(warnings)
    assert len(warnings) == bool(problem)


def test_custom_resources_have_the_types_of_their_definition(cluster):
    size = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": size}}}
    spec = {
        "group": "toys.example.com",
        "names": {"plural": "balls", "kind": "Ball"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    cluster.ask("POST", DEFINITIONS, {"metadata": {"name": "balls.toys.example.com"}, "spec": spec})
    expression = "object.metadata.labels.a == 'b' && object.spec.size == object.spec.colour"
    (warning,) = checked(cluster, policy(expression, "balls", group="toys.example.com"))
    assert "undefined field 'colour'" in warning["warning"]
    assert warning["warning"].count("ERROR") == 1


def test_rules_with_wildcards_are_not_checked(cluster):
    assert checked(cluster, policy("object.spec.nothing == 1", "*", group="*")) == []


def test_no_status_is_written_beside_kube_controller_manager(make_cluster):
    cluster = make_cluster(nodes=1, without=("workloads",))
    cluster.ask("POST", POLICIES, policy("object.spec.replicas <= 5", "deployments"))
    assert "observedGeneration" not in cluster.ask("GET", f"{POLICIES}/p").get("status", {})
