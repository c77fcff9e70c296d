"""Runs with user plugins are the same for any iteration order of Python's sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PLUGINS = HERE.parents[1] / "examples" / "plugins"
ALL = ("node_price.py:NodePrice", "checkpoint_age.py:CheckpointAge",
       "cross_node_preemption.py:CrossNodePreemption")  # fmt: skip
SCENARIOS = [HERE / "crowded.yaml", PLUGINS / "cross_node.yaml", PLUGINS / "checkpoints.yaml"]


def simulate(scenario, log, hash_seed):
    """Return the log of commands and the result, as bytes."""
    options = [option for one in ALL for option in ("--plugin", str(PLUGINS / one))]
    command = [sys.executable, "-m", "fairlead.cli", "simulate", str(scenario), "-o", "json"]
    done = subprocess.run(
        [*command, *options, "--commands", str(log)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        cwd=log.parent,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return log.read_bytes(), done.stdout


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
def test_another_order_of_sets_does_not_change_a_run_with_all_example_plugins(
    scenario, tmp_path
) -> None:
    first, second = (simulate(scenario, tmp_path / f"{seed}.jsonl", seed) for seed in (0, 99))
    assert first == second
    assert b'"Bind"' in first[0]
