"""Timelines of kube-controller-manager 1.36 are replayed; tampered recordings differ."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.conformance.comparison import Mismatch
from fairlead.conformance.nodelifecycle.node_timeline import (
    compare_node_timeline,
    compare_node_timeline_with_defaults,
    decide_node_timeline,
)
from fairlead.conformance.run import compare_file, run

RECORDED = Path(__file__).parent / "data" / "nodelifecycle"
FAMILIES = {
    "admin_noexecute": 12,
    "conditions": 8,
    "controller_restart": 5,
    "cordon": 5,
    "eviction_rate": 11,
    "exclude_disruption": 4,
    "flapping": 7,
    "full_disruption": 11,
    "label_reconcile": 3,
    "lease_vs_status": 6,
    "limiter_edges": 7,
    "mixed": 14,
    "multi_taint_min": 4,
    "never_posted": 9,
    "node_delete": 8,
    "odd_periods": 3,
    "partial_disruption": 14,
    "pass_latency": 4,
    "podgc": 8,
    "pods_on_notready": 5,
    "probe_reset": 4,
    "ready_false": 8,
    "single_stop": 12,
    "tolerations": 7,
    "zone_full_outage": 7,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_recorded_write_agrees(family: str) -> None:
    """No write differs by a millisecond, and all recorded scenarios are compared."""
    result = compare_file("nodelifecycle", RECORDED / f"{family}.jsonl.gz")
    assert [f"{name}: {difference}" for name, difference in result.differences] == []
    assert result.cases == FAMILIES[family]


def test_no_recorded_family_is_left_out() -> None:
    """All recorded files are replayed."""
    assert sorted(FAMILIES) == sorted(path.name.split(".")[0] for path in RECORDED.iterdir())


# --- the replay can disagree -----------------------------------------------------------------


def recorded(family: str, number: int = 0) -> dict[str, Any]:
    with gzip.open(RECORDED / f"{family}.jsonl.gz", "rt") as lines:
        found: dict[str, Any] = json.loads(list(lines)[number])
    return found


@pytest.fixture(scope="module")
def outage() -> dict[str, Any]:
    """A zone of three nodes fails: the recording, and Fairlead's result for its scenario."""
    line = recorded("zone_full_outage")
    return line | {"found": decide_node_timeline(line["scenario"])}


def difference(outage: dict[str, Any], expect: dict[str, Any]) -> str:
    return str(compare_node_timeline(expect, outage["found"]))


def place_of(writes: list[dict[str, Any]], kind: str) -> int:
    return next(place for place, write in enumerate(writes) if write["kind"] == kind)


KINDS = ["event", "node_condition", "taint_add", "pod_condition", "pod_delete"]


def test_an_unchanged_recording_agrees(outage: dict[str, Any]) -> None:
    """The following tests change this recording."""
    assert compare_node_timeline(outage["expect"], outage["found"]) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_that_is_missing_is_found(kind: str, outage: dict[str, Any]) -> None:
    """Fairlead's write is missing in the changed recording."""
    expect = copy.deepcopy(outage["expect"])
    gone = expect["writes"].pop(place_of(expect["writes"], kind))
    message = difference(outage, expect)
    assert message.startswith(f"writes at {gone['t_ms']} ms: expected (absent), found ")


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_at_another_time_is_found(kind: str, outage: dict[str, Any]) -> None:
    """A difference of one millisecond is found."""
    expect = copy.deepcopy(outage["expect"])
    expect["writes"][place_of(expect["writes"], kind)]["t_ms"] -= 1
    assert "found (absent)" in difference(outage, expect)


def test_an_unstable_write_is_optional(outage: dict[str, Any]) -> None:
    """Unstable entries are allowed and not required."""
    expect = copy.deepcopy(outage["expect"])
    expect["writes"][place_of(expect["writes"], "pod_delete")]["unstable"] = True
    assert difference(outage, expect) == "None"
    expect["writes"].append({**expect["writes"][0], "t_ms": 1, "unstable": True})
    assert difference(outage, expect) == "None"


def test_another_zone_state_is_found(outage: dict[str, Any]) -> None:
    """Zone states that are random upstream are not compared."""
    expect = copy.deepcopy(outage["expect"])
    expect["zone_states"][-1]["state"] = "Initial"
    assert difference(outage, expect).startswith("zone_states.")
    assert difference(outage, expect | {"zone_states": None}) == "None"


def test_another_end_is_found(outage: dict[str, Any]) -> None:
    """The nodes and pods at the end are compared, too."""
    expect = copy.deepcopy(outage["expect"])
    node = min(expect["final"]["nodes"])
    expect["final"]["nodes"][node]["taints"] = ["a:NoSchedule"]
    assert difference(outage, expect).startswith(f"final.nodes.{node}.taints")


def test_the_correction_of_upstreams_defect_causes_the_difference() -> None:
    """With it, a zone with a rate of one node a second resumes after all zones have failed."""
    line = recorded("eviction_rate", 2)
    assert line["scenario"]["config"]["node_eviction_rate"] == 1.0
    fixed = decide_node_timeline(line["scenario"], defects="fixed")
    message = str(compare_node_timeline(line["expect"], fixed))
    assert message.startswith("writes at 156050 ms: expected (absent), found ")
    written = {(write["kind"], write["t_ms"]) for write in fixed["writes"]}
    assert ("taint_add", 156050) in written


def test_an_unknown_operation_is_refused() -> None:
    """It is not ignored."""
    line = recorded("cordon")
    line["scenario"]["script"].append({"t_ms": 5, "op": "explode", "node": "a"})
    with pytest.raises(ValueError, match="explode"):
        decide_node_timeline(line["scenario"])


def test_the_defaults_differ_from_upstreams_defects() -> None:
    """Upstream never leaves the stopped state at a rate of one node a second."""
    lines: list[str] = []
    path = RECORDED / "eviction_rate.jsonl.gz"
    assert run("nodelifecycle", [path], lines.append, defects="fixed", only="rate_0[28]") == 0
    assert lines[-1] == "total: 2 cases, 0 agree, 0 differ, 2 corrected"
    assert "rate_02: depends on a corrected upstream defect: writes at" in lines[1]


def test_a_difference_without_a_known_defect_is_a_mismatch() -> None:
    """This also holds when the defaults are compared."""
    line = recorded("single_stop")
    assert compare_node_timeline_with_defaults(line) is None
    line["expect"]["writes"].pop()
    assert isinstance(compare_node_timeline_with_defaults(line), Mismatch)
