"""The scale, status, binding, eviction and container subresources."""

from __future__ import annotations

import pytest

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(name="d"):
    labels = {"a": "b"}
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def test_scale_is_a_view_of_replicas(api):
    api.post(DEPLOYMENTS, deployment())
    scaled = api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 3}}).json
    assert (scaled["kind"], scaled["spec"], scaled["status"]["selector"]) == (
        "Scale",
        {"replicas": 3},
        "a=b",
    )
    assert api.get(f"{DEPLOYMENTS}/d").json["spec"]["replicas"] == 3


def test_a_scale_cannot_be_negative(api):
    api.post(DEPLOYMENTS, deployment())
    refused = api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}})
    assert refused.message == (
        'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than '
        "or equal to 0"
    )


def test_a_status_write_changes_only_the_status(api, pods, pod):
    api.post(pods, pod())
    body = {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}}
    changed = api.patch(f"{pods}/a/status", body).json
    assert (changed["status"]["phase"], changed["spec"].get("nodeName")) == ("Running", None)
    kept = api.patch(f"{pods}/a", {"status": {"phase": "Failed"}}).json
    assert kept["status"]["phase"] == "Running"


WORKLOAD = {
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    }
}


@pytest.mark.parametrize(
    ("path", "body", "kept"),
    [
        (
            "/apis/apps/v1/namespaces/default/deployments",
            WORKLOAD,
            ["annotations"],
        ),
        (
            "/apis/apps/v1/namespaces/default/replicasets",
            WORKLOAD,
            ["annotations", "labels"],
        ),
        (
            "/apis/storage.k8s.io/v1/volumeattachments",
            {"spec": {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
            [],
        ),
    ],
)
def test_the_metadata_that_a_status_write_changes_depends_on_the_kind(api, path, body, kept):
    """Ignored metadata is not owned either, and a write of only such metadata changes nothing."""
    old = api.post(path, {"metadata": {"name": "x"}, **body}).json
    new = {**old, "metadata": {**old["metadata"], "labels": {"l": "1"}, "annotations": {"a": "1"}}}
    meta = api.put(f"{path}/x/status", new).json["metadata"]
    assert [key for key in ("annotations", "labels") if key in meta] == kept
    owned = [set(one["fieldsV1"].get("f:metadata", ())) for one in meta["managedFields"]]
    assert set().union(*owned) == {f"f:{key}" for key in kept}
    is_same = meta["resourceVersion"] == old["metadata"]["resourceVersion"]
    assert is_same is not bool(kept)


def test_a_pod_can_be_bound_once(api, pods, pod):
    api.post(pods, pod())
    body = {
        "metadata": {"name": "a", "labels": {"l": "1"}},
        "target": {"kind": "Node", "name": "n"},
    }
    assert api.post(f"{pods}/a/binding", body).json["status"] == "Success"
    bound = api.get(f"{pods}/a").json
    assert (bound["spec"]["nodeName"], bound["metadata"]["labels"]) == ("n", {"l": "1"})
    again = api.post(f"{pods}/a/binding", body)
    assert (again.status, again.json["details"]["kind"]) == (409, "pods/binding")


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"metadata": {"name": "b"}, "target": {"name": "n"}}, 400, "name in URL"),
        ({"metadata": {"name": "a"}, "target": {}}, 500, "target.name: Required value"),
        ({"metadata": {"name": "a"}, "target": {"kind": "Pod", "name": "n"}}, 500, "target.kind"),
    ],
)
def test_invalid_bindings_are_refused(api, pods, pod, body, status, message):
    api.post(pods, pod())
    refused = api.post(f"{pods}/a/binding", body)
    assert (refused.status, message in refused.message) == (status, True)


def test_an_eviction_without_a_disruption_budget_deletes_the_pod(api, pods, pod):
    api.post(pods, pod())
    assert api.post(f"{pods}/a/eviction?dryRun=All", {"metadata": {"name": "a"}}).status == 201
    assert api.get(f"{pods}/a").status == 200
    assert api.post(f"{pods}/a/eviction", {"metadata": {"name": "a"}}).status == 201
    assert api.get(f"{pods}/a").status == 404
    assert api.post(f"{pods}/a/eviction", {}).status == 400


def test_ephemeral_containers_are_added_and_kept(api, pods, pod):
    api.post(pods, pod())
    body = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}
    kind = "application/strategic-merge-patch+json"
    changed = api.patch(f"{pods}/a/ephemeralcontainers", body, kind).json
    assert changed["metadata"]["generation"] == 2
    other = {"spec": {"ephemeralContainers": [{"name": "d", "image": "j"}]}}
    assert api.patch(f"{pods}/a/ephemeralcontainers", other, kind).status == 422


@pytest.mark.parametrize("part", ["exec", "attach", "portforward"])
def test_exec_attach_and_portforward_are_not_implemented(api, pods, pod, part):
    api.post(pods, pod(nodeName="n"))
    refused = api.post(f"{pods}/a/{part}", None)
    assert (refused.status, "containers are simulated" in refused.message) == (501, True)


@pytest.mark.parametrize(
    ("part", "node", "message"),
    [
        ("exec?container=nope", "n", "container nope is not valid for pod a"),
        ("attach?container=nope", "", "container nope is not valid for pod a"),
        ("exec", "", "pod a does not have a host assigned"),
        ("attach", "", "pod a does not have a host assigned"),
        ("portforward", "", "pod a does not have a host assigned"),
    ],
)
def test_exec_and_attach_require_a_container_of_a_scheduled_pod(
    api, pods, pod, part, node, message
):
    """The message is upstream's."""
    api.post(pods, pod(nodeName=node))
    refused = api.post(f"{pods}/a/{part}", None)
    assert (refused.status, refused.message) == (400, message)


@pytest.mark.parametrize(
    ("method", "url", "status"),
    [
        ("GET", "/nope", 404),
        ("GET", "/apis/nope/v1/things", 404),
        ("GET", "/api/v1/widgets", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/api/v1/pods/x", 404),
        ("GET", "/api/v1/namespaces/default/pods/x/nope", 404),
        ("GET", "/api/v1/namespaces/default/pods/x/binding", 405),
        ("PUT", "/api/v1/namespaces/default/pods", 405),
        ("POST", "/api/v1/pods", 405),
        ("POST", "/api/v1/namespaces/default/pods/x", 405),
        ("HEAD", "/api/v1/namespaces/default/pods", 405),
        ("DELETE", "/api/v1/namespaces", 405),
    ],
)
def test_unserved_paths_are_refused(api, method, url, status):
    assert api.ask(method, url, {}).status == status
