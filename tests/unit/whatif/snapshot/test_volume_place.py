"""The places of many volumes are found without comparing each volume with each node."""

from __future__ import annotations

import pytest

from fairlead.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from fairlead.whatif.snapshot import volume_place
from fairlead.whatif.snapshot.volume_place import PlaceFinder, PlaceNode

HOSTNAME = "kubernetes.io/hostname"


def selector(*requirements):
    found = (NodeSelectorRequirement(key=key, operator=op, values=v) for key, op, v in requirements)
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=tuple(found)),))


@pytest.fixture
def compared(monkeypatch):
    """The names of the nodes that are compared with a term, in order."""
    found = []
    original = volume_place.term_matches

    def counting(term, labels, name):
        found.append(name)
        return original(term, labels, name)

    monkeypatch.setattr(volume_place, "term_matches", counting)
    return found


@pytest.fixture
def finder():
    return PlaceFinder(
        PlaceNode(f"n{one}", {HOSTNAME: f"n{one}", "zone": "ab"[one % 2]}, True, False, ())
        for one in range(10)
    )


def test_a_local_volume_is_compared_only_with_the_node_of_its_label(finder, compared):
    places = [finder.find(selector((HOSTNAME, "In", (f"n{one}",))), [()]) for one in range(10)]
    assert [place.nodes for place in places] == [(f"n{one}",) for one in range(10)]
    assert compared == [f"n{one}" for one in range(10)]


def test_the_nodes_of_equal_selectors_are_searched_once(finder, compared):
    places = [finder.find(selector(("zone", "NotIn", ("a",))), [()]) for _ in range(3)]
    assert {place.nodes for place in places} == {("n1", "n3", "n5", "n7", "n9")}
    assert len(compared) == 10


def test_all_requirements_of_a_term_count(finder):
    both = selector((HOSTNAME, "In", ("n3", "n4", "gone")), ("zone", "In", ("b",)))
    assert finder.find(both, [()]).nodes == ("n3",)
