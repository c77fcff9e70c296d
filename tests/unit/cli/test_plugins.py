"""`--plugin` and `--profile-plugins` through the whole command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fairlead.cli.main import run

ROOT = Path(__file__).parents[3]
STORE = ROOT / "examples" / "store" / "store.yaml"
PRIORITIES = ROOT / "examples" / "priorities" / "scenario.yaml"
PLUGIN = """\
class Only:
    name = "Only"
    def filter(self, state, pod, node):
        from fairlead import plugin
        return None if node.name.endswith("0") else plugin.unschedulable("not that one")
    def score(self, state, pod, node):
        return 7
class Broken:
    name = "Broken"
    def post_bind(self, pod, node):
        raise RuntimeError("no notes taken")
"""


@pytest.fixture
def fairlead(tmp_path, monkeypatch, capsys):
    """Runs `fairlead` next to a file `only.py`; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "only.py").write_text(PLUGIN)

    def run_fairlead(*arguments):
        code = run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_fairlead


def test_explain_calls_the_plugin(fairlead) -> None:
    pod = "pod/analytics/reports-54df9554fd-24mtj"
    arguments = (pod, "--snapshot", STORE, "--plugin", "only.py:Only=3", "-o", "json")
    _, out, _ = fairlead("explain", *arguments)
    found = json.loads(out)
    rejected = {"plugin": "Only", "code": "Unschedulable", "reasons": ["not that one"]}
    assert found["verdicts"]["worker-11"] == rejected


def test_whatif_compares_with_the_run_without_the_plugin(fairlead) -> None:
    scale = ("--scale", "deploy/analytics/reports=40")
    _, out, _ = fairlead("whatif", STORE, *scale, "--new-plugin", "only.py:Only", "-o", "json")
    found = json.loads(out)
    assert found["changes"] == ["--scale deploy/analytics/reports=40", "--new-plugin only.py:Only"]
    placed = {one["node"] for one in found["placed"]}
    assert all(node.endswith("0") for node in placed)


def test_simulate_reports_failures_of_a_plugin_that_change_no_decision(fairlead) -> None:
    code, out, _ = fairlead("simulate", PRIORITIES, "--plugin", "only.py:Broken", "--no-report")
    assert code == 0
    assert "plugin Broken (PostBind)" in out
    assert "RuntimeError: no notes taken (only.py:11)" in " ".join(out.split())


def test_the_times_are_written_to_stderr_and_do_not_change_stdout(fairlead) -> None:
    arguments = ("simulate", PRIORITIES, "--plugin", "only.py:Only", "--no-report")
    code, out, err = fairlead(*arguments, "--profile-plugins")
    assert (code, fairlead(*arguments)[1]) == (0, out)
    assert err.lstrip().startswith("time in plugins: ")
    rows = {tuple(line.split()[:2]) for line in err.splitlines()}
    assert {("Only", "Filter"), ("DefaultPreemption", "PostFilter")} <= rows
    assert re.search(r"^Only +Filter +\d+ +\d+\.\d{3} +[\d.]+ +[\d.]+%$", err, re.MULTILINE)


@pytest.mark.parametrize(
    "command",
    [("simulate", PRIORITIES), ("whatif", STORE), ("explain", "pod/x", "--snapshot", STORE)],
    ids=lambda command: command[0],
)
def test_a_plugin_that_cannot_be_loaded_is_bad_input(fairlead, command) -> None:
    code, out, err = fairlead(*command, "--plugin", "only.py:Onyl")
    assert (code, out) == (2, "")
    assert (
        err
        == "fairlead: --plugin: only.py:Onyl: has no Onyl; did you mean Only? known: Broken, Only\n"
    )


CROWDED = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", pods: "9"}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: there, namespace: default, uid: u1}
  spec: {nodeName: n1, priority: 5, containers: [{name: c, resources: {requests: {cpu: "4"}}}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: waiting, namespace: default, uid: u2}
  spec: {priority: 9, preemptionPolicy: Never, containers: [{name: c, resources: {requests: {cpu: "4"}}}]}
"""  # noqa: E501
BUMP = """\
from fairlead import plugin
class Bump:
    name = "Bump"
    def post_filter(self, state, pod, diagnosis):
        [node] = diagnosis.table.nodes()
        return plugin.PostFilterResult(plugin.SUCCESS, node.name, tuple(node.pods.values()))
"""


def test_explain_shows_the_effect_of_another_plugin(fairlead) -> None:
    Path("crowded.yaml").write_text(CROWDED)
    Path("bump.py").write_text(BUMP)
    arguments = ("explain", "pod/waiting", "--snapshot", "crowded.yaml", "--plugin", "bump.py:Bump")
    _, out, _ = fairlead(*arguments)
    assert "Bump makes room on n1 by evicting default/there (5)" in out
    _, out, _ = fairlead(*arguments, "-o", "json")
    victims = [{"pod": "default/there", "priority": 5}]
    assert json.loads(out)["room"] == {"by": "Bump", "node": "n1", "victims": victims}
