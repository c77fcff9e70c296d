"""Figures of an earlier run, and the detection of regressions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairlead.bench.baseline import regressions
from fairlead.bench.suite import DEFAULT_NAMES, NAMES
from fairlead.cli.commands.bench import bench
from fairlead.whatif.input.error import InputError

RELEASES = Path(__file__).parents[3] / "benchmarks" / "releases"


def result(name="a", **figures):
    return {"workload": name, "cpu_seconds": 1.0, "peak_mib": 100.0, **figures}


def test_only_more_than_15_percent_is_a_regression():
    earlier = {"a": result()}
    assert regressions([result(cpu_seconds=1.14, peak_mib=114.0)], earlier) == []
    assert regressions([result(cpu_seconds=1.2)], earlier) == [
        "a: 1.20 s of CPU time, 20% more than 1.00"
    ]
    assert regressions([result(peak_mib=150.0)], earlier) == [
        "a: 150.00 MiB at the peak, 50% more than 100.00"
    ]


def test_a_figure_that_one_of_the_runs_lacks_is_not_compared():
    earlier = {"a": result(cpu_seconds=None)}
    assert regressions([result(cpu_seconds=9.0), result("b", cpu_seconds=9.0)], earlier) == []


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '[{"workload": "a", "peak_mib": "x"}]'])
def test_a_baseline_that_is_not_a_result_is_refused_before_anything_runs(tmp_path, text):
    path = tmp_path / "earlier.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"earlier\.json: not "):
        bench(baseline=path)
    with pytest.raises(InputError, match="No such file"):
        bench(baseline=tmp_path / "absent.json")


def test_the_figures_of_releases_can_be_compared():
    for path in sorted(RELEASES.glob("*.json")):
        figures = {one["workload"]: one for one in json.loads(path.read_text())}
        assert figures.keys() <= set(NAMES)
        assert regressions(list(figures.values()), figures) == []


def test_long_workloads_run_only_if_they_are_named():
    assert set(NAMES) - set(DEFAULT_NAMES) == {
        "PreemptionFull/5000Nodes_150000Pods",
        "PreemptionFull/5000Nodes_150000Pods/CSIVolumes",
        "PreemptionFull/5000Nodes_150000Pods/PodAntiAffinity",
        "PreemptionFull/5000Nodes_150000Pods/TopologySpread",
        "Reclaim/5000Nodes_2500Gangs",
        "SchedulingBasic/100000Nodes_10000Pods",
        "WhatIf/100000Nodes_1000000Pods/Drain",
    }
