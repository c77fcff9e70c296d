"""`fits_first` places the pods of one workload; it never contradicts `empty`."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import deployment

from fairlead.engine.core.tie_break import TieBreak
from fairlead.whatif.planner.node_drain.drain_planner import Blocker, PlannedDrain

SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "w1"}},
}


@pytest.mark.parametrize("seed", range(20))
def test_a_node_with_a_blocker_cannot_be_emptied(planner, make, seed):
    """On full random clusters, `empty` refuses the nodes for which `fits_first` finds a blocker."""
    pick = TieBreak(seed).pick
    names = [f"n{number}" for number in range(5)]
    objects = [make.node(name, cpu="4", zone="ab"[pick(2)]) for name in names]
    for number in range(5):
        places = [names[(number + at) % 5] for at in range(2)]
        spec = {"nodeSelector": {"zone": "a"}} if number == 0 else {}
        objects += deployment(make, f"w{number}", places, cpu=("1", "2")[pick(2)], **spec)
    made = planner(*objects)
    for name in names:
        for number in range(5):
            first = made.fits_first(name, f"deploy/default/w{number}")
            with made.model.hypothesis():
                emptied = made.empty(name)
            assert not isinstance(first, Blocker) or isinstance(emptied, Blocker)
            if isinstance(emptied, Blocker) and emptied.owner == f"deploy/default/w{number}":
                assert first is not None
    made.model.table.validate()


def test_a_pod_with_affinity_to_a_moving_pod_is_decided_by_empty(planner, make):
    """The cache fits only beside web, which leaves node a, too. Placed first, it fits nowhere."""
    beside = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
    follow = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [beside]}}
    made = planner(
        make.node("a", zone="1"),
        make.node("b", zone="2"),
        *deployment(make, "web", ["a"]),
        *deployment(make, "cache", ["a"], affinity=follow),
    )
    assert made.fits_first("a", "deploy/default/cache") is None
    assert isinstance(made.fits_first("a", "deploy/default/web"), PlannedDrain)
    assert isinstance(made.empty("a"), PlannedDrain)


@pytest.mark.parametrize(("counted", "is_decided"), [("web", True), ("db", False)])
def test_a_spread_pod_is_decided_by_empty_only_if_others_count(planner, make, counted, is_decided):
    """The other node is full. Only pods that the constraint counts can help if they move first."""
    spread = {**SPREAD, "labelSelector": {"matchLabels": {"app": counted}}}
    made = planner(
        make.node("a", zone="1"),
        make.node("b", zone="2", cpu="1"),
        *deployment(make, "web", ["a"], topologySpreadConstraints=[spread]),
        *deployment(make, "db", ["a", "b"]),
    )
    assert (made.fits_first("a", "deploy/default/web") is not None) == is_decided
    assert isinstance(made.empty("a"), Blocker)


@pytest.mark.parametrize("seed", range(20))
def test_the_reason_does_not_depend_on_the_search_for_an_order(planner, make, seed):
    """Nodes are almost full of pods of many sizes, so that pods often do not all fit elsewhere."""
    pick = TieBreak(seed).pick
    names = [f"n{number}" for number in range(4)]
    objects = [make.node(name, cpu="8", zone="ab"[pick(2)]) for name in names]
    for number in range(12):
        spec = ({"nodeSelector": {"zone": "a"}}, {"topologySpreadConstraints": [SPREAD]})[pick(2)]
        spec = {} if pick(4) else spec
        objects += deployment(make, f"w{number}", [names[pick(4)]], cpu=str(pick(3) + 1), **spec)
    made = planner(*objects)
    made.reorders = False
    for name in names:
        with made.model.hypothesis():
            searched = made.empty(name)
        with made.model.hypothesis():
            found = made.empty(name, finds_order=False)
        if isinstance(searched, Blocker):
            assert (found.owner, found.why) == (searched.owner, searched.why)
        else:
            targets = [move.target for move in searched.moves]
            assert [move.target for move in found.moves] == targets
