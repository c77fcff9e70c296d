"""The timelines of failed nodes are the same for any iteration order of Python's sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RECORDED = Path(__file__).parent.parent / "golden" / "data" / "nodelifecycle" / "mixed.jsonl.gz"
PROGRAM = """
import gzip, json, sys
from fairlead.conformance.nodelifecycle.node_timeline import decide_node_timeline
with gzip.open(sys.argv[1], "rt") as lines:
    for _, line in zip(range(4), lines):
        print(json.dumps(decide_node_timeline(json.loads(line)["scenario"])))
"""


def replayed(hash_seed):
    """Return all writes of the controllers in some scenarios, in order, as bytes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(RECORDED)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        check=True,
    )
    return done.stdout


def test_another_order_of_sets_does_not_change_the_timelines():
    """The timelines are made in another process; writes at one instant also have the same order."""
    reference = replayed(0)
    assert reference.count(b"taint_add") > 20
    assert replayed(4_000_000_000) == reference
