"""Field managers that wrote in another API version."""

from __future__ import annotations

import pytest

APPLY = "application/apply-patch+yaml"
V1 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/h"
V2 = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/h"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/x.io/{}/namespaces/default/widgets/w"


def apply(api, path, manager, body, force=""):
    """Apply `body` in the version of `path`; return the response."""
    group, version = path.split("/")[2:4]
    kind = "Widget" if group == "x.io" else "HorizontalPodAutoscaler"
    named = {"apiVersion": f"{group}/{version}", "kind": kind}
    query = f"?fieldManager={manager}" + (f"&force={force}" if force else "")
    full = {**named, "metadata": {"name": path.rpartition("/")[2]}, **body}
    return api.patch(f"{path}{query}", full, APPLY)


def old_autoscaler(share=None, **spec):
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    cpu = {} if share is None else {"targetCPUUtilizationPercentage": share}
    return {"spec": {"scaleTargetRef": target, "maxReplicas": 5, **cpu, **spec}}


def metrics(share):
    target = {"type": "Utilization", "averageUtilization": share}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def owned(answer):
    """Return (version, owned fields of the spec) by manager."""
    return {
        one["manager"]: (
            one["apiVersion"].rpartition("/")[2],
            {key[2:] for key in one["fieldsV1"].get("f:spec", {})},
        )
        for one in answer.json["metadata"]["managedFields"]
    }


def test_an_update_in_another_version_takes_over_the_field(api):
    made = apply(api, V1, "a", old_autoscaler(50))
    assert owned(made)["a"][1] == {
        "scaleTargetRef",
        "maxReplicas",
        "targetCPUUtilizationPercentage",
    }
    changed = api.patch(f"{V2}?fieldManager=b", {"spec": {"metrics": metrics(70)}})
    assert owned(changed) == {
        "a": ("v1", {"scaleTargetRef", "maxReplicas"}),
        "b": ("v2", {"metrics"}),
    }


def test_an_apply_conflicts_with_an_apply_in_another_version(api):
    apply(api, V1, "a", old_autoscaler(50))
    refused = apply(api, V2, "b", {"spec": {"metrics": metrics(70)}})
    assert refused.status == 409
    assert refused.message == (
        'Apply failed with 1 conflict: conflict with "a": .spec.targetCPUUtilizationPercentage'
    )
    forced = apply(api, V2, "b", {"spec": {"metrics": metrics(70)}}, force="true")
    assert owned(forced)["a"] == ("v1", {"scaleTargetRef", "maxReplicas"})


def test_a_manager_can_continue_to_apply_in_another_version(api):
    """Fields that the second apply omits are removed."""
    apply(api, V1, "a", old_autoscaler(50, minReplicas=3))
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    spec = {"scaleTargetRef": target, "maxReplicas": 5, "metrics": metrics(50)}
    again = apply(api, V2, "a", {"spec": spec})
    assert owned(again) == {"a": ("v2", {"scaleTargetRef", "maxReplicas", "metrics"})}
    assert again.json["spec"]["minReplicas"] == 1
    assert again.json["spec"]["metrics"] == metrics(50)


def test_fields_of_other_managers_in_another_version_are_kept(api):
    apply(api, V1, "a", old_autoscaler(50, minReplicas=3))
    apply(api, V1, "b", old_autoscaler(minReplicas=3))
    kept = apply(api, V2, "a", {"spec": {"maxReplicas": 5}})
    assert kept.json["spec"]["minReplicas"] == 3
    assert owned(kept)["b"] == ("v1", {"scaleTargetRef", "maxReplicas", "minReplicas"})


@pytest.fixture
def widgets(api):
    """A definition of two versions with the same schema."""
    spec = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema}
        for name in ("v1", "v2")
    ]
    body = {
        "metadata": {"name": "widgets.x.io"},
        "spec": {
            "group": "x.io",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": versions,
        },
    }
    assert api.post(DEFINITIONS, body).status == 201
    return [WIDGETS.format(name) for name in ("v1", "v2")]


def test_applies_in_different_versions_of_a_custom_resource_conflict(api, widgets):
    v1, v2 = widgets
    apply(api, v1, "a", {"spec": {"a": "1", "b": "1"}})
    refused = apply(api, v2, "b", {"spec": {"a": "2"}})
    assert refused.message == 'Apply failed with 1 conflict: conflict with "a": .spec.a'
    forced = apply(api, v2, "b", {"spec": {"a": "2"}}, force="true")
    assert owned(forced) == {"a": ("v1", {"b"}), "b": ("v2", {"a"})}
    moved = apply(api, v2, "a", {"spec": {}})
    assert moved.json["spec"] == {"a": "2"}
    assert owned(moved) == {"a": ("v2", set()), "b": ("v2", {"a"})}
    changed = api.patch(f"{v1}?fieldManager=c", {"spec": {"a": "3"}})
    assert owned(changed) == {"a": ("v2", set()), "c": ("v1", {"a"})}


def test_an_apply_fails_if_a_manager_has_an_unknown_version(api, widgets):
    """An apply fails, because the owned fields are unknown. An update drops all managed fields."""
    v1, _ = widgets
    made = apply(api, v1, "a", {"spec": {"a": "1"}})
    entries = [{**one, "apiVersion": "x.io/v0"} for one in made.json["metadata"]["managedFields"]]
    gone = {"metadata": {"managedFields": entries}}
    poisoned = api.patch(f"{v1}?fieldManager=b", {**gone, "spec": {"a": "2"}})
    assert "managedFields" not in poisoned.json["metadata"]


def test_an_apply_fails_after_a_version_of_a_manager_was_removed(api, widgets):
    """Every apply then fails, as on a real cluster."""
    v1, v2 = widgets
    apply(api, v2, "a", {"spec": {"a": "1"}})
    left = api.get(f"{DEFINITIONS}/widgets.x.io").json
    left["spec"]["versions"].pop()
    assert api.put(f"{DEFINITIONS}/widgets.x.io", left).status == 200
    refused = apply(api, v1, "b", {"spec": {"b": "1"}})
    why = "request to convert CR to an invalid group/version: x.io/v2"
    assert (refused.status, refused.message) == (500, why)
