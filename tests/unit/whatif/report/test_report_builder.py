"""The data of a run that the HTML report contains."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.outcome.autoscaling.waiting_time import PodWait
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.question import what_if
from fairlead.whatif.report import render_report
from fairlead.whatif.report.page_data import packed
from fairlead.whatif.report.report_builder import (
    Heading,
    simulation_report,
    whatif_report,
)
from fairlead.whatif.result.result_json import whatif_result

HEADING = Heading("What if", "dump.yaml", 7, 1.5)


@pytest.fixture
def data(snapshot, make, write):
    low = make.pod("low", cpu="3", node_name="a", owner="rs", priority=10)
    high = make.pod("high", cpu="3", priorityClassName="urgent")
    change = ClusterChange(apply=(write("c.json", make.priority_class("urgent", 1000), high),))
    answer = what_if(snapshot(make.node("a"), low), change, Conditions(seed=7))
    return whatif_report(HEADING, answer)


def test_the_report_of_a_simulation_has_the_lists_of_its_result(snapshot, make):
    """The text and the JSON list these events, too."""
    pod = make.pod("web", node_name="a", owner="rs")
    pod["metadata"]["labels"] = {"app": "web"}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    }
    change = ClusterChange(drain=("a",))
    run = what_if(snapshot(make.node("a"), pod, budget), change).changed
    heading = replace(HEADING, scheduler="default scheduler, batch configuration b.yaml")
    page = packed(simulation_report(heading, replace(run, notes=("A note.",))))
    assert page["subtitle"].endswith("1 pod, default scheduler, batch configuration b.yaml")
    assert page["verdict"][0]["severity"] == "bad"
    assert page["verdict"][0]["sentence"].startswith("A drain does not complete: 1 pod on 1 node")
    assert page["undrained"]["columns"]["pod"] == ["default/web"]
    assert page["notes"] == ["A note."]


@pytest.mark.parametrize("waited_s", [5, 120])
def test_the_report_of_a_simulation_has_the_long_waits_for_a_node(snapshot, make, waited_s):
    """The text has them, too; with an autoscaler, they are in its section."""
    run = what_if(snapshot(make.node("a")), ClusterChange(cordon=("a",))).changed
    wait = PodWait("ns/web", WorkloadRef("Deployment", "ns", "web"), 0, seconds(waited_s))
    page = packed(simulation_report(HEADING, replace(run, waits=(wait,))))
    waits = page["waits"]["columns"]
    long = ["deploy/ns/web"] if waited_s == 120 else []
    assert waits["workload"] == long
    assert waits["longest_s"] == [120 for _ in long]


def test_the_summary_counts_both_runs(data):
    assert data["subtitle"] == ("dump.yaml: 1 node, 2 pods, default scheduler")
    assert data["summary"] == {
        "nodes": 1, "pods": 2, "placed": 1, "pending": 1, "preempted": 1, "evicted": 0,
        "completed": 0, "choices_among_equals": 0,
    }  # fmt: skip
    assert data["summary_before"]["placed"] == 1
    assert data["summary_before"]["preempted"] == 0


def test_resources_have_units_and_the_values_of_the_run_without_the_change(data):
    by_name = {row["name"]: row for row in data["resources"]}
    assert by_name["cpu"] == {
        "name": "cpu", "unit": "milli", "allocatable": 4000, "requested": 3000, "before": 3000,
        "allocatable_before": 4000,
    }  # fmt: skip
    assert by_name["memory"]["unit"] == "bytes"
    assert by_name["pods"]["unit"] == ""


def test_failed_nodes_and_their_pods_are_in_no_total(snapshot, make):
    """The pods of a failed node do not run, and no pod can use its resources."""
    nodes = [make.node("a", cpu="4"), make.node("b", cpu="4")]
    pods = [make.pod("p", node_name="a", cpu="1"), make.pod("q", node_name="b", cpu="2")]
    change = ClusterChange(failures=Failures(fail_node=("b",)))
    report = whatif_report(HEADING, what_if(snapshot(*nodes, *pods), change))
    [cpu] = [row for row in report["resources"] if row["name"] == "cpu"]
    assert (cpu["requested"], cpu["allocatable"]) == (1000, 4000)
    assert (cpu["before"], cpu["allocatable_before"]) == (3000, 8000)


def test_the_free_resources_of_cordoned_nodes_are_in_no_share(snapshot, make):
    """No pod can use them; the pods of a cordoned node run, so they count."""
    nodes = [make.node("a", cpu="4"), make.node("b", cpu="4")]
    pods = [make.pod("p", node_name="a", cpu="1"), make.pod("q", node_name="b", cpu="2")]
    answer = what_if(snapshot(*nodes, *pods), ClusterChange(cordon=("b",)))
    report = whatif_report(HEADING, answer)
    [cpu] = [row for row in report["resources"] if row["name"] == "cpu"]
    assert (cpu["requested"], cpu["allocatable"]) == (1000, 4000)
    assert (cpu["before"], cpu["allocatable_before"]) == (3000, 8000)
    [pool] = whatif_result(answer)["node_pools"]
    [cpu] = [row for row in pool["resources"] if row["resource"] == "cpu"]
    assert (cpu["requested"], cpu["allocatable"]) == (1000, 4000)
    assert (cpu["requested_without"], cpu["allocatable_without"]) == (3000, 8000)
    assert (pool["pods"], pool["pods_without"], pool["cordoned"]) == (2, 2, 1)


def test_the_time_line_has_all_priorities_of_both_runs(data):
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


def test_the_time_line_counts_the_pods_of_a_failed_node_as_down(snapshot, make):
    """They count from the failure of the node until it returns, or until they are evicted."""
    pods = [make.pod("p", node_name="a", cpu="1"), make.pod("q", node_name="b", cpu="1")]
    failures = Failures(fail_node=("b",))
    change = ClusterChange(failures=failures, lasts="2m")
    dump = snapshot(make.node("a"), make.node("b"), *pods)
    timeline = whatif_report(HEADING, what_if(dump, change))["timeline"]
    [series] = timeline["series"]
    counts = list(zip(timeline["t_s"], series["running"], series["down"], strict=True))
    assert (counts[0], counts[-1][1:]) == ((0, 1, 1), (2, 0))


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


@pytest.fixture
def dark(snapshot, make):
    """Two nodes of a zone with a pod each fail for ten minutes; two others are drained in turn."""
    zone = "topology.kubernetes.io/zone"
    objects = [
        *(make.node(name, **{zone: name[0]}) for name in ("a1", "a2", "b1", "b2")),
        make.pod("web", node_name="a1", owner="rs"),
        make.pod("bare", node_name="a2"),
    ]
    failures = Failures(fail_zone=("a",))
    change = ClusterChange(failures=failures, drain=(f"{zone}=b",), max_unavailable=1, lasts="10m")
    return whatif_report(HEADING, what_if(snapshot(*objects), change))


def test_an_outage_is_shown_in_figures_and_tables(dark):
    outage = dark["outage"]
    figures = outage["figures"]
    assert (figures["nodes"], figures["concerned"], figures["evicted"]) == (2, 2, 2)
    assert figures["first_eviction_s"] == 350.05
    assert [row["node"] for row in outage["nodes"]] == ["a1", "a2"]
    assert outage["nodes"][0]["tainted_s"] == 50.05
    assert [row["rate"] for row in outage["zones"] if row["zone"] == "a"] == ["0.1 nodes/s"] * 3
    assert "When a whole zone fails" in outage["misconceptions"][1]["belief"]


def test_the_time_lines_of_an_outage_add_up(dark):
    """At each instant, every node and every affected pod is in exactly one state."""
    outage = dark["outage"]
    nodes = outage["nodes_over_time"]
    assert nodes["t_s"] == sorted(set(nodes["t_s"]))
    assert {sum(row) for row in zip(*nodes["counts"].values(), strict=True)} == {4}
    pods = outage["pods_over_time"]["counts"]
    states = (pods["down"], pods["waiting"], pods["back"])
    assert [sum(row) for row in zip(*states, strict=True)][-1] == 2


def test_taints_are_charted_with_the_allowed_rate(dark):
    [rate] = dark["outage"]["rates"]
    assert rate == {"zone": "a", "t_s": [50.05, 60.05], "tainted": [1, 2], "allowed": [1, 2]}


def test_rolling_drains_are_shown(dark):
    first, second = dark["drains"]
    assert (first["node"], first["begun_s"]) == ("b1", 0.0)
    assert second["begun_s"] == first["back_s"]


def test_the_report_of_an_outage_can_be_rendered(dark):
    assert '"outage":{' in render_report(dark)
