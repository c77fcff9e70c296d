"""The complaints about case files, and the counts of cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.conformance.api.replay.api_cases import ApiCases
from fairlead.conformance.case_kind import Finding
from fairlead.conformance.comparison import Mismatch
from fairlead.conformance.run import compare_file, run

API_CASES = ApiCases(lambda _: ())
KARPENTER = {
    "kind": "timeline",
    "now": "2026-01-01T00:00:00Z",
    "instanceTypes": [],
    "steps": [{"ops": [{"op": "apply", "kind": "Foo", "object": {}}], "run": []}],
}

NODE_TIMELINE: Json = {
    "nodes": [],
    "pods": [],
    "script": [],
    "duration_ms": 1000,
    "config": {
        "node_monitor_period_ms": 5000,
        "node_startup_grace_ms": 60000,
        "node_monitor_grace_ms": 50000,
        "node_eviction_rate": 0.1,
        "secondary_node_eviction_rate": 0.01,
        "large_cluster_size_threshold": 50,
        "unhealthy_zone_threshold": 0.55,
        "pod_delete": "immediate",
        "podgc": False,
        "podgc_terminated_threshold": 12500,
        "pass_latency_ns": 0,
    },
}
TIMELINE: Json = {"initial": [], "script": [], "config": {"start_ms": 0}}


def complaint(path: Path, line: object, kind: str, only: str = "*") -> str:
    path.write_text(f"{json.dumps(line)}\n")
    said: list[str] = []
    judged_by = API_CASES if kind == "api" else None
    assert run(kind, [path], said.append, said.append, only=only, judged_by=judged_by) == 2
    return said[-1]


@pytest.mark.parametrize(
    ("kind", "line", "problem"),
    [
        ("api", [1], "line 1: expected an object"),
        (
            "timelines",
            {"scenario": {"name": [1]}, "expect": {}},
            "case 1: the name is not text",
        ),
        (
            "timelines",
            {"scenario": 1, "expect": {}},
            "line 1: expected an object whose members scenario and expect are objects",
        ),
        ("timelines", {"scenario": {}, "expect": {}, "case": 3}, "case 1: is of no known kind"),
        (
            "karpenter",
            {"case": KARPENTER, "expect": {}},
            "case 1: ValueError: unknown kind 'Foo'",
        ),
    ],
)
def test_a_line_that_is_no_case_is_refused(
    kind: str, line: object, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "cases.jsonl"
    assert complaint(path, line, kind) == f"fairlead conformance: {path}: {problem}"


@pytest.mark.parametrize("error", [IndexError, OverflowError, KeyError])
def test_a_case_that_cannot_be_replayed_is_refused(error: type[Exception], tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"name": "scale-up"}\n')
    said: list[str] = []
    assert run("api", [path], said.append, said.append, judged_by=_Failing(error=error)) == 2
    assert said == [f"fairlead conformance: {path}: scale-up: {error.__name__}: "]


@pytest.mark.parametrize(
    ("kind", "subject"),
    [
        ("nodelifecycle", {"scenario": NODE_TIMELINE | {"duration_ms": 10**15}}),
        ("timelines", {"scenario": TIMELINE | {"duration_ms": 10**15}}),
        ("autoscaler", {"case": {"nodeGroups": [], "duration_ms": 10**15}}),
    ],
)
def test_a_case_that_would_hardly_end_is_refused(kind: str, subject: Json, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    assert complaint(path, {**subject, "expect": {}}, kind) == (
        f"fairlead conformance: {path}: case 1: ValueError: "
        "duration_ms is 1000000000000000; expected a number from 0 to 86400000"
    )


@pytest.mark.parametrize("latency_ns", [-1, 10**18])
def test_a_pass_with_an_impossible_duration_is_refused(latency_ns: int, tmp_path: Path) -> None:
    """With a negative duration, a pass ends before it begins, and the replay may not end."""
    path = tmp_path / "cases.jsonl"
    config = {**NODE_TIMELINE["config"], "pass_latency_ns": latency_ns}
    line = {"scenario": {**NODE_TIMELINE, "config": config}, "expect": {}}
    assert complaint(path, line, "nodelifecycle") == (
        f"fairlead conformance: {path}: case 1: ValueError: "
        f"pass_latency_ns is {latency_ns}; expected a number from 0 to 86400000000000"
    )


@pytest.mark.parametrize("period_ms", [-5, 0])
def test_checks_of_node_health_without_an_interval_are_refused(
    period_ms: int, tmp_path: Path
) -> None:
    config = {**NODE_TIMELINE["config"], "node_monitor_period_ms": period_ms}
    line = {"scenario": {**NODE_TIMELINE, "config": config}, "expect": {}}
    problem = f"node_monitor_period_ms is {period_ms}; expected a number from 1 to 86400000"
    assert complaint(tmp_path / "cases.jsonl", line, "nodelifecycle").endswith(problem)


def test_an_integer_with_too_many_digits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(f'{{"name": {"1" * 5000}}}\n')
    said: list[str] = []
    assert run("api", [path], said.append, said.append, judged_by=API_CASES) == 2
    assert said[0].startswith(f"fairlead conformance: {path}: line 1: not JSON: Exceeds the limit")


@pytest.mark.parametrize("constant", ["NaN", "-Infinity"])
def test_a_constant_that_json_does_not_have_is_refused(constant: str, tmp_path: Path) -> None:
    line = {"scenario": {**TIMELINE, "config": {"start_ms": float(constant)}}, "expect": {}}
    said = complaint(tmp_path / "cases.jsonl", line, "timelines")
    assert said.endswith(f"cases.jsonl: line 1: not JSON: {constant} is no number")


def test_a_pattern_that_matches_no_case_is_named(tmp_path: Path) -> None:
    line: Json = {"scenario": {"initial": []}, "expect": {}}
    said = complaint(tmp_path / "cases.jsonl", line, "timelines", only="rollout*")
    assert said == "fairlead conformance: no case matches --only 'rollout*'"


class _Judged(Struct, frozen=True):
    """Cases that state their own result."""

    fields: tuple[str, ...] = ()

    def recognizes(self, line: Json) -> bool:
        return True

    def name_of(self, line: Json) -> str | None:
        return None

    def judge(self, line: Json) -> Finding:
        return None if line["agrees"] else Mismatch("exit", 0, 1)


class _Failing(_Judged, frozen=True):
    """Cases whose replay raises an error of the type `error`."""

    error: type[Exception] = Exception

    def name_of(self, line: Json) -> str | None:
        return str(line["name"])

    def judge(self, line: Json) -> Finding:
        raise self.error


def test_setup_lines_count_only_if_they_fail(tmp_path: Path) -> None:
    lines = [{"agrees": True, "setup": True}, {"agrees": False, "setup": True}, {"agrees": True}]
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert str(compare_file(_Judged(), path)) == "cases.jsonl: 2 cases, 1 agree, 1 differ"
