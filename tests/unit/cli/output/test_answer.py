"""The text of a what-if: the table of nodes, and the sections that a small terminal shows."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from fairlead.cli.commands.whatif import run as command
from fairlead.cli.main import run
from fairlead.cli.output.answer import print_answer
from fairlead.whatif import ClusterChange, question, read_snapshot, what_if

GPU = "nvidia.com/gpu"
STORE = Path(__file__).parents[4] / "examples/store/store.yaml"


def test_the_node_table_has_resources_that_only_removed_pods_requested(tmp_path, capsys):
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10", GPU: "4"}
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": amounts}}
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1", GPU: "2"}}}
    meta = {"name": "p", "namespace": "default"}
    spec = {"nodeName": "n", "containers": [container]}
    pod = {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}
    path = tmp_path / "dump.json"
    items = [{"apiVersion": "v1", **one} for one in (node, pod)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    run(["whatif", str(path), "--delete", "pod/p", "--no-report"])
    shown = capsys.readouterr().out.splitlines()
    (at,) = (at for at, line in enumerate(shown) if line.startswith("NODES "))
    assert shown[at].split()[-1] == GPU.upper()
    assert shown[at + 1].endswith("50.0% → 0.0%")


def test_the_answer_says_why_percentages_change_although_pods_stay_where_they_are(capsys):
    words = "Cordoned nodes do not count in the percentages."
    run(["whatif", str(STORE), "--cordon", "worker-03", "--no-report"])
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == "Nothing changes for any pod."
    assert "81.2% → 82.7%" in shown[shown.index(words) - 1]
    more = ["--scale", "deploy/store/frontend=9"]
    run(["whatif", str(STORE), "--cordon", "worker-03", *more, "--no-report"])
    assert words in capsys.readouterr().out
    run(["whatif", str(STORE), "--drain", "worker-03", "--no-report"])
    assert words not in capsys.readouterr().out


def test_a_narrow_screen_shows_every_outcome_by_seed_with_its_amounts(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    change = ["--fail-zone", "west-1b", "--for", "20m", "--seeds", "2"]
    run(["whatif", str(STORE), *change, "--no-report"])
    lines = capsys.readouterr().out.splitlines()
    (head,) = (at for at, line in enumerate(lines) if line.startswith("IN 2 SEEDS"))
    assert lines[head].split()[-3:] == ["LEAST", "MEDIAN", "MOST"]
    shown = lines[head + 1 : lines.index("", head)]
    assert not any(line.startswith("... and") for line in shown)
    outcomes = [tuple(line.split()[:2]) for line in shown]
    assert ("verdict", "breached") in outcomes
    assert ("deploy/store/search", "evicted") in outcomes
    assert ("deploy/analytics/reports", "preempted") in outcomes


def test_a_small_terminal_shows_the_outcomes_by_seed(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("LINES", "24")
    change = ["--drain", "topology.kubernetes.io/zone=west-1b", "--seeds", "3"]
    run(["whatif", str(STORE), *change, "--no-report"])
    assert "IN 3 SEEDS" in capsys.readouterr().out


def test_the_workloads_that_the_change_creates_are_shown_before_further_notes():
    """Only one of the three workloads is harmed, but the question is about the two others."""
    sale = str(STORE.with_name("flash-sale.yaml"))
    scale = ("deploy/flash-sale=10", "deploy/store/search=8")
    answer = what_if(read_snapshot(str(STORE)), ClusterChange(apply=(sale,), scale=scale))
    noted = replace(answer.changed, notes=("A long note. " * 50,) * 4)
    answer = replace(answer, effect=replace(answer.effect, changed=noted))
    text = io.StringIO()
    screen = Console(file=text, width=120, height=33, force_terminal=True, no_color=True)
    print_answer(answer, console=screen)
    lines = text.getvalue().splitlines()
    assert len(lines) <= 33
    for workload in ("deploy/analytics/reports", "deploy/store/flash-sale", "deploy/store/search"):
        assert any(line.startswith(workload) for line in lines), text.getvalue()


@pytest.mark.parametrize("form", ["text", "details"])
@pytest.mark.parametrize("fail_on", [[], ["--fail-on", "pending>0"]])
def test_on_a_terminal_the_verdict_is_printed_before_next_steps_are_tried(
    form, fail_on, monkeypatch, capsys
):
    change = ["--scale", "deploy/store/search=40", "--no-report", "-o", form, *fail_on]
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    printed = []

    def tried(answer, *others):
        printed.append(capsys.readouterr().out)
        return with_next_steps(answer, *others)

    def without_verdict(*arguments, on_verdict, **options):
        return what_if(*arguments, **options)

    with_next_steps = question._with_next_steps
    with monkeypatch.context() as patch:
        patch.setattr(question, "_with_next_steps", tried)
        run(["whatif", str(STORE), *change])
    [early] = printed
    rest = capsys.readouterr().out
    monkeypatch.setattr(command, "what_if", without_verdict)
    run(["whatif", str(STORE), *change])
    assert early + rest == capsys.readouterr().out
    assert "stay pending" in early
    assert "Next: " in rest
    assert ("--fail-on pending>0" in early) == bool(fail_on)


def test_a_wrong_label_prints_no_verdict(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    change = ["--scale", "deploy/store/search=40", "--no-report", "--group-by", "wrong"]
    assert run(["whatif", str(STORE), *change]) == 2
    assert capsys.readouterr().out == ""


def test_in_markdown_the_recovery_times_over_seeds_have_a_unit(capsys):
    change = ["--fail-zone", "west-1b", "--for", "20m", "--seeds", "2"]
    run(["whatif", str(STORE), *change, "-o", "markdown"])
    lines = capsys.readouterr().out.splitlines()
    rows = [
        line
        for line in lines
        if line.startswith(("| pods | all", "| deploy/store/search | evicted"))
    ]
    assert rows == [
        "| pods | all affected run after | 2 | 2 | 20m01s | 20m01s | 20m01s | 20m01s | certain |",
        "| deploy/store/search | evicted | 2 | 2 | 3 | 3 | 3 | 3 | certain |",
    ]
