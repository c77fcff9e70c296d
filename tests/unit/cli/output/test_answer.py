"""The text of a what-if shows each resource that pods request in one of the two runs."""

from __future__ import annotations

import json

from fairlead.cli.main import run

GPU = "nvidia.com/gpu"


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
