"""Plans of drains for the cluster after --apply, --scale and --set."""

from __future__ import annotations

import json
import shlex

import pytest

from fairlead.cli.main import run

READY = {"type": "Ready", "status": "True"}
LABELS = {"app": "web"}
CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}


def node(name):
    offered = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": offered, "capacity": offered, "conditions": [READY]},
    }


def replica_set():
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "shop", "uid": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template},
    }


def pod(name, on):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "labels": LABELS,
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"nodeName": on, "containers": [CONTAINER]},
        "status": {"phase": "Running", "conditions": [READY]},
    }


def budget(least):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": LABELS}},
    }


@pytest.fixture
def planned(tmp_path, capsys, monkeypatch):
    """Returns the exit code and the answer of a command about a budget that blocks drains."""
    monkeypatch.chdir(tmp_path)
    pods = [pod("web-1", "a"), pod("web-2", "b")]
    items = [node("a"), node("b"), node("c"), replica_set(), *pods, budget(2)]
    dump = {"apiVersion": "v1", "kind": "List", "items": items}
    (tmp_path / "dump.json").write_text(json.dumps(dump))
    (tmp_path / "budget.json").write_text(json.dumps(budget(1)))

    def answer(text):
        command, *options = shlex.split(text)
        code = run([command, "dump.json", *options, "-o", "json"])
        return code, json.loads(capsys.readouterr().out)

    return answer


@pytest.mark.parametrize("command", ["drain-plan --nodes a", "drain-plan", "upgrade-check"])
@pytest.mark.parametrize(
    "change",
    [
        "--set pdb/shop/web:spec.minAvailable=1",
        "--set pdb/web:spec.minAvailable=1 -n shop",
        "--apply budget.json",
        "--scale rs/shop/web=3",
    ],
)
def test_the_plan_is_for_the_cluster_after_the_change(planned, command, change):
    _, before = planned(command)
    assert before["blocked"]
    code, after = planned(f"{command} {change}")
    assert (code, after["blocked"]) == (0, [])
    assert after["notes"][0].startswith("This answer is about the cluster after --")


def test_the_first_command_says_that_the_change_comes_first(planned):
    _, found = planned("drain-plan --nodes a --scale rs/shop/web=3")
    assert found["next_steps"][0]["sentence"] == "After the change, drain the node."


def test_the_commands_in_an_answer_contain_the_change(planned):
    options = "--set pdb/web:spec.minAvailable=1 --namespace shop"
    _, found = planned(f"drain-plan {options}")
    assert f"fairlead drain-plan dump.json {options} --nodes NODE" in found["findings"][0]


def test_a_namespace_needs_a_change(planned, capsys):
    assert run(["drain-plan", "dump.json", "-n", "shop"]) == 2
    expected = "--namespace: has no effect without --apply, --scale or --set"
    assert expected in capsys.readouterr().err
