"""Preemptions in progress: preemptors that are gated, and victims that wait for Permit."""

from __future__ import annotations

import pytest
from msgspec import structs

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import seconds
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.waiting_pods import WaitingPod, WaitingPods
from fairlead.engine.scheduling.preemption.execution import new_execution
from fairlead.engine.scheduling.preemption.preemptions import Preemptions
from fairlead.engine.scheduling.preemption.unbound_victims import UnboundVictims
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_pod

GROUP = ObjectRef("PodGroup.scheduling.k8s.io", "default", "g")


@pytest.fixture
def info():
    shapes = Cluster().shapes

    def make(name, group="", **more):
        spec = {"schedulingGroup": {"podGroupName": group}} if group else {}
        pod = make_pod(name, spec=spec, **more)
        return PodInfo(pod, shapes.shape_of(pod))

    return make


@pytest.fixture
def waiting():
    return WaitingPods()


@pytest.fixture
def preemptions(waiting):
    return Preemptions(
        Cluster(), Nominator(), UnboundVictims(waiting, lambda _: False), new_execution
    )


def test_the_members_of_a_preempting_pod_group_are_gated(preemptions, info):
    """Pods of other groups, and pods without a group, are not."""
    preemptions.start_group(info("a", "g"), GROUP, (info("v1", node="n"), info("v2", node="n")))
    held = preemptions.gate(info("b", "g"))
    assert held.message == "waiting for the preemption for this pod group to be finished"
    assert preemptions.gate(info("c", "h")) is None
    assert preemptions.gate(info("d")) is None


def test_the_condition_of_a_victim_names_its_generation(preemptions, info):
    """Recorded: DisruptionTarget=True of a new pod has observedGeneration 1."""
    victim = info("v", node="n")
    newer = structs.replace(victim.pod.metadata, generation=2)
    victim = PodInfo(structs.replace(victim.pod, metadata=newer), victim.shape)
    (patch,) = preemptions.start_group(info("a", "g"), GROUP, (victim,))
    (condition,) = patch.conditions
    assert (condition.type, condition.observed_generation) == ("DisruptionTarget", 2)


def test_a_victim_that_waits_for_permit_is_not_deleted(preemptions, waiting, info):
    """It returns to the queue as after an error, so that it is retried without an event."""
    victim = info("v")
    waiting.add(WaitingPod(victim, "n", 0, {"Gate": seconds(60)}))
    (event,) = preemptions.start_group(info("a", "g"), GROUP, (victim,))
    assert (event.regarding.name, event.reason) == ("v", "Preempted")
    assert event.note.endswith(" on node cluster (in kube-scheduler memory).")
    rejection = waiting.find(victim.id).rejection
    assert (rejection.is_rejected, rejection.message) == (
        False,
        "waiting on permit for pod: preempted",
    )
    assert preemptions.gate(info("b", "g")) is None  # nothing left to wait for
