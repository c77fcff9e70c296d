"""`fairlead size` counts pods that the present nodes have no room for."""

from __future__ import annotations

import json

import pytest

from fairlead.cli.main import run

OFFERED = {"cpu": "4", "memory": "8Gi", "pods": "110"}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a"},
    "status": {
        "allocatable": OFFERED,
        "capacity": OFFERED,
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def spec(cpu: str, **more: object) -> dict:
    requests = {"requests": {"cpu": cpu}}
    return {"containers": [{"name": "c", "image": "i", "resources": requests}], **more}


def workload(kind: str, replicas: int, pod: dict, **more: object) -> dict:
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            **more,
        },
    }


@pytest.fixture
def sized(tmp_path, capsys):
    def answer(*objects: dict) -> dict:
        dump = tmp_path / "dump.json"
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        assert run(["size", str(dump), "--output", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return answer


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_stateful_set_has_all_its_pods(sized, policy):
    """The present node has room for two of them; an ordered StatefulSet creates only three."""
    found = sized(NODE, workload("StatefulSet", 8, spec("2"), podManagementPolicy=policy))
    assert found["nodes"] == 4
    later = "5 pods of StatefulSet default/web are included that the StatefulSet creates only"
    assert any(note.startswith(later) for note in found["notes"]) == (policy == "OrderedReady")


def test_pods_of_a_namespace_that_is_being_deleted_are_not_created(sized):
    namespace = {
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"phase": "Terminating"},
    }  # fmt: skip
    found = sized(NODE, namespace, workload("StatefulSet", 8, spec("2")))
    assert found["nodes"] == 0
    assert not any("StatefulSet" in note for note in found["notes"])


def test_preempted_pods_without_a_controller_are_kept(sized):
    """On the present node, the pod of the Deployment preempts them."""
    high = {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "high"}, "value": 1000,
    }  # fmt: skip
    alone = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone"},
        "spec": spec("2", nodeName="a"), "status": {"phase": "Running"},
    }  # fmt: skip
    web = workload("Deployment", 1, spec("4", priorityClassName="high"))
    assert sized(NODE, high, alone, web)["nodes"] == 2


def test_a_note_says_that_the_dump_lacks_the_template_of_created_pods(sized):
    """An ordered StatefulSet creates only three; the others have the numbers 3 to 7."""
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 6}}
    web = workload("StatefulSet", 8, spec("2"), updateStrategy=rolling)
    web["status"] = {"currentRevision": "web-1", "updateRevision": "web-2"}
    notes = sized(NODE, web)["notes"]
    begin = (
        "New pods of sts/default/web with numbers below 6 get the template of its revision web-1"
    )
    assert any(note.startswith(begin) for note in notes)
