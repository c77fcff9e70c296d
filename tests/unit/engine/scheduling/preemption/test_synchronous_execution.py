"""Preemption in 1.19, for which the scheduling cycle waits."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import DeleteObject, PatchStatus, RecordEvent
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.preemption.synchronous_execution import SynchronousExecution
from fairlead.engine.scheduling.preemption.unbound_victims import UnboundVictims
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_pod


@pytest.fixture
def info():
    """Makes pods."""
    shapes = Cluster().shapes

    def make(name, **options):
        pod = make_pod(name, **options)
        return PodInfo(pod, shapes.shape_of(pod))

    return make


@pytest.fixture
def execution(info):
    """A preemption by `p` with two victims; two less important pods are nominated for the node."""
    lower = tuple(info(name, priority=1, nominated="n1") for name in ("low", "lower"))
    victims = tuple(info(name, node="n1") for name in ("v", "w"))
    preemptor = info("p", priority=9)
    return SynchronousExecution(
        preemptor, "n1", lower, victims, UnboundVictims(WaitingPods(), lambda _: False)
    )


def test_the_preemption_ends_after_every_nomination_was_cleared(execution):
    (deletion,) = execution.start()
    event, second = execution.handle_outcome(CommandSucceeded(deletion))
    assert (event.reason, second.target.name) == ("Preempted", "w")
    assert not execution.is_done
    _, *patches = execution.handle_outcome(CommandSucceeded(second))
    assert [(type(one), one.target.name) for one in patches] == [
        (PatchStatus, "low"),
        (PatchStatus, "lower"),
    ]
    for patch in patches:
        assert not execution.is_done
        assert execution.handle_outcome(CommandSucceeded(patch)) == []
    assert execution.is_done
    assert not execution.failed


def test_the_preemption_succeeds_if_a_nomination_cannot_be_cleared(execution):
    _, second = execution.handle_outcome(CommandSucceeded(*execution.start()))
    _, *patches = execution.handle_outcome(CommandSucceeded(second))
    for patch in patches:
        assert execution.handle_outcome(CommandFailed(patch, FailureReason.NOT_FOUND, "gone")) == []
    assert (execution.is_done, execution.failed) == (True, False)


def test_the_preemption_ends_if_a_victim_cannot_be_deleted(execution):
    (deletion,) = execution.start()
    assert (
        execution.handle_outcome(CommandFailed(deletion, FailureReason.INTERNAL_ERROR, "no")) == []
    )
    assert (execution.is_done, execution.failed, execution.must_retry) == (True, True, False)


def test_outcomes_of_other_commands_are_ignored(execution, info):
    execution.start()
    other = info("other")
    event = RecordEvent(other.ref, "Normal", "Other", "", "", "default-scheduler")
    for command in (event, DeleteObject(other.ref, why="preemption")):
        assert execution.handle_outcome(CommandSucceeded(command)) is None
    assert not execution.is_done
