"""`make demo-elastic`: a day of traffic under no autoscaler, Cluster Autoscaler and Karpenter."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

ELASTIC = Path(__file__).parents[2] / "examples" / "elastic"


@pytest.mark.parametrize("name", ["fixed", "cluster-autoscaler", "karpenter"])
def test_every_scenario_is_read(name: str) -> None:
    path = str(ELASTIC / f"{name}.yaml")
    experiment = experiment_of(path, read_scenario(path))
    assert len(experiment.loads) == 5
    assert not experiment.notes


@pytest.mark.long
def test_the_demo_compares_nodes_cost_and_waiting_times(tmp_path: Path) -> None:
    fairlead = tmp_path / "fairlead"
    fairlead.write_text(f'#!/bin/sh\nexec {sys.executable} -m fairlead.cli "$@"\n')
    fairlead.chmod(0o755)
    done = subprocess.run(
        [ELASTIC / "demo", fairlead, sys.executable],
        env={**os.environ, "OUT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = {line[:18].strip(): line[18:].split() for line in done.stdout.splitlines()}
    assert rows["fixed nodes"][:3] == ["15", "360", "$72.00"]
    # With Karpenter, one pod waits for a second node, because others fill the first.
    for name, longest_wait_minutes in (("Cluster Autoscaler", "1"), ("Karpenter", "2")):
        assert float(rows[name][2].removeprefix("$")) < 60
        assert rows[name][-4] == longest_wait_minutes
    page = (tmp_path / "elastic.html").read_text()
    assert page.count("<svg") == 4
    assert page.count('style="stroke: var(--third)"') == 3


def test_all_workloads_are_scaled_in_the_first_hours(tmp_path: Path) -> None:
    """The test does not simulate the whole day."""
    path = tmp_path / "morning.yaml"
    text = (ELASTIC / "fixed.yaml").read_text().replace("24h", "9h")
    shared = {name: str(ELASTIC / name) for name in ("shop.yaml", "load.yaml")}
    for name, whole in shared.items():
        text = text.replace(name, whole)
    path.write_text(text)
    outcome = run_experiment(experiment_of(str(path), read_scenario(str(path)))).outcome
    highest = {one.autoscaler: one.highest for one in outcome.pod_autoscalers}
    assert all(count > 2 for count in highest.values() if count is not None)
    assert not outcome.pending


def test_the_table_multiplies_the_cost_of_the_day() -> None:
    """The reports of the runs have another cost per month: that of the nodes at the end."""
    spec = importlib.util.spec_from_file_location("report", ELASTIC / "report.py")
    assert spec is not None
    assert spec.loader is not None
    report = importlib.util.module_from_spec(spec)
    sys.modules["report"] = report  # for its dataclass
    spec.loader.exec_module(report)
    waiting = {"bound": 5, "still_waiting": 0, "median_s": 0, "p95_s": 0, "longest_s": 0}
    day = report.Day("fixed", nodes=[(0, 2)], rate=[(0, 0.5)], replicas=[(0, 1)], waiting=waiting)
    heads, cells = report.rows([day])
    shown = dict(zip(heads, cells, strict=True))
    assert (shown["cost of the day"], shown["30 such days"]) == ("$12.00", "$360")
    assert not any("month" in head for head in heads)
