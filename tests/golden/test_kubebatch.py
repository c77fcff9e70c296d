"""Sessions recorded from kube-batch are replayed; tampered recordings are found to differ."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path

import pytest

from fairlead.conformance.comparison import Mismatch, Remark, first_mismatch
from fairlead.conformance.kubebatch.outcome import project, replay
from fairlead.conformance.kubebatch.scenario import jobs_of_tasks
from fairlead.conformance.kubebatch.session import compare_with_defaults, compare_with_defects
from fairlead.conformance.run import compare_file, run
from fairlead.engine.batch.defect import UPSTREAM, Defect

RECORDED = Path(__file__).parent / "data" / "kubebatch"
# The number of sessions, and of those that depend on a defect corrected by default.
FAMILIES = {
    "backfill": (17, 2),
    "compete": (18, 9),
    "conformance": (8, 3),
    "default": (16, 7),
    "drf": (14, 4),
    "gang": (24, 12),
    "mixed": (25, 17),
    "nodeorder": (13, 0),
    "pitfalls": (24, 22),
    "predicates": (27, 2),
    "preempt_jobs": (24, 8),
    "preempt_tasks": (12, 5),
    "priority": (14, 3),
    "proportion": (24, 15),
    "reclaim": (27, 27),
    "reclaim_share": (20, 10),
    "releasing": (8, 6),
    "shadow": (8, 2),
    "status": (8, 3),
    "tiers": (20, 18),
}


def cases(family):
    with gzip.open(RECORDED / f"{family}.jsonl.gz", "rt") as lines:
        return {case["id"]: case for case in map(json.loads, lines)}


@pytest.mark.parametrize("family", FAMILIES)
def test_with_upstreams_defects_every_session_agrees(family):
    """No session differs, and all recorded sessions are compared."""
    result = compare_file("kubebatch", RECORDED / f"{family}.jsonl.gz")
    assert [f"{name}: {difference}" for name, difference in result.differences] == []
    assert result.cases == FAMILIES[family][0]


@pytest.mark.parametrize("family", FAMILIES)
def test_by_default_decisions_that_depend_on_no_correction_agree(family):
    """Decisions that depend on no correction do not differ; the others are reported separately."""
    result = compare_file("kubebatch", RECORDED / f"{family}.jsonl.gz", corrected=True)
    assert [f"{name}: {difference}" for name, difference in result.differences] == []
    assert len(result.remarks) == FAMILIES[family][1]


def test_no_recorded_family_is_left_out():
    """All recorded files are replayed."""
    assert sorted(FAMILIES) == sorted(path.name.split(".")[0] for path in RECORDED.iterdir())


# Of how many sessions a kube-batch without just this defect was recorded, and in how many of them
# we do what it did. It leaves more to chance than a correction of ours does (which victims, which
# of equal nodes), and reclaims for gangs and in all dimensions by other rules.
CORRECTIONS = {
    "affinity-foreign-pod": (3, 3),
    "besteffort-preemptor": (2, 2),
    "capability": (4, 3),
    "evict-ignores-idle": (13, 8),
    "gang-min-one-evictable": (8, 7),
    "gang-victims-not-cumulative": (5, 3),
    "init-only": (2, 2),
    "intra-job-priority": (6, 6),
    "jobvalid-noop": (3, 3),
    "overshoot": (20, 18),
    "partial-hold": (18, 16),
    "pipeline-over-idle": (1, 1),
    "preempt-phase2": (11, 11),
    "proportion-less": (120, 118),
    "proportion-reclaim-sub": (1, 1),
    "queue-dup-heap": (8, 5),
    "reclaim-all-dims": (4, 1),
    "reclaim-before-idle": (7, 6),
    "reclaim-no-gang": (10, 1),
    "reclaim-one-task": (28, 16),
    "reclaim-victim-order": (17, 14),
    "tier-carry": (13, 10),
    "tier-first-wins": (42, 38),
}


@pytest.fixture(scope="module")
def all_cases():
    return [case for family in FAMILIES for case in cases(family).values()]


@pytest.mark.parametrize("defect", CORRECTIONS)
def test_a_correction_has_the_effect_of_the_same_patch_of_kube_batch(defect, all_cases):
    """A kube-batch with a patch for only this defect was recorded, too."""
    corrected = [case for case in all_cases if defect in case.get("corrected", {})]
    agreeing = [case for case in corrected if is_as_corrected(case, defect)]
    assert (len(corrected), len(agreeing)) == CORRECTIONS[defect]


def is_as_corrected(case, defect):
    scenario = case["scenario"]
    found = project(replay(scenario, UPSTREAM.without([Defect(defect)])), jobs_of_tasks(scenario))
    corrected = case["corrected"][defect]
    return all(
        first_mismatch(value, found[name], name) is None for name, value in corrected.items()
    )


# --- the replay can disagree -----------------------------------------------------------------


def altered(case, path, value):
    changed = copy.deepcopy(case)
    *way, last = path
    at = changed
    for step in way:
        at = at[step]
    at[last] = value
    return changed


def test_a_changed_outcome_of_a_deterministic_session_is_found():
    case = cases("gang")["kb-gang-001"]
    changed = altered(case, ["outcomes", 0, "podGroups", "ns/pg1", "phase"], "Unknown")
    found = compare_with_defects(changed)
    assert isinstance(found, Mismatch)
    assert (found.path, found.expected, found.found) == (
        "podGroups.ns/pg1.phase",
        "Unknown",
        "Pending",
    )


def test_a_changed_trace_is_found():
    case = cases("preempt_jobs")["kb-preempt_jobs-000"]
    found = compare_with_defects(altered(case, ["trace", 2], "release ns/lo-r0 n1"))
    assert isinstance(found, Mismatch)
    assert found.path == "trace[2]"


def test_a_changed_projection_of_a_nondeterministic_session_is_found():
    case = cases("reclaim")["kb-reclaim-000"]
    path = ["projections", "evictedPerJob", "values", 0, "value", "ns/pg1"]
    found = compare_with_defects(altered(case, path, 2))
    assert isinstance(found, Mismatch)
    assert found.path == "evictedPerJob.ns/pg1"


def test_an_outcome_that_was_never_recorded_is_found():
    case = cases("reclaim")["kb-reclaim-000"]
    only = [{"count": 64, "value": ["ns/pg2-p0"]}]
    found = compare_with_defects(altered(case, ["projections", "evictedTasks", "values"], only))
    assert isinstance(found, Mismatch)


def test_a_truncated_list_of_outcomes_is_not_compared():
    case = cases("reclaim")["kb-reclaim-000"]
    many = [{"count": 1, "value": [f"ns/other-{i}"]} for i in range(16)]
    assert (
        compare_with_defects(altered(case, ["projections", "evictedTasks", "values"], many)) is None
    )


def test_a_case_that_depends_on_a_defect_has_a_remark_about_the_correction():
    found = compare_with_defaults(cases("reclaim")["kb-reclaim-002"])
    assert isinstance(found, Remark)
    assert "evict-ignores-idle" in found.text
    assert "as with all corrections" in found.text


def test_the_command_prints_counts_and_differences(tmp_path):
    lines: list[str] = []
    status = run("kubebatch", [RECORDED / "backfill.jsonl.gz"], lines.append, defects="fixed")
    assert status == 0
    assert lines[0] == "backfill.jsonl.gz: 17 cases, 15 agree, 0 differ, 2 corrected"
    assert sum("depends on" in line for line in lines) == 2
    assert lines[-1] == "total: 17 cases, 15 agree, 0 differ, 2 corrected"


def test_corrections_are_refused_for_other_kinds_of_recordings():
    complaints: list[str] = []
    status = run("scheduling", [RECORDED], lambda _: None, complaints.append, defects="fixed")
    assert (status, complaints) == (
        2,
        ["fairlead conformance: --defects fixed: scheduling has no corrected defects"],
    )
