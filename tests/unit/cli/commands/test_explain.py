"""`fairlead explain` of a pod in a large cluster: the best nodes, on one screen."""

from __future__ import annotations

import json

import pytest

from fairlead.cli import main

SIZE = {"cpu": "4", "memory": "8Gi", "pods": "10"}
NODES = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{at:02}"},
        "status": {
            "allocatable": SIZE,
            "capacity": SIZE,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    for at in range(25)
]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "new", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
}


@pytest.mark.parametrize(("form", "listed"), [("text", 10), ("details", 25)])
def test_the_best_of_many_nodes_are_listed(tmp_path, capsys, monkeypatch, form, listed):
    monkeypatch.setenv("COLUMNS", "80")
    dump, pod = tmp_path / "dump.json", tmp_path / "pod.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": NODES}))
    pod.write_text(json.dumps(POD))
    main.run(["explain", str(dump), "--apply", str(pod), "-o", form])
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.startswith("node-") and line.split()[1].isdigit()]
    assert len(rows) == listed
    assert ("... and 15 more" in lines) == (form == "text")
    assert len(lines) <= (40 if form == "text" else 60)
