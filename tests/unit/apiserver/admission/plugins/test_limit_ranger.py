"""LimitRanger: default, minimum and maximum resources of containers, pods and claims."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.plugins.limit_ranger import ANNOTATION, LimitRanger


@pytest.fixture
def limited(gate, obj):
    """Makes gates with one LimitRange."""
    return lambda **item: gate(LimitRanger()).has(obj("LimitRange", spec={"limits": [item]}))


def test_containers_get_missing_requests_and_limits_and_an_annotation(limited, pod):
    found = limited(type="Container", default={"cpu": "500m"}, defaultRequest={"memory": "1Gi"})
    admitted = found.admits(pod())
    assert admitted["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "limits": {"cpu": "500m"},
    }
    assert admitted["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: cpu, memory request for container c; cpu limit for container c"
    )


def test_a_malformed_amount_is_left_to_validation(limited, pod):
    """Simulations decode no quantities before admission."""
    found = limited(type="Container", max={"cpu": "2"}, default={"memory": "1Gi"})
    said = pod({"cpu": "NaN"}, None)
    assert found.admits(said) == said


def test_a_container_with_all_resources_is_not_changed(limited, pod):
    found = limited(type="Container", default={"cpu": "500m"})
    said = pod({"cpu": "1"}, {"cpu": "1"})
    assert found.admits(said) == said


@pytest.mark.parametrize(
    ("item", "requests", "limits", "why"),
    [
        (
            {"min": {"cpu": "100m"}},
            {"cpu": "50m"},
            {"cpu": "1"},
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (
            {"max": {"cpu": "2"}},
            {"cpu": "1"},
            {"cpu": "3"},
            "maximum cpu usage per Container is 2, but limit is 3",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "4"}},
            {"cpu": "100m"},
            {"cpu": "1"},
            "cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "4"}},
            None,
            None,
            (
                "cpu max limit to request ratio per Container is 4, but no request is specified or "
                "request is 0"
            ),
        ),
        (
            {"min": {"cpu": "1"}, "max": {"memory": "1Gi"}},
            {"cpu": "500m"},
            {"memory": "2Gi"},
            (
                "[minimum cpu usage per Container is 1, but request is 500m, maximum memory usage "
                "per Container is 1Gi, but limit is 2Gi]"
            ),
        ),
    ],
)
def test_containers_out_of_range_are_refused(limited, pod, item, requests, limits, why):
    found = limited(type="Container", **item)
    assert found.refusal(pod(requests, limits)) == f'pods "x" is forbidden: {why}'


def test_the_limits_of_containers_are_added_up_for_the_pod(limited, pod):
    found = limited(type="Pod", max={"cpu": "3"})
    requested = pod({"cpu": "1"}, {"cpu": "2"})
    found.admits(requested)
    requested["spec"]["containers"] *= 2
    assert found.refusal(requested).endswith("maximum cpu usage per Pod is 3, but limit is 4")


@pytest.mark.parametrize(
    ("requested", "why"),
    [
        ("5Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi"),
        ("500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"),
        ("1Gi", ""),
    ],
)
def test_claims_are_limited_by_their_requests(limited, obj, requested, why):
    found = limited(type="PersistentVolumeClaim", max={"storage": "2Gi"}, min={"storage": "1Gi"})
    claim = obj("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": requested}}})
    if why:
        assert found.refusal(claim) == f'persistentvolumeclaims "x" is forbidden: {why}'
    else:
        assert found.admits(claim) == claim


def test_the_overhead_of_a_pod_is_not_limited(limited, pod):
    found = limited(type="Pod", max={"cpu": "2"})
    found.admits(pod({"cpu": "1"}, {"cpu": "2"}, overhead={"cpu": "500m"}))


def test_a_claim_has_no_ratio_of_limit_to_request(limited, obj):
    found = limited(type="PersistentVolumeClaim", maxLimitRequestRatio={"storage": "2"})
    found.admits(obj("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "1"}}}))
