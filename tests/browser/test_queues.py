"""The report of whole jobs in a real browser: shares over time, gangs, groups that wait."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.needs("chromium")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_there_is_one_chart(page, reports, theme):
    """And names are text."""
    page.open(reports / "queues.html", theme=theme)
    assert page.js("document.querySelectorAll('#queues canvas').length") == 1
    assert page.js("document.body.dataset.pwned") is None


def test_the_figures_are_those_of_gangs(page, reports):
    """Weights above, what gangs got below."""
    page.open(reports / "queues.html")
    lead = page.text("#queues .lead")
    assert lead.startswith("Weights: production 3, research 2, students 1, ")
    assert lead.endswith("The scarcest resource is openb/gpu-milli. 2 further queues not shown.")
    assert page.lines("#queues .tile") == [
        "Gangs 460 of more than one member",
        "Finished 298 all members ran at the same time",
        "Broken 0 members were preempted, and too few kept running",
        "Lost gpu hours 812 used by members that were preempted",
        "Idle gpu hours 0 held by gangs with too few running members",
    ]


def test_the_chart_reads_out_shares(page, reports):
    """By weight at the end; before the late queue came, the others had all."""
    page.open(reports / "queues.html")
    (legend,) = page.lines("#queues .outage-legend")
    assert legend.startswith("production: has 50 deserves 50 research: has 33 deserves 33")
    page.mouse_over("#queues .u-over", dx=0.2)
    (legend,) = page.lines("#queues .outage-legend")
    assert legend.startswith("production: has 0 deserves 0 research: has 66")


def test_groups_that_wait_say_until_when(page, reports):
    """Groups with the earliest expected start come first; without an estimate there is a dash."""
    page.open(reports / "queues.html")
    assert page.texts("#queues tbody td:nth-child(4)")[:2] == ["3:00:00", "–"]
    assert "Queues" in page.texts("nav a")


def test_without_jobs_there_is_no_such_part(page, reports):
    """Neither a section nor a link to it."""
    page.open(reports / "small.html")
    assert page.js("document.querySelector('#queues')") is None
    assert "Queues" not in page.texts("nav a")
