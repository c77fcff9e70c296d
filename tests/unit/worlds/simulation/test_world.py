"""The simulated world: the delivered stimuli, their order and their times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.api.objects import Pod
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NODE, POD
from fairlead.engine.core.command import (
    Bind,
    Condition,
    DeleteObject,
    EvictPod,
    IssuedCommand,
    ObjectRef,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.issuer import KUBELET, SCHEDULER
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.engine import Engine
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.simulation.world import Latency, SimulatedWorld

START = seconds(1_000)


class Lifecycle:
    """Moves each pod through its life, with one command per stage of `stages`."""

    issuer = KUBELET

    def __init__(self, stages=("bind", "start", "delete", "remove")):
        self.stages = stages
        self.stimuli = []

    def handle(self, stimulus, now):
        self.stimuli.append((now - START, stimulus))
        if isinstance(stimulus, ObjectChanged) and isinstance(stimulus.object, Pod):
            return [
                command for stage, command in self.next(stimulus.object) if stage in self.stages
            ]
        return []

    def next(self, pod):
        meta = pod.metadata
        ref = ObjectRef("Pod", meta.namespace, meta.name, meta.uid)
        if meta.deletion_timestamp:
            yield "remove", DeleteObject(ref, 0)
        elif not pod.spec.node_name:
            yield "bind", Bind(ref, "n1")
        elif pod.status.phase == "Pending":
            yield "start", PatchStatus(ref, {"phase": "Running"}, (Condition("Ready", "True"),))
        else:
            yield "delete", DeleteObject(ref)

    def next_deadline(self):
        return None

    def handle_deadline(self, now):
        raise AssertionError("nothing was due")


def names(stimuli):
    """Return (seconds, short name of the stimulus) for each received stimulus."""
    return [(at / 10**9, short(stimulus)) for at, stimulus in stimuli]


def short(stimulus):
    match stimulus:
        case ObjectsLoaded(objects):
            return f"loaded {len(objects)}"
        case ObjectChanged(obj):
            return f"changed {obj.metadata.name}"
        case ObjectDeleted(obj):
            return f"deleted {obj.metadata.name}"
        case CommandSucceeded(command):
            return f"{type(command).__name__} succeeded"
        case CommandFailed(command, reason):
            return f"{type(command).__name__} failed: {reason}"


@pytest.fixture
def world(engine):
    return SimulatedWorld(engine, start=START)


def run(world, seconds_=100):
    world.run(START + seconds(seconds_))


# --- the start ------------------------------------------------------------------------------


def test_loaded_objects_are_delivered_in_one_stimulus(world, listener, pod, node):
    world.load([pod("b"), pod("a"), node("n2"), node("n1")])
    run(world)
    [(at, loaded)] = listener.stimuli
    assert at == START
    assert [obj.metadata.name for obj in loaded.objects] == [
        "n1",
        "n2",
        "system-cluster-critical",
        "system-node-critical",
        "a",
        "b",
    ]
    assert world.last_change == START


def test_a_world_can_start_empty(world, listener):
    run(world)
    assert listener.stimuli == []
    assert world.now == START + seconds(100)


def test_a_malformed_snapshot_is_refused(world, pod):
    with pytest.raises(ApiError, match=r'Pod "a" is invalid: metadata\.name: Duplicate value'):
        world.load([pod(), pod()])


# --- the script -----------------------------------------------------------------------------


def test_acts_are_performed_in_the_order_of_their_times(world, listener, pod):
    for at, name in ((5, "c"), (2, "a"), (5, "b"), (2, "d")):
        world.at(START + seconds(at), lambda store, now, name=name: store.create(pod(name), now))
    run(world)
    assert [(at - START) // 10**9 for at, _ in listener.stimuli] == [2, 2, 5, 5]
    assert [short(stimulus) for _, stimulus in listener.stimuli] == [
        "changed a",
        "changed d",
        "changed c",
        "changed b",
    ]
    assert world.last_change == START + seconds(5)


def test_the_effects_of_an_act_settle_before_the_next_act_of_the_same_instant(pod):
    controller = Lifecycle(stages=("bind",))
    world = SimulatedWorld(Engine(Cluster(), [controller]), start=START)
    for name in ("a", "b"):
        world.at(START, lambda store, now, name=name: store.create(pod(name), now))
    run(world)
    assert [short(stimulus) for _, stimulus in controller.stimuli] == [
        "changed a",
        "changed a",
        "Bind succeeded",
        "changed b",
        "changed b",
        "Bind succeeded",
    ]


def test_successes_state_the_issuer_of_the_command(pod):
    """Of all commands of a pod's life: bindings, status patches and deletions."""
    controller = Lifecycle()
    world = SimulatedWorld(Engine(Cluster(), [controller]), start=START)
    world.at(START, lambda store, now: store.create(pod("a"), now))
    run(world)
    found = [one for _, one in controller.stimuli if isinstance(one, CommandSucceeded)]
    assert [(type(one.command), one.issuer) for one in found] == [
        (Bind, KUBELET),
        (PatchStatus, KUBELET),
        (DeleteObject, KUBELET),
        (DeleteObject, KUBELET),
    ]


def test_an_act_after_the_end_is_not_performed(world, listener, pod):
    world.at(START + seconds(5), lambda store, now: store.create(pod(), now))
    run(world, 4)
    assert listener.stimuli == []
    run(world, 5)
    assert len(listener.stimuli) == 1


def test_an_act_can_schedule_another_act(world, listener, pod):
    def first(store, now):
        world.at(now + seconds(3), lambda store, now: store.create(pod(), now))

    world.at(START, first)
    run(world)
    assert [(at - START) / 10**9 for at, _ in listener.stimuli] == [3]


def test_each_object_is_delivered_once_per_act_in_its_last_version(world, listener, pod, node):
    def act(store, now):
        store.create(pod("a"), now)
        store.create(node(), now)
        store.patch_status(POD, "ns", "a", {"phase": "Running"}, now)

    world.at(START, act)
    run(world)
    assert names(listener.stimuli) == [(1000, "changed n1"), (1000, "changed a")]
    assert listener.stimuli[1][1].object.status.phase == "Running"


def test_an_object_created_and_deleted_in_one_act_is_not_delivered(world, listener, pod):
    def act(store, now):
        store.create(pod("a"), now)
        store.delete(POD, "ns", "a", now)

    world.at(START, act)
    run(world)
    assert listener.stimuli == []


def test_a_recreated_object_is_delivered_as_a_deletion_and_an_addition(world, listener, node):
    world.load([node()])

    def act(store, now):
        store.delete(NODE, "", "n1", now)
        store.create(node(cpu="1"), now)

    world.at(START, act)
    run(world)
    assert [short(stimulus) for _, stimulus in listener.stimuli[1:]] == ["deleted n1", "changed n1"]
    gone, come = (stimulus.object.metadata.uid for _, stimulus in listener.stimuli[1:])
    assert gone != come


def test_an_exception_of_an_act_ends_the_run(world):
    world.at(START, lambda store, now: store.get(POD, "ns", "nobody"))
    with pytest.raises(ApiError, match='pods "nobody" not found'):
        run(world)


# --- commands -------------------------------------------------------------------------------


def test_the_change_of_a_command_is_delivered_before_its_outcome(pod):
    controller = Lifecycle()
    world = SimulatedWorld(Engine(Cluster(), [controller]), start=START)
    world.at(START, lambda store, now: store.create(pod(), now))
    run(world)
    assert [short(stimulus) for _, stimulus in controller.stimuli] == [
        "changed a",
        "changed a",
        "Bind succeeded",
        "changed a",
        "PatchStatus succeeded",
        "changed a",
        "DeleteObject succeeded",
        "deleted a",
        "DeleteObject succeeded",
    ]
    assert world.store.list(POD) == []


def test_a_deletion_is_delivered_with_the_last_version_of_the_object(pod):
    controller = Lifecycle()
    world = SimulatedWorld(Engine(Cluster(), [controller]), start=START)
    world.at(START, lambda store, now: store.create(pod(), now))
    run(world)
    [gone] = [one.object for _, one in controller.stimuli if isinstance(one, ObjectDeleted)]
    assert (gone.spec.node_name, gone.status.phase) == ("n1", "Running")
    assert gone.metadata.deletion_timestamp == "1970-01-01T00:16:40Z"


def test_a_refused_command_has_a_failed_outcome(world, listener, pod):
    world.perform(IssuedCommand(Bind(ObjectRef("Pod", "ns", "nobody"), "n1"), SCHEDULER), START)
    run(world)
    [(_, outcome)] = listener.stimuli
    assert outcome.reason is FailureReason.NOT_FOUND
    assert outcome.message == 'pods "nobody" not found'


def test_a_policy_created_during_the_run_applies_to_later_status_writes(pod):
    """The first pod is bound and started before the policy exists."""
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "still"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
                     "resources": ["pods/status"]}
                ]
            },
            "validations": [{"expression": "false"}],
        },
    }  # fmt: skip
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "still"},
        "spec": {"policyName": "still", "validationActions": ["Deny"]},
    }
    controller = Lifecycle(stages=("bind", "start"))
    world = SimulatedWorld(Engine(Cluster(), [controller]), start=START)
    created = (pod("a"), policy, binding, pod("b"))
    for second, one in enumerate(created):
        world.at(START + seconds(second), lambda store, now, one=one: store.create(one, now))
    run(world)
    outcomes = [one for one in names(controller.stimuli) if "PatchStatus" in one[1]]
    assert outcomes == [(0, "PatchStatus succeeded"), (3, "PatchStatus failed: Invalid")]


def test_an_eviction_is_delivered_as_one_change(world, listener, pod):
    world.load([pod(node="n1", uid="u")])
    world.perform(IssuedCommand(EvictPod(ObjectRef("Pod", "ns", "a", "u")), SCHEDULER), START)
    run(world)
    assert [short(stimulus) for _, stimulus in listener.stimuli[1:]] == [
        "changed a",
        "EvictPod succeeded",
    ]


@pytest.mark.parametrize(
    ("latency", "expected"),
    [
        (
            Latency(bind=seconds(2)),
            [(0, "changed a"), (2, "changed a"), (2, "Bind succeeded")],
        ),
        (Latency(patch=seconds(9)), [(0, "changed a"), (0, "changed a"), (0, "Bind succeeded")]),
    ],
    ids=["a binding takes time", "a patch's time is not a binding's"],
)
def test_a_request_takes_effect_after_its_latency(pod, latency, expected):
    controller = Lifecycle(stages=("bind",))
    world = SimulatedWorld(Engine(Cluster(), [controller]), start=START, latency=latency)
    world.at(START, lambda store, now: store.create(pod(), now))
    run(world)
    assert names(controller.stimuli) == expected


def test_a_delayed_request_is_performed_on_the_state_at_its_arrival(pod):
    controller = Lifecycle(stages=("bind",))
    world = SimulatedWorld(
        Engine(Cluster(), [controller]), start=START, latency=Latency(bind=seconds(2))
    )
    world.at(START, lambda store, now: store.create(pod(), now))
    world.at(START + seconds(1), lambda store, now: store.delete(POD, "ns", "a", now))
    run(world)
    assert names(controller.stimuli) == [
        (0, "changed a"),
        (1, "deleted a"),
        (2, "Bind failed: NotFound"),
    ]


def test_events_are_recorded_and_are_not_changes(world, listener):
    event = RecordEvent(ObjectRef("Pod", "ns", "a"), "Normal", "R", "A", "n", "c")
    world.perform(IssuedCommand(event, SCHEDULER), START + seconds(7))
    run(world)
    assert [(recorded.at, recorded.event.note) for recorded in world.events.to_list()] == [
        (START + seconds(7), "n")
    ]
    assert (listener.stimuli, world.last_change) == ([], START)


def test_every_command_is_logged_at_the_time_it_is_issued(pod):
    lines = []
    controller = Lifecycle(stages=("bind",))
    world = SimulatedWorld(
        Engine(Cluster(), [controller]),
        start=START,
        latency=Latency(bind=seconds(2)),
        command_log=lines.append,
    )
    world.at(START, lambda store, now: store.create(pod(), now))
    run(world)
    [line] = map(json.loads, lines)
    assert (line["t_ns"], line["command"], line["node"]) == (START, "Bind", "n1")


def test_a_run_reports_progress_and_can_be_stopped(world, listener, pod):
    for at in (1, 2, 3):
        act = lambda store, now: store.create(pod(f"p{now}"), now)  # noqa: E731
        world.at(START + seconds(at), act)
    instants = []
    world.run(
        START + seconds(9),
        stop_when=lambda: len(listener.stimuli) == 2,
        on_progress=lambda now: instants.append((now - START) // 10**9),
    )
    assert (instants[-1], world.now) == (2, START + seconds(2))


# --- determinism ----------------------------------------------------------------------------

RUN = """
from fairlead.engine.core.instant import seconds
from fairlead.worlds.simulation.world import SimulatedWorld
from test_world import Cluster, Engine, Lifecycle, START

def pod(name):
    labels = {letter: "1" for letter in {*"abcdefgh"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": name, "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}

world = SimulatedWorld(Engine(Cluster(), [Lifecycle()]), start=START, seed=5, command_log=print)
for number in range(20):
    world.at(START + number % 3, lambda store, now: store.create(pod("p-"), now))
world.run(START + seconds(9))
"""


def command_log_under(hash_seed):
    finished = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=Path(__file__).parent,
        env={"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        text=True,
    )
    return finished.stdout


def test_equal_seeds_give_equal_command_logs_under_any_hash_seed():
    first, second = command_log_under("1"), command_log_under("2")
    assert first.count("\n") == 80
    assert first == second


def test_uids_of_loaded_objects_are_not_used_again():
    """A second simulation starts with the objects of the first, and has the same seed."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    first = SimulatedWorld(Lifecycle(), start=START, seed=5)
    first.load([node])
    loaded = first.store.find(NODE, "", "a")
    second = SimulatedWorld(Lifecycle(), start=START, seed=5)
    second.load([loaded])
    other = second.store.create({**node, "metadata": {"name": "b"}}, START)
    assert other["metadata"]["uid"] != loaded["metadata"]["uid"]
