"""The QoS class of a pod."""

from __future__ import annotations

import pytest

from fairlead.api.pods.qos import qos_class

ALL = {"cpu": "1", "memory": "1Gi"}


def containers(*resources):
    return {"containers": [{"name": "c", "resources": one} for one in resources]}


@pytest.mark.parametrize(
    ("spec", "quality"),
    [
        (containers({}), "BestEffort"),
        (containers({"limits": {"nvidia.com/gpu": "1"}}), "BestEffort"),
        (containers({"requests": {"cpu": "0"}, "limits": {"cpu": "0"}}), "BestEffort"),
        (containers({"requests": {"cpu": "1"}}), "Burstable"),
        (containers({"requests": ALL, "limits": ALL}), "Guaranteed"),
        (containers({"requests": ALL, "limits": ALL}, {}), "Burstable"),
        (containers({"requests": {**ALL, "cpu": "500m"}, "limits": ALL}), "Burstable"),
        ({**containers({}), "resources": {"requests": ALL, "limits": ALL}}, "Guaranteed"),
    ],
    ids=["nothing", "devices", "zero", "a request", "all of it", "not all", "less", "as a whole"],
)
def test_the_qos_class_follows_from_requests_and_limits(spec, quality):
    """The class follows from what containers request and are limited to."""
    assert qos_class(spec) == quality
