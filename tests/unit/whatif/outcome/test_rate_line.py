"""The eviction rate limit of a zone, and the evictions that happened."""

from __future__ import annotations

from types import SimpleNamespace

from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.outage import RateLimitedTaint, ZoneChange
from fairlead.whatif.outcome.rate_line import rate_lines


def lines(taints, *changes):
    """Return the lines of one zone; `taints` are seconds, and `changes` are (seconds, rate)."""
    return list(
        rate_lines(
            SimpleNamespace(
                taints=[RateLimitedTaint(seconds(at), "z", f"n{at}") for at in taints],
                zones=[ZoneChange(seconds(at), "z", "", 9, 9, rate) for at, rate in changes],
            )
        )
    )


def allowed(line):
    return [round(value, 3) for _, value in line.points]


def test_while_nodes_are_queued_the_line_follows_the_rate():
    [line] = lines([50, 60, 70.1, 80.1], (0, 0.1))
    assert allowed(line) == [1, 2, 3.01, 4.01]
    assert (line.count, line.allowed) == (4, 4)
    assert (line.first, line.last) == (seconds(50), seconds(80.1))


def test_no_tokens_accumulate_while_no_node_is_queued():
    [line] = lines([50, 60, 500, 510], (0, 0.1))
    assert line.allowed == 4
    assert line.allowed_at(seconds(300)) == 2


def test_a_rate_that_changes_is_followed():
    """A stop within a period is ignored; the rate after it is shown."""
    [line] = lines([50, 200], (0, 0.1), (50, 0.0), (190, 0.1))
    assert allowed(line) == [1, 2]


def test_a_single_taint_has_a_line_of_one_point():
    [line] = lines([50], (0, 0.1))
    assert (line.count, line.allowed, line.first, line.last) == (1, 1, seconds(50), seconds(50))


def test_zones_without_taints_have_no_line():
    assert lines([], (0, 0.1)) == []


def test_a_node_that_is_processed_several_times_counts_once():
    taints = [
        RateLimitedTaint(seconds(at), "z", node) for at, node in ((50, "a"), (60, "b"), (500, "a"))
    ]
    [line] = rate_lines(SimpleNamespace(taints=taints, zones=[ZoneChange(0, "z", "", 9, 9, 0.1)]))
    assert (line.nodes, line.count) == ({"a", "b"}, 3)
