"""RemovalSearch: it finds the nodes that save most, also where the obvious order misses them."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import deployment

from fairlead.whatif.planner.removal_search import RemovalSearch, RoomTable
from fairlead.whatif.run.progress import NoProgress


def search(planner, prices=None):
    names = [info.name for info in planner.model.table.nodes()]
    planner.deletes_nodes = True
    return RemovalSearch(planner, names, prices or {}, len(names), NoProgress())


def test_two_nodes_are_removed_instead_of_a_better_single_node(planner, make):
    """Every order begins with x, which has the least load. Then neither y nor z can be removed."""
    sizes = {"w": "16", "x": "6", "y": "5", "z": "5"}
    made = planner(
        *(make.node(name, cpu=cpu) for name, cpu in sizes.items()),
        *deployment(make, "large", ["w"] * 5, cpu="3"),
        *deployment(make, "web", ["x", *"yyy", *"zzz"]),
    )
    found = search(made, {"w": 9.0, "x": 2.5, "y": 2.0, "z": 2.0}).best(None)
    assert sorted(found.chosen) == ["y", "z"]
    assert sorted(found.failed) == ["w", "x"]
    assert search(made, {"w": 9.0, "x": 2.5, "y": 2.0, "z": 2.0}).best(1).chosen == ["x"]


def test_of_many_nodes_those_with_the_least_room_are_removed(planner, make):
    """The 3 large nodes have less load. Without them, only 2 of the 11 small nodes can be removed.

    The large nodes have room for the pods of 10 small nodes.
    """
    small = [f"small-{number}" for number in range(11)]
    large = [f"large-{number}" for number in range(3)]
    made = planner(
        *(make.node(name, cpu="3") for name in small),
        *(make.node(name, cpu="8") for name in large),
        *deployment(make, "web", [*small, *small, *large]),
    )
    found = search(made).best(None)
    assert len(found.chosen) == 10
    assert set(found.chosen) <= set(small)


@pytest.mark.parametrize("limit", range(4))
@pytest.mark.parametrize("prices", [{}, {"a": 3.0, "b": 1.0, "c": 2.0, "d": 1.0, "e": 1.0}])
def test_a_search_with_a_lower_limit_gives_the_same_as_a_new_search(planner, make, limit, prices):
    """The second search of an object takes over the choices of the first."""
    web = deployment(make, "web", ["a", "b", "b", "d", "e"])
    made = planner(*map(make.node, "abcde"), *web)
    again = search(made, prices)
    again.best(None)
    assert again.best(limit) == search(made, prices).best(limit)
    assert again.best(None) == search(made, prices).best(None)


def test_a_higher_limit_is_searched_anew(planner, make):
    made = planner(*map(make.node, "abcd"), *deployment(make, "web", ["a"]))
    again = search(made)
    assert [len(again.best(limit).chosen) for limit in (1, 2, None)] == [1, 2, 3]


def test_the_room_of_a_node_is_what_is_free_and_what_its_pods_request(planner, make):
    """A cordoned node offers no room to other pods; a pod of a DaemonSet does not move."""
    cordoned = {**make.node("c"), "spec": {"unschedulable": True}}
    made = planner(make.node("a"), make.node("b"), cordoned, *deployment(make, "web", ["a", "c"]))
    room = RoomTable(made, ["a", "b", "c"])
    assert room.free[0] == 7000
    assert room.rooms[:, 0].tolist() == [4000, 4000, 1000]
    assert room.removable(["a", "b", "c"], None) == ["a", "c"]
    assert room.removable(["a", "b", "c"], 1) == ["a"]
    assert room.better_sets([1.0, 1.0, 1.0], (1.0, 1), 3) == [["a", "c"], ["b", "c"]]
