"""The report of whole jobs in a real browser: shares over time, gangs, groups that wait."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.needs("chromium")

WIDTHS = (1920, 1366, 1024, 768, 480, 380)


def words(texts):
    """Each text on one line."""
    return [" ".join(text.split()) for text in texts]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_draws_without_complaint(page, reports, theme):
    """No script error, no request but for the file itself, and names are text."""
    page.open(reports / "queues.html", theme=theme)
    assert page.js("document.documentElement.dataset.drawn") == "yes"
    assert page.problems == []
    assert page.js("document.querySelectorAll('#queues canvas').length") == 1
    assert page.js("document.body.dataset.pwned") is None


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out(page, reports, width):
    """The page never scrolls sideways; what is wide scrolls within its card."""
    page.open(reports / "queues.html", width=width)
    assert page.js("document.documentElement.scrollWidth") <= width


def test_the_figures_are_those_of_gangs(page, reports):
    """Weights above, what gangs got below."""
    page.open(reports / "queues.html")
    lead = page.text("#queues .lead")
    assert lead.startswith("Weights: production 3, research 2, students 1, ")
    assert lead.endswith("Of openb/gpu-milli there is least for all. 2 further queues not shown.")
    assert words(page.texts("#queues .tile")) == [
        "Gangs 460 of more than one member",
        "Finished 298 all members side by side",
        "Broken 0 some members preempted, too few ran on",
        "Lost gpu hours 812 used by members that were preempted",
        "Idle gpu hours 0 held by too few members of a gang",
    ]


def test_the_chart_reads_out_shares(page, reports):
    """By weight at the end; before the late queue came, the others had all."""
    page.open(reports / "queues.html")
    (legend,) = words(page.texts("#queues .outage-legend"))
    assert legend.startswith("production: has 50 deserves 50 research: has 33 deserves 33")
    page.mouse_over("#queues .u-over", dx=0.2)
    (legend,) = words(page.texts("#queues .outage-legend"))
    assert legend.startswith("production: has 0 deserves 0 research: has 66")


def test_groups_that_wait_say_until_when(page, reports):
    """First those that are expected to start first; a dash where nobody knows."""
    page.open(reports / "queues.html")
    assert page.texts("#queues tbody td:nth-child(4)")[:2] == ["3:00:00", "–"]
    assert "Queues" in page.texts("nav a")


def test_without_jobs_there_is_no_such_part(page, reports):
    """Neither a section nor a link to it."""
    page.open(reports / "small.html")
    assert page.js("document.querySelector('#queues')") is None
    assert "Queues" not in page.texts("nav a")
