"""Which metadata is validated, and how often its errors are reported."""

from __future__ import annotations

import pytest

NAMESPACED = "namespaces/default"
POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
WORKLOAD = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": POD}}


def causes(answer):
    return [(cause["field"], cause["message"]) for cause in answer.json["details"]["causes"]]


@pytest.mark.parametrize(
    ("path", "content", "times"),
    [
        (f"/apis/apps/v1/{NAMESPACED}/deployments", WORKLOAD, 3),
        (f"/apis/apps/v1/{NAMESPACED}/replicasets", WORKLOAD, 4),
        (f"/api/v1/{NAMESPACED}/configmaps", {}, 4),
        (f"/api/v1/{NAMESPACED}/pods", {"spec": POD["spec"]}, 4),
        ("/api/v1/nodes", {}, 4),
        (f"/api/v1/{NAMESPACED}/limitranges", {"spec": {"limits": []}}, 3),
        (f"/apis/policy/v1/{NAMESPACED}/poddisruptionbudgets", {"spec": {"minAvailable": 1}}, 2),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 1}, 3),
    ],
)
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_metadata_errors_of_an_update_are_reported_as_often_as_upstream_does(
    api, path, content, times, field
):
    made = api.post(path, {**content, "metadata": {"name": "x"}})
    assert made.status == 201
    refused = api.patch(f"{path}/x", {"metadata": {field: {"a b": "c"}}})
    assert refused.status == 422
    assert [field for field, _ in causes(refused)] == [f"metadata.{field}"] * times
    assert refused.message.count("Invalid value") == 1


@pytest.mark.parametrize("name", ["bad", "a b/c"])
@pytest.mark.parametrize(
    ("path", "content"),
    [
        (f"/api/v1/{NAMESPACED}/pods", {"spec": POD["spec"]}),
        (f"/api/v1/{NAMESPACED}/services", {"spec": {"ports": [{"port": 80}]}}),
    ],
)
def test_finalizers_are_validated_again_in_updates(api, path, content, name):
    assert api.post(path, {**content, "metadata": {"name": "x"}}).status == 201
    refused = api.patch(f"{path}/x", {"metadata": {"finalizers": [name]}})
    assert refused.status == 422
    assert "metadata.finalizers" in refused.message


def test_a_finalizer_without_a_prefix_may_be_added_to_a_deployment(api):
    path = f"/apis/apps/v1/{NAMESPACED}/deployments"
    api.post(path, {**WORKLOAD, "metadata": {"name": "x"}})
    assert api.patch(f"{path}/x", {"metadata": {"finalizers": ["bad"]}}).status == 200
    assert api.patch(f"{path}/x", {"metadata": {"finalizers": ["a b/c"]}}).status == 422


def test_some_kinds_accept_finalizers_without_a_prefix(api):
    path = f"/apis/coordination.k8s.io/v1/{NAMESPACED}/leases"
    assert api.post(path, {"metadata": {"name": "x", "finalizers": ["bad"]}}).status == 201
    assert api.post(path, {"metadata": {"name": "y", "finalizers": ["a b/c"]}}).status == 422


def test_malformed_finalizers_are_reported_first(api):
    meta = {"name": "x", "finalizers": ["bad", "a b/c"]}
    refused = api.post(f"/api/v1/{NAMESPACED}/configmaps", {"metadata": meta})
    fields = [field for field, _ in causes(refused)]
    assert fields == ["metadata.finalizers", "metadata.finalizers[0]"]


OWNERLESS = [
    ("metadata.ownerReferences.apiVersion", 'Invalid value: "": version must not be empty'),
    ("metadata.ownerReferences.kind", 'Invalid value: "": must not be empty'),
    ("metadata.ownerReferences.name", 'Invalid value: "": must not be empty'),
    ("metadata.ownerReferences.uid", 'Invalid value: "": must not be empty'),
]


def test_an_empty_owner_reference_is_refused_in_each_field(api):
    path = f"/apis/apps/v1/{NAMESPACED}/deployments"
    refused = api.post(path, {**WORKLOAD, "metadata": {"name": "x", "ownerReferences": [{}]}})
    assert refused.status == 422
    assert causes(refused) == OWNERLESS
    assert api.post(path, {**WORKLOAD, "metadata": {"name": "x"}}).status == 201
    refused = api.patch(f"{path}/x", {"metadata": {"ownerReferences": [{}]}})
    assert refused.status == 422
    assert causes(refused) == OWNERLESS * 3


def test_metadata_errors_are_reported_first(api):
    path = f"/api/v1/{NAMESPACED}/services"
    meta = {"name": "x", "labels": {"a b": ""}, "annotations": {"c d": ""}, "finalizers": ["e"]}
    refused = api.post(path, {"metadata": meta, "spec": {"ports": [{"port": 0}]}})
    assert [field for field, _ in causes(refused)] == [
        "metadata.labels",
        "metadata.annotations",
        "metadata.finalizers[0]",
        "spec.ports[0].port",
        "spec.ports[0].targetPort",
    ]


def test_owner_references_are_validated_one_by_one(api):
    """Recorded from upstream 1.36.4."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": True}
    owners = [owner, {**owner, "name": "b"}, {**owner, "apiVersion": "a/b/c", "name": "c"}]
    meta = {"name": "a", "ownerReferences": owners}
    answer = api.post("/api/v1/namespaces/default/configmaps", {"metadata": meta})
    causes = [cause["message"] for cause in answer.json["details"]["causes"]]
    only_one = (
        "Only one reference can have Controller set to true. "
        'Found "true" in references for Pod/a and Pod/{}'
    )
    assert [cause.rpartition(": ")[2] for cause in causes] == [
        only_one.format("b"),
        "version must not be empty",
        only_one.format("c"),
    ]
    assert causes[1] == 'Invalid value: "a/b/c": version must not be empty'


def test_validation_of_generate_name_treats_a_final_dash_as_upstream_does(api):
    """Recorded from upstream 1.36.4."""
    for beginning, status in (("A-", 201), ("AB-", 422), ("-", 422)):
        meta = {"name": "x", "generateName": beginning}
        url = "/api/v1/namespaces/default/configmaps?dryRun=All"
        assert api.post(url, {"metadata": meta}).status == status
