"""The answers of planning commands say that a plugin failed in the plan."""

from __future__ import annotations

import json

import pytest
from tests.unit.cli.commands.test_planning_exit_codes import node, pod

from fairlead.cli.main import run

PLUGINS = """\
class Halves:
    name = "Halves"
    def score(self, state, pod, node):
        return 0.5
class Seats:
    name = "Seats"
    def reserve(self, state, pod, node):
        raise ValueError("no " + "seat")
    def unreserve(self, state, pod, node):
        raise KeyError(node)
"""
SCORE = "plugin 'Halves' failed in score: it returned 0.5; expected an integer"
RESERVE = "plugin 'Seats' failed in reserve: ValueError: no seat (faulty.py:8)"
ENDED = "The scheduling of a pod ended with an error, so the pod counts as a pod without a node: "


def plan(folder, capsys, command: str, plugin: str) -> dict:
    """Return the answer about five equal nodes; the first two have two pods each."""
    (folder / "faulty.py").write_text(PLUGINS)
    pods = [pod(f"p-{number}", "2", nodeName="aabb"[number]) for number in range(4)]
    dump = folder / "dump.json"
    dump.write_text(
        json.dumps({"items": [*(node(at, at) for at in "abcde"), *pods], "kind": "List"})
    )
    name, *options = command.split()
    run([name, str(dump), *options, "--plugin", f"{folder}/faulty.py:{plugin}", "-o", "json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "command",
    ["consolidate", "drain-plan --nodes a", "fit --like pod/p-0", "rebalance", "upgrade-check"],
)
def test_a_plan_without_a_place_for_a_pod_names_the_plugin_that_failed(tmp_path, capsys, command):
    assert f"{ENDED}{SCORE}." in plan(tmp_path, capsys, command, "Halves")["notes"]


def test_a_failure_whose_result_was_replaced_by_a_default_is_named(tmp_path, capsys):
    notes = plan(tmp_path, capsys, "rebalance", "Seats")["notes"]
    assert f"{ENDED}{RESERVE}." in notes
    replaced = "A plugin failed, and a safe default replaced its result: plugin 'Seats' failed in"
    assert any(note.startswith(f"{replaced} unreserve: KeyError: ") for note in notes)


def test_size_does_not_take_the_error_of_a_plugin_for_a_lack_of_room(tmp_path, capsys):
    answer = plan(tmp_path, capsys, "size", "Halves")
    assert f"{ENDED}{SCORE}." in answer["notes"]
    assert not any("at the same time" in finding for finding in answer["findings"])


def test_size_names_the_plugin_that_refuses_a_pod_on_every_new_node(tmp_path, capsys):
    answer = plan(tmp_path, capsys, "size", "Seats")
    assert {one["why"] for one in answer["unplaceable"]} == {RESERVE}
