"""A scheduler with extenders whose responses are given by the test."""

from __future__ import annotations

import json

import pytest

from fairlead.engine.core.command import CallExtender
from fairlead.engine.core.stimulus import CommandFailed, ExtenderAnswered, FailureReason
from fairlead.engine.scheduling.extender.extender import Extender

VERBS = ("filter", "prioritize", "preempt", "bind")


def make_extender(*verbs, prefix="http://e", **more):
    """An extender with a say in `verbs`."""
    has = {f"{verb}_verb": verb for verb in VERBS if verb in verbs}
    return Extender(url_prefix=prefix, **has, **more)


@pytest.fixture(scope="session")
def extender():
    """Makes extenders."""
    return make_extender


@pytest.fixture(scope="session")
def asking(stage):
    """Makes stages whose scheduler asks extenders; `asked` are the questions still open."""

    class Asking(stage):
        def __init__(self, *objects, **config):
            self.asked = []
            super().__init__(*objects, **config)

        def _sent(self, issued):
            calls = [one for one in issued if isinstance(one.command, CallExtender)]
            self.asked += [one.command for one in calls]
            return super()._sent([one for one in issued if one not in calls])

        def question(self):
            """The oldest open question: verb, and the nodes or victims it is about."""
            call = self.asked[0]
            if call.victims:
                pods = {v.node: [pod.name for pod in v.pods] for v in call.victims}
                return call.verb.value, pods
            return call.verb.value, list(call.nodes)

        def say(self, message, status=200):
            """The extender answers the oldest question with `message` as JSON, or as it is."""
            body = message if isinstance(message, bytes) else json.dumps(message).encode()
            return self._handle(ExtenderAnswered(self.asked.pop(0), status, body))

        def say_nothing(self, why="timeout"):
            """The extender does not answer the oldest question."""
            call = self.asked.pop(0)
            return self._handle(CommandFailed(call, FailureReason.INTERNAL_ERROR, why))

    return Asking
