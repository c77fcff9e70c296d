"""Two users who reclaim GPUs from each other endlessly: detected in CI, fixed by other rules."""

from __future__ import annotations

import json

import pytest

from fairlead.cli.main import run as run_command

SCENARIO = "examples/reclaim-loop/scenario.yaml"


@pytest.fixture
def simulate(capsys):
    """Runs the example with further options; returns the exit status and the result."""

    def run(*options):
        status = run_command(
            ["simulate", SCENARIO, "--fail-on", "loop", "-o", "json", "--no-report", *options]
        )
        return status, json.loads(capsys.readouterr().out)

    return run


def test_the_loop_is_found_and_fails_the_check(simulate):
    status, result = simulate()
    assert status == 3
    cycles = [one["message"] for one in result["recurrences"] if one["kind"] == "cycle"]
    assert cycles[0].startswith("ReplicaSet/alice/notebook displaces ReplicaSet/bob/training")
    assert len(result["preempted"]) > 100


def test_fairleads_rules_give_each_user_a_gpu(simulate):
    status, result = simulate("--batch-config", "fairlead")
    assert status == 0
    assert result["recurrences"] == []
    assert sorted(one["pod"].partition("/")[0] for one in result["placed"]) == ["alice", "bob"]
