"""A server that returns the recorded answers, with its own values instead of placeholders."""

from __future__ import annotations

import json
import re

import pytest

from fairlead.conformance.api.comparison.openapi import as_published
from fairlead.conformance.api.placeholder import _PLACEHOLDER, _generated
from fairlead.conformance.api.replay.case_replay import mismatches
from fairlead.conformance.api.transport import HttpAnswer, WatchEnd


def concrete(value):
    """Return a recorded value with generated values instead of placeholders."""
    match value:
        case str():
            return _PLACEHOLDER.sub(lambda m: _made(m[1], m[2]), value)
        case list():
            return [concrete(item) for item in value]
        case dict():
            return {concrete(key): concrete(item) for key, item in value.items()}
        case _:
            return value


def _made(name, key):
    number = int(re.sub(r"\D", "", key or "") or 0)
    match name:
        case "rv" | "nodeport":
            return str(1000 + 7 * number)
        case "ts" | "mts" | "uid" | "svcip" | "podip" | "gen" | "hash" | "evt":
            return _generated(name, key or "")
        case "age":
            return "17s"
        case _:
            return f"g{number:x}"


class Echo:
    """A transport that returns the recorded responses in order, for any requests."""

    may_run_controllers = False

    def __init__(self, case):
        self._answers = [step["response"] for step in case["steps"]]
        self._paths = [step["request"]["path"] for step in case["steps"]]
        self.requests = []
        self.begun = 0

    def reach(self, at_ms):
        """Ignore the time."""

    def begin(self):
        """Start again with the first response."""
        self.requests.clear()
        self.begun += 1

    def holds(self, name):
        """Return True for every name."""
        return True

    def ask(self, asking):
        if asking.path == "/openapi/v3" and asking.path not in self._paths:
            return HttpAnswer(200, [], b"{}")  # a request for the hash of a document
        return self._next(asking)[0]

    def watch(self, asking):
        answer, recorded = self._next(asking)
        return _Watched(answer, recorded)

    def _next(self, asking):
        self.requests.append(asking)
        recorded = self._answers[len(self.requests) - 1]
        return _answer(recorded), recorded


class _Watched:
    def __init__(self, answer, recorded):
        self._answer, self._recorded = answer, recorded

    def finish(self, events, *, until_end):
        shown = [concrete(entry["event"]) for entry in self._recorded.get("events", ())]
        return WatchEnd(self._answer, shown, self._recorded.get("end") == "server-closed")


def _answer(recorded):
    headers = [
        (name, concrete(value))
        for name, values in (recorded.get("headers") or {}).items()
        for value in ([values] if isinstance(values, str) else values)
        if name != "content-encoding"
    ]
    if "$protobuf" in (recorded.get("body") or ()):
        headers = [("content-type", "application/json")]
    return HttpAnswer(recorded.get("status") or 0, headers, _body(recorded.get("body")))


def _body(body):
    match body:
        case None:
            return b""
        case {"$text": text}:
            return concrete(text).encode()
        case {"$protobuf": {"kind": kind, "apiVersion": version}}:
            return json.dumps({"kind": kind, "apiVersion": version}).encode()
        case {"openapi": str()}:
            return json.dumps(as_published(body)).encode()
        case {"$names": names, **rest}:
            items = [{"metadata": {"name": name}} for name in concrete(names)]
            return json.dumps(concrete({**rest, "items": items})).encode()
        case _:
            return json.dumps(concrete(body)).encode()


@pytest.fixture
def echo():
    """The class of such transports."""
    return Echo


@pytest.fixture
def differences():
    """Returns the mismatches, as text, between the recorded case and `answered`."""
    return lambda case, answered=None: [str(d) for d in mismatches(case, Echo(answered or case))]
