"""What an extender receives if the API server fails to return the pod."""

from __future__ import annotations

import asyncio
import json

import pytest

from fairlead.client.connection import ConnectionConfig
from fairlead.client.rest_client import ApiAnswer
from fairlead.engine.core.command import CallExtender, ExtenderVerb, ObjectRef
from fairlead.engine.core.stimulus import CommandFailed
from fairlead.worlds.cluster import extender_thread
from fairlead.worlds.cluster.extender_thread import ExtenderThread
from fairlead.worlds.cluster.resource import SCHEDULER, resources_by_kind, watched_resources

POD = {"metadata": {"name": "web-0", "namespace": "shop", "uid": "u-1"}, "spec": {"containers": []}}
FOUND = ApiAnswer(200, json.dumps(POD).encode())
FAILED = ApiAnswer(503, reason="ServiceUnavailable", message="overloaded")
HTML = ApiAnswer(200, b"<html>")
CALL = CallExtender(
    0,
    ExtenderVerb.FILTER,
    "http://x/filter",
    ObjectRef("Pod", "shop", "web-0", "u-1"),
    nodes=("node-0",),
    by_name=True,
)


class Client:
    """Returns `answers` one after another, and the last one again and again."""

    config = ConnectionConfig(name="test", server="https://x")

    def __init__(self, answers):
        self.answers = list(answers)

    async def exchange(self, _request, _seconds_max):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Caller:
    """An extender that records the pods that it receives."""

    def __init__(self):
        self.pods = []

    def call(self, call, body):
        self.pods.append(json.loads(body)["Pod"])
        return CommandFailed(call, None, "recorded")


def called(monkeypatch, *answers):
    """Return (the outcome's message, the pods that the extender received)."""
    monkeypatch.setattr(extender_thread, "READ_PAUSES_S", (0.0, 0.0))
    caller = Caller()
    thread = ExtenderThread(caller, resources_by_kind(watched_resources((SCHEDULER,))))
    try:
        outcome = asyncio.run(thread.call(CALL, Client(answers)))
    finally:
        thread.close()
    return outcome.message, caller.pods


@pytest.mark.parametrize(
    "failure", [FAILED, HTML, ApiAnswer(0, message="no answer"), ApiAnswer(408)]
)
def test_a_failed_read_of_the_pod_is_repeated(monkeypatch, failure):
    assert called(monkeypatch, failure, failure, FOUND) == ("recorded", [POD])


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (FAILED, "https://x: overloaded"),
        (ApiAnswer(403, message="forbidden"), "https://x: forbidden"),
        (
            HTML,
            "https://x: /api/v1/namespaces/shop/pods/web-0: the answer is not a Kubernetes object",
        ),
    ],
    ids=["503", "403", "HTML"],
)
def test_an_extender_does_not_decide_about_a_pod_that_cannot_be_read(monkeypatch, failure, message):
    """Without its containers, a pod seems to fit on every node."""
    assert called(monkeypatch, failure) == (message, [])


def test_a_failed_read_is_repeated_after_the_time_that_the_server_demands(monkeypatch):
    pauses = []

    async def sleep(pause_s):
        pauses.append(pause_s)

    monkeypatch.setattr(extender_thread.asyncio, "sleep", sleep)
    overloaded = ApiAnswer(429, message="too many", retry_after_s=3.0)
    assert called(monkeypatch, overloaded, FAILED, FOUND) == ("recorded", [POD])
    assert pauses == [3.0, 0.0]


def test_a_pod_that_no_longer_exists_is_sent_with_its_name(monkeypatch):
    gone = ApiAnswer(404, message="not found")
    assert called(monkeypatch, gone) == ("recorded", [{"metadata": POD["metadata"]}])
