"""Passing on changes of readiness to few controllers changes neither commands nor records."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectChanged, ReadinessChanged
from fairlead.whatif.run.recorders.gang_recorder import GangRecorder
from fairlead.whatif.run.recorders.outage_recorder import OutageRecorder
from fairlead.whatif.run.recorders.recorder import Recorder
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_900_000_000)
ZONES = {"a": ("a1", "a2"), "b": ("b1", "b2"), "c": ("c1",)}
NODES = tuple(name for names in ZONES.values() for name in names)
PODS = 7
STAMP = format_timestamp(START - seconds(3_600))
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web",
    "uid": "web",
    "controller": True,
}


def stored(version, kind, name, **parts):
    meta = {"name": name, "uid": f"{kind}-{name}", "resourceVersion": "1"}
    meta |= {"namespace": "ns", "creationTimestamp": STAMP} | parts.pop("metadata", {})
    if kind == "Node":
        del meta["namespace"]
    return {"apiVersion": version, "kind": kind, "metadata": meta, **parts}


def node(name):
    offered = {"cpu": "4", "memory": "8Gi", "pods": "3"}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": STAMP}
    return stored(
        "v1",
        "Node",
        name,
        metadata={"labels": {"topology.kubernetes.io/zone": name[0]}},
        status={"capacity": offered, "allocatable": offered, "conditions": [ready]},
    )


def pod(number, priority):
    """A pod of a ReplicaSet that tolerates failed nodes for a minute."""
    reasons = ("not-ready", "unreachable")
    tolerations = [
        {
            "key": f"node.kubernetes.io/{one}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 60,
        }
        for one in reasons
    ]
    conditions = [
        {"type": one, "status": "True", "lastTransitionTime": STAMP}
        for one in ("PodScheduled", "Ready", "ContainersReady")
    ]
    return stored(
        "v1",
        "Pod",
        f"web-{number}",
        metadata={"labels": {"app": "web"}, "ownerReferences": [OWNER]},
        spec={
            "containers": [{"name": "c", "image": "i"}],
            "tolerations": tolerations,
            "nodeName": NODES[number % len(NODES)],
            "priority": priority,
        },
        status={"phase": "Running", "startTime": STAMP, "conditions": conditions},
    )


def objects():
    selector = {"matchLabels": {"app": "web"}}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    replica_set = stored(
        "apps/v1",
        "ReplicaSet",
        "web",
        metadata={"uid": "web"},
        spec={"replicas": PODS, "selector": selector, "template": template},
    )
    budget = stored(
        "policy/v1",
        "PodDisruptionBudget",
        "web",
        spec={"minAvailable": 5, "selector": selector},
    )
    yield from map(node, NODES)
    yield replica_set
    yield budget
    for number in range(PODS):
        manifest = pod(number, number % 2)
        yield DumpedObject(POD, decode(manifest), json.dumps(manifest).encode())


class RecordedEngine:
    """Passes each stimulus to recorders and to the engine.

    If `is_plain` is set, a change of readiness is passed on as an ordinary change of a pod.
    """

    def __init__(self, *, is_plain):
        self.recorder = Recorder(START, outage=OutageRecorder())
        self.gangs = GangRecorder()
        self.engine = build_engine(EngineConfig(start=START), self.recorder)
        self.is_plain = is_plain
        self.changes_of_readiness = 0
        if is_plain:
            self.engine.cluster.keeps_readiness = True
        self.next_deadline = self.engine.next_deadline

    def handle(self, stimulus, now):
        self.changes_of_readiness += isinstance(stimulus, ReadinessChanged)
        if self.is_plain and isinstance(stimulus, ReadinessChanged):
            stimulus = ObjectChanged(stimulus.object)
        self.recorder.observe(stimulus, now)
        self.gangs.observe(stimulus, now)
        return self.engine.handle(stimulus, now)

    def handle_deadline(self, now):
        self.recorder.now = now
        return self.engine.handle_deadline(now)


KUBELET = "fairlead.dev/kubelet"


def annotate(name, value):
    def act(store, now):
        if store.find(NODE, "", name) is not None:
            store.patch(NODE, "", name, {"metadata": {"annotations": {KUBELET: value}}}, now)

    return act


def fail(name):
    return annotate(name, "stopped")


def heal(name):
    return annotate(name, None)


def cordon(name):
    def act(store, now):
        if store.find(NODE, "", name) is not None:
            store.patch(NODE, "", name, {"spec": {"unschedulable": True}}, now)

    return act


def remove(name):
    def act(store, now):
        if store.find(NODE, "", name) is not None:
            store.delete(NODE, "", name, now)

    return act


def remove_pods(name):
    def act(store, now):
        for one in store.list(POD):
            if one["spec"].get("nodeName") == name:
                store.delete(POD, "ns", one["metadata"]["name"], now)

    return act


def run(script, *, is_plain):
    """Return the commands, the records and the number of changes of readiness."""
    commands, engine = [], RecordedEngine(is_plain=is_plain)
    world = SimulatedWorld(engine, start=START, command_log=commands.append)
    world.load(objects())
    for after, act, name in script:
        world.at(START + seconds(after), act(name))
    world.run(START + seconds(900))
    recorder = engine.recorder
    records = (
        recorder.workloads.transitions,
        recorder.workloads.placed,
        recorder.workloads.deletions,
        list(recorder.outage.affected),
        recorder.outage.pod_samples,
        recorder.outage.node_samples,
        recorder.touched,
        recorder.evicted,
        recorder.history,
        dict(recorder.ends()),
    )
    return commands, records, engine.changes_of_readiness


steps = st.tuples(
    st.integers(0, 60).map(lambda number: 10 * number),
    st.sampled_from([fail, fail, heal, heal, cordon, remove, remove_pods]),
    st.sampled_from(NODES),
)


@settings(max_examples=25)
@given(st.lists(steps, max_size=8))
def test_commands_and_records_equal_those_of_forwarding_every_change(script):
    """This holds for any failures, recoveries and deletions."""
    fast, plain = run(script, is_plain=False), run(script, is_plain=True)
    assert fast == plain


def test_most_changes_of_a_failed_zone_concern_readiness():
    """Otherwise, the comparison above would prove nothing."""
    zone = [(0, fail, "a1"), (0, fail, "a2"), (100, heal, "a1"), (100, heal, "a2")]
    assert run(zone, is_plain=False)[2] == 2 * 4
