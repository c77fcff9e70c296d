"""The distribution of measures, and the worst case."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.whatif.outcome.outage import LossCause
from fairlead.whatif.sweep.measure import BY_NAME, MEASURES, Distribution, distribution, worst_case


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 1, 2], Distribution(1, 2, 3, 3, 3, 0)),
        ([None, 4], Distribution(4, 4, 4, 4, 1, 1)),
        (list(range(1, 101)), Distribution(1, 50, 95, 100, 100, 99)),
        ([0, 7, 7], Distribution(0, 7, 7, 7, 3, 1)),
        ([None, None], None),
        ([], None),
    ],
)
def test_the_distribution_of_a_measure_has_percentiles(values, expected) -> None:
    assert distribution(values) == expected


def row(**values):
    return {one.name: values.get(one.name) for one in MEASURES}


def test_the_worst_case_has_the_highest_measure_with_the_other_measures_as_ties() -> None:
    rows = [row(pending=2, evicted=1), row(pending=2, evicted=3), row(pending=0, evicted=9)]
    assert worst_case(rows, "pending") == 1
    assert worst_case(rows, "evicted") == 2


def test_of_equal_cases_the_first_is_worst() -> None:
    assert worst_case([row(pending=1), row(pending=1)], "pending") == 0


def test_pods_that_are_not_needed_any_more_are_not_lost() -> None:
    """The pod of a DaemonSet whose node was removed, for example, need not run again."""
    causes = [LossCause.NO_ROOM, LossCause.NODE_REMOVED, LossCause.NOT_NEEDED, LossCause.DAEMON]
    lost = [{"cause": str(one), "priority": 0} for one in causes]
    assert BY_NAME["lost"].read({"outage": {"lost": lost}}) == 2
    assert BY_NAME["lost"].read({"outage": None}) is None


def test_the_autoscaler_that_lacks_replicas_for_the_longest_time_counts() -> None:
    autoscalers = [{"short_s": 15.0}, {"short_s": 60.0}, {"short_s": 0.0}]
    assert BY_NAME["short_s"].read({"pod_autoscalers": autoscalers}) == 60
    assert BY_NAME["short_s"].read({"pod_autoscalers": []}) is None


def test_the_meaning_of_a_share_states_its_range() -> None:
    """A share of 1 would read as one percent."""
    shares = [one for one in MEASURES if one.name.endswith("_share")]
    assert [one.meaning.endswith(" (0 to 1)") for one in shares] == [True, True]


def test_pods_with_a_negative_priority_have_measures_of_their_own() -> None:
    """They are neither pending nor displaced in the sense of the measures of damage."""
    pods = [{"priority": -10}, {"priority": -10}, {"priority": 0}]
    loops = [{"negative_priority": True}, {"negative_priority": False}]
    lost = [{"cause": str(LossCause.NO_ROOM), **one} for one in pods]
    result: dict[str, Any] = dict.fromkeys(("pending", "evicted", "preempted"), pods)
    result |= {"recurrences": loops, "outage": {"lost": lost}}
    damage = ("pending", "lost", "evicted", "preempted", "displaced_again")
    assert [BY_NAME[name].read(result) for name in damage] == [1] * 5
    assert BY_NAME["negative_priority_pending"].read(result) == 2
    assert BY_NAME["negative_priority_displaced"].read(result) == 4
