"""Default requests of pods with pod-level resources."""

from __future__ import annotations

import pytest

from fairlead.apiserver.defaulting.pod_resources import with_pod_level_requests


def container(requests=None, limits=None, **more):
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


@pytest.mark.parametrize(
    ("containers", "resources", "expected"),
    [
        (
            [container({"cpu": "250m"}), container({"cpu": "1", "memory": "1Gi"})],
            {"limits": {"cpu": "4", "memory": "2Gi"}},
            {
                "limits": {"cpu": "4", "memory": "2Gi"},
                "requests": {"cpu": "1250m", "memory": "1073741824"},
            },
        ),
        (
            [container()],
            {"limits": {"cpu": "4"}},
            {"limits": {"cpu": "4"}, "requests": {"cpu": "4"}},
        ),
        (
            [container({"cpu": "3"})],
            {"limits": {"cpu": "4"}, "requests": {"cpu": "1"}},
            {"limits": {"cpu": "4"}, "requests": {"cpu": "1"}},
        ),
        (
            [container({"cpu": "3"})],
            {"requests": {"memory": "1Gi"}},
            {"requests": {"memory": "1Gi"}},
        ),
        (
            [container({"cpu": "1", "x.io/gpu": "1"})],
            {"limits": {"cpu": "2"}},
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1000m"}},
        ),
        (
            [container({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"})],
            {"limits": {"cpu": "2"}},
            {
                "limits": {"hugepages-2Mi": "4194304", "cpu": "2"},
                "requests": {"hugepages-2Mi": "4194304", "cpu": "2"},
            },
        ),
        ([container({"cpu": "1"})], {}, {}),
    ],
    ids=[
        "requests are the containers' sum",
        "limits, without requests of containers",
        "explicit requests",
        "no limits",
        "extended resources are container-level only",
        "hugepages from limits of containers",
        "no resources",
    ],
)
def test_pod_level_requests_default_to_the_requests_of_the_containers(
    containers, resources, expected
):
    spec = {"containers": containers, "resources": resources}
    assert with_pod_level_requests(spec)["resources"] == expected


def test_init_containers_count_towards_the_pod_level_request():
    init = container({"cpu": "2"})
    spec = {
        "containers": [container({"cpu": "500m"})],
        "initContainers": [init],
        "resources": {"limits": {"cpu": "4"}},
    }
    assert with_pod_level_requests(spec)["resources"]["requests"] == {"cpu": "2000m"}


def test_a_pod_without_containers_requests_its_limits():
    spec = {"containers": None, "resources": {"limits": {"cpu": "4"}}}
    made = with_pod_level_requests(spec)
    assert made["resources"]["requests"] == {"cpu": "4"}
