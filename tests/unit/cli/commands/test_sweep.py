"""`fairlead sweep` runs the cases, continues an interrupted sweep, and refuses wrong input."""

from __future__ import annotations

import csv
import gc
import json
import resource
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from fairlead.apiserver.registry.store import Store
from fairlead.cli import exit_code
from fairlead.cli.commands.sweep.run import results_folder
from fairlead.cli.main import SignalError, run
from fairlead.whatif.input.document import read_one
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.strict_form import FileName, StrictForm
from fairlead.whatif.sweep.case import Case, cases_of
from fairlead.whatif.sweep.case_run import (
    KnownWorst,
    ScenarioFiles,
    file_fields,
    read_files,
    run_case,
    run_with_files,
)
from fairlead.whatif.sweep.variation import parse_variation

SCENARIO = """\
title: three nodes
cluster:
  files: [nodes.yaml]
events:
- {at: 10s, create: pods.yaml, count: 7}
duration: 2m
outputs: {json: out.json}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: node-%d, labels: {topology.kubernetes.io/zone: zone-%d}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {containers: [{name: main, image: web, resources: {requests: {cpu: "%s"}}}]}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "nodes.yaml").write_text("".join(NODE % (n, n) for n in range(3)))
    (tmp_path / "pods.yaml").write_text(POD % 1)
    (tmp_path / "large.yaml").write_text(POD % 2)
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    return file


def swept(scenario: Path, *options: str) -> int:
    folder = scenario.parent / "out"
    options = options if "--out" in options else ("--out", str(folder), *options)
    place = () if "--on" in options else ("--on", "processes:1")
    return run(["sweep", str(scenario), *place, *options])


def test_a_sweep_writes_cases_results_and_reports(scenario, capsys):
    options = ("--vary", "events[0].create=pods.yaml,large.yaml", "--lose", "zone@1s")
    assert swept(scenario, *options, "-o", "json") == exit_code.SUCCESS
    answer = json.loads(capsys.readouterr().out)
    pending = {tuple(one["parameters"].values()): one for one in [answer["worst"]]}
    assert list(pending) == [("large.yaml", "zone-0")]
    assert [one["pending"] for one in answer["cases"]] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert answer["verdict"] == (
        "Pods pending at the end: 0 to 1, above 0 in 4 of 8 cases; "
        "worst with events[0].create=large.yaml, lost-zone=zone-0 (case 6)."
    )
    folder = scenario.parent / "out"
    rows = list(csv.DictReader((folder / "cases.csv").read_text().splitlines()))
    assert [row["pending"] for row in rows] == ["0", "0", "0", "0", "1", "1", "1", "1"]
    assert rows[0]["lost-zone"] == "none"
    assert len(list((folder / "cases").iterdir())) == 8
    assert 'href="worst.html"' in (folder / "report.html").read_text()
    assert "zone-0" in (folder / "worst.html").read_text()
    assert not (scenario.parent / "out.json").exists()


def test_several_processes_give_the_same_results_as_one(scenario):
    folder = scenario.parent / "out"
    assert swept(scenario, "--vary", "seed=0..2") == exit_code.SUCCESS
    first = {file.name: file.read_bytes() for file in (folder / "cases").iterdir()}
    folder.rename(scenario.parent / "first")
    assert swept(scenario, "--vary", "seed=0..2", "--on", "processes:2") == exit_code.SUCCESS
    assert {file.name: file.read_bytes() for file in (folder / "cases").iterdir()} == first


def test_an_interrupted_sweep_continues(scenario, capsys):
    assert swept(scenario, "--vary", "seed=0..2") == exit_code.SUCCESS
    cases = sorted((scenario.parent / "out" / "cases").iterdir())
    before = [file.read_bytes() for file in cases]
    cases[1].unlink()
    kept = cases[0].stat().st_mtime_ns
    assert swept(scenario, "--vary", "seed=0..2") == exit_code.SUCCESS
    assert [file.read_bytes() for file in cases] == before
    assert cases[0].stat().st_mtime_ns == kept
    (scenario.parent / "pods.yaml").write_text(POD % 4)
    assert swept(scenario, "--vary", "seed=0..2") == exit_code.SUCCESS
    assert len(list((scenario.parent / "out" / "cases").iterdir())) == 6
    assert "4 in each of 3 cases" in capsys.readouterr().out


def test_all_cases_run_again_if_the_code_of_an_installed_plugin_changed(
    scenario, tmp_path, monkeypatch
):
    info = tmp_path / "rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[fairlead.plugins]\nA = swept_rules.a:A\nB = swept_rule:B\nC = no:C"
    )
    package = tmp_path / "swept_rules"
    package.mkdir()
    for file in (package / "__init__.py", package / "helper.py", tmp_path / "swept_rule.py"):
        file.write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for change in (None, package / "helper.py", tmp_path / "swept_rule.py"):
        if change is not None:
            change.write_text("LIMIT = 3")
        for _ in range(2):
            assert swept(scenario, "--vary", "seed=0") == exit_code.SUCCESS
    assert len(list((tmp_path / "out" / "cases").iterdir())) == 3


def test_pods_that_are_pending_at_the_end_count_in_the_longest_wait(scenario, capsys):
    """A pod of 4 cores arrives after 10 s, does not fit, and waits until the end after 120 s."""
    (scenario.parent / "pods.yaml").write_text(POD % 4)
    options = ("--vary", "seed=0", "--fail-on", "waited_longest_s>=110", "-o", "json")
    assert swept(scenario, *options) == exit_code.CONDITION_HOLDS
    answer = json.loads(capsys.readouterr().out)
    assert answer["findings"] == ["--fail-on waited_longest_s>=110 holds in 1 of 1 case (case 1)."]
    (case,) = answer["cases"]
    assert (case["pending"], case["waited_longest_s"], case["waited_p95_s"]) == (4, 110, 110)


def test_a_verdict_about_waits_contains_durations(scenario, capsys):
    (scenario.parent / "pods.yaml").write_text(POD % 4)
    options = ("--vary", "seed=0..1", "--rank-by", "waited_longest_s", "-o", "json")
    assert swept(scenario, *options) == exit_code.SUCCESS
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "Longest wait for a node: 1m50s in each of 2 cases."


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SignalError(15), InputError("case", "x")])
def test_a_sweep_without_any_result_leaves_no_folder(tmp_path, error):
    with pytest.raises(type(error)), results_folder(tmp_path / "new" / "cases"):
        raise error
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_sweep_keeps_its_results(tmp_path):
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "1.json").write_text("{}")
    with pytest.raises(KeyboardInterrupt), results_folder(tmp_path / "cases"):
        raise KeyboardInterrupt
    assert (tmp_path / "cases" / "1.json").exists()


def test_a_case_gives_the_same_result_after_its_files_are_deleted(scenario, tmp_path, monkeypatch):
    document = read_one(str(scenario)).value
    cases = cases_of(document, [parse_variation("events[0].create=pods.yaml,large.yaml")])
    files = read_files(scenario.parent, [one.scenario for one in cases])
    assert set(files.names) == {"nodes.yaml", "pods.yaml", "large.yaml"}
    worst = KnownWorst("pending")
    here = [run_case(str(scenario), one, worst) for one in cases]
    for name in files.names:
        (scenario.parent / name).unlink()
    assert here == [run_with_files(files, str(scenario), one, worst) for one in cases]
    assert here[0].text != here[1].text


def test_a_process_keeps_no_cluster_of_an_earlier_case(scenario):
    def stores():
        return sum(isinstance(one, Store) for one in gc.get_objects())

    case = Case(1, {}, {"cluster": {"generated": {"nodes": 1_000}}, "duration": "1s"})
    gc.collect()
    gc.disable()
    try:
        before = stores()
        assert run_case(str(scenario), case, KnownWorst("pending")).text
        assert stores() == before
    finally:
        gc.enable()


def test_the_digest_of_files_copies_no_content():
    files = ScenarioFiles({"dump.json": bytes(1_000_000)}, {})
    tracemalloc.start()
    try:
        assert files.digest == "613456b605bb06117738d6f0d81d4561aed71bdca13f5ed7754203bdd0b8995e"
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_only_fields_for_files_name_files(scenario, tmp_path):
    """A namespace may be named like a folder, and a volume may contain any path."""
    (tmp_path / "default").mkdir()
    (tmp_path / "default" / "other.yaml").write_text(POD % 1)
    pod = read_one(str(tmp_path / "pods.yaml")).value
    pod["spec"]["volumes"] = [{"name": "v", "hostPath": {"path": "/"}}]
    pod["metadata"]["annotations"] = {"note": "x" * 300}
    document = {**read_one(str(scenario)).value, "objects": [pod]}
    document["settings"] = {"batch": "x" * 300}
    files = read_files(scenario.parent, [document])
    assert set(files.names) == {"nodes.yaml", "pods.yaml"}
    del document["settings"]
    case, worst = Case(1, {}, document), KnownWorst("pending")
    expected = run_case(str(scenario), case, worst)
    assert expected.text
    assert run_with_files(files, str(scenario), case, worst) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("pending>0", exit_code.CONDITION_HOLDS), ("pending > 5", exit_code.SUCCESS),
     ("cost>0", exit_code.SUCCESS)],
)  # fmt: skip
def test_fail_on_sets_the_exit_status(scenario, condition, expected):
    options = ("--vary", "events[0].create=pods.yaml,large.yaml", "--fail-on", condition)
    assert swept(scenario, *options) == expected


def test_a_measure_that_no_result_contains_is_not_reported_as_zero(scenario, capsys):
    """Without an autoscaler, the cost is not known, which is not the same as 0."""
    options = ("--vary", "seed=0,1", "--rank-by", "cost", "--fail-on", "pending>0")
    assert swept(scenario, *options, "--fail-on", "cost>1", "-o", "json") == exit_code.SUCCESS
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == (
        "No result contains the measure cost (cost of nodes by the autoscaler)."
    )
    assert answer["notes"] == ["--fail-on cost>1 is not checked, because no result contains cost."]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "--vary: is missing"),
        (("--vary", "seed=0..3", "--vary", "seed=1,2"), "seed: is given twice"),
        (("--vary", "sead=0..3"), "sead: unknown field; did you mean seed?"),
        (("--vary", "cluster.files=1,2"), "cluster.files"),
        (("--vary", "events[3].at=1m,2m"), "the scenario has no item [3]"),
        (("--vary", "events[0].create=gone.yaml,pods.yaml"), "gone.yaml"),
        (("--lose", "rack@1m"), "is not zone@TIME or node@TIME"),
        (("--lose", "zone@soon"), "--lose"),
        (("--vary", "seed=0..3", "--random", "0"), "--random: 0 is not 1 or more"),
        (("--vary", "seed=0..3", "--rank-by", "money"), "'money' is not a measure"),
        (("--vary", "seed=0..3", "--fail-on", "pending"), "is not MEASURE>NUMBER"),
        (("--vary", "seed=0..3", "--fail-on", "panding>1"), "did you mean pending?"),
        (("--vary", "seed=0..3", "--on", "cloud"), "is not processes"),
        (("--vary", "seed=0..3", "--on", "processes:0"), "is not processes"),
    ],
)
def test_wrong_input_is_refused_in_one_line(scenario, capsys, options, problem):
    assert swept(scenario, *options) == exit_code.BAD_INPUT
    printed = capsys.readouterr().err.strip()
    assert problem in printed
    assert "\n" not in printed


@pytest.mark.parametrize("varied", [("--vary", "seed=0..1"), ("--lose", "node@1m")])
def test_a_scheduler_with_extenders_is_refused(scenario, capsys, varied):
    """The error names no option that the command lacks."""
    config = "kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration"
    extenders = "[{urlPrefix: 'http://127.0.0.1:9/x', filterVerb: filter}]"
    text = f"{{apiVersion: {config}, extenders: {extenders}}}"
    (scenario.parent / "scheduler.yaml").write_text(text)
    scenario.write_text(f"{SCENARIO}settings: {{scheduler: scheduler.yaml}}\n")
    assert swept(scenario, *varied) == exit_code.BAD_INPUT
    printed = capsys.readouterr().err.strip()
    assert printed.endswith("scheduler: has extenders; a sweep does not call extenders")


def test_a_folder_that_is_a_file_is_refused(scenario, capsys):
    (scenario.parent / "out").touch()
    assert swept(scenario, "--vary", "seed=0..1") == exit_code.BAD_INPUT
    assert "--out" in capsys.readouterr().err


def test_a_folder_below_one_that_the_scenario_reads_is_refused(scenario, capsys):
    """The results of the first sweep would be input of the next one."""
    (scenario.parent / "dump").mkdir()
    (scenario.parent / "nodes.yaml").rename(scenario.parent / "dump" / "nodes.yaml")
    scenario.write_text(SCENARIO.replace("nodes.yaml", "dump"))
    inside = ("--vary", "seed=0..1", "--out", str(scenario.parent / "dump" / "new" / "out"))
    assert swept(scenario, *inside) == exit_code.BAD_INPUT
    assert "is inside dump, whose files the scenario reads; name" in capsys.readouterr().err
    assert not (scenario.parent / "dump" / "new").exists()
    assert swept(scenario, "--vary", "seed=0..1") == exit_code.SUCCESS


def test_a_full_disk_is_reported_in_one_line(scenario, capsys):
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        code = swept(scenario, "--vary", "seed=0..1")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    printed = capsys.readouterr().err.strip().splitlines()
    assert code == exit_code.OUTPUT_FAILED
    assert len(printed) == 1
    assert printed[0].startswith(f"fairlead: {scenario.parent}")
    assert printed[0].endswith(".json: File too large")
    assert not (scenario.parent / "out").exists()


def test_missing_libraries_are_named(scenario, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    assert swept(scenario, "--vary", "seed=0..1", "--parquet") == exit_code.BAD_INPUT
    assert "pyarrow; install Fairlead with the extra `sweep`" in capsys.readouterr().err
    dask = ("--vary", "seed=0..1", "--on", "dask://127.0.0.1:1")
    assert swept(scenario, *dask) == exit_code.BAD_INPUT
    assert "distributed; install Fairlead with the extra `sweep`" in capsys.readouterr().err
    with suppress(FileNotFoundError):
        assert not list((scenario.parent / "out" / "cases").iterdir())


class Source(StrictForm, frozen=True, kw_only=True):
    tables: list[FileName] = []
    namespace: str = ""


class Form(StrictForm, frozen=True, kw_only=True):
    source_of_pods: Source = Source()
    load: list[Source] | FileName = []


def test_only_file_names_are_file_fields():
    assert sorted(file_fields(Form)) == [
        ("load",),
        ("load", "*", "tables", "*"),
        ("source-of-pods", "tables", "*"),
    ]


def test_the_invalid_case_with_the_lowest_number_is_named(scenario, capsys, monkeypatch):
    def backwards(source, cases, _, known_worst):
        for case in reversed(cases):
            yield case.number, run_case(source, case, known_worst())

    monkeypatch.setattr("fairlead.cli.commands.sweep.run.parse_place", lambda _: backwards)
    assert swept(scenario, "--vary", "events[0].count=7,-1,-2,8") == exit_code.BAD_INPUT
    assert "count=-1: " in capsys.readouterr().err


def test_the_worst_case_is_run_once(scenario, monkeypatch):
    """It is run again only if its result is from an earlier sweep; the report is the same."""
    have_reports = []

    def backwards(source, cases, _, known_worst):
        for case in reversed(cases):
            result = run_case(source, case, known_worst())
            have_reports.append(bool(result.report))
            yield case.number, result

    monkeypatch.setattr("fairlead.cli.commands.sweep.run.parse_place", lambda _: backwards)
    vary = ("--vary", "events[0].count=7,8,1", "--vary", "seed=0,1")
    with monkeypatch.context() as patch:
        patch.delattr("fairlead.cli.commands.sweep.run.run_scenario")
        assert swept(scenario, *vary) == exit_code.SUCCESS
    assert have_reports == [True, True, True, True, False, False]
    worst = scenario.parent / "out" / "worst.html"
    report = worst.read_bytes()
    assert b"events[0].count=8, seed=0" in report
    worst.unlink()
    assert swept(scenario, *vary) == exit_code.SUCCESS
    assert worst.read_bytes() == report


def test_the_notes_of_the_cases_are_in_the_answer(scenario, capsys):
    """A failure after the end of the scenario has no effect, so the sweep would prove nothing."""
    assert swept(scenario, "--lose", "zone@3m", "-o", "json") == exit_code.SUCCESS
    assert json.loads(capsys.readouterr().out)["notes"] == [
        "In 3 of 4 cases: events[1] at 3m does not happen: the scenario ends before (duration: 2m)."
    ]


def test_every_node_of_every_case_is_lost(scenario, capsys):
    """The scenario has one node, its variations have two and three."""
    generated = "cluster:\n  generated: {nodes: 1}\nduration: 1m\n"
    scenario.write_text(generated)
    options = ("--vary", "cluster.generated.nodes=2,3", "--lose", "node@10s", "-o", "json")
    assert swept(scenario, *options) == exit_code.SUCCESS
    cases = json.loads(capsys.readouterr().out)["cases"]
    found = [(one["cluster.generated.nodes"], one["lost-node"]) for one in cases]
    assert found == [
        ("2", "none"), ("2", "node-0"), ("2", "node-1"),
        ("3", "none"), ("3", "node-0"), ("3", "node-1"), ("3", "node-2"),
    ]  # fmt: skip
