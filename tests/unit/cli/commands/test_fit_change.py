"""`fairlead fit` counts pods in the cluster after --scale and --apply."""

from __future__ import annotations

import json

import pytest

from fairlead.cli.main import run

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a", "labels": {"pool": "a"}},
    "status": {
        "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"},
        "capacity": {"cpu": "8", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
AUTOSCALING = "--autoscale cluster-autoscaler --node-groups GROUPS"


def workload(name: str, replicas: int, kind: str = "Deployment", namespace: str = "shop") -> dict:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


@pytest.fixture
def fit(tmp_path, capsys):
    """Returns the JSON answer for a node of 8 cores, 2 pods of web and 1 pod of db."""
    dump, new, groups = (tmp_path / name for name in ("dump.json", "new.json", "groups.yaml"))
    items = [NODE, workload("web", 2), workload("db", 1, "StatefulSet")]
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    new.write_text(json.dumps(workload("api", 3)))
    groups.write_text("node-groups:\n- {name: a, min: 1, max: 2, labels: {pool: a}}\n")

    def answer(options: str) -> dict:
        words = [{"NEW": str(new), "GROUPS": str(groups)}.get(one, one) for one in options.split()]
        assert run(["fit", str(dump), "--output", "json", *words]) in (0, 1)
        return json.loads(capsys.readouterr().out)

    return answer


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ("--like deploy/web", 5),
        ("--like deploy/web --scale deploy/web=6", 1),
        ("--like deploy/web --scale deploy/web=1", 6),
        ("--like deploy/web --scale deploy/web=4 --scale sts/db=3", 1),
        ("--like deploy/web --apply NEW", 2),
        ("--like deploy/api --apply NEW --scale deploy/web=0", 4),
        ("--like sts/db -n shop --scale deploy/web=3", 4),
        ("--pod NEW --scale deploy/web=6", 1),
        ("--like sts/db --scale sts/db=9", 0),
        (f"--like deploy/web --scale deploy/web=6 {AUTOSCALING}", 9),
    ],
)
def test_the_count_begins_after_the_change(fit, options, count):
    assert fit(options)["count"] == count


def test_the_answer_says_that_it_is_about_a_change(fit):
    found = fit("--like deploy/web --scale deploy/web=6")
    assert found["verdict"].endswith(": 7 replicas in all, 6 after the change.")
    assert "This answer is about the cluster after --scale deploy/web=6." in found["notes"]
    assert fit("--like deploy/web")["verdict"].endswith(": 7 replicas in all, 2 today.")


def test_pods_of_the_change_without_a_node_stay_pending(fit):
    """The ordered StatefulSet has two pods that the node has no room for."""
    assert fit("--like deploy/web --scale sts/db=8")["waiting_without_node"] == 2
