"""A node with devices is underutilized if few of its devices are in use."""

from __future__ import annotations

import pytest

from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
    SimulatedProvider,
)
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.utilization import Utilization
from fairlead.engine.autoscaling.cluster_autoscaler.static_autoscaler import StaticAutoscaler
from fairlead.engine.core.instant import seconds
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.device_builders import (
    DRIVER,
    make_claim_status,
    make_device_class,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)


def utilization(used, **labels):
    """The utilization of a node with four devices, of which `used` are in use, and ten cores."""
    groups = [NodeGroupSpec(id="g", minimum=0, maximum=9, labels={"pool": "g"})]
    provider = SimulatedProvider(groups, seed=0, start=0)
    autoscaler = StaticAutoscaler(provider, AutoscalingOptions())
    autoscaler.put(make_device_class())
    autoscaler.put(make_slice("a", [f"gpu-{at}" for at in range(4)]))
    autoscaler.put(provider.adopt(make_node("a", cpu="10", labels={"pool": "g", **labels})))
    for at in range(used):
        status = make_claim_status("a", f"gpu-{at}", reserved_for=[f"uid-p{at}"])
        autoscaler.put(make_resource_claim(f"c{at}", status=status))
        pod = {"uid": f"uid-p{at}", "node": "a", "requests": {"cpu": "3"}}
        autoscaler.put(make_pod(f"p{at}", spec=make_pod_resource_claims(f"c{at}"), **pod))
    autoscaler.run_once(seconds(10_000))
    return autoscaler.planner.eligibility.utilizations["a"]


@pytest.mark.parametrize(("used", "share"), [(0, 0.0), (1, 0.25), (3, 0.75)])
def test_devices_count_instead_of_cpu_and_memory(used, share):
    found = utilization(used)
    assert found == Utilization(devices=share, resource=f"{DRIVER}/a", value=share)
    assert str(found) == f"{{0 0 0 {share:g} {DRIVER}/a {share:g}}}"


def test_extended_resources_count_on_nodes_with_a_gpu_label():
    found = utilization(3, **{"nvidia.com/gpu.product": "k80"})
    assert found == Utilization(resource="nvidia.com/gpu", value=0.0)
