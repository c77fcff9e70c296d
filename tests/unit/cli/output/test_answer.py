"""The text of a what-if: the table of nodes, and the sections that a small terminal shows."""

from __future__ import annotations

import json
from pathlib import Path

from fairlead.cli.main import run

GPU = "nvidia.com/gpu"
STORE = Path(__file__).parents[4] / "examples/store/store.yaml"


def test_the_node_table_has_resources_that_only_removed_pods_requested(tmp_path, capsys):
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10", GPU: "4"}
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": amounts}}
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1", GPU: "2"}}}
    meta = {"name": "p", "namespace": "default"}
    spec = {"nodeName": "n", "containers": [container]}
    pod = {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}
    path = tmp_path / "dump.json"
    items = [{"apiVersion": "v1", **one} for one in (node, pod)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    run(["whatif", str(path), "--delete", "pod/p", "--no-report"])
    shown = capsys.readouterr().out.splitlines()
    (at,) = (at for at, line in enumerate(shown) if line.startswith("NODES "))
    assert shown[at].split()[-1] == GPU.upper()
    assert shown[at + 1].endswith("50.0% → 0.0%")


def test_a_small_terminal_shows_the_outcomes_by_seed(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("LINES", "24")
    change = ["--drain", "topology.kubernetes.io/zone=west-1b", "--seeds", "3"]
    run(["whatif", str(STORE), *change, "--no-report"])
    assert "IN 3 SEEDS" in capsys.readouterr().out
