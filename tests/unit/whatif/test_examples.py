"""The examples can be run, and the totals of openb's tables equal the published figures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fairlead.api.quantity import milli_value, whole_value
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario
from fairlead.whatif.snapshot.snapshot import read_snapshot

EXAMPLES = Path(__file__).parents[3] / "examples"
SCENARIOS = sorted(EXAMPLES.glob("*/scenario.yaml"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.parent.name)
def test_every_scenario_can_be_read(path):
    assert experiment_of(str(path), read_scenario(str(path))).initial


@pytest.mark.parametrize("name", ["store.yaml", "store-nodes-pods.json"])
def test_both_dumps_contain_the_same_cluster(name):
    kinds = Counter(
        each.ref.kind for each in read_snapshot(str(EXAMPLES / "store" / name)).manifests
    )
    assert (kinds["Node"], kinds["Pod"]) == (12, 51)


@pytest.fixture(scope="module")
def openb():
    path = str(EXAMPLES / "openb" / "scenario.yaml")
    return experiment_of(path, read_scenario(path))


def test_the_totals_of_openbs_nodes_are_the_published_figures(openb):
    nodes = [each.value for each in openb.initial if each.ref.kind == "Node"]
    offered = [node["status"]["allocatable"] for node in nodes]
    assert len(nodes) == 1523
    assert sum(milli_value(each["cpu"]) for each in offered) == 125_514_000
    assert sum(whole_value(each.get("openb/gpu-milli", 0)) for each in offered) == 6_212_000
    zones = Counter(n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in nodes)
    assert zones == {"a": 508, "b": 508, "c": 507}


def test_the_totals_of_openbs_pods_are_the_published_figures(openb):
    pods = [step.commands[0].manifest for step in openb.steps]
    requests = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in pods]
    assert len(pods) == 8152
    assert sum(milli_value(each["cpu"]) for each in requests) // 1000 == 85_436
    assert sum(whole_value(each.get("openb/gpu-milli", 0)) for each in requests) == 6_086_800
    classes = Counter(pod["spec"]["priorityClassName"] for pod in pods)
    assert classes == {"latency-sensitive": 4754, "best-effort": 3398}
