"""A replay of an export of kube-scheduler-simulator, and the export as a snapshot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlead.cli.main import run
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.input.error import InputError
from fairlead.whatif.replay.answer import replay_answer
from fairlead.whatif.replay.replay import as_simulator_export, replay_simulator_export
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.decoder.simulator_export import selected_node
from fairlead.whatif.snapshot.snapshot import parse_snapshot

FILE = Path(__file__).parents[4] / "examples" / "replay" / "simulator-export.json"
PREFIX = "kube-scheduler-simulator.sigs.k8s.io/"


@pytest.fixture
def export():
    return json.loads(FILE.read_text())


def answer(export):
    document = as_simulator_export("export.json", json.dumps(export).encode())
    return replay_answer(
        replay_simulator_export(document, SchedulerConfig(), NoProgress())
    ).to_json()


def test_the_pods_that_the_simulator_placed_are_compared_in_the_order_of_their_times(export):
    found = answer({**export, "pods": export["pods"][::-1]})
    assert [(row["pod"], row["agreement"]) for row in found["pods"]] == [
        ("shop/web-1", "equal"),
        ("shop/web-2", "same"),
        ("shop/cart-1", "equal"),
        ("shop/batch-1", "lower"),
        ("shop/db-1", "same"),
    ]


def test_a_pod_without_results_keeps_its_node_and_is_not_compared(export):
    export["pods"][0]["metadata"]["annotations"] = {}
    found = answer(export)
    assert "shop/web-1" not in {row["pod"] for row in found["pods"]}
    assert found["pods"][0]["choices"] == ["worker-b"]  # web-1 uses resources of worker-a


def test_the_selected_node_is_that_of_the_last_attempt():
    attempts = [{PREFIX + "selected-node": "a"}, {PREFIX + "selected-node": "b"}]
    history = {PREFIX + "result-history": json.dumps(attempts)}
    assert selected_node({**history, PREFIX + "selected-node": "a"}) == "b"
    assert selected_node({PREFIX + "selected-node": "a"}) == "a"
    assert selected_node({"scheduler-simulator/selected-node": "c"}) == "c"
    assert selected_node({PREFIX + "result-history": "["}) == ""
    assert selected_node({PREFIX + "result-history": "[" * 100_000}) == ""


def test_an_export_is_a_snapshot(export):
    titles = [one.title for one in parse_snapshot("e", json.dumps(export).encode()).manifests]
    assert titles[:2] == ["Namespace shop", "Node worker-a"]
    assert titles[-1] == "Pod shop/db-1"


def test_an_export_without_nodes_is_refused(export):
    with pytest.raises(InputError, match=r"export.json: nodes: contains no Node"):
        answer({**export, "nodes": None})


def test_the_configuration_of_the_export_is_used(export, tmp_path, capsys):
    config = export["schedulerConfig"]
    strategy = config["profiles"][0]["pluginConfig"][0]["args"]["scoringStrategy"]
    strategy["type"] = "MostAllocated"
    file = tmp_path / "export.json"
    file.write_text(json.dumps(export))
    assert run(["replay", str(file), "-o", "json"]) == 0
    packed = json.loads(capsys.readouterr().out)["pods"]
    assert {row["pod"]: row["choices"] for row in packed}["shop/batch-1"] != ["worker-a"]


def test_a_configuration_that_is_not_read_is_refused(export, tmp_path, capsys):
    export["schedulerConfig"]["apiVersion"] = "v9"
    file = tmp_path / "export.json"
    file.write_text(json.dumps(export))
    assert run(["replay", str(file)]) == 2
    assert "schedulerConfig: apiVersion: must be one of" in capsys.readouterr().err


def test_a_dump_beside_an_export_is_refused(capsys):
    assert run(["replay", str(FILE), "--snapshot", str(FILE)]) == 2
    assert "--snapshot: cannot be combined with an export" in capsys.readouterr().err
