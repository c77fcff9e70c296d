"""A world that refuses commands at random: no pod is lost, and no state is left over.

Every command may be refused for some time, with any error of the API. After the refusals end, every
pod that fits is bound, every other pod has a reason, and no assumption, preemption or binding
remains.
"""

from __future__ import annotations

from collections import Counter

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.api.objects import PodCondition
from fairlead.engine.compose import build_scheduler_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.command import Bind, DeleteObject, PatchStatus, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.random_cluster import Chance

START = seconds(1_767_225_600)
CALM = START + seconds(60)
END = START + seconds(400)
GRACE = seconds(3)
STEPS_MAX = 20_000
REASONS = (FailureReason.CONFLICT, FailureReason.INTERNAL_ERROR, FailureReason.TOO_MANY_REQUESTS)


def changed(view, **parts):
    """Return `view` with the fields of `part={field: value}` replaced."""
    inner = {
        part: msgspec.structs.replace(getattr(view, part), **fields)
        for part, fields in parts.items()
    }
    return msgspec.structs.replace(view, **inner)


class Refusing:
    """Pods and commands in progress; commands are refused at random until `CALM`."""

    def __init__(self, seed):
        self.chance = Chance(seed)
        self.engine = build_scheduler_engine(EngineConfig(seed=seed, start=START), SilentReporter())
        self.now = START
        self.pods = {}
        self.agenda = TimerQueue()
        self.tally = Counter()
        nodes = [make_node(f"n{i}", cpu=self.chance.of((2, 4, 6))) for i in range(4)]
        self.tell(ObjectsLoaded(nodes))
        for number in range(24):
            due = START + seconds(self.chance.below(40_000) / 1000)
            self.agenda.add(due, lambda number=number: self.arrive(number))
            if self.chance.one_in(4):
                self.agenda.add(due + seconds(5), lambda number=number: self.leave(number))

    def arrive(self, number):
        pod = make_pod(
            f"p{number}",
            priority=self.chance.of((0, 10, 100)),
            requests={"cpu": self.chance.of(("500m", "1", "2"))},
        )
        self.put(pod)

    def leave(self, number):
        pod = self.pods.get(f"default/p{number}")
        if pod is not None:
            self.delete(pod)

    def put(self, pod):
        self.pods[pod.key] = pod
        self.tell(ObjectChanged(pod))

    def delete(self, pod):
        """Delete a pod, gracefully if it runs."""
        if not pod.spec.node_name:
            del self.pods[pod.key]
            self.tell(ObjectDeleted(pod))
        elif not pod.metadata.deletion_timestamp:
            self.put(changed(pod, metadata={"deletion_timestamp": "2026-01-01T00:00:00Z"}))
            self.agenda.add(self.now + GRACE, lambda: self.vanish(pod.key))

    def vanish(self, key):
        pod = self.pods.pop(key, None)
        if pod is not None:
            self.tell(ObjectDeleted(pod))

    def tell(self, stimulus):
        for issued in self.engine.handle(stimulus, self.now):
            self.send(issued.command)

    def send(self, command):
        """Send a command, which arrives immediately or a little later."""
        if isinstance(command, RecordEvent):
            return
        delay = self.chance.of((0, 0, 40, 700)) * 1_000_000
        self.agenda.add(self.now + delay, lambda: self.answer(command))

    def answer(self, command):
        target = command.pod if isinstance(command, Bind) else command.target
        pod = self.pods.get(target.key)
        self.tally[type(command).__name__] += 1
        if self.now < CALM and self.chance.one_in(3):
            self.tally["refused"] += 1
            self.tell(CommandFailed(command, self.chance.of(REASONS), "not today"))
        elif pod is None or pod.metadata.uid != target.uid:
            self.tell(CommandFailed(command, FailureReason.NOT_FOUND, "not found"))
        elif isinstance(command, Bind) and pod.spec.node_name:
            raise AssertionError(f"{pod.key} bound twice")
        else:
            self.perform(command, pod)
            self.tell(CommandSucceeded(command))

    def perform(self, command, pod):
        match command:
            case Bind(node=node):
                self.put(changed(pod, spec={"node_name": node}, status={"nominated_node_name": ""}))
            case PatchStatus(fields=fields, conditions=conditions):
                status = {}
                if "nominatedNodeName" in fields:
                    status["nominated_node_name"] = fields["nominatedNodeName"] or ""
                if conditions:
                    new = {one.type: condition_of(one) for one in conditions}
                    kept = [one for one in pod.status.conditions if one.type not in new]
                    status["conditions"] = (*kept, *new.values())
                self.put(changed(pod, status=status))
            case DeleteObject():
                self.delete(pod)

    def run(self):
        for _ in range(STEPS_MAX):
            dues = (self.agenda.next_due(), self.engine.next_deadline())
            due = min((one for one in dues if one is not None), default=None)
            if due is None or due > END:
                return self
            self.now = max(self.now, due)
            acts = self.agenda.pop_due(self.now)
            for act in acts:
                act()
            deadline = self.engine.next_deadline()
            if not acts and deadline is not None and deadline <= self.now:
                for issued in self.engine.handle_deadline(self.now):
                    self.send(issued.command)
        raise AssertionError("time stands still")


def condition_of(one):
    return PodCondition(type=one.type, status=one.status, reason=one.reason, message=one.message)


def room_left(world):
    """Return {node: free milli-CPUs} from the requests of the world's pods."""
    left = {node.name: node.allocatable[0] for node in world.engine.cluster.table.nodes()}
    for pod in world.pods.values():
        if pod.spec.node_name:
            left[pod.spec.node_name] -= milli(pod)
    return left


def milli(pod):
    text = str(pod.spec.containers[0].resources.requests["cpu"])
    return int(text.removesuffix("m")) if text.endswith("m") else 1000 * int(text)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
@example(seed=24950)  # the binding of the last victim fails, and then the victim is deleted
def test_refusals_leave_no_state_in_the_engine(seed):
    """No assumed pod, command in flight, open preemption or nomination of a deleted pod remains."""
    world = Refusing(seed).run()
    cluster = world.engine.cluster
    scheduler = world.engine.find(Scheduler)
    cluster.table.validate()
    assert cluster._assumed == {}
    assert scheduler._bindings._by_pod == {}
    assert scheduler._preemptions._by_preemptor == {}
    assert scheduler._blocked_by is None
    left = room_left(world)
    assert min(left.values()) >= 0
    waiting = [pod for pod in world.pods.values() if not pod.spec.node_name]
    for pod in waiting:
        assert all(free < milli(pod) for free in left.values()), (pod.key, left)
        assert any(c.type == "PodScheduled" and c.message for c in pod.status.conditions)
    nominator = scheduler.nominator
    promised = {pod.key for node in nominator.nodes() for pod in nominator.pods_on(node)}
    assert promised <= {pod.key for pod in waiting}


def test_the_world_refuses_commands_of_every_kind():
    """Otherwise the other test would prove nothing."""
    tally = Counter()
    for seed in range(10):
        tally += Refusing(seed).run().tally
    assert tally["refused"] > 50
    assert min(tally[kind] for kind in ("Bind", "PatchStatus", "DeleteObject")) > 10
