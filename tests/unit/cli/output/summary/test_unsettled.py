"""An answer states that its cluster did not come to rest within the horizon."""

from __future__ import annotations

import json

import pytest

from fairlead.cli import main

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a"},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
TAINT = {"key": "k", "effect": "NoExecute"}
UNSETTLED = "The cluster had not settled when the run ended (--horizon); changes continue."


@pytest.fixture
def ask(tmp_path, capsys):
    """Returns the answer's text for a node with a taint, whose pod returns after each eviction."""

    def output(toleration_s, horizon, *more):
        limit = {} if toleration_s is None else {"tolerationSeconds": toleration_s}
        toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute", **limit}
        labels = {"app": "web"}
        spec = {"containers": [{"name": "c", "image": "i"}], "tolerations": [toleration]}
        web = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }
        dump, change = tmp_path / "dump.json", tmp_path / "change.json"
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, web]}))
        change.write_text(json.dumps({**NODE, "spec": {"taints": [TAINT]}}))
        options = ["--horizon", horizon, "--no-report", *more]
        main.run(["whatif", str(dump), "--apply", str(change), *options])
        return " ".join(capsys.readouterr().out.split())

    return output


def test_an_answer_names_pods_that_are_evicted_repeatedly(ask):
    assert UNSETTLED in ask(10, "1m")


def test_the_first_note_of_all_forms_of_an_answer_says_so(ask):
    assert json.loads(ask(10, "1m", "-o", "json"))["notes"][0] == UNSETTLED
    assert f"Note: {UNSETTLED}" in ask(10, "1m")


def test_an_answer_says_that_a_scenario_without_an_end_did_not_settle(tmp_path, capsys):
    """Such a run stops an hour after its last event."""
    toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 240}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{"name": "c", "image": "i"}],
                    "tolerations": [toleration],
                },
            },
        },
    }
    nodes, scenario = tmp_path / "nodes.json", tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"cluster": {"files": [str(nodes)]}, "objects": [web]}))

    def text(**spec):
        nodes.write_text(json.dumps({**NODE, "spec": spec}))
        main.run(["simulate", str(scenario), "--no-report"])
        return " ".join(capsys.readouterr().out.split())

    unsettled = UNSETTLED.replace("--horizon", "duration")
    assert unsettled in text(taints=[TAINT])
    assert unsettled not in text()


def test_an_answer_about_a_settled_cluster_has_no_such_sentence(ask):
    assert UNSETTLED not in ask(None, "20m")
