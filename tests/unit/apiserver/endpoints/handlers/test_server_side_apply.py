"""Server-side apply to fields of any type, and values of wrong types."""

from __future__ import annotations

import pytest

APPLY = "application/apply-patch+yaml"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
GROUPS = "/apis/example.com/v1/namespaces/default/groups"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/d?fieldManager=m"


def define_groups(api, **properties):
    schema = {"type": "object", "properties": properties}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    api.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "metadata": {"name": "groups.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "groups", "kind": "Group"},
                "versions": [version],
            },
        },
    )


def apply_group(api, **content):
    body = {"apiVersion": "example.com/v1", "kind": "Group", "metadata": {"name": "g"}, **content}
    return api.patch(f"{GROUPS}/g?fieldManager=m", body, APPLY)


def test_numbers_can_be_applied_to_fields_of_any_type(api):
    define_groups(api, spec=OPEN)
    made = apply_group(api, spec={"minMember": 1, "resources": {"cpu": [1]}})
    assert made.status == 201
    assert made.json["spec"] == {"minMember": 1, "resources": {"cpu": [1]}}
    [entry] = made.json["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {
        "f:spec": {"f:minMember": {}, "f:resources": {".": {}, "f:cpu": {}}}
    }


def test_an_update_owns_the_changed_fields_of_any_type(api):
    define_groups(api, spec=OPEN)
    apply_group(api, spec={"a": 1})
    patched = api.patch(f"{GROUPS}/g?fieldManager=n", {"spec": {"a": {"b": 1}, "c": [1]}})
    owned = {one["manager"]: one["fieldsV1"] for one in patched.json["metadata"]["managedFields"]}
    assert owned == {"n": {"f:spec": {"f:a": {".": {}, "f:b": {}}, "f:c": {}}}}


def test_int_or_string_fields_accept_numbers_and_strings(api):
    define_groups(api, port={"x-kubernetes-int-or-string": True})
    assert [apply_group(api, port=port).status for port in (80, "http")] == [201, 200]
    refused = apply_group(api, port=[80])
    assert refused.status == 422
    assert refused.message.endswith('port in body must be of type integer,string: "array"')


def test_maps_with_values_of_any_type_are_applied(api):
    define_groups(api, any={"type": "object", "additionalProperties": True})
    assert apply_group(api, any={"a": 1, "b": "x"}).json["any"] == {"a": 1, "b": "x"}


def deployment(**container):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i", **container}]},
            },
        },
    }


@pytest.mark.parametrize(
    ("container", "why"),
    [
        (
            {"resources": {"requests": {"cpu": "much"}}},
            (
                "quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
        ),
        ({"ports": [{"containerPort": 1.5}]}, "cannot convert float64 to int32"),
        (
            {"livenessProbe": {"httpGet": {"port": True}}},
            "json: cannot unmarshal bool into Go value of type int32",
        ),
    ],
)
def test_late_conversion_errors_have_upstreams_messages(api, container, why):
    refused = api.patch(DEPLOYMENT, deployment(**container), APPLY)
    assert refused.status == 500
    assert refused.message == (
        "failed to convert new object (/d; apps/v1, Kind=Deployment) to proper version: "
        f"unable to convert unstructured object to apps/v1, Kind=Deployment: {why}"
    )


def test_invalid_base64_is_refused(api):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "@"}}
    refused = api.patch("/api/v1/namespaces/default/secrets/s?fieldManager=m", secret, APPLY)
    assert refused.message.endswith(
        "unable to convert unstructured object to /v1, Kind=Secret: "
        "error decoding from json: illegal base64 data at input byte 0"
    )
