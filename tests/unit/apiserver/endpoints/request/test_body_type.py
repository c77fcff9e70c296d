"""The apiVersion and kind of a body, as recorded from upstream 1.36.4."""

from __future__ import annotations

import json

import pytest

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CANNOT = "cannot be handled as a"
SCHEME = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'


def refusal(api, url, body):
    answer = api.post(url, body)
    assert answer.status == 400
    return answer.message


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (
            {"apiVersion": "v2", "kind": "Pod"},
            (
                f'Pod in version "v2" {CANNOT} Pod: no kind "Pod" is registered for version "v2" '
                f"{SCHEME}"
            ),
        ),
        (
            {"KIND": "Nope"},
            (
                f'Nope in version "v1" {CANNOT} Pod: no kind "Nope" is registered for version "v1" '
                f"{SCHEME}"
            ),
        ),
        (
            {"apiVersion": "x/", "kind": "Pod"},
            (
                f"Pod in version \"\" {CANNOT} Pod: Object 'apiVersion' is missing in "
                '\'{"apiVersion": "x/", "kind": "Pod"}\''
            ),
        ),
        (
            {"apiVersion": "a/b/c", "kind": "Pod"},
            (
                "the object provided is unrecognized (must be of type Pod): unexpected "
                'GroupVersion string: a/b/c ({"apiVersion": "a/b/c", "kind" ...)'
            ),
        ),
        (
            {"kind": "Service", "spec": 1},
            (
                f'Service in version "v1" {CANNOT} Pod: json: cannot unmarshal number into Go '
                "struct field Service.spec of type v1.ServiceSpec"
            ),
        ),
        (
            {"metadata": []},
            (
                f'Pod in version "v1" {CANNOT} Pod: json: cannot unmarshal array into Go struct '
                "field Pod.metadata of type v1.ObjectMeta"
            ),
        ),
    ],
)
def test_a_body_of_another_kind_is_refused(api, body, problem):
    assert refusal(api, PODS, body) == problem


def test_kinds_without_a_schema_are_recognized(api):
    for name in ("List", "PodList", "CreateOptions"):
        problem = refusal(api, PODS, {"apiVersion": "v1", "kind": name})
        assert problem.endswith(f"converting (v1.{name}) to (core.Pod): unknown conversion")


def test_a_body_in_another_version_of_the_kind_is_refused(api):
    """upstream: apiserver/pkg/endpoints/handlers/create.go, AcceptsGroupVersion"""
    url = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    body = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    assert refusal(api, url, body) == (
        "the API version in the data (autoscaling/v1) does not match the expected API version "
        "(autoscaling/v2)"
    )


@pytest.mark.parametrize("stated", ["/v1", "/", ""])
def test_other_spellings_of_the_core_version_are_accepted(api, stated):
    body = {"apiVersion": stated, "metadata": {"name": "a"}}
    answer = api.post("/api/v1/namespaces/default/configmaps", body)
    assert (answer.status, answer.json["apiVersion"]) == (201, "v1")


def test_a_group_without_a_version_is_refused(api):
    answer = api.post(DEPLOYMENTS, {"apiVersion": "apps/", "metadata": {"name": "a"}})
    assert answer.status == 422


def test_duplicate_top_level_fields_are_reported(api):
    text = '{"metadata":{"name":"a"},"data":{"a":"b"},"data":{"c":"d"},"kind":"ConfigMap"}'
    answer = api.post("/api/v1/namespaces/default/configmaps", text)
    assert answer.response.warnings == ('duplicate field "data"',)
    assert answer.json["data"] == {"a": "b", "c": "d"}


def test_type_errors_in_yaml_are_found_in_the_order_of_keys(api):
    """Keys are visited in sorted order, so the first mismatch by name is reported."""
    text = "spec:\n  nodeName: 1\nmetadata:\n  name: []\n"
    answer = api.ask("POST", PODS, text, content_type="application/yaml")
    assert json.loads(answer.text)["message"].endswith("ObjectMeta.metadata.name of type string")


def test_duplicate_keys_in_yaml_are_reported_with_the_line_of_their_values(api):
    text = "metadata:\n  name: a\ndata:\n  x: a\ndata:\n  y2: a\n  y2: b\n"
    answer = api.ask(
        "POST", "/api/v1/namespaces/default/configmaps", text, content_type="application/yaml"
    )
    assert answer.response.warnings == (
        'line 7: key "y2" already set in map',
        'line 6: key "data" already set in map',
    )
