"""Replacements of pods of failed nodes on a running cluster, where no annotation states them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.nodes.kubelet_behaviour import KUBELET
from fairlead.api.objects import OwnerReference
from fairlead.engine.core.stimulus import ObjectChanged, ObjectsLoaded
from fairlead.testing.builders import make_node, make_pod
from fairlead.whatif.outcome.outage import AffectedPodState
from fairlead.whatif.run.recorders.outage_recorder import OutageRecorder
from fairlead.whatif.run.recorders.replacement import MatchedReplacements


def pod(name, node="", owner="web", kind="ReplicaSet", **more):
    """A pod of a controller; it runs if it has a node."""
    made = make_pod(name, node=node, **more)
    controller = OwnerReference(kind=kind, name=owner, uid=f"uid-{owner}", controller=True)
    return replace(made, metadata=replace(made.metadata, owner_references=(controller,)))


@pytest.fixture
def recorder():
    """A recorder of two nodes and two pods of the ReplicaSet web; the node of `old` has failed."""
    found = OutageRecorder(replacements=MatchedReplacements())
    nodes = [make_node("a"), make_node("b")]
    pods = [pod("old", "a"), pod("other", "b")]
    found.observe(ObjectsLoaded([*nodes, *pods]), 0)
    failed = replace(nodes[0].metadata, annotations={KUBELET: "stopped"})
    found.observe(ObjectChanged(replace(nodes[0], metadata=failed)), 1)
    return found


def state(recorder):
    return recorder.affected["default/old"].state


def test_a_new_pod_of_the_same_replica_set_replaces_a_pod_that_terminates(recorder):
    recorder.observe(ObjectChanged(pod("old", "a", terminating=True)), 2)
    recorder.observe(ObjectChanged(pod("new")), 3)
    assert state(recorder) is AffectedPodState.WAITING
    recorder.observe(ObjectChanged(pod("new", "b")), 4)
    assert state(recorder) is AffectedPodState.UP
    assert recorder.affected["default/old"].is_replaced


@pytest.mark.parametrize(
    ("old_terminates", "new"),
    [
        (False, pod("new", "b")),
        (True, pod("new", "b", owner="db")),
        (True, pod("new", "b", kind="DaemonSet")),
    ],
    ids=["the old pod stays", "a pod of another controller", "a pod of a DaemonSet"],
)
def test_other_pods_replace_nothing(recorder, old_terminates, new):
    changed = pod("old", "a", terminating=old_terminates)
    recorder.observe(ObjectChanged(changed), 2)
    recorder.observe(ObjectChanged(new), 3)
    assert state(recorder) is AffectedPodState.DOWN


def test_a_new_pod_replaces_a_pod_that_has_failed(recorder):
    """The kubelet of a node that shuts down sets the phase Failed; the pod is not deleted."""
    old = pod("old", "a")
    recorder.observe(ObjectChanged(replace(old, status=replace(old.status, phase="Failed"))), 2)
    recorder.observe(ObjectChanged(pod("new", "b")), 3)
    assert state(recorder) is AffectedPodState.UP
    assert recorder.affected["default/old"].is_replaced


def test_a_pod_of_a_job_that_already_ran_replaces_nothing():
    recorder = OutageRecorder(replacements=MatchedReplacements())
    node = make_node("a")
    failed = replace(node.metadata, annotations={KUBELET: "stopped"})
    pods = [pod("old", "a", kind="Job", terminating=True), pod("other", "b", kind="Job")]
    recorder.observe(ObjectsLoaded([replace(node, metadata=failed), make_node("b"), *pods]), 0)
    assert state(recorder) is AffectedPodState.DOWN
