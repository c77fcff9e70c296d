"""Options of plans: --apply, --scale and --set before the plan, and the times of simulated pods."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

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


def test_more_nodes_can_be_removed_after_the_change(planned):
    """Before the change, the budget keeps the nodes a and b."""
    _, before = planned("consolidate")
    assert (before["can_go"], before["next_steps"][0]["sentence"]) == (1, "Drain the node.")
    _, after = planned("consolidate --set pdb/shop/web:spec.minAvailable=1")
    first = after["next_steps"][0]["sentence"]
    assert (after["can_go"], first) == (2, "After the change, cordon the nodes.")
    assert after["notes"][0].startswith("This answer is about the cluster after --set")


def test_a_pod_moves_to_make_room_for_the_pods_of_the_change(planned):
    """Only node c has room for a pod of 4 cores; the second pod gets the node of web-1 or web-2."""
    labels = {"app": "big"}
    container = {**CONTAINER, "resources": {"requests": {"cpu": "4"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    big = {**replica_set(), "metadata": {"name": "big", "namespace": "shop"}, "spec": spec}
    Path("big.json").write_text(json.dumps(big))
    _, found = planned("rebalance --apply budget.json --apply big.json")
    [move] = found["moves"]
    assert move["pod"].startswith("shop/web-")
    assert {move["from"], move["to"]} == {"a", "b"}
    assert found["notes"][0].startswith("This answer is about the cluster after --apply")


@pytest.mark.parametrize("command", ["drain-plan", "consolidate", "rebalance"])
def test_a_namespace_needs_a_change(planned, capsys, command):
    assert run([command, "dump.json", "-n", "shop"]) == 2
    expected = "--namespace: has no effect without --apply, --scale or --set"
    assert expected in capsys.readouterr().err


STAGE = {
    "apiVersion": "kwok.x-k8s.io/v1alpha1",
    "kind": "Stage",
    "metadata": {"name": "slow"},
    "spec": {
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
        "selector": {"matchLabels": LABELS},
        "delay": {"durationMilliseconds": 300_000},
        "next": {"statusTemplate": "phase: Running"},
    },
}


@pytest.mark.parametrize("command", ["drain-plan --nodes a --nodes b", "upgrade-check --for 10s"])
@pytest.mark.parametrize("times", ["--startup-time 5m", "--kwok-stages stage.json"])
def test_drains_wait_until_replacements_have_started(planned, command, times):
    """The budget allows the second eviction only when the replacement of the first is ready."""
    Path("stage.json").write_text(json.dumps(STAGE))
    command += " --set pdb/shop/web:spec.minAvailable=1"
    _, before = planned(command)
    _, after = planned(f"{command} {times}")
    assert after["takes_s"] >= before["takes_s"] + 250


def test_the_times_of_pods_need_a_simulation(planned, capsys):
    for option, value in (("--startup-time", "5m"), ("--kwok-stages", "stage.json")):
        assert run(["drain-plan", "dump.json", option, value]) == 2
        assert f"{option}: needs --nodes" in capsys.readouterr().err
    assert run(["upgrade-check", "dump.json", "--startup-time", "soon"]) == 2
    assert "--startup-time: 'soon' is not a duration" in capsys.readouterr().err
    assert run(["consolidate", "dump.json", "--kwok-stages", "dump.json"]) == 2
    assert "dump.json: Node a: is not a KWOK Stage" in capsys.readouterr().err
