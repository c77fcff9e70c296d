"""Simulations that share work have the results of simulations that start anew."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node, Pod, PodDisruptionBudget
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    InstanceType,
    Offering,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.disruption.candidate import Candidates, DisruptionClass
from fairlead.engine.autoscaling.karpenter.disruption.simulation import NoNodePoolsError, Simulator
from fairlead.engine.autoscaling.karpenter.nodeclaim.machines import adopted_claim
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.initialtopology import (
    InitialTopology,
    MovedPods,
    term_group,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topologydomaingroup import (
    TopologyDomains,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topologygroup import (
    AFFINITY,
    ANTI_AFFINITY,
    SPREAD,
    TopologyGroup,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import (
    LabelRequirement,
    requirement,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import combined
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.whatif.input.seeded_choice import draws

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
TYPE = "node.kubernetes.io/instance-type"
CAPACITY = "karpenter.sh/capacity-type"
ZONES = ("a", "b", "c")
GIB = 1 << 30
NOW = 10**18
NODES = 9
TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}
OPTIONS = KarpenterOptions()


def instance_type(cores):
    offerings = tuple(
        Offering(
            combined(
                (requirement(ZONE, "In", (zone,)), requirement(CAPACITY, "In", ("on-demand",)))
            ),
            float(cores),
        )
        for zone in ZONES
    )
    stated = {TYPE: (f"t{cores}",), ZONE: ZONES, CAPACITY: ("on-demand",)}
    return InstanceType(
        f"t{cores}",
        combined(requirement(key, "In", values) for key, values in stated.items()),
        {"cpu": cores * 1000, "memory": cores * 4 * GIB, "pods": 20},
        {},
        offerings,
    )


TABLE = InstanceTypeTable([instance_type(cores) for cores in (2, 4)], OPTIONS.well_known_labels)


def pool(name, **spec):
    template = {"nodeClassRef": {"group": "x", "kind": "y", "name": "z"}, **spec}
    return decode_as(
        NodePool, {"metadata": {"name": name}, "spec": {"template": {"spec": template}}}
    )


POOLS = (pool("default"), pool("team", taints=[TAINT]))


def node(number, *, is_starting=False, **metadata):
    name = f"n{number}"
    labels = {
        TYPE: "t4", ZONE: ZONES[number % 3], CAPACITY: "on-demand", HOST: name,
        "karpenter.sh/nodepool": "team" if number % 4 == 3 else "default",
        "karpenter.sh/registered": "true",
        **({} if is_starting else {"karpenter.sh/initialized": "true"}),
    }  # fmt: skip
    size = {"cpu": "4", "memory": "16Gi", "pods": "20"}
    taints = [TAINT] if number % 4 == 3 else []
    return decode_as(
        Node,
        {
            "metadata": {"name": name, "labels": labels, **metadata},
            "spec": {"providerID": f"p:///{name}", "taints": taints},
            "status": {"allocatable": size, "capacity": size},
        },
    )


def of_app(app):
    return {"labelSelector": {"matchLabels": {"app": app}}}


def spread(app, key, *, preferred=False, **more):
    when = "ScheduleAnyway" if preferred else "DoNotSchedule"
    one = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, **of_app(app), **more}
    return {"topologySpreadConstraints": [one]}


def affinity(kind, app, key, *, preferred=False):
    term = {"topologyKey": key, **of_app(app)}
    if preferred:
        weighted = [{"weight": 1, "podAffinityTerm": term}]
        return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


TOLERATES = {"tolerations": [{"key": "team", "operator": "Exists"}]}
APPS = {
    "plain": {},
    "zones": spread("zones", ZONE),
    "maybe-zones": spread("maybe-zones", ZONE, preferred=True),
    "hosts": spread("hosts", HOST),
    "honoring": {**spread("honoring", ZONE, nodeTaintsPolicy="Honor"), **TOLERATES},
    "alone": affinity("podAntiAffinity", "alone", HOST),
    "alone-in-zone": affinity("podAntiAffinity", "alone-in-zone", ZONE),
    "maybe-alone": affinity("podAntiAffinity", "maybe-alone", HOST, preferred=True) | TOLERATES,
    "together": affinity("podAffinity", "together", ZONE),
    "not-near-plain": {**affinity("podAntiAffinity", "plain", HOST), **TOLERATES},
    "in-zone-a": {**spread("in-zone-a", HOST), "nodeSelector": {ZONE: "a"}},
}  # fmt: skip


def pod(name, app, cpu, node_name, **metadata):
    status = {"phase": "Running"}
    if not node_name:
        unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        status = {"phase": "Pending", "conditions": [unschedulable]}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    labels = {"app": app}
    return decode_as(
        Pod,
        {
            "metadata": {"name": name, "namespace": "d", "uid": name, "labels": labels, **metadata},
            "spec": {"containers": [container], "nodeName": node_name, **APPS[app]},
            "status": status,
        },
    )


def budget(app, most):
    """A budget whose status allows a disruption; if `most` is 0, its spec never does."""
    return decode_as(
        PodDisruptionBudget,
        {
            "metadata": {"name": app, "namespace": "d"},
            "spec": {"maxUnavailable": most, "selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": 1},
        },
    )


class Choices:
    """Values chosen by a seed."""

    def __init__(self, seed):
        self._drawn = draws(seed, 1)

    def of(self, values):
        return values[next(self._drawn) % len(values)]


def put_node(cluster, one):
    cluster.put(one, NOW)
    owner = next(p for p in POOLS if p.name == one.metadata.labels["karpenter.sh/nodepool"])
    cluster.put(adopted_claim(one, owner, NOW), NOW)


def random_pod(choices, number, node_name):
    app, cpu = choices.of(tuple(APPS)), choices.of(("200m", "500m", "900m"))
    return pod(f"p{number}", app, cpu, node_name)


def cluster_of(choices):
    """Nine nodes in three zones and two NodePools, with pods of all kinds; one node starts."""
    cluster = KarpenterCluster()
    for one in POOLS:
        cluster.put(one, NOW)
    for number in range(NODES):
        put_node(cluster, node(number, is_starting=number == 4))
    for number in range(45):
        cluster.put(random_pod(choices, number, f"n{choices.of(range(NODES))}"), NOW)
    cluster.put(random_pod(choices, 45, ""), NOW)
    return cluster


def change(cluster, choices, number):  # noqa: C901, PLR0912 - one case for each kind of change
    """Change the cluster: some changes matter to passes, others do not."""
    name, key = f"n{choices.of(range(NODES))}", choices.of(sorted(cluster.pods))
    some, claim = cluster.pods[key], cluster.node_claims[choices.of(sorted(cluster.node_claims))]
    match choices.of(range(12)):
        case 0:
            cluster.nominate(f"p:///{name}", NOW)
        case 1:
            cluster.mark((f"p:///{name}",))
        case 2:
            cluster.unmark([f"p:///n{one}" for one in range(NODES)])
        case 3:
            cluster.remove(some, NOW)
        case 4 | 5:
            cluster.put(random_pod(choices, 100 + number, choices.of((name, "", "no-node"))), NOW)
        case 6:
            meta = replace(some.metadata, deletion_timestamp="2001-09-09T01:46:40Z")
            cluster.put(replace(some, metadata=meta), NOW)
        case 7:
            cluster.put(budget(choices.of(tuple(APPS)), choices.of((0, 1))), NOW)
        case 8:
            status = replace(claim.status, conditions=())
            cluster.put(replace(claim, status=status), NOW)
        case 9:
            old = cluster.node_objects[name]
            taints = choices.of(((), node(3).spec.taints))
            cluster.put(replace(old, spec=replace(old.spec, taints=taints)), NOW)
        case 10:
            put_node(cluster, node(int(name[1:]), is_starting=choices.of((True, False))))
        case _:
            cluster.put(replace(some, status=replace(some.status, phase="Succeeded")), NOW)


def shown(simulated):
    """The result of a simulation in a form that can be compared."""
    if simulated is None:
        return None
    claims = [
        (sorted(one.pods), [t.name for t in one.instance_types], str(one.requirements))
        for one in simulated.requests
    ]
    placed = {one.state.name: [p.key for p in one.pods] for one in simulated.placed}
    return claims, placed, simulated.errors


def new_simulator(cluster):
    return Simulator(cluster, Provisioner(cluster, lambda _: TABLE, OPTIONS))


@pytest.mark.parametrize("seed", range(4))
def test_a_simulator_that_sees_changes_agrees_with_a_new_simulator(seed):
    choices = Choices(seed)
    cluster = cluster_of(choices)
    lasting, results = new_simulator(cluster), Counter()
    for number in range(12):
        every = Candidates(cluster, lambda _: TABLE, (), OPTIONS.well_known_labels)
        found = every.all(DisruptionClass.GRACEFUL, NOW)[0]
        for chosen in [(one,) for one in found] + [tuple(found[:3])]:
            expected = shown(new_simulator(cluster).simulate(chosen, NOW))
            assert shown(lasting.simulate(chosen, NOW)) == expected
            results[str(expected)] += 1
        change(cluster, choices, number)
    assert len(results) > 10


@pytest.mark.parametrize("seed", range(4))
def test_a_simulation_that_stops_early_reaches_the_same_verdict(seed):
    choices = Choices(seed)
    cluster = cluster_of(choices)
    lasting, stops = new_simulator(cluster), 0
    for number in range(12):
        every = Candidates(cluster, lambda _: TABLE, (), OPTIONS.well_known_labels)
        found = every.all(DisruptionClass.GRACEFUL, NOW)[0]
        for chosen in [(one,) for one in found] + [tuple(found[:3])]:
            whole = new_simulator(cluster).simulate(chosen, NOW)
            early = lasting.simulate(chosen, NOW, stops_early=True)
            if whole is None or not early.stopped:
                assert shown(early) == shown(whole)
                continue
            stops += 1
            assert early.errors.items() <= whole.errors.items()
            reason = early.reason(chosen)
            assert lasting.text_of(reason, NOW) == whole.problem()
        change(cluster, choices, number)
    assert stops > 5


@pytest.fixture
def uninitialized_error():
    """A cluster in which n0 is kept, because its pod fits only the uninitialized n1.

    The fixture returns (cluster, simulator, the reason to keep n0).
    """
    cluster = KarpenterCluster()
    for one in (*POOLS, pod("p0", "plain", "3", "n0")):
        cluster.put(one, NOW)
    put_node(cluster, node(0))
    put_node(cluster, node(1, is_starting=True))
    chosen = Candidates(cluster, lambda _: TABLE, (), OPTIONS.well_known_labels).all(
        DisruptionClass.GRACEFUL, NOW
    )[0]
    simulator = new_simulator(cluster)
    reason = simulator.simulate(chosen, NOW, stops_early=True).reason(chosen)
    assert "uninitialized" in reason.first
    return cluster, simulator, reason


def test_a_reason_without_errors_no_longer_holds(uninitialized_error):
    cluster, simulator, reason = uninitialized_error
    assert simulator.text_of(reason, NOW) == reason.first
    put_node(cluster, node(1))
    assert simulator.text_of(reason, NOW) is None


def test_a_reason_to_keep_a_node_that_is_being_removed_no_longer_holds(uninitialized_error):
    cluster, simulator, reason = uninitialized_error
    claim = reason.candidates[0].claim
    meta = replace(claim.metadata, deletion_timestamp="2001-09-09T01:46:40Z")
    cluster.put(replace(claim, metadata=meta), NOW)
    assert simulator.text_of(reason, NOW) is None


def test_a_reason_that_cannot_be_simulated_keeps_its_first_error(uninitialized_error):
    cluster, simulator, reason = uninitialized_error
    for one in POOLS:
        meta = replace(one.metadata, deletion_timestamp="2001-09-09T01:46:40Z")
        cluster.put(replace(one, metadata=meta), NOW)
    with pytest.raises(NoNodePoolsError):
        simulator.simulate(reason.candidates, NOW)
    assert simulator.text_of(reason, NOW) == reason.first


@pytest.mark.parametrize("seed", range(6))
def test_counts_without_moved_pods_are_those_of_a_cluster_without_these_pods(seed):
    choices = Choices(seed)
    cluster, domains = cluster_of(choices), TopologyDomains((p, TABLE.types) for p in POOLS)
    nodes = cluster.nodes(NOW)
    initial = InitialTopology(cluster, nodes, domains)
    leaving = [one for one in nodes if one.name == f"n{choices.of(range(NODES))}"]
    keys = {one for one in sorted(cluster.pods) if choices.of((True, False, False))}
    owners = [p for p in cluster.pods.values() if p.spec.affinity]
    plain = KarpenterCluster()
    for one in (*cluster.node_objects.values(), *cluster.pods.values()):
        if not isinstance(one, Pod) or one.key not in keys:
            plain.put(one, NOW)
    anew = InitialTopology(plain, [one for one in nodes if one not in leaving], domains)
    for owner in owners:
        for kind, terms in enumerate(
            (owner.spec.affinity.pod_affinity, owner.spec.affinity.pod_anti_affinity), AFFINITY
        ):
            for term in terms.required_during_scheduling_ignored_during_execution if terms else ():
                counted, expected = (term_group(cluster, kind, owner, term) for _ in range(2))
                tolerations = owner.spec.tolerations
                initial.count(counted, tolerations, leaving, MovedPods(cluster, keys))
                anew.count(expected, tolerations, (), MovedPods(plain, ()))
                assert counted.counts == expected.counts
                assert counted.occupied.keys() == expected.occupied.keys()
    moved, without = initial.inverse_groups(keys), anew.inverse_groups(())
    assert list(moved) == list(without)
    assert [one.counts for one in moved.values()] == [one.counts for one in without.values()]
    assert any(one.occupied for one in moved.values())


@pytest.mark.parametrize("kind", [SPREAD, AFFINITY, ANTI_AFFINITY])
@pytest.mark.parametrize("key", [ZONE, HOST])
@pytest.mark.parametrize("selects", [False, True])
def test_a_closed_domain_is_never_a_next_domain(kind, key, selects):
    closed_in_total = 0
    for seed in range(40):
        choices = Choices(seed)
        group = TopologyGroup(kind, key, frozenset(("d",)), None, choices.of((1, 2)), None)
        for domain in "abcd":
            group.register(domain)
            if choices.of((True, False)):
                group.record((domain,), choices.of((1, 2, 3)))
        allowed = frozenset(one for one in "abcd" if choices.of((True, True, False)))
        for pod_domains in (
            LabelRequirement(key, complement=True),
            LabelRequirement(key, values=allowed),
        ):
            for domain in group.closed_domains(pod_domains, selects=selects):
                only = LabelRequirement(key, values=frozenset((domain,)))
                assert domain not in group.next_domains(pod_domains, only, selects=selects).values
                closed_in_total += 1
    assert closed_in_total > 10
