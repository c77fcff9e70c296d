"""Pod specs of cluster-capacity are accepted without changes."""

from __future__ import annotations

import json

import pytest

from fairlead.cli.main import run
from fairlead.whatif.input.document import Document
from fairlead.whatif.snapshot.pod_spec import with_complete_pods

SPEC = {"containers": [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


@pytest.mark.parametrize(
    ("pod", "name"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "spec": SPEC}, "pod"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": None}, "spec": SPEC}, "pod"),
        ({"kind": "Pod", "metadata": {"generateName": "small-"}, "spec": SPEC}, "small"),
        ({"metadata": {"name": "small-pod"}, "spec": SPEC}, "small-pod"),
    ],
)
def test_missing_fields_of_a_pod_are_added(pod, name):
    (found,) = with_complete_pods([Document("pod.yaml", pod)])
    assert found.value["kind"] == "Pod"
    assert found.value["apiVersion"] == "v1"
    assert found.value["metadata"]["name"] == name


@pytest.mark.parametrize(
    "other", [None, [], {"kind": "Node"}, {"spec": {"replicas": 1}}, {"kind": ["Pod"]}]
)
def test_other_documents_are_unchanged(other):
    assert with_complete_pods([Document("f", other)]) == [Document("f", other)]


def test_fit_and_scenarios_take_a_pod_without_a_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.json").write_text(json.dumps({"kind": "Pod", "spec": SPEC}))
    (tmp_path / "nodes.json").write_text(json.dumps(NODE))
    assert run(["fit", "nodes.json", "--pod", "pod.json", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["count"] == 4
    events = [{"at": "1s", "create": "pod.json", "count": 5}]
    scenario = {"cluster": {"files": ["nodes.json"]}, "events": events}
    (tmp_path / "s.yaml").write_text(json.dumps(scenario))
    assert run(["simulate", "s.yaml", "-o", "json"]) == 0
    assert "default/pod-4" in capsys.readouterr().out
