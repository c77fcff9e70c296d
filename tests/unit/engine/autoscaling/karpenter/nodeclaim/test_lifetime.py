"""The times of pod events before Karpenter has started."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.autoscaling.karpenter.nodeclaim.lifetime import last_event_at


@pytest.mark.parametrize(
    ("grace_s", "expected"),
    [(30, "2026-01-01T12:00:00Z"), (3600, "2026-01-01T11:00:30Z"), (7200, "2026-01-01T11:00:00Z")],
)
def test_the_last_event_of_a_terminating_pod_is_the_start_of_its_termination(grace_s, expected):
    """The deletionTimestamp is the end of the grace period. The pod was created at 11:00."""
    meta = {
        "name": "a",
        "creationTimestamp": "2026-01-01T11:00:00Z",
        "deletionTimestamp": "2026-01-01T12:00:30Z",
        "deletionGracePeriodSeconds": grace_s,
    }
    pod = decode_as(Pod, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}})
    assert last_event_at(pod, parse_timestamp("2026-01-01T13:00:00Z")) == parse_timestamp(expected)
