"""Safety properties of the scheduler, over random clusters.

No node is over-committed, no pod is bound twice, no victim has the priority of its preemptor or a
higher one, every refusal has a reason, and equal seeds give equal runs. Random clusters run for a
random minute in the simulated world with all controllers, while an auditor between world and engine
checks every command.
"""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal
from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import whole_value
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NODE, POD
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.command import Bind
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import PodPlaced, PodPreempting, PodUnschedulable
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded
from fairlead.engine.state.resource_columns import allocatable_amount
from fairlead.testing.random_cluster import (
    GPU,
    NODE_NAMES,
    POD_NAMES,
    Chance,
    any_budget,
    any_node,
    any_pod,
)
from fairlead.worlds.simulation.world import Latency, SimulatedWorld

START = seconds(1_767_225_600)
REFUSAL = re.compile(r"0/\d+ nodes are available: .+|no nodes available to schedule pods")
PRIORITIES = (-5, 0, 10, 100, 1000)


# --- a random minute -------------------------------------------------------------------------


def manifest(view, kind, api_version="v1"):
    """Return the JSON of a view."""
    return {"apiVersion": api_version, "kind": kind, **msgspec.to_builtins(view)}


def priority_classes():
    """Return a PriorityClass for each priority and preemption policy."""
    for value in PRIORITIES:
        for policy in ("PreemptLowerPriority", "Never"):
            yield {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": class_name(value, policy)},
                "value": value,
                "preemptionPolicy": policy,
            }


def class_name(value, policy):
    return f"p{value}".replace("-", "minus") + ("-never" if policy == "Never" else "")


def pod_manifest(pod, number):
    """Return the manifest of `pod` as a user creates it, with a PriorityClass."""
    made = manifest(pod, "Pod")
    made["metadata"] = {**made["metadata"], "name": f"{pod.metadata.name}-{number}"}
    made["metadata"].pop("uid")
    made["status"] = {}
    spec = made["spec"]
    policy = spec.pop("preemptionPolicy", "")
    spec["priorityClassName"] = class_name(spec.pop("priority", None) or 0, policy)
    for container in spec.get("initContainers", []):
        container["image"] = "init"
    for container in spec["containers"]:
        resources = container.get("resources", {})
        gpus = resources.get("requests", {}).get(GPU)
        container["resources"] = resources | ({"limits": {GPU: gpus}} if gpus else {})
    return made


class Minute:
    """A world with a random script from `seed`, and the records of the auditor and the log."""

    def __init__(self, seed, latency=None):
        self.chance = Chance(seed)
        self.log = []
        self.auditor = Auditor(build_engine)
        self.world = SimulatedWorld(
            self.auditor, start=START, seed=seed, latency=latency, command_log=self.log.append
        )
        self.auditor.begin(self.world, seed)
        nodes = [manifest(any_node(self.chance, name), "Node") for name in NODE_NAMES]
        budgets = {b.key: b for b in (any_budget(self.chance) for _ in range(3))}
        self.world.load([
            *priority_classes(), *nodes,
            *(manifest(b, "PodDisruptionBudget", "policy/v1") for b in budgets.values()),
        ])  # fmt: skip
        for number in range(45):
            self.world.at(START + seconds(self.chance.below(60_000) / 1000), self.act(number))

    def act(self, number):
        """Perform a random change."""
        chance, at = self.chance, self.chance.below(20)
        pod = pod_manifest(any_pod(chance, chance.of(POD_NAMES)), number)
        node = manifest(any_node(chance, chance.of(NODE_NAMES)), "Node")
        name, cordon = node["metadata"]["name"], chance.one_in(2)

        def happen(store, now):
            pods = sorted(pod["metadata"]["name"] for pod in store.list(POD, "default"))
            if at == 0:
                store.delete(NODE, "", name, now)
            elif at == 1:
                store.create(node, now)
            elif at == 2:
                store.patch(NODE, "", name, {"spec": {"unschedulable": cordon}}, now)
            elif at < 6 and pods:
                store.delete(POD, "default", pods[number % len(pods)], now)
            else:
                store.create(pod, now)

        return tolerant(happen)

    def run(self):
        self.world.run(START + seconds(90))
        self.auditor.finish()
        return self


def tolerant(act):
    """Return `act` without errors about missing objects."""

    def tried(store, now):
        try:
            act(store, now)
        except ApiError as refusal:
            if refusal.reason not in ("NotFound", "AlreadyExists", "Conflict"):
                raise

    return tried


# --- the auditor -----------------------------------------------------------------------------


class Auditor:
    """Sits between the world and the engine, and checks every command and every record."""

    def __init__(self, build):
        self._build = build
        self.under_way = {}
        self.placed = self.refused = self.preempted = 0

    def begin(self, world, seed):
        self.world = world
        self.engine = self._build(EngineConfig(seed=seed, start=START), self)

    # Controller

    def handle(self, stimulus, now):
        if isinstance(stimulus, CommandSucceeded | CommandFailed):
            command = stimulus.command
            if isinstance(command, Bind):
                del self.under_way[command.pod.uid]
        return self.audit(self.engine.handle(stimulus, now))

    def next_deadline(self):
        return self.engine.next_deadline()

    def handle_deadline(self, now):
        return self.audit(self.engine.handle_deadline(now))

    # Reporter

    def report(self, record):
        match record:
            case PodPreempting():
                self.preempted += 1
                preemptor = self.stored(record.pod)
                for victim in record.victims:
                    found = self.stored(victim)
                    assert found is None or found.spec.priority < preemptor.spec.priority
                    assert found is None or self.node_of(found) == record.node
                assert record.rule
                assert record.victims
            case PodUnschedulable(is_error=False):
                self.refused += 1
                assert REFUSAL.fullmatch(record.message), record.message
            case PodUnschedulable():
                assert record.message
            case PodPlaced():
                self.placed += 1
            case _:
                pass

    # what must hold

    def audit(self, issued):
        for one in issued:
            if isinstance(one.command, Bind):
                self.check_bind(one.command)
        return issued

    def check_bind(self, bind):
        """Check that the pod is not bound yet, and that its node has room for all its pods."""
        assert bind.pod.uid not in self.under_way
        pod = self.stored(bind.pod)
        assert pod is None or not pod.spec.node_name
        self.under_way[bind.pod.uid] = bind
        node = self.world.store.find(NODE, "", bind.node)
        if node is not None and pod is not None:
            check_room(decode(node), [*self.on(bind.node), pod], pod)

    def on(self, node):
        """Yield every unfinished pod that is on the node, or was assumed there before now."""
        coming = [b.pod.uid for b in self.under_way.values() if b.node == node]
        for obj in self.world.store.list(POD):
            pod = decode(obj)
            is_coming = pod.metadata.uid in coming[:-1]
            if not is_terminal(pod) and (pod.spec.node_name == node or is_coming):
                yield pod

    def node_of(self, pod):
        """Return the node of a pod, bound or assumed."""
        bind = self.under_way.get(pod.metadata.uid)
        return pod.spec.node_name or (bind.node if bind else "")

    def stored(self, ref):
        obj = self.world.store.find(POD, ref.namespace, ref.name)
        pod = decode(obj) if obj is not None else None
        return pod if isinstance(pod, Pod) and pod.metadata.uid == ref.uid else None

    def finish(self):
        """Check that the sums are right, and that every pending pod has a message."""
        self.engine.cluster.table.validate()
        for obj in self.world.store.list(POD):
            pod = decode(obj)
            waits = not pod.spec.node_name and not pod.metadata.deletion_timestamp
            if waits:
                assert any(c.type == "PodScheduled" and c.message for c in pod.status.conditions)


def check_room(node, pods, newcomer):
    """Check that the new pod over-commits neither a resource nor the number of pods."""
    offered = node.status.allocatable
    assert len(pods) <= whole_value(offered.get("pods", 0))
    used = {}
    for pod in pods:
        for name, amount in pod_requests(pod, existing=True).items():
            used[name] = used.get(name, 0) + amount
    for name, amount in pod_requests(newcomer).items():
        if amount and name != "pods":
            assert used[name] <= allocatable_amount(name, offered), name


# --- the properties --------------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_all_safety_properties_hold_without_latencies(seed):
    """All requests are answered immediately."""
    Minute(seed).run()


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_all_safety_properties_hold_with_latencies(seed):
    """Decisions are made while other requests are in progress."""
    Minute(seed, Latency(bind=seconds(0.7), patch=seconds(0.2))).run()


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_equal_seeds_give_equal_command_logs(seed):
    """The logs are equal byte for byte."""
    assert Minute(seed).run().log == Minute(seed).run().log


def test_the_random_minutes_have_all_kinds_of_events():
    """Placements, refusals and preemptions occur, so that the properties are tested."""
    seen = [Minute(seed).run().auditor for seed in range(6)]
    assert sum(one.placed for one in seen) > 60
    assert sum(one.refused for one in seen) > 30
    assert sum(one.preempted for one in seen) > 5
