"""Single pods and gangs on one cluster: no node is over-committed by the two schedulers.

Pods for the scheduler and gangs for the batch scheduler run for random minutes in the simulated
world, with and without request latencies, while every version of every pod is checked.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NODE, POD
from fairlead.engine.batch.configuration_file import shipped_configuration
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.testing.random_cluster import Chance
from fairlead.worlds.simulation.world import Latency, SimulatedWorld

START = seconds(1_767_225_600)
NODES = {"a": 4, "b": 4, "c": 6}
API = "scheduling.volcano.sh/v1beta1"
GROUP = "scheduling.k8s.io/group-name"


def node(name, cpu):
    offered = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    status = {"allocatable": offered, "capacity": offered}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name, chance, scheduler, **marks):
    if chance.one_in(3):
        marks["fairlead.dev/run-duration"] = f"{1 + chance.below(30)}s"
    container = {"name": "c", "image": "i"}
    container["resources"] = {"requests": {"cpu": str(1 + chance.below(2))}}
    spec = {
        "schedulerName": scheduler,
        "priority": chance.of((0, 0, 10)),
        "containers": [container],
    }
    meta = {"name": name, "namespace": "default", "annotations": marks}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def gang(name, chance):
    members = 1 + chance.below(5)
    group = {
        "apiVersion": API,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": 1 + chance.below(members), "queue": chance.of(("", "q1", "q2"))},
    }
    pods = [pod(f"{name}-{i}", chance, "volcano", **{GROUP: name}) for i in range(members)]
    return [group, *pods]


def queue(name, weight):
    meta, spec = {"name": name}, {"weight": weight}
    return {"apiVersion": API, "kind": "Queue", "metadata": meta, "spec": spec}


class Minutes:
    """A world with both schedulers; `seed` determines its script."""

    def __init__(self, seed, latency, policy):
        self.chance = chance = Chance(seed)
        self.placed = set()
        config = EngineConfig(seed=seed, start=START, batch=shipped_configuration(policy))
        self.world = SimulatedWorld(
            build_engine(config, SilentReporter()), start=START, seed=seed, latency=latency
        )
        self.world.store.subscribe(lambda _change: self.audit())
        queues = [queue("default", 1), queue("q1", 1), queue("q2", 2)]
        self.world.load([*(node(name, cpu) for name, cpu in NODES.items()), *queues])
        for number in range(40):
            self.world.at(START + seconds(3 * chance.below(20)), self.act(number))

    def act(self, number):
        chance = self.chance
        single, jobs = pod(f"p{number}", chance, "default-scheduler"), gang(f"g{number}", chance)
        what, gone = chance.of(("pod", "pod", "gang", "gang", "end")), chance.below(40)

        def happen(store, now):
            with suppress(ApiError):
                match what:
                    case "pod":
                        store.create(single, now)
                    case "gang":
                        for one in jobs:
                            store.create(one, now)
                    case "end":
                        store.delete(POD, "default", chance.of((f"p{gone}", f"g{gone}-0")), now)

        return happen

    def audit(self):
        used = dict.fromkeys(NODES, 0)
        for found in self.world.store.list(POD, "default"):
            name, phase = found["spec"].get("nodeName"), found.get("status", {}).get("phase")
            if name and phase not in ("Succeeded", "Failed"):
                requests = found["spec"]["containers"][0]["resources"]["requests"]
                used[name] += int(requests["cpu"])
                self.placed.add(found["metadata"]["name"])
        for name, amount in used.items():
            assert amount <= NODES[name], (name, amount)


SLOW = Latency(bind=seconds(2), patch=seconds(1))


@pytest.mark.parametrize("latency", [Latency(), SLOW], ids=["at-once", "slow"])
@pytest.mark.parametrize("policy", ["fairlead", "kube-batch", "kube-batch-upstream"])
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_node_is_over_committed(policy, latency, seed):
    minutes = Minutes(seed, latency, policy)
    minutes.world.run(START + seconds(120))
    assert len(minutes.world.store.list(NODE)) == len(NODES)


def test_both_schedulers_bind_pods():
    """Otherwise the other test would prove nothing."""
    minutes = Minutes(1, Latency(), "fairlead")
    minutes.world.run(START + seconds(120))
    assert {name[0] for name in minutes.placed} == {"g", "p"}
