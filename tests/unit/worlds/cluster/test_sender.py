"""How a Sender performs commands; a fake API server returns the responses."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.client.request_queue import RequestLimits
from fairlead.client.rest_client import ApiAnswer
from fairlead.engine.core.command import (
    Bind,
    CreateObject,
    DeleteObject,
    EvictPod,
    IssuedCommand,
    ObjectRef,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.issuer import API_SERVER
from fairlead.worlds.cluster.resource import SCHEDULER, resources_by_kind, watched_resources
from fairlead.worlds.cluster.sender import Sender, SenderOptions, _request_name

CREATED = ApiAnswer(201, b"{}")
POD = ObjectRef("Pod", "shop", "web-0")
CLAIM = {"kind": "ResourceClaim", "metadata": {"namespace": "shop", "name": "gpu"}}


class Client:
    """Records the requests of `begin`; `is_connected` is whether a connection is open."""

    def __init__(self, *, is_connected=True):
        self.is_connected = is_connected
        self.begun = []
        self.exchanged = []

    def begin(self, request, _seconds_max, on_answer):
        if self.is_connected:
            self.begun.append((request.path.split("/")[-2], on_answer))
        return self.is_connected

    async def exchange(self, request, _seconds_max):
        self.exchanged.append(request.path.split("/")[-2])
        return CREATED


class World:
    """A world that holds outcomes back until `held_until`."""

    def __init__(self, held_until=None):
        self.held_until = held_until
        self.finished = []

    def finish(self, performed, _now):
        self.finished.append(performed.outcome)
        return self.held_until


def bind(name, node="node-0"):
    return IssuedCommand(Bind(ObjectRef("Pod", "shop", name, "u-1"), node), API_SERVER)


def run(
    client,
    world,
    *commands,
    then=lambda _: None,
    may_send=lambda: True,
    log=lambda _: None,
    clock=lambda: 0,
):
    """Perform commands; call `then` with the sender once everything that can be sent is sent."""

    async def work():
        options = SenderOptions(
            limits=RequestLimits(qps=0),
            clock=clock,
            jitter=lambda: 0.0,
            may_send=may_send,
            log=log,
        )
        sender = Sender(client, resources_by_kind(watched_resources((SCHEDULER,))), options)
        sender.world = world
        sender.on_failure = failures.append
        sender.on_hold = holds.append
        for command in commands:
            sender.submit(command, 0)
        for _ in range(4):
            await asyncio.sleep(0)
        then(sender)
        for _ in range(4):
            await asyncio.sleep(0)
        return sender

    failures, holds = [], []
    sender = asyncio.run(work())
    return sender, failures, holds


def test_requests_about_the_same_pod_are_sent_sequentially():
    client, world = Client(), World()

    def then(_):
        assert [name for name, _ in client.begun] == ["web-0", "web-1"]
        client.begun[0][1](CREATED)

    run(client, world, bind("web-0"), bind("web-0", "node-1"), bind("web-1"), then=then)
    assert [name for name, _ in client.begun] == ["web-0", "web-1", "web-0"]
    assert len(world.finished) == 1


def test_without_an_open_connection_a_request_is_exchanged():
    client, world = Client(is_connected=False), World()
    sender, _, _ = run(client, world, bind("web-0"))
    assert client.exchanged == ["web-0"]
    assert len(world.finished) == 1
    assert sender.is_idle


def test_a_request_that_was_not_performed_is_exchanged():
    client, world = Client(), World()
    run(client, world, bind("web-0"), then=lambda _: client.begun[0][1](None))
    assert client.exchanged == ["web-0"]
    assert len(world.finished) == 1


def test_a_delayed_outcome_has_its_time():
    client, world = Client(), World(held_until=seconds(5))
    _, _, holds = run(client, world, bind("web-0"), then=lambda _: client.begun[0][1](CREATED))
    assert holds == [seconds(5)]


def test_a_missing_permission_is_logged_once():
    """Otherwise a forbidden deletion or patch would leave no trace."""
    client, world, lines = Client(), World(), []

    def then(_):
        for name, answer in client.begun:
            answer(ApiAnswer(403, message=f'pods "{name}" is forbidden: User "u" cannot delete'))

    run(client, world, bind("web-0"), bind("web-1"), then=then, log=lines.append)
    assert lines == [
        'the API server forbids a request: pods "web-0" is forbidden: User "u" cannot delete'
    ]
    assert len(world.finished) == 2


@pytest.mark.parametrize(
    ("status", "message", "count"),
    [
        (401, "Unauthorized", 1),
        (400, 'admission webhook "w" denied the request', 1),
        (422, 'Pod "{name}" is invalid: spec: Forbidden', 1),
        (404, 'pods "{name}" not found', 0),
        (409, 'Operation cannot be fulfilled on pods/binding "{name}"', 0),
    ],
    ids=str,
)
def test_a_refusal_is_logged_once_unless_it_is_usual(status, message, count):
    """For example an expired token; a pod that is gone or bound needs no attention."""
    client, lines = Client(), []

    def then(_):
        for name, answer in client.begun:
            answer(ApiAnswer(status, message=message.format(name=name)))

    run(client, World(), bind("web-0"), bind("web-1"), then=then, log=lines.append)
    text = f"the API server refuses a request: {message.format(name='web-0')}"
    assert lines == [text] * count


def test_the_refusal_of_an_event_in_a_terminating_namespace_is_not_logged():
    client, world, lines = Client(), World(), []
    body = b'{"details":{"causes":[{"reason":"NamespaceTerminating"}]}}'
    refused = ApiAnswer(403, body, message="unable to create new content in namespace a")
    run(client, world, bind("web-0"), then=lambda _: client.begun[0][1](refused), log=lines.append)
    assert lines == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ApiAnswer(0, message="did not answer in time"), "did not answer in time"),
        (ApiAnswer(503, message="overloaded"), "overloaded"),
        (ApiAnswer(429, message="too many", retry_after_s=30.0), "too many"),
        (ApiAnswer(200, b"<html>"), "the answer is not a Kubernetes object"),
    ],
    ids=["no answer", "503", "429", "HTML"],
)
def test_commands_that_fail_for_ten_seconds_are_logged_once(answer, reason):
    """They are repeated until they succeed, so there would be no other trace of them."""
    client, lines, now = Client(), [], [0]

    def then(_):
        first, second, third = (on_answer for _, on_answer in client.begun)
        now[0] = seconds(9)
        first(answer)
        assert lines == []
        now[0] = seconds(31)
        second(answer)
        third(answer)

    commands = bind("web-0"), bind("web-1"), bind("web-2")
    run(client, World(), *commands, then=then, log=lines.append, clock=lambda: now[0])
    problem = f"has failed for 31 seconds ({reason}); trying again"
    assert lines == [f"create Binding shop/web-1 {problem}"]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (EvictPod(POD), "create Eviction shop/web-0"),
        (DeleteObject(POD), "delete Pod shop/web-0"),
        (PatchStatus(POD), "patch Pod shop/web-0 (status)"),
        (PatchObject(ObjectRef("Node", "", "a"), {}), "patch Node a"),
        (CreateObject(CLAIM), "create ResourceClaim shop/gpu"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_the_log_names_the_request_of_a_command_that_fails(command, name):
    assert _request_name(command) == name


def test_a_command_that_fails_after_the_others_have_succeeded_is_logged():
    client, lines, now = Client(), [], [0]
    failure = ApiAnswer(503, message="overloaded")

    def then(_):
        loop = asyncio.get_running_loop()
        loop.call_later = lambda _, resume, *arguments: resume(*arguments)  # no pauses
        now[0] = seconds(31)
        for number in (0, 1):
            client.begun[number][1](failure)
        _, _, last, first, second = (on_answer for _, on_answer in client.begun)
        first(CREATED)
        second(CREATED)
        last(failure)

    commands = bind("web-0"), bind("web-1"), bind("web-2")
    run(client, World(), *commands, then=then, log=lines.append, clock=lambda: now[0])
    text = "has failed for 31 seconds (overloaded); trying again"
    assert lines == [f"create Binding shop/web-{number} {text}" for number in (0, 2)]


def test_no_request_is_sent_without_leadership():
    client, world = Client(), World()
    sender, _, _ = run(client, world, bind("web-0"), may_send=lambda: False)
    assert (client.begun, client.exchanged, world.finished) == ([], [], [])
    assert sender.requests == 0


def test_an_answer_after_stop_is_ignored():
    client, world = Client(), World()

    def then(sender):
        sender.stop()
        client.begun[0][1](CREATED)

    run(client, world, bind("web-0"), then=then)
    assert world.finished == []


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_rejected_request_is_not_repeated_without_leadership(is_stopped):
    client, world, leads = Client(), World(), [True]

    def then(sender):
        if is_stopped:
            sender.stop()
        else:
            leads.clear()
        client.begun[0][1](None)

    run(client, world, bind("web-0"), then=then, may_send=lambda: bool(leads))
    assert client.exchanged == []


def test_a_defect_is_reported():
    client, world = Client(), World()
    _, failures, _ = run(client, world, bind("web-0", object()))
    assert [type(one) for one in failures] == [TypeError]


class BrokenWorld(World):
    """A world that fails when it receives an outcome."""

    def finish(self, performed, _now):
        raise RuntimeError(f"{type(performed.outcome).__name__} cannot be recorded")


@pytest.mark.parametrize("is_connected", [True, False], ids=["begun", "exchanged"])
def test_an_outcome_that_cannot_be_recorded_is_reported(is_connected):
    client = Client(is_connected=is_connected)

    def then(_):
        if is_connected:
            client.begun[0][1](CREATED)

    _, failures, _ = run(client, BrokenWorld(), bind("web-0"), then=then)
    assert [str(one) for one in failures] == ["CommandSucceeded cannot be recorded"]
