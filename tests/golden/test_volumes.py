"""Decisions about pods with volumes, recorded from kube-scheduler 1.36, replayed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.conformance.run import compare_file

RECORDED = Path(__file__).parent / "data" / "volumes"
FAMILIES = {
    "vol_bound": 24,
    "vol_capacity": 10,
    "vol_ephemeral": 10,
    "vol_immediate": 10,
    "vol_limits": 24,
    "vol_limits_va": 12,
    "vol_mix": 16,
    "vol_restrictions": 28,
    "vol_wffc_dynamic": 27,
    "vol_wffc_static": 30,
    "vol_zone": 12,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_recorded_decision_is_ours(family: str) -> None:
    """No case differs, and all recorded cases are compared."""
    result = compare_file("volumes", RECORDED / f"{family}.jsonl.gz")
    assert [f"{name}: {difference}" for name, difference in result.differences] == []
    assert result.cases == FAMILIES[family]


def test_no_recorded_family_is_left_out() -> None:
    """All recorded files are replayed."""
    assert sorted(FAMILIES) == sorted(path.name.split(".")[0] for path in RECORDED.iterdir())


def first_with(family: str, fact: str) -> dict[str, Any]:
    with gzip.open(RECORDED / f"{family}.jsonl.gz", "rt") as lines:
        return next(line for line in map(json.loads, lines) if fact in line["expect"])


def test_another_volume_for_a_claim_is_found(tmp_path: Path) -> None:
    """The volumes to be bound are compared, not only whether the pod fits."""
    case = first_with("vol_wffc_static", "volumes")
    node, expected = next((n, v) for n, v in case["expect"]["volumes"].items() if v["bind"])
    (claim,) = list(expected["bind"])[:1]
    expected["bind"][claim] = "pv-of-somebody-else"
    path = tmp_path / "tampered.jsonl"
    path.write_text(json.dumps(case) + "\n")
    ((_, difference),) = compare_file("volumes", path).differences
    assert str(difference).startswith(f"volumes.{node}.bind.{claim}: ")
