"""Decisions recorded from kube-scheduler 1.36 are replayed; tampered recordings differ."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.conformance.run import compare_file, run

RECORDED = Path(__file__).parent / "data" / "scheduling"
FAMILIES = {
    "defaultspread": 60,
    "image": 50,
    "interpod": 170,
    "large": 32,
    "misc": 48,
    "mix": 159,
    "nodeaffinity": 120,
    "nominated": 80,
    "ports": 60,
    "preempt": 125,
    "preempt_constraints": 105,
    "preempt_tie": 80,
    "resources": 159,
    "sequence": 20,
    "spread": 150,
    "taints": 80,
}


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(family, marks=[pytest.mark.long] if family == "sequence" else [])
        for family in FAMILIES
    ],
)
def test_every_recorded_decision_is_ours(family: str) -> None:
    """No case differs, and all recorded cases are compared."""
    result = compare_file("scheduling", RECORDED / f"{family}.jsonl.gz")
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


def first_with(family: str, fact: str) -> dict[str, Any]:
    with gzip.open(RECORDED / f"{family}.jsonl.gz", "rt") as lines:
        return next(line for line in map(json.loads, lines) if fact in line["expect"])


def write(path: Path, *cases: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


def differences(tmp_path: Path, case: dict[str, Any]) -> list[str]:
    result = compare_file("scheduling", write(tmp_path / "tampered.jsonl", case))
    return [str(difference) for _, difference in result.differences]


def test_a_changed_verdict_is_found(tmp_path: Path) -> None:
    """The message has the path to the node and both values."""
    case = recorded("taints")
    node = next(n for n, verdict in case["expect"]["filter"].items() if verdict != "ok")
    case["expect"]["filter"][node]["reasons"] = ["node(s) were on fire"]
    (found,) = differences(tmp_path, case)
    assert found == (
        f'filter.{node}.reasons[0]: expected "node(s) were on fire", '
        'found "node(s) had untolerated taint(s)"'
    )


@pytest.mark.parametrize("fact", ["total", "scores", "best", "decision", "fitError", "preemption"])
def test_a_fact_that_is_missing_is_found(fact: str, tmp_path: Path) -> None:
    """A value in our decision that the file lacks is a difference, too."""
    case = first_with("preempt", fact)
    del case["expect"][fact]
    (found,) = differences(tmp_path, case)
    assert found.startswith(f"{fact}: expected (absent)")


def test_victims_in_another_order_are_found(tmp_path: Path) -> None:
    """The order of victims states which has the lowest priority."""
    with gzip.open(RECORDED / "preempt.jsonl.gz", "rt") as lines:
        for case in map(json.loads, lines):
            candidates = case["expect"].get("preemption", {}).get("candidates", {})
            several = [node for node, one in candidates.items() if len(one["victims"]) > 1]
            if several:
                break
    candidates[several[0]]["victims"].reverse()
    (found,) = differences(tmp_path, case)
    assert found.startswith(f"preemption.candidates.{several[0]}.victims[0]")


def test_a_changed_step_is_found(tmp_path: Path) -> None:
    """Traces are compared step by step."""
    case = recorded("sequence")
    case["expect"]["steps"][7]["op"] = "delete"
    (found,) = differences(tmp_path, case)
    assert found.startswith("steps[7].op")


# --- what the command says -------------------------------------------------------------------


def run_files(*files: Path, kind: str = "scheduling") -> tuple[int, list[str], list[str]]:
    said: list[str] = []
    complaints: list[str] = []
    return run(kind, files, said.append, complaints.append), said, complaints


def test_agreement_has_exit_status_0(tmp_path: Path) -> None:
    """Plain and compressed lines are read alike, and counted per file and in total."""
    plain = write(tmp_path / "plain.jsonl", recorded("ports"), recorded("image"))
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert run_files(plain, packed) == (
        0,
        [
            "plain.jsonl: 2 cases, 2 agree, 0 differ",
            "packed.jsonl.gz: 2 cases, 2 agree, 0 differ",
            "total: 4 cases, 4 agree, 0 differ",
        ],
        [],
    )


def test_a_difference_has_exit_status_1(tmp_path: Path) -> None:
    """The case is named, with the first differing path and both values."""
    case = recorded("misc", 1)
    case["expect"] = {"fitError": "something else"}
    code, said, complaints = run_files(write(tmp_path / "a.jsonl", recorded("image"), case))
    assert (code, complaints) == (1, [])
    assert said[0] == "a.jsonl: 2 cases, 1 agree, 1 differ"
    assert said[1].startswith(f"  {case['case']['name']}: ")
    assert "expected" in said[1]
    assert said[-1] == "total: 2 cases, 1 agree, 1 differ"


def test_the_list_of_many_differences_is_truncated(tmp_path: Path) -> None:
    """Twenty are shown, the others are counted."""
    case = recorded("image")
    case["expect"] = {"fitError": ""}
    _, said, _ = run_files(write(tmp_path / "a.jsonl", *[case] * 23))
    assert len(said) == 1 + 20 + 1 + 1
    assert said[-2] == "  … and 3 more"


BROKEN = {
    "a file that is not there": None,
    "text that is not JSON": b"hello\n",
    "JSON that is no object": b"[1]\n",
    "an object without case": b'{"expect": {}}\n',
    "an expectation that is no object": b'{"case": {}, "expect": []}\n',
    "bytes that are no text": b"\xff\xfe\x00\n",
    "a packed file cut short": gzip.compress(b'{"case": {}, "expect": {}}\n')[:-9],
    "a packed file with a wrong bit": b"\x1f\x8b\x08\x00" + b"\x07" * 40,
    "a case without a pod": b'{"case": {"nodes": []}, "expect": {}}\n',
    "a pod that is a number": b'{"case": {"pending": 3}, "expect": {}}\n',
    "a node of the wrong form": b'{"case": {"nodes": [{"spec": {"taints": 1}}]}, "expect": {}}\n',
    "an unknown step": b'{"case": {"steps": [{"op": "jump"}]}, "expect": {}}\n',
    "a step without its pod": b'{"case": {"steps": [{"op": "schedule"}]}, "expect": {}}\n',
    "a quantity that is none": b'{"case": {"pending": {"spec": {"containers": [{"resources": '
    b'{"requests": {"cpu": "much"}}}]}}}, "expect": {}}\n',
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_malformed_file_is_refused_in_one_line_with_exit_status_2(
    content: bytes | None, tmp_path: Path
) -> None:
    """The line names the file, and nothing else is printed."""
    path = tmp_path / "broken.jsonl"
    if content is not None:
        path.write_bytes(content)
    code, said, complaints = run_files(path)
    assert (code, said, len(complaints)) == (2, [], 1)
    assert "broken.jsonl" in complaints[0]
    assert "\n" not in complaints[0]


def test_a_missing_file_is_named_without_an_errno(tmp_path: Path) -> None:
    """The message has no error number and no Python text."""
    missing = tmp_path / "none.jsonl"
    problem = f"fairlead conformance: {missing}: cannot be read: No such file or directory"
    assert run_files(missing) == (2, [], [problem])


@pytest.mark.parametrize(
    ("requested", "recorded_kind", "family"),
    [
        ("volumes", "scheduling", "mix"),
        ("volumes", "scheduling", "sequence"),
        ("scheduling", "volumes", "vol_mix"),
        ("timelines", "nodelifecycle", "cordon"),
        ("nodelifecycle", "timelines", "backoff"),
    ],
)
def test_cases_of_another_kind_are_refused(requested: str, recorded_kind: str, family: str) -> None:
    """Kinds whose lines have the same fields are distinguished by their values."""
    path = RECORDED.parent / recorded_kind / f"{family}.jsonl.gz"
    code, said, (complaint,) = run_files(path, kind=requested)
    assert (code, said) == (2, [])
    assert complaint.startswith(f"fairlead conformance: {path}: ")
    assert complaint.endswith(f": is of another kind: {recorded_kind}")


def test_missing_files_and_unknown_kinds_have_exit_status_2() -> None:
    """The message names the valid arguments."""
    assert run_files()[0] == 2
    code, _, (complaint,) = run_files(kind="weather")
    assert code == 2
    assert "scheduling" in complaint
