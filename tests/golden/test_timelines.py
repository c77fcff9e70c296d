"""Timelines of kube-scheduler 1.36, recorded in virtual time, replayed to the millisecond.

Every attempt with its verdict and all writes are compared in order; with and without latencies of
cycles, bindings, patches and preemption requests.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.conformance.run import compare_file

RECORDED = Path(__file__).parent / "data" / "timelines"
FAMILIES = {
    "backoff": 12,
    "bindfail": 10,
    "cascade": 10,
    "daemon": 5,
    "delbind": 6,
    "elsewhere": 8,
    "flush5": 6,
    "gates": 8,
    "latency": 10,
    "mixed": 16,
    "never": 4,
    "node_vanish": 8,
    "order": 10,
    "pdb": 8,
    "podupdate": 9,
    "preempt": 18,
    "preemptor_deleted": 8,
    "profiles": 7,
    "takeover": 10,
    "victim_early": 8,
    "wake_node": 14,
    "wake_pod": 12,
    "wake_ports": 5,
    "wake_spread": 10,
    "wake_volume": 10,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_recorded_attempt_and_write_agrees(family: str) -> None:
    """No attempt or write differs, and all recorded scenarios are compared."""
    result = compare_file("timelines", RECORDED / f"{family}.jsonl.gz")
    assert [f"{name}: {difference}" for name, difference in result.differences] == []
    assert result.cases == FAMILIES[family]


def test_no_recorded_family_is_left_out() -> None:
    """All recorded files are replayed."""
    assert sorted(FAMILIES) == sorted(path.name.split(".")[0] for path in RECORDED.iterdir())


# --- the replay can disagree -----------------------------------------------------------------


def recorded(family: str) -> dict[str, Any]:
    with gzip.open(RECORDED / f"{family}.jsonl.gz", "rt") as lines:
        found: dict[str, Any] = json.loads(next(iter(lines)))
    return found


def later(line: dict[str, Any]) -> None:
    line["expect"]["attempts"][-1]["t_ms"] += 1


def nowhere(line: dict[str, Any]) -> None:
    first = next(a for a in line["expect"]["attempts"] if a["result"] == "scheduled")
    first["node"] = "nowhere"


def one_attempt_more(line: dict[str, Any]) -> None:
    line["expect"]["attempts"].append(line["expect"]["attempts"][-1])


def unwritten(line: dict[str, Any]) -> None:
    line["expect"]["writes"].pop()


def another_note(line: dict[str, Any]) -> None:
    event = next(w for w in line["expect"]["writes"] if w["kind"] == "event")
    event["note"] += "!"


@pytest.mark.parametrize("tamper", [later, nowhere, one_attempt_more, unwritten, another_note])
@pytest.mark.parametrize("family", ["preempt", "latency"])
def test_a_tampered_recording_is_found(tamper: Any, family: str, tmp_path: Path) -> None:
    """A time, a node, an attempt, a write or a message is changed."""
    line = recorded(family)
    tamper(line)
    path = tmp_path / "tampered.jsonl"
    path.write_text(json.dumps(line))
    assert len(compare_file("timelines", path).differences) == 1
