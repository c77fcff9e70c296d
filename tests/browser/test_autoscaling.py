"""The report of an autoscaler in a real browser: figures, charts of nodes and cost, and tables."""

from __future__ import annotations

import runpy

import pytest
from tests.browser.conftest import SAMPLES

from fairlead.cli.output.report_file import write_report

pytestmark = pytest.mark.needs("chromium")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_charts_show_nodes_and_cost(page, reports, theme):
    """HTML in names is displayed as text."""
    page.open(reports / "autoscaling.html", theme=theme)
    assert page.js("document.querySelectorAll('#autoscaling canvas').length") == 3
    assert page.texts("#autoscaling .outage-head strong") == [
        "Nodes",
        "Cost per hour",
        "Cost so far",
    ]
    assert page.js("document.body.dataset.pwned") is None
    assert page.problems == []


def test_figures_are_shown_beside_those_without_the_change(page, reports):
    page.open(reports / "autoscaling.html")
    assert page.lines("#autoscaling .tile")[:3] == [
        "Nodes at the end 49 without the change: 7",
        "Most nodes at once 49 without the change: 7",
        "Node hours 24.5 without the change: 24.5",
    ]
    assert page.lines("#autoscaling .tile")[3:5] == [
        "Cost of the run 12.25 without the change: 3.50",
        "Cost per month at the end 17,885 without the change: 17,885",
    ]
    assert page.text("#autoscaling .lead").startswith("Karpenter added 42 nodes and removed 0.")


def test_the_navigation_counts_the_nodes_at_the_end(page, reports):
    """The node map also has nodes that an autoscaler removed, but the count leaves them out."""
    page.open(reports / "autoscaling.html")
    assert page.text('nav a[href="#nodes"] .amount') == "1"


def test_nodes_are_divided_by_group_or_by_type(page, reports):
    page.open(reports / "autoscaling.html")
    assert "group-0 7" in page.lines("#autoscaling .outage-legend")[0]
    page.click("#autoscaling .choice button", 1)
    legend = page.lines("#autoscaling .outage-legend")[0]
    assert legend.startswith("At the end: m5.large 35 c5.large 14")


def test_tables_name_waits_changes_and_reasons(page, reports):
    page.open(reports / "autoscaling.html")
    page.click("#tab-waiting")
    assert page.lines("#panel-waiting tbody tr")[0].endswith("40 1m01s 1m58s 4m00s shop/web-1 1")
    page.click("#tab-no_scale_down")
    assert page.lines("#panel-no_scale_down tbody tr") == ["n1 NotUnderutilized"]


def test_without_an_autoscaler_the_section_is_absent(page, reports):
    page.open(reports / "small.html")
    assert page.js("document.querySelector('#autoscaling')") is None


@pytest.mark.parametrize(
    ("waits", "words"),
    [
        ({"median_s": 0.0, "p95_s": 0.0, "longest_s": 0.0}, "All 40 new pods had a node at once."),
        ({"median_s": 0.0, "p95_s": 0.0, "longest_s": 9.0},
         "Of 40 new pods, half had a node at once, 95% at once, the last after 9s."),
    ],
    ids=["no pod waits", "few pods wait"],
)  # fmt: skip
def test_waits_of_no_time_are_stated_as_such(page, tmp_path, waits, words):
    report = runpy.run_path(str(SAMPLES / "autoscaling_report.py"))["autoscaling_report"]()
    report["autoscaling"]["figures"] |= {**waits, "still_waiting": 0}
    write_report(tmp_path / "report.html", report)
    page.open(tmp_path / "report.html")
    assert page.text("#autoscaling .lead") == f"Karpenter added 42 nodes and removed 0. {words}"


def test_an_autoscaler_without_nodes_has_no_charts(page, tmp_path):
    """All their lines would be at zero."""
    report = runpy.run_path(str(SAMPLES / "autoscaling_report.py"))["autoscaling_report"]()
    report["autoscaling"]["figures"] |= {"most": 0}
    report["autoscaling"]["figures_without"] |= {"most": 0}
    write_report(tmp_path / "report.html", report)
    page.open(tmp_path / "report.html")
    assert page.texts("#autoscaling .tile-name")[0] == "Nodes at the end"
    assert page.js("document.querySelectorAll('#autoscaling canvas').length") == 0
