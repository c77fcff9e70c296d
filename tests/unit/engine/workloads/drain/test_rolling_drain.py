"""Rolling drains: a limited number of nodes at a time, each uncordoned after some time."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import PatchObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.kubelet.config import KubeletConfig, StopAfter
from fairlead.engine.kubelet.controller import Kubelets
from fairlead.engine.workloads.disruption.controller import Disruption
from fairlead.engine.workloads.drain.controller import Drain
from fairlead.engine.workloads.drain.rolling_drain import (
    RollingDrainOptions,
    RollingDrains,
    parse_options,
)

QUEUED = {
    "metadata": {"annotations": {"fairlead.dev/drain-in-turn": "max-unavailable=1 away=60s x"}}
}
NOT_QUEUED = {"metadata": {"annotations": {"fairlead.dev/drain-in-turn": None}}}


class Silent:
    def report(self, record):
        """Ignore `record`."""


@pytest.fixture
def world(new_world):
    kubelets = Kubelets(KubeletConfig(stop=StopAfter(seconds(10))))
    return new_world(Drain(Silent()), RollingDrains(), Disruption(), kubelets)


def ask(world, *nodes, patch=QUEUED):
    for node in nodes:
        world.patch("Node", node, patch, namespace="")


def away(world):
    """Return the cordoned nodes."""
    found = world.objects.values()
    return [
        one["metadata"]["name"]
        for one in found
        if one["kind"] == "Node" and one["spec"].get("unschedulable")
    ]


def test_each_node_is_uncordoned_before_the_next_is_drained(world, build):
    world.load(build.node("n1"), build.node("n2"), build.pod("a"), build.pod("b", node="n2"))
    ask(world, "n1", "n2")
    assert away(world) == ["n1"]
    world.run(seconds(69))  # 10 s to stop the pod, 60 s until the node is uncordoned
    assert away(world) == ["n1"]
    world.run(seconds(2))
    assert away(world) == ["n2"]
    world.run(seconds(71))
    assert away(world) == []
    assert "fairlead.dev/drain" not in str(world.get("Node", "n2", namespace=""))


def test_refused_changes_of_nodes_are_repeated(world, build):
    """Every write to a node is refused once: the requests, their removal, and the uncordons."""
    commands = []

    def refuse(command):
        if not isinstance(command, PatchObject) or command.patch in (QUEUED, NOT_QUEUED):
            return None
        commands.append(command)
        return FailureReason.INTERNAL_ERROR if commands.count(command) == 1 else None

    world.load(build.node("n1"), build.node("n2"), build.pod("a"))
    world.refuse = refuse
    ask(world, "n1", "n2")
    assert away(world) == []
    world.run(seconds(2))
    assert away(world) == ["n1"]
    world.run(seconds(90))
    assert away(world) == ["n2"]
    world.run(seconds(90))
    assert away(world) == []
    assert "fairlead.dev/drain" not in str(world.objects)


def test_a_request_that_was_withdrawn_is_not_repeated(world, build):
    world.load(build.node("n1"))
    world.refuse = lambda one: (
        FailureReason.INTERNAL_ERROR if one.patch not in (QUEUED, NOT_QUEUED) else None
    )
    ask(world, "n1")
    ask(world, "n1", patch=NOT_QUEUED)
    assert away(world) == []
    world.refuse = lambda _: None
    world.run(seconds(10))
    assert away(world) == []


def test_several_nodes_are_drained_at_a_time(world, build):
    world.load(*(build.node(f"n{number}") for number in range(3)))
    annotations = {"fairlead.dev/drain-in-turn": "max-unavailable=2 away=60s"}
    patch = {"metadata": {"annotations": annotations}}
    ask(world, "n0", "n1", "n2", patch=patch)
    assert away(world) == ["n0", "n1"]


def test_a_cancelled_drain_lets_the_next_node_start(world, build):
    world.load(build.node("n1"), build.node("n2"))
    ask(world, "n1", "n2")
    ask(world, "n1", patch=NOT_QUEUED)
    assert away(world) == ["n1", "n2"]  # n1 stays cordoned, because its drain was cancelled


def test_a_deleted_node_lets_the_next_node_start(world, build):
    world.load(build.node("n1"), build.node("n2"))
    ask(world, "n1", "n2")
    world.delete("Node", "n1", namespace="")
    assert away(world) == ["n2"]


def test_a_node_that_was_already_cordoned_stays_cordoned(world, build):
    world.load(build.node("n1") | {"spec": {"unschedulable": True}})
    ask(world, "n1")
    world.run(seconds(61))
    assert away(world) == ["n1"]
    assert "drain" not in str(world.get("Node", "n1", namespace=""))


def test_a_node_whose_drain_has_ended_is_empty_in_a_rolling_drain(world, build):
    world.load(build.node("n1"))
    ask(world, "n1", patch={"metadata": {"annotations": {"fairlead.dev/drain": "requested"}}})
    ask(world, "n1")
    world.run(seconds(61))
    assert "drain" not in str(world.get("Node", "n1", namespace=""))


def test_a_budget_delays_the_drain_and_all_later_drains(world, build):
    budgets = build.budget(minAvailable=1)
    world.load(build.node("n1"), build.node("n2"), build.pod("a"), budgets)
    ask(world, "n1", "n2")
    world.run(seconds(600))
    assert away(world) == ["n1"]


@pytest.mark.parametrize(
    "text",
    ["", "1", "max-unavailable=0 away=1s", "max-unavailable=1 away=-1s", "max-unavailable=1"],
)
def test_invalid_annotations_request_no_rolling_drain(text):
    assert parse_options(text) is None


def test_the_annotation_is_read_as_it_was_written():
    options = RollingDrainOptions(3, seconds(90), "pool=a")
    found = parse_options(str(options))
    assert (found.max_unavailable, found.away) == (3, seconds(90))


def test_a_node_that_stays_cordoned_lets_the_next_node_start(world, build):
    """With away=forever, an empty node stays cordoned and does not count any more."""
    world.load(build.node("n1"), build.node("n2"), build.pod("a"), build.pod("b", node="n2"))
    annotations = {"fairlead.dev/drain-in-turn": str(RollingDrainOptions(1, None))}
    ask(world, "n1", "n2", patch={"metadata": {"annotations": annotations}})
    assert away(world) == ["n1"]
    world.run(seconds(11))
    assert away(world) == ["n1", "n2"]
    world.run(seconds(3600))
    assert away(world) == ["n1", "n2"]


def test_forever_is_read_as_written():
    options = RollingDrainOptions(3, None)
    assert parse_options(str(options)) == options
