"""`fairlead size` and `fairlead consolidate` say if a node group's limits forbid their nodes."""

from __future__ import annotations

import json

import pytest

from fairlead.cli.main import run


def node(name: str) -> dict:
    offered = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True"}
    labels = {"kubernetes.azure.com/agentpool": "web"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": offered, "capacity": offered, "conditions": [ready]},
    }


def status(low: int, high: int) -> dict:
    health = f"{{minSize: {low}, maxSize: {high}}}"
    text = f"nodeGroups:\n- name: aks-web-1234-vmss\n  health: {health}\n"
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": text},
    }


@pytest.mark.parametrize("command", ["size", "consolidate"])
@pytest.mark.parametrize("minimum", [0, 2])
def test_the_answer_names_a_group_below_its_minimum(tmp_path, capsys, command, minimum):
    dump = tmp_path / "dump.json"
    items = [node("a"), node("b"), status(minimum, 9)]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert run([command, str(dump), "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    lines = [
        one for one in (*found["findings"], *found["notes"]) if one.startswith("Node group web")
    ]
    assert len(lines) == (minimum > 0)
