"""Host ports of pods and conflicts between them."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import PodSpec
from fairlead.api.pods.host_port import host_ports, ports_conflict


def test_host_ports_of_containers_and_sidecars_are_found():
    """Ordinary init containers and ports without hostPort are left out; duplicates count once."""
    spec = decode_as(
        PodSpec,
        {
            "containers": [
                {"ports": [{"containerPort": 1, "hostPort": 80}, {"containerPort": 2}]},
                {"ports": [{"hostPort": 80, "hostIP": "0.0.0.0", "protocol": "TCP"}]},
                {"ports": [{"hostPort": 53, "hostIP": "10.0.0.1", "protocol": "UDP"}]},
            ],
            "initContainers": [
                {"ports": [{"hostPort": 90}]},
                {"restartPolicy": "Always", "ports": [{"hostPort": 91}]},
            ],
        },
    )
    assert host_ports(spec) == (
        ("0.0.0.0", "TCP", 80),
        ("10.0.0.1", "UDP", 53),
        ("0.0.0.0", "TCP", 91),
    )


@pytest.mark.parametrize(
    ("a", "b", "conflict"),
    [
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "UDP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 81), False),
    ],
)
def test_host_ports_conflict_if_protocol_port_and_address_overlap(a, b, conflict):
    """Protocol and port are equal, and one address covers the other, in either order."""
    assert ports_conflict(a, b) is conflict
    assert ports_conflict(b, a) is conflict
