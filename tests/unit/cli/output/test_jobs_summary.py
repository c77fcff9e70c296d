"""The sections of an answer about queues."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fairlead.cli.output.jobs_summary import queues
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
