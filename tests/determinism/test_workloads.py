"""The writes of workload controllers are the same for any iteration order of Python's sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.determinism.workloads_of_a_day import START, eventful_world, new_world

from fairlead.engine.core.instant import seconds

PROGRAM = Path(__file__).parent / "workloads_of_a_day.py"


def ran(hash_seed):
    """Return every command of a quarter of an hour with many changes, in order, as bytes."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        check=True,
    )
    return done.stdout


def test_another_order_of_sets_does_not_change_the_commands():
    """The run has rollouts, updates, Jobs, endpoints, a failed node, and garbage collection."""
    reference = ran(0)
    for kind in (b"ControllerRevision", b"EndpointSlice", b"CronJob", b"StatefulSet"):
        assert kind in reference
    assert reference.count(b"\n") > 500
    assert ran(4_000_000_000) == reference


def test_a_restart_issues_no_commands():
    """A new engine that loads the objects updates no status, revision or endpoint."""
    world = eventful_world(lambda line: None)
    end = START + seconds(898)
    world.run(end)
    objects = [one for kind in world.store.storage.kinds() for one in world.store.list(kind)]
    commands = []
    again = new_world(end, commands.append)
    again.load(objects)
    again.run(end + 1)
    assert commands == []
