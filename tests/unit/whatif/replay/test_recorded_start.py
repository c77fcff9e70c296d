"""Replays of workloads that record when pods started: openb's tables and SimKube traces."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from fairlead.cli.main import run

EXAMPLES = Path(__file__).parents[4] / "examples" / "replay"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,4000,8192,0,\n"
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
prompt,3000,10,0,0,,LS,Running,100,200,103
late,1000,10,0,0,,LS,Running,110,300,170
waits,3000,10,0,0,,LS,Running,150,400,205
soon,3000,10,0,0,,LS,Failed,160,300,161
never,9000,10,0,0,,LS,Pending,160,500,
placed,1000,10,0,0,,LS,Pending,600,700,
large,9000,10,0,0,,LS,Running,600,700,600
after,4000,10,0,0,,LS,Running,710,800,711
"""


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    return tmp_path


def replayed(capsys, *arguments):
    assert run(["replay", *arguments, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_each_pod_of_openb_is_compared_with_its_recorded_time(tables, capsys):
    answer = replayed(capsys, "pods.csv", "--snapshot", "nodes.csv")
    found = {row["pod"].removeprefix("default/"): row for row in answer["pods"]}
    assert {name: row["agreement"] for name, row in found.items()} == {
        "prompt": "same",
        "late": "earlier",
        "waits": "same",  # prompt leaves room for it
        "soon": "later",
        "never": "pending",
        "placed": "not-recorded",
        "large": "not-placed",
        "after": "same",  # placed has left
    }
    assert found["late"]["difference_s"] == -60
    assert found["large"]["reason"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert answer["verdict"] == (
        "4 of 8 pods agree with the rules (50.0%): 3 placed within 10s of the recorded time, "
        "1 never placed."
    )
    assert answer["agreement_ratio"] == pytest.approx(0.5)


def test_starts_within_the_tolerance_agree(tables, capsys):
    answer = replayed(capsys, "pods.csv", "--snapshot", "nodes.csv", "--tolerance", "1m")
    found = {row["pod"]: row["agreement"] for row in answer["pods"]}
    assert found["default/late"] == "same"
    assert answer["tolerance_s"] == 60


def test_tables_can_be_compressed_and_nodes_come_from_a_dump(tables, capsys):
    (tables / "pods.csv.gz").write_bytes(gzip.compress(PODS.encode()))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}}
    node["status"] = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    (tables / "nodes.json").write_text(json.dumps(node))
    expected = replayed(capsys, "pods.csv", "--snapshot", "nodes.csv")["agreement"]
    found = replayed(capsys, "pods.csv.gz", "--snapshot", "nodes.json")["agreement"]
    assert found == expected


def test_starts_of_a_simkube_trace_are_compared_in_order(capsys):
    nodes = str(EXAMPLES / "simkube-nodes.yaml")
    answer = replayed(capsys, str(EXAMPLES / "simkube-trace.json"), "--snapshot", nodes)
    assert [row["agreement"] for row in answer["pods"]] == ["same"] * 3 + ["earlier"] + ["same"] * 2
    assert answer["pods"][3]["difference_s"] == -120
    assert answer["verdict"].startswith("5 of 6 pods agree with the rules (83.3%)")


def test_a_trace_without_lifecycles_says_that_there_is_nothing_to_compare(tmp_path, capsys):
    trace = json.loads((EXAMPLES / "simkube-trace.json").read_text())
    (tmp_path / "t.json").write_text(json.dumps({**trace, "index": {}}))
    nodes = str(EXAMPLES / "simkube-nodes.yaml")
    answer = replayed(capsys, str(tmp_path / "t.json"), "--snapshot", nodes)
    assert answer["verdict"] == "The record has no starts of pods to compare with."
    assert answer["notes"] == ["Not compared: 6 pods of workloads without recorded pods."]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["pods.csv"], "--snapshot: is missing: pods.csv has no nodes"),
        (["pods.csv", "--snapshot", "nodes.csv", "--tolerance", "soon"], "--tolerance: "),
        (["nodes.csv", "--snapshot", "nodes.csv"], "nodes.csv: line 1: the header must be name,"),
        (["shapes.csv", "--snapshot", "nodes.csv"], "shapes.csv: cluster.trace.arrivals: recorded"),
        (["trace.json", "--snapshot", "nodes.csv"], "--snapshot: nodes.csv is a table; name a"),
        (["bad.csv", "--snapshot", "nodes.csv"], "bad.csv: line 2: creation_time: 'x' is not"),
        (
            ["pods.csv", "--snapshot", "nodes.csv", "--config", "extender.yaml"],
            "--config: must not name extenders: a replay calls no extender",
        ),
    ],
)
def test_wrong_input_is_refused_in_one_line(tables, capsys, arguments, line):
    (tables / "trace.json").write_bytes((EXAMPLES / "simkube-trace.json").read_bytes())
    shapes = "pods,qos,cpu_milli,memory_mib,num_gpu,gpu_milli\n1,BE,1,1,0,0\n"
    (tables / "shapes.csv").write_text(shapes)
    (tables / "bad.csv").write_text(PODS.replace("Running,100", "Running,x"))
    (tables / "extender.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n"
    )
    assert run(["replay", *arguments]) == 2
    printed = capsys.readouterr().err.strip()
    assert printed.startswith(f"fairlead: {line}")
    assert "\n" not in printed
