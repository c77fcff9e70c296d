"""The sections of an answer about queues."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fairlead.cli.output.summary.jobs import queues, waiting_groups
from fairlead.engine.batch.explanation.explanation import GroupExplanation, Obstacle
from fairlead.engine.core.reporter import QueueAllocation
from fairlead.whatif.outcome.jobs import JobsOutcome


@pytest.mark.parametrize(
    ("count", "last"),
    [
        pytest.param(3, "q2", id="a single further queue is printed"),
        pytest.param(4, "... and 2 more", id="further queues are counted"),
    ],
)
def test_queues_beyond_the_requested_rows(count, last):
    jobs = JobsOutcome(
        tuple(QueueAllocation(f"q{at}", 1, {}, {}, {}, 0.0, 0) for at in range(count))
    )
    screen = io.StringIO()
    queues(jobs).show(Console(file=screen, width=80), 2)
    assert screen.getvalue().splitlines()[-1].startswith(last)


def test_queues_that_the_change_affects_come_first():
    """Queue c has more pods, queue d has jobs only with the change; b only had a later session."""

    def outcome(at, cpu, *more):
        amounts = [("a", 1, 0), ("b", 1, at), ("c", cpu, 0), *more]
        return JobsOutcome(
            tuple(QueueAllocation(name, 1, {}, {"cpu": n}, {}, 0.0, t) for name, n, t in amounts)
        )

    screen = io.StringIO()
    after, before = outcome(9, 2, ("d", 1, 0)), outcome(0, 1)
    queues(after, before).show(Console(file=screen, width=120), 4)
    lines = screen.getvalue().splitlines()
    assert [line.split("  ")[0] for line in lines[-4:]] == ["c", "d", "a", "b"]


def test_a_weight_and_deserved_amounts_that_change_are_shown_before_and_after():
    def outcome(weight, cpu):
        changed = QueueAllocation("a", weight, {"cpu": cpu}, {}, {}, 0.0, 0)
        return JobsOutcome((changed, QueueAllocation("b", 1, {"cpu": 1000}, {}, {}, 0.0, 0)))

    screen = io.StringIO()
    queues(outcome(3, 2000), outcome(1, 1000)).show(Console(file=screen, width=120), 2)
    lines = screen.getvalue().splitlines()
    assert [line.split("  ")[0] for line in lines[-2:]] == ["a", "b"]
    assert "1 → 3" in lines[-2]
    assert "1 cpu → 2 cpu" in lines[-2]
    assert "→" not in lines[-1]


@pytest.mark.parametrize(
    ("known", "count", "title"),
    [
        (1, 2, "waiting groups (2, 1 because of the change)"),
        (1, 3, "waiting groups (3, 1 because of the change, the first 2 listed)"),
        (2, 2, "waiting groups (2)"),
    ],
)
def test_the_title_counts_all_waiting_groups_and_those_of_the_change(known, count, title):
    groups = tuple(GroupExplanation(name, Obstacle.NO_NODE, title=name) for name in "ab")
    without = JobsOutcome(waiting=groups[:known], waiting_count=known)
    screen = io.StringIO()
    changed = JobsOutcome(waiting=groups, waiting_count=count)
    waiting_groups(changed, 0, without).show(Console(file=screen, width=120), 2)
    assert screen.getvalue().splitlines()[1] == title
