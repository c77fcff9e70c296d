"""The report of an outage in a real browser: figures, charts, misconceptions, and lost pods."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.needs("chromium")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_report_has_three_charts(page, reports, theme):
    """The charts show nodes, taints with the allowed rate, and pods."""
    page.open(reports / "outage.html", theme=theme)
    assert page.js("document.querySelectorAll('#outage canvas').length") == 3


def test_the_figures_state_times_and_numbers(page, reports):
    """They are in the sentence above and in the tiles below it."""
    page.open(reports / "outage.html")
    lead = page.text("#outage .lead")
    assert lead == (
        "40 nodes failed. Evictions from 0:05:50 to 0:12:20. Pods are back from 0:05:51 to 0:20:00."
    )
    assert page.lines("#outage .tile") == [
        "Pods affected 120 on failed nodes",
        "Evicted 114 because of a taint",
        "Back as new pods 111 on any node with room",
        "Back with their nodes 6 without a replacement",
        "Not back 3 at the end",
        "Others preempted 2 to make room",
    ]


def test_the_charts_display_the_values_at_the_cursor(page, reports):
    """Initially those at the end; in the middle, some nodes are tainted and others are not.

    The highest value is there too if it is not the value at the end.
    """
    page.open(reports / "outage.html")
    assert page.lines(".outage-legend")[0].startswith(
        "At the end: tainted NoExecute 0 (at most 40) not ready 0 (at most 39)"
    )
    assert page.lines(".outage-legend")[2].endswith("evicted so far 120")
    page.mouse_over(".steps-chart .u-over", dx=0.2)
    nodes, _, pods = page.lines(".outage-legend")
    assert nodes.startswith("At 0:0")
    assert "tainted NoExecute 21 (at most 40) not ready 19" in nodes
    assert "down, not replaced 120" in pods  # the charts share one cursor


def test_the_time_line_divides_pods_with_a_node_into_running_and_down(page, reports):
    """Other reports have no column for pods that are down."""
    page.open(reports / "outage.html")
    assert page.lines("#timeline .chart-head") == [
        "Running at least 240, at 0:00:00; at most 357, at 0:20:00",
        "Down at most 120, at 0:00:00",
    ]
    columns = "#timeline thead th"
    assert page.texts(columns) == [
        "Priority", "Running", "Down", "Pending", "Preempted", "Evicted"
    ]  # fmt: skip
    page.open(reports / "small.html")
    assert "Down" not in page.texts(columns)


def test_the_taints_are_charted_with_the_allowed_rate(page, reports):
    """Both lines end at the same number of nodes."""
    page.open(reports / "outage.html")
    assert "a: tainted 40 rate allows 40" in page.lines(".outage-legend")[1]


def test_a_single_taint_has_no_chart_of_the_rate_limit(page, reports):
    """Lines over one instant have no length, so the frame would be empty."""
    page.open(reports / "one-taint.html")
    titles = page.texts("#outage .steps-chart strong")
    assert titles == ["Nodes out of service", "Pods of failed nodes"]


def test_misconceptions_are_listed_with_corrections(page, reports):
    """Each statement has the actual behaviour beside it."""
    page.open(reports / "outage.html")
    assert page.lines(".misconceptions dt") == ["“They stop when a zone is dark.”"]
    assert page.lines(".misconceptions dd") == ["They go on: one in 10 s."]


def test_lost_pods_are_listed_first_and_can_be_filtered(page, reports):
    """The list has pods, their nodes and reasons, and a button for each reason."""
    page.open(reports / "outage.html")
    assert page.texts("#panel-lost tbody td:first-child") == [
        "shop/db-0",
        "shop/agent",
        "shop/loyal",
    ]
    page.click("#panel-lost .facet")
    assert page.texts("#panel-lost tbody td:first-child") == ["shop/agent", "shop/loyal"]


def test_nodes_zones_and_drains_are_in_tabs(page, reports):
    """Instants are clock times; an event that did not happen is a dash."""
    page.open(reports / "outage.html")
    assert page.lines("#tab-nodes, #tab-zones") == ["Failed nodes40", "States of zones2"]
    page.click("#tab-nodes")
    row = page.texts("#panel-nodes tbody tr:first-child td")
    times = ["0:00:00", "0:00:50", "0:00:50", "0:05:50", "0:20:00"]
    assert row == ["node-00", "a", "1", *times, "3", "3"]
    page.click("#tab-preempted")
    assert page.texts("#panel-preempted tbody td:last-child") == ["shop/high"]
    page.click("#tab-zones")
    assert page.texts("#panel-zones tbody td:nth-child(3)") == ["Normal", "FullDisruption"]
    page.click("#tab-drains")
    assert page.texts("#panel-drains tbody tr:last-child td") == [
        "node-04", "0:05:31", "–", "–", "shop/web-1: would violate it",
    ]  # fmt: skip


def test_without_an_outage_the_section_is_absent(page, reports):
    """It is absent from the page and from its navigation."""
    page.open(reports / "small.html")
    assert page.js("document.querySelector('#outage')") is None
    assert "Outage" not in page.texts("nav a")
