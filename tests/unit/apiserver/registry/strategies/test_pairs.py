"""Singular fields and the first item of the plural field are synchronized."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.api_server import API_SERVER

A, B = "10.0.0.0/24", "10.0.1.0/24"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({}, {}),
        ({"podCIDR": A}, {"podCIDR": A, "podCIDRs": [A]}),
        ({"podCIDRs": [A, B]}, {"podCIDR": A, "podCIDRs": [A, B]}),
        ({"podCIDR": B, "podCIDRs": [A, B]}, {"podCIDR": B, "podCIDRs": [B]}),
        ({"podCIDR": A, "podCIDRs": [A, B]}, {"podCIDR": A, "podCIDRs": [A, B]}),
    ],
)
def test_pod_cidr_and_pod_cidrs_of_a_node_are_synchronized(said, kept):
    """The singular field wins if both fields are set."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": said}
    assert API_SERVER.default(NODE, API_SERVER.decode(NODE, node))["spec"] == kept


def test_pod_ip_and_pod_ips_are_synchronized():
    """The singular field wins if both fields are set."""
    status = {"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.5"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": status}
    pod["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    kept = API_SERVER.default(POD, API_SERVER.decode(POD, pod))["status"]
    assert (kept["podIP"], kept["podIPs"]) == ("1.2.3.4", [{"ip": "1.2.3.4"}])
