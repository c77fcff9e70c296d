"""`fairlead size` keeps virtual nodes, because they have no machine to replace."""

from __future__ import annotations

import json

from fairlead.cli.main import run


def node(name: str, cpu: str, **labels: str) -> dict:
    offered = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": offered, "capacity": offered, "conditions": [ready]},
    }


def answer(tmp_path, capsys, *nodes: dict) -> tuple[int, str]:
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    status = run(["size", str(dump), "--output", "json"])
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_virtual_nodes_are_kept(tmp_path, capsys):
    """Otherwise, the answer would buy a node with ten thousand cores."""
    virtual = node("aci", "10k", type="virtual-kubelet")
    status, text = answer(tmp_path, capsys, node("a", "4"), virtual)
    found = json.loads(text)
    assert (status, found["nodes_today"], found["nodes_kept"]) == (0, 1, 1)
    assert "aci is kept: it has no machine to replace." in found["findings"]


def test_a_cluster_of_virtual_nodes_has_no_nodes_to_replace(tmp_path, capsys):
    """The message does not name --keep, which was not given."""
    status, text = answer(tmp_path, capsys, node("aci", "10k", type="virtual-kubelet"))
    assert status == 2
    assert "dump.json: every node is virtual, so no node is left to replace" in text
