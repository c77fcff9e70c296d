"""`fairlead torture`: its exit codes, its report, and the scenario that it prints for a failure."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.cli.main import run as fairlead
from fairlead.testing.torture.law import Law
from fairlead.testing.torture.run import run
from fairlead.testing.torture.scenario import Create, Delete, TortureScenario, from_yaml, to_yaml
from fairlead.testing.torture.shrinker import Shrinker

MINUTE = 60_000


def named(kind, name, namespace="", **meta):
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **place, **meta}}


def pod(name, **meta):
    return named("Pod", name, "default", **meta) | {
        "spec": {"containers": [{"name": "c", "image": "i"}]}
    }


SIZE = {"cpu": "4", "memory": "8Gi", "pods": "20"}
NODE = named("Node", "n") | {"status": {"capacity": SIZE, "allocatable": SIZE}}
STUCK = pod("stuck", finalizers=["example.com/never"])
# A pod that a client deletes, and whose finalizer is never removed.
FAILING = TortureScenario(
    seed=1,
    chaos_ms=3 * MINUTE,
    calm_ms=10 * MINUTE,
    objects=(*(named("Namespace", name) for name in ("default", "kube-node-lease")), NODE),
    changes=(
        *(Create(1000 * number, pod(f"other-{number}")) for number in range(5)),
        Create(MINUTE, STUCK),
        Delete(2 * MINUTE, "Pod", "stuck", "default"),
    ),
    faults=(),
)


@pytest.fixture
def failing(tmp_path):
    path = tmp_path / "failing.yaml"
    path.write_text(to_yaml(FAILING))
    return path


def test_a_failing_scenario_has_exit_code_1_and_names_the_law_and_the_object(failing, capsys):
    assert fairlead(["torture", str(failing)]) == 1
    assert f"{Law.NOT_STUCK}: Pod default/stuck does not end" in capsys.readouterr().out


def test_a_passing_scenario_has_exit_code_0(tmp_path, capsys):
    path = tmp_path / "well.yaml"
    path.write_text(to_yaml(replace(FAILING, changes=FAILING.changes[:5])))
    assert fairlead(["torture", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: every law holds\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--hours", "0"], "--hours: must be more than 0 and at most 10,000, not 0"),
        (["--runs", "0"], "--runs: must be at least 1, not 0"),
        (["nowhere.yaml"], "nowhere.yaml: No such file or directory"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, problem, capsys):
    assert fairlead(["torture", *arguments]) == 2
    assert capsys.readouterr().err.strip().endswith(problem)


@pytest.mark.parametrize("text", ["[", "seed: 1", "- 1", "seed: x\nchaos_ms: 1\ncalm_ms: 1"])
def test_a_file_that_is_not_a_scenario_is_refused_in_one_line(text, tmp_path, capsys):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    assert fairlead(["torture", str(path)]) == 2
    err = capsys.readouterr().err
    assert f"{path}: not a torture scenario: " in err
    assert "Traceback" not in err


@pytest.mark.long
def test_shrinking_keeps_the_events_that_the_failure_requires():
    small = Shrinker(run(FAILING)).shrink()
    assert [type(one).__name__ for one in small.scenario.changes] == ["Create", "Delete"]
    assert small.failure.law is Law.NOT_STUCK
    assert run(from_yaml(to_yaml(small.scenario))).failure == small.failure
