"""The report of an outage in a real browser: figures, charts, misconceptions, what is not back."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.needs("chromium")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_there_are_three_charts(page, reports, theme):
    """Nodes, taints against the rate, pods."""
    page.open(reports / "outage.html", theme=theme)
    assert page.js("document.querySelectorAll('#outage canvas').length") == 3


def test_the_figures_say_when_and_how_many(page, reports):
    """The sentence above, and the tiles below it."""
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
        "Preempted for them 2 others, to make room",
    ]


def test_the_charts_read_out_what_is_under_the_cursor(page, reports):
    """At the end at first; in the middle of the run, some nodes are tainted and others are not."""
    page.open(reports / "outage.html")
    assert "tainted NoExecute 0" in page.lines(".outage-legend")[0]
    page.mouse_over(".steps-chart .u-over", dx=0.2)
    nodes, _, pods = page.lines(".outage-legend")
    assert "tainted NoExecute 21 not ready 19" in nodes
    assert "down with their node 120" in pods  # the charts share one cursor


def test_the_taints_stand_beside_what_the_rate_allows(page, reports):
    """Both lines end at the same number of nodes."""
    page.open(reports / "outage.html")
    assert "a: tainted 40 rate allows 40" in page.lines(".outage-legend")[1]


def test_a_single_taint_has_no_chart_of_the_rate(page, reports):
    """Lines over one instant have no length, so the frame would be empty."""
    page.open(reports / "one-taint.html")
    titles = page.texts("#outage .steps-chart strong")
    assert titles == ["Nodes out of service", "Their pods"]


def test_what_is_believed_is_set_right(page, reports):
    """A list of sayings with what the code does."""
    page.open(reports / "outage.html")
    assert page.lines(".misconceptions dt") == ["“They stop when a zone is dark.”"]
    assert page.lines(".misconceptions dd") == ["They go on: one in 10 s."]


def test_what_is_not_back_comes_first_and_can_be_filtered(page, reports):
    """Pods, where they were, and why; a button per reason."""
    page.open(reports / "outage.html")
    assert page.texts("#panel-lost tbody td:first-child") == [
        "shop/db-0",
        "shop/agent",
        "shop/loyal",
    ]
    page.click("#panel-lost .facet")
    assert page.texts("#panel-lost tbody td:first-child") == ["shop/agent", "shop/loyal"]


def test_nodes_zones_and_drains_stand_behind_tabs(page, reports):
    """Instants as clocks; what did not happen is a dash."""
    page.open(reports / "outage.html")
    assert page.lines("#tab-nodes, #tab-zones") == ["Failed nodes40", "States of zones2"]
    page.click("#tab-nodes")
    row = page.texts("#panel-nodes tbody tr:first-child td")
    assert row == ["node-00", "a", "0:00:00", "0:00:50", "0:00:50", "0:05:50", "0:20:00", "3", "3"]
    page.click("#tab-preempted")
    assert page.texts("#panel-preempted tbody td:last-child") == ["shop/high"]
    page.click("#tab-zones")
    assert page.texts("#panel-zones tbody td:nth-child(3)") == ["Normal", "FullDisruption"]
    page.click("#tab-drains")
    assert page.texts("#panel-drains tbody tr:last-child td") == [
        "node-04", "0:05:31", "–", "–", "shop/web-1: would violate it",
    ]  # fmt: skip


def test_without_an_outage_there_is_no_such_section(page, reports):
    """Neither in the page nor in its navigation."""
    page.open(reports / "small.html")
    assert page.js("document.querySelector('#outage')") is None
    assert "Outage" not in page.texts("nav a")
