"""Which parts of a pod its subresources may change."""

from __future__ import annotations

import pytest

STRATEGIC = "application/strategic-merge-patch+json"
PODS = "/api/v1/namespaces/default/pods"
ASKING = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}


@pytest.fixture
def debugged(api):
    """Changes the ephemeral containers of a pod that already has d; returns the response."""
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    api.post(PODS, pod)
    first = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}
    api.patch(f"{PODS}/a/ephemeralcontainers", first, STRATEGIC)

    def act(*containers, kind=STRATEGIC):
        body = {"spec": {"ephemeralContainers": list(containers)}}
        return api.patch(f"{PODS}/a/ephemeralcontainers", body, kind)

    return act


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ({"name": "c", "image": "i"}, 'ephemeralContainers[0].name: Duplicate value: "c"'),
        ({"name": "e"}, "ephemeralContainers[0].image: Required value"),
        (
            {"name": "e", "image": "i", "targetContainerName": "z"},
            'ephemeralContainers[0].targetContainerName: Not found: "z"',
        ),
        (
            {"name": "e", "image": "i", "resources": {"requests": {"cpu": "1"}}},
            "ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
        ),
        ({"name": "d", "image": "j"}, 'existing ephemeral containers "d" may not be changed\n@@'),
    ],
    ids=["a name that is taken", "no image", "no such target", "resources", "another image"],
)
def test_invalid_ephemeral_containers_are_refused(debugged, container, words):
    refused = debugged(container)
    assert (refused.status, words in refused.message) == (422, True)


def test_an_ephemeral_container_cannot_be_removed(debugged):
    refused = debugged({"name": "e", "image": "i"}, kind="application/merge-patch+json")
    assert 'existing ephemeral containers "d" may not be removed' in refused.message


@pytest.fixture
def resized(api):
    """Changes the resources of a pod's container; returns the response."""
    container = {"name": "c", "image": "i", "resources": ASKING}
    api.post(PODS, {"metadata": {"name": "a"}, "spec": {"containers": [container]}})

    def act(resources, **more):
        body = {"spec": {"containers": [{"name": "c", "resources": resources, **more}]}}
        return api.patch(f"{PODS}/a/resize", body, STRATEGIC)

    return act


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        (
            {"requests": {"cpu": "3"}},
            'requests: Invalid value: "3": must be less than or equal to cpu limit of 2',
        ),
        (
            {"requests": {"memory": None}},
            "requests: Forbidden: resource requests cannot be removed",
        ),
        (
            {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}},
            'spec: Invalid value: "Guaranteed": Pod QOS Class may not change',
        ),
        (
            {"limits": {"ephemeral-storage": "1Gi"}},
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
    ],
    ids=["more than the limit", "no resources", "another QoS class", "storage"],
)
def test_invalid_resources_are_refused(resized, resources, words):
    refused = resized(resources)
    assert (refused.status, words in refused.message) == (422, True)


def test_a_resize_changes_only_resources(resized):
    pod = resized({"requests": {"cpu": "500m"}}, image="other").json
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "i"
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_an_init_container_can_be_resized(api):
    init = {"name": "i", "image": "i", "resources": ASKING}
    spec = {"containers": [{"name": "c", "image": "i"}], "initContainers": [init]}
    api.post(PODS, {"metadata": {"name": "a"}, "spec": spec})
    wanted = {"name": "i", "resources": {"requests": {"cpu": "500m"}}}
    pod = api.patch(f"{PODS}/a/resize", {"spec": {"initContainers": [wanted]}}, STRATEGIC).json
    [stored] = pod["spec"]["initContainers"]
    assert stored["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_a_resize_owns_fields_that_it_could_not_change(resized):
    pod = resized({"requests": {"cpu": "500m"}}, image="other").json
    (entry,) = [one for one in pod["metadata"]["managedFields"] if one.get("subresource")]
    (fields,) = entry["fieldsV1"]["f:spec"]["f:containers"].values()
    assert fields.keys() == {"f:image", "f:resources"}


def test_an_invalid_body_is_refused_before_the_missing_pod(api):
    refused = api.put(f"{PODS}/z/status", {})
    assert (refused.status, "name must be provided" in refused.message) == (400, True)
