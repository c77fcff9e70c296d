"""The command `fit` with an autoscaler, which counts until a limit of the autoscaler is reached."""

from __future__ import annotations

import json

from fairlead.cli.main import run

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"pool": "a"}},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]},
}


def test_a_node_group_grows_to_its_maximum(tmp_path, capsys):
    dump, pod, groups = (tmp_path / name for name in ("dump.json", "pod.json", "groups.yaml"))
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE]}))
    pod.write_text(json.dumps(POD))
    groups.write_text("node-groups:\n- {name: a, min: 1, max: 3, labels: {pool: a}}\n")
    options = ["--pod", str(pod), "--autoscale", "cluster-autoscaler", "--node-groups", str(groups)]
    assert run(["fit", str(dump), *options, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["count"], found["stop"]["by"]) == (6, "autoscaler")
