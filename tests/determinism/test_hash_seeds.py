"""The same scenario and seed give the same commands for any iteration order of Python's sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = Path(__file__).parent / "crowded.yaml"
OUTAGES = Path(__file__).parent / "outages.yaml"


def simulate(log, *options, hash_seed, scenario=SCENARIO):
    """Return the log of commands and the result, as bytes."""
    command = [sys.executable, "-m", "fairlead.cli", "simulate", scenario, "-o", "json"]
    done = subprocess.run(
        [*map(str, command), "--commands", str(log), *options],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        cwd=log.parent,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return log.read_bytes(), done.stdout


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The run with one iteration order of sets."""
    return simulate(tmp_path_factory.mktemp("reference") / "log.jsonl", hash_seed=0)


@pytest.mark.parametrize("hash_seed", [1, 4_000_000_000])
def test_another_order_of_sets_does_not_change_the_output(reference, tmp_path, hash_seed):
    """The command log and the result of another process are equal byte for byte."""
    assert simulate(tmp_path / "log.jsonl", hash_seed=hash_seed) == reference


def test_another_seed_changes_the_run(reference, tmp_path):
    """The run contains random choices, so that equal outputs are significant."""
    log, _ = simulate(tmp_path / "log.jsonl", "--seed", "43", hash_seed=0)
    assert log != reference[0]


def test_the_run_contains_all_kinds_of_commands(reference):
    """The run has bindings, refusals, preemptions, evictions and replacements."""
    log = reference[0].decode()
    for part in ('"Bind"', "FailedScheduling", "PreemptionByScheduler", '"EvictPod"', "Create"):
        assert log.count(part) >= 3, part


def test_another_order_of_sets_does_not_change_outages(tmp_path):
    """Nodes fail, are tainted, lose their pods and recover in the same way."""
    logs = [
        simulate(tmp_path / f"{seed}.jsonl", hash_seed=seed, scenario=OUTAGES) for seed in (0, 5)
    ]
    assert logs[0] == logs[1]
    log = logs[0][0].decode()
    parts = ("NodeStatusUnknown", "TaintManagerEviction", "NodeNotReady", "renewed-every")
    for part in (*parts, "EvictionThresholdMet", "DeletionByPodGC", "KubeletNotReady"):
        assert part in log, part
