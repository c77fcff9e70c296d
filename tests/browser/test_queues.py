"""The report of batch queues in a real browser: shares over time, gangs, and waiting groups."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.needs("chromium")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_report_has_one_chart(page, reports, theme):
    """HTML in names is displayed as text."""
    page.open(reports / "queues.html", theme=theme)
    assert page.js("document.querySelectorAll('#queues canvas').length") == 1
    assert page.js("document.body.dataset.pwned") is None


def test_the_verdict_of_a_simulation_is_at_the_top(page, reports):
    """It has no tables, because no second run is compared."""
    page.open(reports / "queues.html")
    assert page.lines("#verdict > p") == ["3 of 9 pods are pending."]
    assert page.lines("#verdict li") == ["1 pod is preempted."]
    assert page.texts("#verdict .tabs") == []
    assert page.lines("nav a")[0] == "Verdict"


@pytest.mark.parametrize(
    ("severity", "colour"), [("bad", "--bad"), ("warning", "--warn"), ("good", "--good")]
)
def test_a_verdict_has_the_colour_of_its_severity(page, reports, severity, colour):
    """The text on a terminal is red, yellow or green."""
    page.open(reports / "queues.html")
    page.js(f"document.querySelector('#verdict > p').className = 'verdict {severity}'")
    page.js(f"document.querySelector('h1').style.color = 'var({colour})'")
    shown = [page.js(f"getComputedStyle(document.querySelector('{one}')).color")
             for one in ("#verdict > p", "h1")]  # fmt: skip
    assert shown[0] == shown[1]


def test_the_figures_are_those_of_gangs(page, reports):
    """Weights are above, the resources of gangs below."""
    page.open(reports / "queues.html")
    lead = page.text("#queues .lead")
    assert lead.startswith("Weights: production 3, research 2, students 1, ")
    assert lead.endswith("The scarcest resource is openb/gpu-milli. 2 further queues not shown.")
    assert page.lines("#queues .tile") == [
        "Gangs 460 of more than one member",
        "Finished 298 all members ran at the same time",
        "Broken 0 members were preempted, and too few kept running",
        "Lost GPU hours 812 used by members that were preempted",
        "Idle GPU hours 0.1 held by gangs with too few running members",
    ]


def test_the_chart_displays_the_shares_at_the_cursor(page, reports):
    """Shares follow the weights at the end; before the late queue starts, the others have all."""
    page.open(reports / "queues.html")
    (legend,) = page.lines("#queues .outage-legend")
    assert legend.startswith(
        "At the end: production: has 50.0% deserves 50.0% research: has 33.3% deserves 33.3%"
    )
    page.mouse_over("#queues .u-over", dx=0.2)
    (legend,) = page.lines("#queues .outage-legend")
    assert " production: has 0% deserves 0% research: has 66.7%" in legend


def test_waiting_groups_have_their_expected_start(page, reports):
    """Groups with the earliest expected start come first; without an estimate there is a dash."""
    page.open(reports / "queues.html")
    assert page.texts("#queues tbody td:nth-child(4)")[:2] == ["3:00:00", "–"]
    assert "Queues" in page.texts("nav a")


def test_without_gangs_the_section_is_absent(page, reports):
    """The section and its link in the navigation are absent."""
    page.open(reports / "small.html")
    assert page.js("document.querySelector('#queues')") is None
    assert "Queues" not in page.texts("nav a")
