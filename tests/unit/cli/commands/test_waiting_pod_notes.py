"""Planning commands say that pending pods preempt other pods before the plan begins."""

from __future__ import annotations

import json

import pytest
from tests.unit.cli.commands.test_planning_exit_codes import node, pod

from fairlead.cli.main import run


@pytest.mark.parametrize("command", ["consolidate", "drain-plan", "rebalance", "upgrade-check"])
def test_a_note_states_how_many_pods_are_preempted_before_the_plan(command, tmp_path, capsys):
    """The pending pod needs a whole node, so it preempts one of the two pods of low priority."""
    pending = pod("high", "4", priority=1000)
    pending["status"] = {}
    running = [pod(f"low-{at}", "3", nodeName=at, priority=0) for at in "ab"]
    small = pod("small", "2", nodeName="c", priority=1000)
    nodes = [node(at, at) for at in "abc"]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"items": [*nodes, *running, small, pending], "kind": "List"}))
    run([command, str(dump), "-o", "json"])
    note = (
        "1 pending pod got a node first. 1 pod of lower priority is preempted and "
        "finds no other node."
    )
    assert note in json.loads(capsys.readouterr().out)["notes"]
