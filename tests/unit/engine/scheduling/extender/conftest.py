"""A scheduler with extenders whose responses are given by the test."""

from __future__ import annotations

import json

import pytest

from fairlead.engine.core.command import CallExtender
from fairlead.engine.core.stimulus import CommandFailed, ExtenderAnswered, FailureReason
from fairlead.engine.scheduling.extender.extender import Extender

VERBS = ("filter", "prioritize", "preempt", "bind")


def make_extender(*verbs, prefix="http://e", **more):
    """Return an extender with the verbs `verbs`."""
    has = {f"{verb}_verb": verb for verb in VERBS if verb in verbs}
    return Extender(url_prefix=prefix, **has, **more)


@pytest.fixture(scope="session")
def extender():
    """Makes extenders."""
    return make_extender


@pytest.fixture(scope="session")
def asking(stage):
    """Makes stages whose scheduler calls extenders; `asked` are the pending requests."""

    class Asking(stage):
        def __init__(self, *objects, **config):
            self.calls = []
            super().__init__(*objects, **config)

        def _sent(self, issued):
            calls = [one for one in issued if isinstance(one.command, CallExtender)]
            self.calls += [one.command for one in calls]
            return super()._sent([one for one in issued if one not in calls])

        def question(self):
            """Return the oldest pending request: the verb, and the nodes or victims."""
            call = self.calls[0]
            if call.victims:
                pods = {v.node: [pod.name for pod in v.pods] for v in call.victims}
                return call.verb.value, pods
            return call.verb.value, list(call.nodes)

        def say(self, message, status=200):
            """Respond to the oldest request with `message`, as JSON or unchanged."""
            body = message if isinstance(message, bytes) else json.dumps(message).encode()
            return self._handle(ExtenderAnswered(self.calls.pop(0), status, body))

        def say_nothing(self, why="timeout"):
            """Let the oldest request fail without a response."""
            call = self.calls.pop(0)
            return self._handle(CommandFailed(call, FailureReason.INTERNAL_ERROR, why))

    return Asking
