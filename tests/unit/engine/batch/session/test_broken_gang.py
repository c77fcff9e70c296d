"""Running gangs that lose members."""

from __future__ import annotations

import pytest

from fairlead.testing.batch_builders import make_gang, make_task
from fairlead.testing.builders import make_node


@pytest.fixture
def broken(worlds):
    """Returns a world with a gang of four on two nodes; one node fails with two members."""
    world = worlds().put(make_node("n1", cpu="2"), make_node("n2", cpu="2"), make_gang("g", 4))
    world.live_until(10)
    dead = [name for name, node in world.running().items() if node == "n2"]
    assert len(dead) == 2
    world.drop(*dead)
    world.put(make_node("n2", cpu="0"))
    world.dead = dead
    return world


def test_new_members_complete_a_broken_gang(broken):
    broken.put(make_node("n3"), [make_task(name, "g") for name in broken.dead])
    broken.live_until(200)
    assert sorted(broken.running()) == ["g-0", "g-1", "g-2", "g-3"]
    assert sorted(set(broken.running().values())) == ["n1", "n3"]


def test_a_broken_gang_is_evicted_after_the_grace_period(broken):
    broken.put([make_task(name, "g") for name in broken.dead])
    broken.live_until(69)
    assert len(broken.running()) == 2
    broken.live_until(100)
    assert broken.running() == {}


def test_the_eviction_of_a_broken_gang_lets_other_gangs_run(broken):
    broken.put(make_gang("waiting", 2))
    broken.live_until(69)
    assert not {"waiting-0", "waiting-1"} & broken.running().keys()
    broken.live_until(100)
    assert broken.running() == {"waiting-0": "n1", "waiting-1": "n1"}


def test_without_a_grace_period_a_broken_gang_keeps_running(worlds):
    world = worlds("fairlead", broken_gang_grace_s=None)
    world.put(make_node("n1"), make_gang("g", 4)).live_until(5)
    world.drop("g-0", "g-1")
    world.live_until(1000)
    assert len(world.running()) == 2


def test_a_gang_with_succeeded_members_is_not_broken(worlds):
    world = worlds().put(make_node("n1"), make_gang("g", 4)).live_until(5)
    for i in range(3):
        world.put(make_task(f"g-{i}", "g", node="n1", status={"phase": "Succeeded"}))
    world.live_until(1000)
    assert "g-3" in world.running()


def test_the_grace_period_starts_again_after_the_gang_was_complete(worlds):
    world = worlds().put(make_node("n1"), make_gang("g", 4)).live_until(5)
    for end_s in (50, 100, 150, 200):
        world.drop("g-0")
        world.live_until(end_s)
        world.put(make_task("g-0", "g")).live_until(end_s + 5)
        assert len(world.running()) == 4
