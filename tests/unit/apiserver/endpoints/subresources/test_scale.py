"""Server-side apply to the scale subresource, and the owners of the replicas field."""

from __future__ import annotations

import pytest
from tests.unit.apiserver.widget import DEFINITIONS, NEW, definition

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
APPLY = "application/apply-patch+yaml"
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


@pytest.fixture
def deployment(api):
    """A Deployment with two replicas, applied by the manager "own"."""
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    return api.patch(f"{DEPLOYMENTS}/d?fieldManager=own", body, APPLY).json


def apply_scale(api, replicas, query="fieldManager=hpa"):
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}}
    return api.patch(
        f"{DEPLOYMENTS}/d/scale?{query}", body | {"spec": {"replicas": replicas}}, APPLY
    )


def owners(api):
    """The managers that own replicas: (manager, operation, version, subresource, has a time)."""
    entries = api.get(f"{DEPLOYMENTS}/d").json["metadata"]["managedFields"]
    return [
        (
            one["manager"],
            one["operation"],
            one["apiVersion"],
            one.get("subresource"),
            "time" in one,
        )
        for one in entries
        if "f:replicas" in one["fieldsV1"].get("f:spec", {})
    ]


OWN = ("own", "Apply", "apps/v1", None, True)
SCALED = ("hpa", "Apply", "apps/v1", "scale", False)


def test_another_number_of_replicas_conflicts_with_its_owner(api, deployment):
    refused = apply_scale(api, 3)
    assert (deployment["spec"]["replicas"], refused.status) == (2, 409)
    assert refused.message == 'Apply failed with 1 conflict: conflict with "own": .spec.replicas'
    assert owners(api) == [OWN]


def test_an_equal_number_of_replicas_has_two_owners(api, deployment):
    assert apply_scale(api, 2).json["spec"]["replicas"] == deployment["spec"]["replicas"]
    assert sorted(owners(api)) == sorted([OWN, SCALED])


def test_a_forced_apply_takes_over_the_number_of_replicas(api, deployment):
    assert apply_scale(api, 3, "fieldManager=hpa&force=true").json["spec"] == {"replicas": 3}
    assert owners(api) == [SCALED]
    rest = api.get(f"{DEPLOYMENTS}/d").json["metadata"]["managedFields"]
    assert deployment["metadata"]["name"] == "d"
    assert [one["manager"] for one in rest] == ["hpa", "own"]


@pytest.mark.usefixtures("deployment")
def test_a_client_that_names_no_field_manager_owns_replicas_by_its_user_agent(api):
    """kubectl scale names none."""
    api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 3}}, user_agent="kubectl/v1.36")
    assert owners(api) == [("kubectl", "Update", "apps/v1", "scale", False)]


@pytest.mark.usefixtures("deployment")
def test_a_conflict_names_the_scale_subresource_of_the_other_manager(api):
    api.patch(f"{DEPLOYMENTS}/d/scale?fieldManager=ctl", {"spec": {"replicas": 4}})
    assert owners(api) == [("ctl", "Update", "apps/v1", "scale", False)]
    assert apply_scale(api, 5).message == (
        'Apply failed with 1 conflict: conflict with "ctl" with subresource "scale" '
        "using autoscaling/v1: .spec.replicas"
    )


@pytest.mark.usefixtures("deployment")
def test_a_scale_of_another_object_is_refused(api):
    renamed = api.patch(f"{DEPLOYMENTS}/d/scale", {"metadata": {"name": "e"}})
    assert renamed.status == 400
    assert renamed.message == "the name of the object (e) does not match the name on the URL (d)"
    another = api.patch(f"{DEPLOYMENTS}/d/scale", {"metadata": {"uid": "x"}})
    uid = api.get(f"{DEPLOYMENTS}/d").json["metadata"]["uid"]
    assert another.status == 409
    assert another.message == (
        'Operation cannot be fulfilled on deployments/scale.apps "d": Precondition failed: '
        f"UID in precondition: x, UID in object meta: {uid}"
    )


@pytest.mark.usefixtures("deployment")
def test_a_status_of_another_object_is_refused(api):
    renamed = api.patch(f"{DEPLOYMENTS}/d/status", {"metadata": {"name": "e"}})
    assert renamed.status == 400
    elsewhere = api.patch(f"{DEPLOYMENTS}/d/status", {"metadata": {"namespace": "x"}})
    assert elsewhere.status == 400


@pytest.mark.usefixtures("deployment")
def test_negative_replicas_in_a_status_are_refused_with_all_dependent_fields(api):
    refused = api.patch(f"{DEPLOYMENTS}/d/status", {"status": {"replicas": -1}})
    assert refused.status == 422
    assert [cause["field"] for cause in refused.json["details"]["causes"]] == [
        "status.replicas",
        "status.updatedReplicas",
        "status.readyReplicas",
        "status.availableReplicas",
    ]


@pytest.mark.usefixtures("deployment")
def test_zero_replicas_have_no_owner(api):
    """A Scale omits zero replicas, so its writer owns no field."""
    assert api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 0}}).status == 200
    assert owners(api) == []
    assert apply_scale(api, 5).status == 200
    assert owners(api) == [SCALED]


def test_a_patch_of_a_custom_resource_without_replicas_must_set_them(api):
    """The widget has no replicas field, so there is no number that a patch could keep."""
    api.post(DEFINITIONS, definition(strategy="None"))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    api.post(NEW, {**widget, "spec": {"host": "a"}})
    refused = api.patch(f"{NEW}/w/scale", {"metadata": {"name": "w"}})
    assert (refused.status, refused.message) == (
        400,
        'the spec replicas field ".spec.replicas" cannot be empty',
    )
    assert "replicas" not in api.get(f"{NEW}/w").json["spec"]
    assert api.patch(f"{NEW}/w/scale", {"spec": {"replicas": 0}}).status == 200
    assert api.get(f"{NEW}/w").json["spec"]["replicas"] == 0
