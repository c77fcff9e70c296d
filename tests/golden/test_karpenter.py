"""Karpenter core 1.13: recorded decisions of its controllers, replayed.

Provisioning passes, disruption decisions with their validation, conditions of NodeClaims, static
NodePools, and timelines. Stable cases agree exactly; the others with one of the recorded outcomes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.conformance.run import compare_file

RECORDED = Path(__file__).parent / "data" / "karpenter"
FAMILIES = {
    "blockers": 11,
    "budgets": 11,
    "claimstatus": 11,
    "daemonsets": 9,
    "delete": 7,
    "disruption_large": 3,
    "drift": 9,
    "edge": 38,
    "edge_disruption": 39,
    "emptiness": 9,
    "existing": 12,
    "hostports": 4,
    "interplay": 7,
    "large": 3,
    "limits": 9,
    "minvalues": 12,
    "minvalues_disruption": 4,
    "mixed": 11,
    "multi": 12,
    "overlay": 6,
    "pack": 14,
    "podaffinity": 12,
    "policy": 6,
    "preferences": 12,
    "requirements": 17,
    "reserved": 11,
    "reserved_disruption": 6,
    "single_od": 8,
    "single_spot": 11,
    "spread": 17,
    "static": 6,
    "static_drift": 4,
    "ties": 9,
    "tl_consolidated": 3,
    "tl_drift": 3,
    "tl_expire": 3,
    "tl_grow_shrink": 5,
    "tl_retry": 3,
    "tl_running": 4,
    "topology": 7,
    "truncate": 4,
    "unschedulable": 9,
    "validation": 9,
    "volumes": 11,
    "weights_taints": 9,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_recorded_decision_is_ours(family: str) -> None:
    """No case differs, and all recorded cases are compared."""
    result = compare_file("karpenter", RECORDED / f"{family}.jsonl.gz")
    assert [f"{name}: {difference}" for name, difference in result.differences] == []
    assert result.cases == FAMILIES[family]


def test_no_recorded_family_is_left_out() -> None:
    """All recorded files are replayed."""
    assert sorted(FAMILIES) == sorted(path.name.split(".")[0] for path in RECORDED.iterdir())
