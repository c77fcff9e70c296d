"""The JSON of results conforms to its schema and contains no values that vary between runs."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import encode_result, simulation_result, whatif_result
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

DOCS = Path(__file__).parents[4] / "docs"
EXAMPLES = Path(__file__).parents[4] / "examples"
LINUX = {"kubernetes.io/os": "linux"}

COMPLETED = """
cluster: {generated: {nodes: 1}}
events:
- at: 10s
  create:
    metadata: {name: p, annotations: {fairlead.dev/run-duration: 30s}}
    spec: {containers: [{name: c, image: i}]}
duration: 2m
"""
DELETED_NODE = """
cluster: {generated: {nodes: 2}}
objects:
- apiVersion: v1
  kind: Pod
  metadata: {name: p, namespace: default, labels: {app: web}}
  spec: {nodeName: node-0, containers: [{name: c, image: i}]}
- apiVersion: policy/v1
  kind: PodDisruptionBudget
  metadata: {name: b, namespace: default}
  spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
events:
- {at: 1m, delete: node/node-0}
"""
OUTAGE = """\
title: all nodes fail
cluster:
  generated: {nodes: 2}
objects:
- apiVersion: v1
  kind: Pod
  metadata: {name: p, namespace: default}
  spec: {containers: [{name: c, image: i}]}
events:
- {at: 20s, fail-fraction: 1.0}
duration: 3m
"""


@pytest.fixture(scope="module")
def schema():
    content = json.loads((DOCS / "result-schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(content)
    return jsonschema.Draft202012Validator(content)


@pytest.fixture
def answer(snapshot, make, write):
    """A what-if in which every list of the result has an entry."""
    guarded = make.pod("guarded", cpu="3", node_name="a", owner="rs", priority=10)
    guarded["metadata"]["labels"] = {"app": "web"}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"expectedPods": 1, "currentHealthy": 1, "desiredHealthy": 1},
    }
    objects = [
        make.node("a", disk="ssd"),
        make.node("b"),
        make.node("c", cpu="9"),
        guarded,
        budget,
        make.pod("full", cpu="3", node_name="b", owner="rs2"),
        make.pod("bare", cpu="3", node_name="c"),
        make.pod("stuck", cpu="40"),
    ]
    refused = make.workload("ReplicaSet", "refused", preemptionPolicy="Never")
    high = make.pod("high", cpu="3", priorityClassName="urgent", nodeSelector={"disk": "ssd"})
    huge = make.pod("huge", cpu="30")
    files = write("c.json", make.priority_class("urgent", 1000), high, huge, refused)
    change = ClusterChange(apply=(files,), delete=("pod/bare",), drain=("b",))
    return what_if(snapshot(*objects), change)


def test_the_result_of_a_what_if_conforms_to_the_schema(schema, answer):
    result = json.loads(encode_result(whatif_result(answer)))
    schema.validate(result)
    empty = [name for name, value in result.items() if value == []]
    assert empty == [
        "fail_on",
        "next_steps",
        "packing",
        "certainty",
        "start_times",
        "drain_flags",
        "drain_refused",
        "completed",
        "returned",
        "waited",
        "updated",
        "gone",
        "not_created",
        "deleted_claims",
        "undrained",
        "skipped",
        "recurrences",
        "queues",
        "waiting_groups",
        "pod_autoscalers",
        "drains",
    ]
    assert result["outage"] is None
    assert result["difference"] is True
    assert result["moved"] == [
        {"pod": "default/full", "from": "b", "to": "c"},
        {"pod": "default/guarded", "from": "a", "to": "c"},
    ]
    assert result["evicted"] == [
        {
            "pod": "default/full",
            "node": "b",
            "at_s": 0.0,
            "why": "drain",
            "tolerated_s": None,
            "priority": 0,
        }
    ]


def test_the_result_of_a_resize_conforms_to_the_schema(schema, snapshot, make):
    """A pod that is resized in place replaces no other pod."""
    change = ClusterChange(set_resources=("pod/x=cpu=2",))
    cluster = snapshot(make.node("a", **LINUX), make.pod("x", cpu="1", node_name="a"))
    result = json.loads(encode_result(whatif_result(what_if(cluster, change))))
    schema.validate(result)
    assert result["updated"] == [{"pod": "default/x", "node": "a", "instead_of": None}]


def test_the_result_of_an_outage_and_a_rolling_drain_conforms_to_the_schema(schema, snapshot, make):
    """All lists about failed nodes have an entry, and the rolling drain drains both nodes."""
    zone = "topology.kubernetes.io/zone"
    small = make.pod("small", cpu="3", node_name="b", owner="rs3", priority=-5)
    objects = [
        *(make.node(name, **{zone: name}) for name in "abcd"),
        make.pod("bare", cpu="1", node_name="a"),
        make.pod("owned", cpu="3", node_name="a", owner="rs", priority=5),
        small,
        make.pod("other", cpu="3", node_name="c", owner="rs2"),
    ]
    failures = Failures(fail_zone=("a",), at="1m")
    change = ClusterChange(failures=failures, drain=("c", "d"), max_unavailable=1, lasts="10m")
    result = json.loads(encode_result(whatif_result(what_if(snapshot(*objects), change))))
    schema.validate(result)
    outage = result["outage"]
    assert [name for name, value in outage.items() if value in ([], None)] == []
    [room] = outage["preempted"]
    assert (room["pod"], room["node"], room["by"]) == ("default/small", "b", "default/owned")
    assert [drain["node"] for drain in result["drains"]] == ["c", "d"]
    first, second = result["drains"]
    assert first["back_s"] == first["empty_s"] + 600
    assert second["begun_s"] == first["back_s"]


@pytest.mark.parametrize("name", ["priorities", "budget"])
def test_the_result_of_a_simulation_conforms_to_the_schema(schema, name):
    path = str(EXAMPLES / name / "scenario.yaml")
    experiment = experiment_of(path, read_scenario(path))
    outcome = run_experiment(experiment, "", NoProgress()).outcome
    result = json.loads(encode_result(simulation_result(experiment, outcome)))
    schema.validate(result)
    assert result["placed"]
    assert result["settled"] is (name == "budget")


def test_the_verdict_of_a_simulation_has_the_form_of_a_what_if(schema, tmp_path):
    """All nodes of the scenario fail."""
    path = tmp_path / "outage.yaml"
    path.write_text(OUTAGE)
    experiment = experiment_of(str(path), read_scenario(str(path)))
    outcome = run_experiment(experiment, "", NoProgress()).outcome
    result = json.loads(encode_result(simulation_result(experiment, outcome)))
    schema.validate(result)
    sentence = "1 pod of failed nodes is not back: evictions stopped."
    found = {"outcome": "down", "severity": "bad", "sentence": sentence}
    assert result["verdict"] == {**found, "findings": [found]}


def test_a_completed_pod_of_a_simulation_has_its_time(schema, tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(COMPLETED)
    experiment = experiment_of(str(path), read_scenario(str(path)))
    outcome = run_experiment(experiment, "", NoProgress()).outcome
    result = json.loads(encode_result(simulation_result(experiment, outcome)))
    schema.validate(result)
    assert result["completed"] == [
        {"pod": "default/p", "node": "node-0", "phase": "Succeeded", "at_s": 41}
    ]


def test_a_breach_by_the_deletion_of_a_node_conforms_to_the_schema(schema, tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(DELETED_NODE)
    experiment = experiment_of(str(path), read_scenario(str(path)))
    outcome = run_experiment(experiment, "", NoProgress()).outcome
    result = json.loads(encode_result(simulation_result(experiment, outcome)))
    schema.validate(result)
    assert [one["by"] for one in result["pdb_breaches"]] == ["node deleted"]


def test_the_schema_and_the_documentation_have_all_kinds_of_outcome(schema):
    assert sorted(schema.schema["$defs"]["outcome"]["enum"]) == sorted(OutcomeKind)
    text = (DOCS / "results.md").read_text()
    assert [kind for kind in OutcomeKind if f"`{kind}`" not in text] == []


def test_the_documented_fields_are_those_of_the_schema(schema):
    """docs/json.md has every top-level field of a what-if's result."""
    text = (DOCS / "json.md").read_text()
    fields = schema.schema["$defs"]["whatIfResult"]["required"]
    assert [field for field in fields if f"`{field}`" not in text] == []
