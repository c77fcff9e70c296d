"""The report's section on an autoscaler: line charts of nodes and cost with common instants."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.autoscaling.node_group import (
    AutoscalingOutcome,
    GroupOutcome,
    NodeTransition,
)
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.report.autoscaling_section import LINES_MAX, autoscaling_section

HOUR = seconds(3600)


def group(name, before=1, after=1, price=None, instance_type=""):
    return GroupOutcome(
        group=name, minimum=0, maximum=9, before=before, after=after, added=0, removed=0,
        node_hours=0.0, has_price=price is not None, instance_type=instance_type, cost=None,
        cost_per_hour=0.0 if after == 0 else None if price is None else after * price,
    )  # fmt: skip


def run(*groups, transitions=(), hours=2):
    acted = AutoscalingOutcome("cluster-autoscaler", groups, tuple(transitions), {}, {})
    empty = dict.fromkeys(
        ("preempted", "evicted", "pdb_breaches", "undrained", "skipped", "errors",
         "recurrences", "nodes", "allocations", "samples"),
        (),
    )  # fmt: skip
    return RunOutcome(
        started_at=0, ended_at=hours * HOUR, settled=True, pods={}, priority_names={},
        choices_among_equals=0, autoscaling=acted, **empty,
    )  # fmt: skip


def test_a_line_changes_when_a_node_is_added_or_removed():
    moves = [NodeTransition(HOUR, "a-2", "a", True)]
    found = autoscaling_section(run(group("a", 1, 2), transitions=moves))
    assert found["t_s"] == [0.0, 3600.0, 7200.0]
    assert found["by_group"] == [{"name": "a", "nodes": [1, 2, 2]}]


def test_cost_is_summed_over_time_and_groups():
    moves = [NodeTransition(HOUR, "a-2", "a", True, price=0.5)]
    found = autoscaling_section(
        run(group("a", 1, 2, 0.5), group("b", 1, 1, 2.0), transitions=moves)
    )
    assert found["cost"] == [2.5, 3.0, 3.0]
    assert found["spent"] == [0.0, 2.5, 5.5]


def test_a_group_without_nodes_needs_no_price():
    found = autoscaling_section(run(group("a", price=0.5), group("b", before=0, after=0)))
    assert found["cost"] == [0.5, 0.5]
    assert found["figures"]["cost_per_hour"] == 0.5


def test_without_a_price_there_is_no_cost():
    found = autoscaling_section(run(group("a", price=0.5), group("b")))
    assert found["cost"] is None
    assert found["spent"] is None


def test_both_runs_have_common_instants_up_to_the_later_end():
    found = autoscaling_section(run(group("a", price=1.0)), run(group("a", price=1.0), hours=3))
    assert found["t_s"] == [0.0, 10_800.0]
    assert found["spent_without"] == [0.0, 3.0]


def test_groups_of_one_type_are_added_up():
    types = [group("a", instance_type="m5"), group("b", instance_type="m5")]
    assert autoscaling_section(run(*types))["by_type"] == [{"name": "m5", "nodes": [2, 2]}]


def test_with_an_unknown_type_the_chart_has_only_groups():
    assert autoscaling_section(run(group("a"), group("b", instance_type="m5")))["by_type"] == []


@pytest.mark.parametrize("count", [LINES_MAX, LINES_MAX + 3])
def test_small_groups_beyond_the_colours_are_added_up(count):
    groups = [group(f"g{number:02}", 1, 1) for number in range(count)]
    lines = autoscaling_section(run(*groups))["by_group"]
    assert len(lines) == LINES_MAX
    assert sum(line["nodes"][0] for line in lines) == count
    assert (lines[-1]["name"] == "others") is (count > LINES_MAX)
