"""What the HTML report is given of a run."""

from __future__ import annotations

import pytest

from fairlead.whatif.asking import Conditions, what_if
from fairlead.whatif.change import Change
from fairlead.whatif.report import render_report
from fairlead.whatif.report_data import Heading, whatif_report

HEADING = Heading("What if", "dump.yaml", 7, 1.5)


@pytest.fixture
def data(snapshot, make, write):
    low = make.pod("low", cpu="3", node_name="a", owner="rs", priority=10)
    high = make.pod("high", cpu="3", priorityClassName="urgent")
    change = Change(apply=(write("c.json", make.priority_class("urgent", 1000), high),))
    answer = what_if(snapshot(make.node("a"), low), change, Conditions(seed=7))
    return whatif_report(HEADING, answer)


def test_the_summary_counts_both_runs(data):
    assert data["subtitle"] == "dump.yaml: 1 nodes, 2 pods"
    assert data["summary"] == {
        "nodes": 1, "pods": 2, "placed": 1, "pending": 1, "preempted": 1, "evicted": 0,
        "completed": 0, "choices_among_equals": 0,
    }  # fmt: skip
    assert data["summary_before"]["placed"] == 1
    assert data["summary_before"]["preempted"] == 0


def test_resources_have_units_and_the_run_without(data):
    by_name = {row["name"]: row for row in data["resources"]}
    assert by_name["cpu"] == {
        "name": "cpu", "unit": "milli", "allocatable": 4000, "requested": 3000, "before": 3000,
    }  # fmt: skip
    assert by_name["memory"]["unit"] == "bytes"
    assert by_name["pods"]["unit"] == ""


def test_the_time_line_has_every_priority_side_by_side(data):
    timeline = data["timeline"]
    assert [row["priority"] for row in timeline["series"]] == [1000, 10]
    high, low = timeline["series"]
    assert timeline["t_s"][0] == 0
    assert timeline["t_s"] == sorted(timeline["t_s"])
    assert high["running"][-1] == 1
    assert low["pending"][-1] == 1
    assert low["preempted"][-1] == 1
    assert {len(row[name]) for row in timeline["series"] for name in ("pending", "running")} == {
        len(timeline["t_s"])
    }


def test_nodes_show_their_pods_and_preemptions_their_rule(data):
    [node] = data["nodes"]
    assert node["pods"] == [("default/high", 1000, {"cpu": 3000})]
    assert node["requested"]["cpu"] == 3000
    [preemption] = data["preemptions"]
    assert preemption["victim"] == "default/low"
    assert preemption["rule"] == "only candidate"
    [pending] = data["pending"]
    assert pending["pod"] == "default/low"
    assert {"priority": 1000, "name": "urgent"} in data["priorities"]


def test_the_report_can_be_rendered(data):
    assert "default/high" in render_report(data)
