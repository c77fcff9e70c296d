"""Commands in answers have the options with which the question read the cluster."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from fairlead.cli.main import run

OPTIONS = ["--max-input", "1073741824", "--config", "scheduler.yaml", "--allow-extenders"]
OPTIONS += ["--behave-like", "1.21", "--feature-gates", "NonPreemptingPriority=false"]
CONFIGURATION = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}"
ALLOCATABLE = {"cpu": "4", "memory": "8Gi", "pods": "110"}
READY = [{"type": "Ready", "status": "True"}]


def node(name):
    status = {"allocatable": ALLOCATABLE, "capacity": ALLOCATABLE, "conditions": READY}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


@pytest.mark.parametrize("asked", ["drain-plan", "explain node/a"])
def test_the_drain_plan_that_an_answer_names_has_the_options_of_the_question(
    tmp_path, capsys, monkeypatch, asked
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scheduler.yaml").write_text(CONFIGURATION)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w"}
    meta = {"name": "web-0", "namespace": "shop", "ownerReferences": [owner | {"controller": True}]}
    spec = {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    items = [node("a"), node("b"), pod]
    (tmp_path / "dump.json").write_text(json.dumps({"kind": "List", "items": items}))
    command, *target = asked.split()
    run([command, "dump.json", *target, *OPTIONS, "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    sentences = " ".join((*answer["findings"], *answer["notes"]))
    [found] = re.findall(r"fairlead (drain-plan .*? --nodes) \w+ also", sentences)
    words = shlex.split(found)
    assert words == ["drain-plan", "dump.json", *OPTIONS, "--nodes"]
    assert run([*words, "a", "-o", "json"]) != 2


@pytest.mark.parametrize("asked", ["explain pods", "explain rs/web", "whatif"])
def test_the_explanation_that_an_answer_names_has_the_options_of_the_question(
    tmp_path, capsys, monkeypatch, asked
):
    """They include the options of the batch scheduler, which drain-plan does not have."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scheduler.yaml").write_text(CONFIGURATION)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w"}
    meta = {"name": "web-0", "namespace": "shop", "ownerReferences": [owner | {"controller": True}]}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "8"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": 1, "selector": selector, "template": template}
    web = {**owner, "metadata": {"name": "web", "namespace": "shop", "uid": "w"}, "spec": spec}
    items = [node("a"), web, pod]
    (tmp_path / "dump.json").write_text(json.dumps({"kind": "List", "items": items}))
    options = [*OPTIONS, "--batch-config", "volcano"]
    command, *target = asked.split()
    report = ["--no-report"] if command == "whatif" else []
    run([command, "dump.json", *target, *options, *report, "-o", "json"])
    text = json.loads(capsys.readouterr().out)
    steps = [one["command"] for one in text["next_steps"] if "fairlead explain" in one["command"]]
    notes = [one for one in text.get("notes", ()) if "fairlead explain" in one]
    [found] = re.findall(r"fairlead (explain .*?) pods?(?:/|\b)", " ".join((*steps, *notes)))
    assert shlex.split(found) == ["explain", "dump.json", *options]
