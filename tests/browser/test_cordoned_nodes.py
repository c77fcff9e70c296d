"""Reports about nodes that are cordoned or not ready, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlead.cli.main import run

pytestmark = pytest.mark.needs("chromium")

STORE = Path(__file__).parents[2] / "examples" / "store" / "store.yaml"
CORDONED = "Nodes that are cordoned do not count in these percentages."


def open_report(page, folder, dump, *question):
    path = folder / "report.html"
    run(["whatif", str(dump), *question, "--report", str(path), "-o", "json"])
    page.open(path)


def test_tables_of_shares_say_that_cordoned_nodes_do_not_count(page, tmp_path):
    """The share of a pool rises although no pod moves, and that of its zone has no value."""
    open_report(page, tmp_path, STORE, "--cordon", "topology.kubernetes.io/zone=west-1b")
    page.click("#tab-node_pools")
    assert page.texts("#panel-node_pools .note") == [CORDONED]
    assert page.texts(".zones + .note") == [CORDONED]
    page.click("[data-value=before]")
    assert page.texts(".zones + .note") == []


def test_tables_of_shares_say_that_failed_nodes_do_not_count(page, tmp_path):
    open_report(page, tmp_path, STORE, "--fail-node", "worker-03")
    page.click("#tab-node_pools")
    words = "Nodes that are {} do not count in these percentages."
    assert page.texts("#panel-node_pools .note") == [words.format("not ready")]
    assert page.texts(".zones + .note") == [words.format("out of service")]


def test_tables_of_shares_have_no_remark_if_all_nodes_count(page, tmp_path):
    open_report(page, tmp_path, STORE, "--scale", "deploy/store/frontend=9")
    page.click("#tab-node_pools")
    assert page.texts("#panel-node_pools .note, .zones + .note") == []


def test_the_map_shows_the_resources_of_nodes_that_are_all_cordoned(page, tmp_path):
    """The totals of the resources are 0, but the nodes have these resources."""
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": status}
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}))
    open_report(page, tmp_path, dump, "--cordon", "n1")
    assert page.texts("[aria-label=Resource] button") == ["CPU", "Memory", "Pods"]
    assert page.texts(".allocation-name") == ["CPU", "Memory", "Pods"]
    assert page.text(".fill-histogram h4") == "Nodes by share of CPU requested, in percent"


def test_workloads_are_other_workloads_only_if_some_are_touched(page, tmp_path):
    open_report(page, tmp_path, STORE, "--cordon", "worker-03")
    assert "5 workloads are untouched." in page.texts("#verdict > .note")
    open_report(page, tmp_path, STORE, "--scale", "deploy/store/frontend=9")
    assert "4 other workloads are untouched." in page.texts("#verdict > .note")
