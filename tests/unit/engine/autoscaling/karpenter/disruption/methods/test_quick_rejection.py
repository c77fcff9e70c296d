"""The quick check rejects only candidates that the simulation also rejects."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node, Pod
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    InstanceType,
    Offering,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.disruption.candidate import Candidates, DisruptionClass
from fairlead.engine.autoscaling.karpenter.disruption.methods.quick_rejection import (
    QuickRejection,
    RejectionMemory,
)
from fairlead.engine.autoscaling.karpenter.disruption.simulation import (
    SchedulingErrors,
    Simulator,
)
from fairlead.engine.autoscaling.karpenter.nodeclaim.machines import adopted_claim
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import requirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import combined
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.whatif.input.seeded_choice import draws

ZONE = "topology.kubernetes.io/zone"
TYPE = "node.kubernetes.io/instance-type"
CAPACITY = "karpenter.sh/capacity-type"
GIB = 1 << 30
NOW = 10**18


def instance_type(cores):
    stated = {TYPE: f"t{cores}", ZONE: "a", CAPACITY: "on-demand"}
    offering = Offering(
        combined(requirement(key, "In", (stated[key],)) for key in (ZONE, CAPACITY)), float(cores)
    )
    return InstanceType(
        f"t{cores}",
        combined(requirement(key, "In", (value,)) for key, value in stated.items()),
        {"cpu": cores * 1000, "memory": cores * 4 * GIB, "pods": 20},
        {},
        (offering,),
    )


def pool(limits):
    spec = {"template": {"spec": {"nodeClassRef": {"group": "x", "kind": "y", "name": "z"}}}}
    if limits:
        spec["limits"] = limits
    return decode_as(NodePool, {"metadata": {"name": "default"}, "spec": spec})


def node(number, cores, *, is_starting=False):
    labels = {
        TYPE: f"t{cores}", ZONE: "a", CAPACITY: "on-demand", "karpenter.sh/nodepool": "default",
        "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "kubernetes.io/hostname": f"n{number}",
    }  # fmt: skip
    if is_starting:
        del labels["karpenter.sh/initialized"]
    size = {"cpu": str(cores), "memory": f"{cores * 4}Gi", "pods": "20"}
    return decode_as(
        Node,
        {
            "metadata": {"name": f"n{number}", "labels": labels},
            "spec": {"providerID": f"p:///n{number}"},
            "status": {"allocatable": size, "capacity": size},
        },
    )


def pod(name, cpu, node_name, **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return decode_as(
        Pod,
        {
            "metadata": {"name": name, "namespace": "d", "uid": name, "labels": {"app": "web"}},
            "spec": {"containers": [container], "nodeName": node_name, **spec},
            "status": {"phase": "Running"},
        },
    )


def cluster_of(seed, limits=None, *, starting=0, pending=0, selects=False, **spec):
    """Twelve nodes of several sizes, filled to different degrees with pods of three sizes.

    Adds nodes that are `starting` and `pending` pods; some pods select a zone if `selects`.
    """
    drawn = draws(seed, 1)

    def choice(values):
        return values[next(drawn) % len(values)]

    cluster = KarpenterCluster()
    only = pool(limits)
    cluster.put(only, NOW)
    for number in range(12):
        one = node(number, choice((2, 4, 8)))
        cluster.put(one, NOW)
        cluster.put(adopted_claim(one, only, NOW), NOW)
        free = int(one.status.allocatable["cpu"]) * 1000 - choice((0, 0, 300, 900))
        for count in range(12):
            size = choice((400, 900, 1500))
            if size <= free:
                free -= size
                chosen = {"nodeSelector": {ZONE: "a"}} if selects and choice((0, 1)) else {}
                name = f"p{number}-{count}"
                cluster.put(pod(name, f"{size}m", f"n{number}", **spec, **chosen), NOW)
    for number in range(12, 12 + starting):
        one = node(number, choice((2, 4)), is_starting=True)
        cluster.put(one, NOW)
        cluster.put(adopted_claim(one, only, NOW), NOW)
    for number in range(pending):
        cluster.put(pending_pod(f"q{number}", f"{choice((400, 900, 1500))}m"), NOW)
    return cluster


def pending_pod(name, cpu):
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    one = pod(name, cpu, "")
    status = decode_as(
        Pod, {"metadata": {}, "status": {"phase": "Pending", "conditions": [unschedulable]}}
    ).status
    return replace(one, status=status)


def search_of(cluster):
    """A search over the cluster, with its candidates and its provisioner."""
    options = KarpenterOptions()
    known = options.well_known_labels
    table = InstanceTypeTable([instance_type(cores) for cores in (2, 4, 8)], known)
    provisioner = Provisioner(cluster, lambda _: table, options)
    candidates = Candidates(cluster, lambda _: table, (), known)
    found = candidates.all(DisruptionClass.GRACEFUL, NOW)[0]
    return QuickRejection(cluster, provisioner, RejectionMemory(), NOW), found, provisioner


def answers(cluster):
    """Return (quick, simulated) for every candidate.

    None means that the candidate is accepted, or that the quick check cannot decide.
    """
    quick, found, provisioner = search_of(cluster)

    def compare(_, request):
        return f"one of {[one.name for one in request.instance_types]}"

    for one in found:
        simulated = Simulator(cluster, provisioner).simulate((one,), NOW)
        assert simulated is not None
        count = len(simulated.requests)
        expected = None
        if simulated.errors and all("uninitialized" in one for one in simulated.errors.values()):
            expected = simulated.problem()
        elif count == 1 and not simulated.errors:
            expected = compare((one,), simulated.requests[0])
        elif count > 1 and not simulated.errors:
            expected = f"Can't remove without creating {count} candidates"
        reason = quick.reason((one,), compare)
        yield reason.first if isinstance(reason, SchedulingErrors) else reason, expected


@pytest.mark.parametrize("seed", range(8))
def test_every_rejection_of_plain_pods_is_that_of_the_simulation(seed):
    found = list(answers(cluster_of(seed)))
    assert len(found) == 12
    assert [quick for quick, _ in found] == [expected for _, expected in found]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("selects", [False, True])
def test_quick_rejection_considers_starting_nodes_and_pending_pods(seed, selects):
    found = list(answers(cluster_of(seed, starting=2, pending=seed % 4, selects=selects)))
    assert len(found) == 12
    assert [quick for quick, _ in found] == [expected for _, expected in found]
    assert any("uninitialized" in str(quick) for quick, _ in found)


@pytest.mark.parametrize("seed", range(8))
def test_sets_that_need_several_nodes_are_rejected_by_the_simulation(seed):
    cluster = cluster_of(seed, starting=seed % 2, pending=3)
    cluster.put(pending_pod("too-large-for-all-types", "9"), NOW)
    quick, found, provisioner = search_of(cluster)
    needing = [n for n in range(2, 12) if quick.needs_several(found[:n])]
    for count in needing:
        simulated = Simulator(cluster, provisioner).simulate(found[:count], NOW)
        assert simulated.problem() is not None or len(simulated.requests) > 1
    assert needing


def test_a_pending_pod_that_fits_no_node_causes_no_rejection():
    cluster = KarpenterCluster()
    only = pool(None)
    cluster.put(only, NOW)
    for number in range(3):
        one = node(number, 8)
        cluster.put(one, NOW)
        cluster.put(adopted_claim(one, only, NOW), NOW)
        cluster.put(pod(f"p{number}", "1", f"n{number}"), NOW)
    cluster.put(pending_pod("too-large-for-all-types", "9"), NOW)
    quick, found, provisioner = search_of(cluster)
    assert Simulator(cluster, provisioner).simulate(found[:2], NOW).problem() is None
    assert not quick.needs_several(found[:2])


def test_quick_rejection_respects_the_limits_of_nodepools():
    found = list(answers(cluster_of(3, {"cpu": "60"})))
    assert all(quick in (None, expected) for quick, expected in found)


def test_pods_with_topology_spread_constraints_are_not_rejected_quickly():
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    found = list(answers(cluster_of(1, topologySpreadConstraints=spread)))
    assert {quick for quick, _ in found} == {None}
