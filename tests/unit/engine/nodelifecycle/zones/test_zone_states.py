"""How a pass updates the states of all zones."""

from __future__ import annotations

import pytest

from fairlead.engine.nodelifecycle.config import DefectPolicy, NodeLifecycleConfig
from fairlead.engine.nodelifecycle.zones.zone_state import ZoneState
from fairlead.engine.nodelifecycle.zones.zone_states import (
    AdjustRates,
    ResumeEvictions,
    StopEvictions,
    ZoneStates,
)


@pytest.fixture
def book():
    return ZoneStates(NodeLifecycleConfig())


def place(book, zone, *ready, first=0):
    """Add nodes of `zone`, one per value of `ready`."""
    for number, is_ready in enumerate(ready, first):
        book.place(f"{zone}{number}", zone, counts=True, is_ready=is_ready)


def test_a_new_zone_has_the_normal_rate(book):
    assert book.open("a")
    assert not book.open("a")
    place(book, "a", True, False)
    assert book.assess() == AdjustRates({"a": 0.1})
    assert book.states == {"a": ZoneState.NORMAL}
    assert book.assess() is None


def test_only_the_partially_failed_zone_stops_evictions(book):
    place(book, "a", True, False, False, False)
    place(book, "b", True)
    book.assess()
    place(book, "b", False)
    assert book.assess() == AdjustRates({"b": 0.1})
    assert book.states == {"a": ZoneState.PARTIAL_DISRUPTION, "b": ZoneState.FULL_DISRUPTION}


def test_the_failure_of_all_zones_stops_evictions_once(book):
    place(book, "a", True)
    place(book, "b", False)
    book.assess()
    place(book, "a", False)
    assert book.assess() == StopEvictions({"a": 0.0, "b": 0.0})
    assert book.assess() is None


def test_one_ready_node_resumes_evictions_in_all_zones(book):
    place(book, "a", False)
    place(book, "b", False)
    assert book.assess() == StopEvictions({"a": 0.0, "b": 0.0})
    place(book, "a", True)
    assert book.assess() == ResumeEvictions({"a": 0.1, "b": 0.1})


def test_a_node_that_changes_its_zone_counts_in_the_new_zone(book):
    place(book, "a", True, True)
    book.place("a1", "b", counts=True, is_ready=False)
    book.assess()
    assert {zone: count.size for zone, count in book.counts.items()} == {"a": 1, "b": 1}
    assert book.zone_of("a1") == "b"
    book.drop("a1")
    book.drop("a1")
    assert book.zone_of("a1") is None
    assert list(book.counts) == ["a"]


def test_excluded_nodes_do_not_open_their_zone(book):
    book.open("a")
    book.place("a0", "a", counts=False, is_ready=False)
    assert book.assess() is None
    assert book.states == {}
    assert book.untracked() == ["a"]
    assert book.members("a") == ["a0"]


@pytest.mark.parametrize(
    ("defects", "verdict"),
    [(DefectPolicy.FIXED, StopEvictions({"a": 0.0})), (DefectPolicy.UPSTREAM, None)],
)
def test_evictions_stop_when_the_last_ready_zone_loses_its_last_node(defects, verdict):
    book = ZoneStates(NodeLifecycleConfig(defects=defects))
    place(book, "a", False)
    place(book, "b", True)
    book.assess()
    book.drop("b0")
    assert book.assess() == verdict
