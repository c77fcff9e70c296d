"""Properties of node failures over random schedules, and two optimisations without visible effect.

Scenarios have the form of the recorded timelines: nodes in zones, pods with tolerations, and a
script of kubelets that stop, recover and report conditions, and of users who taint and label.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.api.lease import RENEWED_EVERY
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.apiserver.storage.storage import ChangeType
from fairlead.conformance.nodelifecycle.node_timeline import lifecycle_config, replay
from fairlead.conformance.nodelifecycle.node_world import START_MS, instant
from fairlead.conformance.nodelifecycle.objects import lease_object
from fairlead.conformance.nodelifecycle.scenario import LEASE, NodeScenario
from fairlead.conformance.nodelifecycle.write_log import EPOCH
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import NodeTainted, PodEvicted, SilentReporter, ZoneAssessed
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.nodelifecycle.config import DefectPolicy
from fairlead.engine.nodelifecycle.controller import NodeLifecycle
from fairlead.engine.nodelifecycle.health.examination_queue import ExaminationQueue
from fairlead.engine.nodelifecycle.zones.zone_state import ZoneState

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
DURATION_MS = 420_005

# Events of nodes; frequent ones are repeated. Users may set taints and labels that the
# controller may not.
UNTOUCHED = [*["stop"] * 4, *["start", "set"] * 3, "delete"]
ANYTHING = [*UNTOUCHED, *["taint"] * 3, "label"]

# --- scenarios ------------------------------------------------------------------------------------


class Dice(TieBreak):
    """A source of choices from one number, so that all scenarios have the same size."""

    def between(self, low, high):
        return low + self.pick(high - low + 1)

    def one_of(self, *choices):
        return choices[self.pick(len(choices))]

    def is_one_in(self, count):
        return self.pick(count) == 0


def conditions(ready="True"):
    return [
        {"type": kind, "status": status, "reason": f"R{status}", "message": "m"}
        for kind, status in {"Ready": ready, "MemoryPressure": "False"}.items()
    ]


def random_node(dice, number, zones):
    labels = {"topology.kubernetes.io/zone": f"z{dice.pick(zones)}"}
    if dice.is_one_in(8):
        labels["node.kubernetes.io/exclude-disruption"] = ""
    phase, runs = dice.between(1, 999) * 10 + 3, not dice.is_one_in(6)
    stamps = {"heartbeat_ms": -11_000, "transition_ms": -90_000}
    return {
        "name": f"n{number}",
        "uid": f"uid-n{number}",
        "created_ms": dice.one_of(-3_600_000, -30_000),
        "labels": labels,
        "taints": [],
        "unschedulable": False,
        "conditions": [] if dice.is_one_in(8) else [one | stamps for one in conditions()],
        "lease_renewed_ms": phase - 10_000 if runs or dice.is_one_in(2) else None,
        "kubelet": {
            "running": runs,
            "lease_period_ms": 10_000,
            "lease_phase_ms": phase,
            "status_period_ms": dice.one_of(10_000, 300_000, 300_000, 300_000),
            "status_phase_ms": dice.between(1, 999) * 10 + 7,
        },
    }


TOLERATIONS: tuple[list[dict[str, object]], ...] = (
    [],
    [{"operator": "Exists"}],
    [{"key": k, "operator": "Exists", "tolerationSeconds": 60} for k in (NOT_READY, UNREACHABLE)],
    [{"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 30}],
    [
        {"key": NOT_READY, "operator": "Exists"},
        {"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 100},
    ],
)


def random_pod(dice, number, node):
    return {
        "namespace": "default",
        "name": f"p{number}",
        "uid": f"uid-p{number}",
        "node": node,
        "created_ms": -60_000,
        "tolerations": dice.one_of(*TOLERATIONS),
        "ready": "True",
        "phase": "Running",
        "owner": "ReplicaSet",
    }


def random_line(dice, count, kinds):
    """Return one line of the script, at an instant without other events."""
    line = {"t_ms": dice.pick(32_000) * 10 + 1, "node": f"n{dice.pick(count)}"}
    match dice.one_of(*kinds):
        case "stop":
            return line | {"op": "kubelet_stop"}
        case "start":
            return line | {"op": "kubelet_start", "conditions": conditions()}
        case "set":
            posted = conditions(dice.one_of("True", "False", "False", "Unknown"))
            return line | {"op": "kubelet_set", "conditions": posted}
        case "taint":
            key = dice.one_of(NOT_READY, UNREACHABLE, UNREACHABLE, "admin")
            taint = {"key": key, "value": "", "effect": dice.one_of("NoExecute", "NoSchedule")}
            return line | {"op": dice.one_of("taint_add", "taint_remove"), "taint": taint}
        case "label":
            labels = {"topology.kubernetes.io/zone": dice.one_of("z0", "z1")}
            return line | {"op": "labels_set", "labels": labels}
        case _:
            return line | {"op": "node_delete"}


def random_scenario(seed, kinds):
    dice = Dice(seed)
    count, zones = dice.between(1, 10), dice.between(1, 3)
    script = [random_line(dice, count, kinds) for _ in range(dice.between(2, 25))]
    return {
        "nodes": [random_node(dice, number, zones) for number in range(count)],
        "pods": [random_pod(dice, n, f"n{n % count}") for n in range(dice.pick(2 * count + 1))],
        "script": sorted(script, key=lambda line: line["t_ms"]),
        "duration_ms": DURATION_MS,
        "config": {
            "node_monitor_period_ms": 5_000,
            "node_startup_grace_ms": 60_000,
            "node_monitor_grace_ms": dice.one_of(40_000, 40_000, 47_000, 12_000, 4_000),
            "node_eviction_rate": dice.one_of(0.1, 0.1, 0.05, 1.0, 0.0),
            "secondary_node_eviction_rate": 0.01,
            "large_cluster_size_threshold": dice.one_of(3, 50),
            "unhealthy_zone_threshold": 0.55,
            "pod_delete": dice.one_of("immediate", "graceful"),
            "podgc": dice.one_of(True, False),
            "podgc_terminated_threshold": 12_500,
            "pass_latency_ns": dice.one_of(0, 1_000),
        },
    }


def scenarios(kinds=ANYTHING):
    return st.integers(0, 2**63).map(lambda seed: random_scenario(seed, kinds))


def outcome(scenario, *, build=NodeLifecycle, defects=DefectPolicy.FIXED, **given_):
    config = lifecycle_config(scenario["config"], defects)
    return replay(scenario, build(config, SilentReporter(), EPOCH), config, **given_)


def ordered(found):
    """Return a log in which the order within an instant is normalized."""
    writes = sorted(found["writes"], key=lambda write: (write["t_ms"], str(sorted(write.items()))))
    return writes, found["zone_states"], found["final"]


def law(examples):
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))


# --- what is left out must not show ---------------------------------------------------------------


class RestlessQueue(ExaminationQueue):
    """A queue that runs every pass and examines every node."""

    def __init__(self, passes, names):
        super().__init__(passes)
        self._names = names

    def next_pass(self):
        return self._passes.after(self.last_pass)

    def begin_pass(self, now):
        super().begin_pass(now)
        return sorted(self._names())


def restless(config, reporter, start):
    lifecycle = NodeLifecycle(config, reporter, start)
    shared = lifecycle._shared
    shared.examinations = RestlessQueue(shared.passes, lambda: shared.nodes._records)
    queues = shared.eviction.queues
    queues.next_attempt = lambda now: queues._ticks.at_or_after(max(now, queues._processed_at + 1))
    return lifecycle


@pytest.mark.long
@law(20)
@given(scenarios())
def test_skipped_passes_would_have_made_no_writes(scenario):
    """The writes and instants are those of a controller that skips no pass."""
    assert ordered(outcome(scenario)) == ordered(outcome(scenario, build=restless))


class RegularLeases(NodeScenario):
    """Kubelets that announce the renewals of their leases instead of writing them."""

    def _beat_lease(self, name, kubelet, now):
        if not kubelet.is_alive:
            return
        if kubelet.is_running and kubelet.is_leasing and not self._is_regular(name):
            self._renew(name, now)
            lease = self._find(LEASE, "kube-node-lease", name)
            if lease is not None:
                period = f"{kubelet.form['lease_period_ms']}ms"
                annotated = lease["metadata"] | {"annotations": {RENEWED_EVERY: period}}
                self._put(LEASE, lease | {"metadata": annotated})
        self._schedule(
            name, kubelet, "lease", (now - EPOCH) // NANOSECONDS_PER_MILLISECOND, self._beat_lease
        )

    def _is_regular(self, name):
        lease = self._find(LEASE, "kube-node-lease", name)
        return lease is not None and "annotations" in lease["metadata"]

    def _op_kubelet_stop(self, line, now):
        super()._op_kubelet_stop(line, now)
        kubelet = self._kubelets.get(line["node"])
        if kubelet is not None and self._is_regular(line["node"]):
            period, phase = kubelet.form["lease_period_ms"], kubelet.form["lease_phase_ms"]
            last = now - (now - instant(phase)) % (period * NANOSECONDS_PER_MILLISECOND)
            self._put(LEASE, lease_object(line["node"], last))


@law(20)
@given(scenarios())
def test_a_lease_with_computed_renewals_is_equivalent_to_a_renewed_lease(scenario):
    """The renewals of a lease can be computed from the time instead of written."""

    def begin(world, form):
        RegularLeases(world, form).begin()

    assert ordered(outcome(scenario)) == ordered(outcome(scenario, begin=begin))


# --- laws -----------------------------------------------------------------------------------------


class Witness:
    """Records every version of every node and pod, and every report, with its instant."""

    def __init__(self, scenario, script=None):
        self.versions = {}
        self.records = []
        self.dark_when_tainted = []
        config = lifecycle_config(scenario["config"], DefectPolicy.FIXED)
        self.lifecycle = NodeLifecycle(config, self, EPOCH)
        replay(scenario, self.lifecycle, config, begin=self._begin, reporter=self)

    def _begin(self, world, form):
        self._world = world
        world.store.subscribe(self._observe)
        NodeScenario(world, form).begin()

    def _observe(self, change):
        name = (change.kind.kind, change.object["metadata"]["name"])
        gone = change.type is ChangeType.DELETED
        version = None if gone else change.object
        self.versions.setdefault(name, []).append((self._world.now, version))

    def report(self, record):
        self.records.append(record)
        if isinstance(record, NodeTainted) and record.is_rate_limited:
            states = self.lifecycle.zone_states.values()
            self.dark_when_tainted.append(all(s is ZoneState.FULL_DISRUPTION for s in states))

    def settled_nodes(self):
        """Yield (name, instant, until, node): the version of a node at the end of each instant."""
        for (kind, name), versions in self.versions.items():
            last = dict(versions)
            ends = [*list(last)[1:], instant(DURATION_MS)]
            for (at, version), until in zip(last.items(), ends, strict=True):
                if kind == "Node" and version is not None:
                    yield name, at, until, version

    def version_at(self, kind, name, now):
        """Return the last version of an object before or at `now`, also of a deleted object."""
        versions = [v for at, v in self.versions[kind, name] if at <= now and v is not None]
        return versions[-1]


def taints(node, effect):
    return [t["key"] for t in node["spec"].get("taints", ()) if t["effect"] == effect]


def status(node, kind="Ready"):
    found = [c["status"] for c in node["status"]["conditions"] if c["type"] == kind]
    return found[0] if found else ""


@law(20)
@given(scenarios(kinds=UNTOUCHED))
def test_a_node_has_at_most_one_of_the_two_taints(scenario):
    """This holds at the end of every instant."""
    for _, _, _, node in Witness(scenario).settled_nodes():
        assert not {NOT_READY, UNREACHABLE} <= set(taints(node, "NoExecute"))


@law(20)
@given(scenarios())
def test_no_schedule_taints_match_the_conditions(scenario):
    """This holds at the end of every instant, also for taints of other clients."""
    expected = {"False": [NOT_READY], "Unknown": [UNREACHABLE]}
    for _, at, _, node in Witness(scenario).settled_nodes():
        if at < instant(START_MS):
            continue
        present = [key for key in taints(node, "NoSchedule") if key != "admin"]
        assert present == expected.get(status(node), [])


@law(20)
@given(scenarios(kinds=UNTOUCHED))
def test_a_ready_node_has_no_taints_after_one_pass(scenario):
    """Its taints are removed when a pass has seen it ready."""
    witness = Witness(scenario)
    passes = witness.lifecycle._shared.passes
    for _, at, until, node in witness.settled_nodes():
        if status(node) == "True" and taints(node, "NoExecute"):
            assert until <= passes.at_or_after(at)


@law(20)
@given(scenarios(kinds=UNTOUCHED))
def test_no_node_is_tainted_while_all_zones_have_failed(scenario):
    """Nodes are processed only while some zone has a ready node."""
    for node in scenario["nodes"]:
        node["labels"].pop("node.kubernetes.io/exclude-disruption", None)
    assert not any(Witness(scenario).dark_when_tainted)


@law(20)
@given(scenarios(kinds=UNTOUCHED))
def test_evictions_in_a_zone_respect_its_rate(scenario):
    """Two evictions in a zone are 1/rate apart, unless the zone was removed and added again."""
    for node in scenario["nodes"]:
        node["labels"].pop("node.kubernetes.io/exclude-disruption", None)
    rates = ("node_eviction_rate", "secondary_node_eviction_rate")
    gap = seconds(1 / max(scenario["config"][name] for name in rates)) - seconds(0.1)
    last = {}
    for record in Witness(scenario).records:
        match record:
            case ZoneAssessed(zone, state="Initial" | ""):
                last.pop(zone, None)
            case NodeTainted(_, zone, _, True, at):
                assert at - last.get(zone, at - gap) >= gap
                last[zone] = at


def tolerated(pod_, taint):
    """Return the seconds of the first toleration for `taint`; None for forever, -1 for none."""
    for toleration in pod_["spec"]["tolerations"]:
        if toleration.get("key") in (None, taint["key"]):
            return toleration.get("tolerationSeconds")
    return -1


@law(30)
@given(scenarios())
def test_no_pod_is_evicted_before_its_toleration_ends(scenario):
    """A pod that tolerates its node's taints stays for the shortest toleration time."""
    witness = Witness(scenario)
    for record in witness.records:
        if isinstance(record, PodEvicted):
            evicted = witness.version_at("Pod", record.pod.name, record.at)
            assert any(
                limit is not None and at + seconds(limit) == record.at
                for at, limit in limits(witness, evicted, record)
            )


def limits(witness, evicted, record):
    """Return (instant, seconds) of every NoExecute taint of the node before the eviction."""
    for at, node in witness.versions["Node", record.node]:
        for taint in (node or {"spec": {}})["spec"].get("taints", ()):
            if at <= record.at and taint["effect"] == "NoExecute":
                limit = tolerated(evicted, taint)
                yield at, 0 if limit == -1 else limit  # such a taint evicts immediately
