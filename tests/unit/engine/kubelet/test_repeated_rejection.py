"""RepeatedRejections: rejections are reported later, the longer they have lasted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.objects import OwnerReference
from fairlead.engine.core.instant import seconds
from fairlead.engine.kubelet.repeated_rejection import RepeatedRejections
from fairlead.testing.builders import make_pod

DELAY = seconds(1)
HOUR = seconds(3600)


@pytest.fixture
def rejections():
    return RepeatedRejections()


@pytest.fixture
def pod():
    """A pod of a ReplicaSet."""
    made = make_pod("p")
    owner = OwnerReference(kind="ReplicaSet", name="rs", uid="rs", controller=True)
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,)))


def reported(rejections, pod, until):
    """Return the times at which the pod and its immediate replacements are rejected."""
    times, now = [], 0
    while now < until:
        now += DELAY + rejections.pause_before(pod, now, DELAY)
        times.append(now)
    return times


def test_the_number_of_rejections_grows_with_the_logarithm_of_the_time(rejections, pod):
    times = reported(rejections, pod, 24 * HOUR)
    assert times[0] == DELAY
    assert sum(at < HOUR for at in times) < 60
    assert len(times) < 90


def test_several_replicas_do_not_make_the_pauses_longer(rejections, pod):
    for _ in range(100):
        assert rejections.pause_before(pod, 0, DELAY) == 0
    assert rejections.pause_before(pod, DELAY, DELAY) == DELAY // 8


@pytest.mark.parametrize(
    ("after", "pause"),
    [
        pytest.param(0, seconds(100) // 8, id="an immediate replacement"),
        pytest.param(seconds(300), 0, id="a pod that is created much later"),
    ],
)
def test_pauses_are_only_for_immediate_replacements(rejections, pod, after, pause):
    rejections.pause_before(pod, 0, seconds(100))
    assert rejections.pause_before(pod, seconds(100) + after, DELAY) == pause


def test_pauses_end_when_a_pod_of_the_controller_is_admitted(rejections, pod):
    rejections.pause_before(pod, 0, DELAY)
    rejections.end(pod)
    assert rejections.pause_before(pod, DELAY, DELAY) == 0


def test_a_pod_without_a_controller_has_no_pause(rejections):
    lone = make_pod("lone")
    rejections.pause_before(lone, 0, DELAY)
    assert rejections.pause_before(lone, DELAY, DELAY) == 0
