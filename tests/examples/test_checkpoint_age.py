"""CheckpointAge: preemption chooses the pods that lose the least work."""

from __future__ import annotations

import pytest

from fairlead.testing import PluginScene, make_node, make_pod

ANNOTATION = "example.com/last-checkpoint"
STARTED = "2026-01-01T08:00:00Z"


def job(name, node, checkpoint="", *, cpu="4", priority=10, started=STARTED):
    """A running job that requests `cpu`; `checkpoint` is HH:MM."""
    pod = make_pod(
        name, node=node, priority=priority, requests={"cpu": cpu}, status={"startTime": started}
    )
    if checkpoint:
        pod.metadata.annotations[ANNOTATION] = f"2026-01-01T{checkpoint}:00Z"
    return pod


URGENT = make_pod("urgent", priority=1000, requests={"cpu": "2"})


@pytest.fixture
def scene(example):
    """Two nodes of 4 CPUs with the plugin CheckpointAge."""
    return PluginScene(
        example("checkpoint_age.py:CheckpointAge"), nodes=[make_node("a"), make_node("b")]
    )


def victims(scene):
    """Return the victims of the urgent pod, and the rule that decided."""
    room = scene.make_room(URGENT)
    return [victim.pod.metadata.name for victim in room.victims], room.rule


RULE = "least work lost since a checkpoint"


@pytest.mark.parametrize(
    ("on_a", "on_b", "expected"),
    [
        pytest.param(
            "11:00", "11:50", "on-b", id="the pod with the more recent checkpoint is preempted"
        ),
        pytest.param(
            "11:00", "", "on-a", id="a pod without a checkpoint loses all work since its start"
        ),
        pytest.param("11:00", "07:00", "on-a", id="a checkpoint of an earlier pod does not count"),
        pytest.param("11:00", "soon", "on-a", id="an unreadable checkpoint is ignored"),
    ],
)
def test_the_node_whose_pods_lose_less_work_is_chosen(scene, on_a, on_b, expected) -> None:
    scene.add(job("on-a", "a", on_a), job("on-b", "b", on_b))
    assert victims(scene) == ([expected], RULE)


def test_on_one_node_the_pod_with_the_more_recent_checkpoint_is_preempted(scene) -> None:
    scene.add(job("full", "b", priority=2000))
    scene.add(job("old", "a", "09:00", cpu="2"), job("new", "a", "11:00", cpu="2"))
    assert victims(scene) == (["new"], "only candidate")


def test_priority_takes_precedence_over_lost_work(scene) -> None:
    scene.add(job("better", "a", "11:59", priority=20), job("worse", "b", "09:00", priority=10))
    assert victims(scene) == (["worse"], "lowest highest victim priority")


def test_lost_work_takes_precedence_over_the_number_of_victims(scene) -> None:
    scene.add(job("one", "a", "09:00"))
    scene.add(job("two", "b", "11:00", cpu="3"), job("three", "b", "11:10", cpu="1"))
    assert victims(scene)[1] == RULE


def test_a_new_checkpoint_changes_the_choice(scene) -> None:
    scene.add(job("on-a", "a", "11:00"), job("on-b", "b", "11:50"))
    assert victims(scene)[0] == ["on-b"]
    scene.add(job("on-a", "a", "11:55"))
    assert victims(scene)[0] == ["on-a"]
