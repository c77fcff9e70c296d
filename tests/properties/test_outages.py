"""Properties of outages in whole clusters, over random schedules of failures.

Kubelets stop, pause, slow down, flap and report problems at random, in zones and alone, while the
controllers of nodes and workloads, the scheduler and the kubelets run. In the end all kubelets run.
Upstream's defects are off, as they are by default. (`test_quiet_nodes` tests the properties of the
node controllers alone, with events that kubelets cannot cause.)
"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.objects import Node
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import NODE, POD
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.controller import NoDeadlines
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import controller_account
from fairlead.engine.core.reporter import NodeTainted, PodEvicted, ZoneAssessed
from fairlead.engine.core.stimulus import ObjectChanged
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.nodelifecycle.flag import config_of_flags
from fairlead.engine.nodelifecycle.period import Period
from fairlead.engine.nodelifecycle.profile import V1_16, V1_36
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_900_000_000)
ALL_BACK_S = 1_200
END_S = 1_500
ZONE = "topology.kubernetes.io/zone"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
BEHAVIOURS = (
    *["stopped"] * 4,
    *[None] * 3,
    "paused",
    "slow 45s",
    "slow 70s",
    "flap 60s/120s",
    "flap 90s/20s",
    "not-ready",
    "memory-pressure",
    "stopped,not-ready",
)


def tolerations(limit_s):
    """Return tolerations of a lost node, for `limit_s` or forever (None)."""
    limit = {} if limit_s is None else {"tolerationSeconds": limit_s}
    return [
        {"key": key, "operator": "Exists", "effect": "NoExecute"} | limit
        for key in (NOT_READY, UNREACHABLE)
    ]


TOLERANCES: tuple[list[dict[str, object]], ...] = (
    [],
    tolerations(0),
    tolerations(60),
    tolerations(60),
    tolerations(None),
)


class Chance(TieBreak):
    def one_of(self, choices):
        return choices[self.pick(len(choices))]


class NodeSpy(NoDeadlines):
    """A controller that shows each version of a node to the `outage`."""

    issuer = controller_account("spy")
    interest = Interest(changed=(Node,), succeeded=(), failed=())

    def __init__(self, outage):
        self.outage = outage

    def handle(self, stimulus, now):
        if type(stimulus) is ObjectChanged:
            self.outage.observe(as_json(stimulus.object))
        return []


class Outage:
    """A cluster with random failures from `seed`; records its writes and reports with times."""

    def __init__(self, seed, flags=(), profile=V1_36):
        chance = Chance(seed)
        self.now = START
        self.records = []
        self.versions = {}
        lifecycle = replace(config_of_flags(dict(flags), profile), is_taking_over=True)
        self.passes = Period(
            START + lifecycle.pass_cost, lifecycle.node_monitor_period + lifecycle.pass_cost
        )
        config = EngineConfig(seed=seed, start=START, node_lifecycle=lifecycle)
        engine = build_engine(config, self, first=(NodeSpy(self),))
        self.world = SimulatedWorld(engine, start=START, seed=seed)
        zones = 1 + chance.pick(3)
        names = [f"{'abc'[i % zones]}{i}" for i in range(2 + chance.pick(8))]
        self.sets = {f"s{i}": 1 + chance.pick(6) for i in range(1 + chance.pick(2))}
        objects = [node_json(name) for name in names]
        for name, replicas in self.sets.items():
            objects.append(set_json(name, replicas, chance.one_of(TOLERANCES)))
        for one in objects:
            if one["kind"] == "Node":
                self.observe(one)
        self.world.load(objects)
        self.troubled = set()
        for _ in range(3 + chance.pick(15)):
            self.schedule(chance, names)
        for name in names:
            self.at(ALL_BACK_S, name, None)
        self.world.run(START + seconds(END_S))

    def schedule(self, chance, names):
        """Schedule the failure of one node or of a whole zone, at once or one by one."""
        after_s, behaviour = chance.pick(900_000) / 1_000, chance.one_of(BEHAVIOURS)
        name, stagger = chance.one_of(names), chance.pick(3)
        mates = [one for one in names if one[0] == name[0]] if chance.pick(3) == 0 else [name]
        self.troubled.update(mates)
        for place, mate in enumerate(mates):
            self.at(after_s + place * stagger, mate, behaviour)

    def at(self, after_s, name, behaviour):
        patch = {"metadata": {"annotations": {"fairlead.dev/kubelet": behaviour}}}
        self.world.at(
            START + seconds(after_s), lambda store, now: store.patch(NODE, "", name, patch, now)
        )

    def report(self, record):
        self.records.append(record)

    def observe(self, node):
        self.versions.setdefault(node["metadata"]["name"], []).append((self.world.now, node))

    def records_of(self, kind):
        return [record for record in self.records if isinstance(record, kind)]

    def settled_nodes(self):
        """Yield (instant, until, node): the version of a node at the end of each instant."""
        for versions in self.versions.values():
            last = dict(versions)
            ends = [*list(last)[1:], START + seconds(END_S)]
            for (at, node), until in zip(last.items(), ends, strict=True):
                yield at, until, node


def node_json(name):
    stamp = format_timestamp(START)
    offered = {"cpu": "8", "memory": "16Gi", "pods": "50"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: name[0]}},
        "status": {"capacity": offered, "allocatable": offered, "conditions": [ready]},
    }


def set_json(name, replicas, tolerated):
    labels = {"app": name}
    resources = {"requests": {"cpu": "100m"}}
    containers = [{"name": "c", "image": "i", "resources": resources}]
    spec = {"containers": containers, "tolerations": tolerated}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def no_execute(node):
    return [t["key"] for t in node.get("spec", {}).get("taints", ()) if t["effect"] == "NoExecute"]


def status_of(obj, kind="Ready"):
    found = [c["status"] for c in obj["status"].get("conditions", ()) if c["type"] == kind]
    return found[0] if found else ""


MODES = (
    ((), V1_16),
    ((("feature-gates", "TaintBasedEvictions=false"),), V1_16),
    ((("enable-taint-manager", "false"),), V1_16),
    ((("node-eviction-rate", "1"), ("large-cluster-size-threshold", "2")), V1_36),
    ((("node-eviction-rate", "0"),), V1_36),
)


def outages():
    return st.integers(0, 2**63).map(Outage)


law = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def everybody_runs(outage):
    pods = outage.world.store.list(POD)
    found = [pod["metadata"]["labels"]["app"] for pod in pods]
    assert {name: found.count(name) for name in outage.sets} == outage.sets
    assert {(pod["status"]["phase"], status_of(pod)) for pod in pods} == {("Running", "True")}


@law
@given(outages())
def test_every_evicted_pod_is_replaced_when_nodes_have_room(outage):
    """Every evicted pod has a replacement, and all running pods are ready."""
    everybody_runs(outage)


@law
@given(outages())
def test_no_pod_is_evicted_before_its_toleration_ends(outage):
    """The node had the taint for exactly that time; no pod of a node without a taint is evicted."""
    for record in outage.records_of(PodEvicted):
        assert record.node in outage.troubled
        limits = [
            at + seconds(limit)
            for at, node in outage.versions[record.node]
            if no_execute(node)
            for limit in (0, 60, 300)
        ]
        assert record.at in limits


@law
@given(outages())
def test_evictions_in_a_zone_respect_its_rate(outage):
    """At most one node in ten seconds, and no node while all zones have failed."""
    last, states = {}, {}
    for record in outage.records:
        match record:
            case ZoneAssessed(zone=zone, state=state):
                states[zone] = state
            case NodeTainted(zone=zone, is_rate_limited=True, at=at):
                assert set(states.values()) != {"FullDisruption"}
                assert at - last.get(zone, START) >= seconds(10) or zone not in last
                last[zone] = at
            case _:
                pass


@law
@given(outages())
def test_taints_follow_conditions(outage):
    """A node never has both taints, and a node that a pass has seen ready has none."""
    for at, until, node in outage.settled_nodes():
        taints = no_execute(node)
        assert len(taints) <= 1
        if taints and status_of(node) == "True":
            assert until <= outage.passes.at_or_after(at)


def nothing_is_left(outage):
    for node in outage.world.store.list(NODE):
        assert status_of(node) == "True"
        assert not node.get("spec", {}).get("taints")
    leases = [
        one
        for kind in outage.world.store.storage.kinds()
        if kind.kind == "Lease"
        for one in outage.world.store.list(kind)
    ]
    assert len(leases) == len(outage.versions)
    assert {one["metadata"]["annotations"]["fairlead.dev/renewed-every"] for one in leases} == {
        "10s"
    }


@law
@given(outages())
def test_all_nodes_are_healthy_in_the_end(outage):
    """Every node is ready, has no taint, and has a lease that is renewed."""
    nothing_is_left(outage)


@law
@given(st.integers(0, 2**63), st.sampled_from(MODES))
def test_all_nodes_are_healthy_in_the_end_in_other_modes(seed, mode):
    """Older versions, no taint manager, other rates: all pods run again, and no taint is left."""
    outage = Outage(seed, *mode)
    everybody_runs(outage)
    nothing_is_left(outage)
