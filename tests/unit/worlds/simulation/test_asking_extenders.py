"""Calls of extenders in a simulated world, and their effects."""

from __future__ import annotations

import json

import pytest

from fairlead.apiserver.kind import POD
from fairlead.engine.core.command import CallExtender, ExtenderVerb, ObjectRef
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.issuer import SCHEDULER
from fairlead.engine.core.stimulus import CommandFailed, ExtenderAnswered, ObjectChanged
from fairlead.engine.engine import Engine
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_000)


class Asking:
    """A controller that sends one extender request about the first pod."""

    issuer = SCHEDULER

    def __init__(self, verb, nodes=("n1",)):
        self.verb, self.nodes = verb, nodes
        self.stimuli = []

    def handle(self, stimulus, now):
        self.stimuli.append(stimulus)
        if len(self.stimuli) > 1:
            return []
        pod = next(one for one in stimulus.objects if one.metadata.name == "a").metadata
        ref = ObjectRef("Pod", pod.namespace, pod.name, pod.uid)
        return [CallExtender(0, self.verb, "http://e", ref, self.nodes)]

    def next_deadline(self):
        return None

    def handle_deadline(self, now):
        raise AssertionError("nothing was due")


class Fake:
    """An extender that returns `answer`; None is a timeout."""

    def __init__(self, answer):
        self.answer = answer
        self.bodies = []

    def call(self, call, body):
        self.bodies.append(json.loads(body))
        if self.answer is None:
            return CommandFailed(call, "InternalError", "timeout")
        return ExtenderAnswered(call, 200, json.dumps(self.answer).encode())


@pytest.fixture
def call_extender(pod, node):
    """Sends an extender request; returns (stimuli, node of the pod, bodies of the requests)."""

    def ask(verb, answer, *, nodes=("n1",), bound=""):
        controller, extender, lines = Asking(verb, nodes), Fake(answer), []
        world = SimulatedWorld(
            Engine(Cluster(), [controller]), start=START, command_log=lines.append
        )
        world.extenders = extender
        world.load([node("n1"), pod("a", node=bound)])
        world.run(START + seconds(1))
        [line] = [line for line in lines if '"CallExtender"' in line]
        assert json.loads(line)["t_ns"] == START
        node_name = world.store.get(POD, "ns", "a")["spec"].get("nodeName", "")
        return controller.stimuli[1:], node_name, extender.bodies

    return ask


def test_an_extender_gets_objects_and_responds_at_once(call_extender):
    [answer], _, [body] = call_extender(ExtenderVerb.FILTER, {"NodeNames": []})
    assert answer.body == b'{"NodeNames": []}'
    assert body["Pod"]["metadata"]["uid"]
    assert [one["metadata"]["name"] for one in body["Nodes"]["items"]] == ["n1"]


def test_an_extender_without_a_response_is_a_failed_command(call_extender):
    [answer], _, _ = call_extender(ExtenderVerb.FILTER, None)
    assert isinstance(answer, CommandFailed)


def test_a_binding_by_an_extender_is_delivered_before_its_response(call_extender):
    """The API server sends the change before the extender responds."""
    [change, answer], node_name, [body] = call_extender(ExtenderVerb.BIND, {"Error": ""})
    assert node_name == change.object.spec.node_name == body["Node"] == "n1"
    assert isinstance(change, ObjectChanged)
    assert answer.body == b'{"Error": ""}'


@pytest.mark.parametrize("answer", [{"Error": "no"}, None, ["garbage"]])
def test_a_failed_binding_by_an_extender_changes_nothing(call_extender, answer):
    _, node_name, _ = call_extender(ExtenderVerb.BIND, answer)
    assert node_name == ""


def test_a_second_binding_by_an_extender_is_an_error(call_extender):
    """The API server refuses the second binding."""
    [answer], node_name, _ = call_extender(ExtenderVerb.BIND, {}, bound="n2")
    assert node_name == "n2"
    assert "already assigned" in json.loads(answer.body)["Error"]
