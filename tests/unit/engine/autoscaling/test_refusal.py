"""RefusalLog: the reason that kept a pod waiting for the longest time."""

from __future__ import annotations

import pytest

from fairlead.engine.autoscaling.refusal import NodeRefusal, RefusalLog


@pytest.fixture
def log():
    """A pod is refused for one reason, is then helped, and is refused for two other reasons."""
    found = RefusalLog()
    found.update({"a/p": "full"}, 0)
    found.update({}, 10)
    found.update({"a/p": "backoff"}, 20)
    found.update({"a/p": "backoff", "a/q": "full"}, 30)
    found.update({"a/p": "full"}, 45)
    return found


@pytest.mark.parametrize(
    ("pod", "since", "until", "expected"),
    [
        ("a/p", 0, 50, NodeRefusal("backoff", 25)),
        ("a/p", 0, 30, NodeRefusal("full", 10)),
        ("a/p", 0, 100, NodeRefusal("full", 65)),
        ("a/q", 0, 100, NodeRefusal("full", 15)),
        ("a/q", 50, 100, None),
        ("a/other", 0, 100, None),
    ],
)
def test_the_reason_that_applied_longest_within_the_wait(log, pod, since, until, expected):
    assert log.longest(pod, since, until) == expected
