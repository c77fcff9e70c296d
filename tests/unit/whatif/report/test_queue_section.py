"""The report's section on queues: shares of the capacity at each time, in a whole run."""

from __future__ import annotations

import json

import pytest

from fairlead.whatif.report.queue_section import queue_section
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

NODES = "nodes,cpu_milli,memory_mib,gpu,model\n4,96000,393216,8,G2\n"
PODS = "pods,qos,cpu_milli,memory_mib,num_gpu,gpu_milli\n1,LS,8000,1024,8,1000\n"


@pytest.fixture
def section(tmp_path):
    """Returns the section of a run: two jobs of one node each, from the start on, and `events`."""

    def run(*events):
        (tmp_path / "nodes.csv").write_text(NODES)
        (tmp_path / "pods.csv").write_text(PODS)
        jobs = {
            "members": [1],
            "runtimes": ["3h"],
            "queues": [{"name": "q", "jobs": 2, "over": "1s"}],
        }
        whole = {
            "cluster": {"trace": {"nodes": "nodes.csv", "pods": "pods.csv", "jobs": jobs}},
            "events": events,
            "duration": "1h",
        }
        path = tmp_path / "scenario.yaml"
        path.write_text(json.dumps(whole))
        experiment = experiment_of(str(path), read_scenario(str(path)))
        nodes = [one.value for one in experiment.initial if one.kind.kind == "Node"]
        outcome = run_experiment(experiment).outcome
        free = [node.name for node in outcome.nodes if not node.pods]
        return queue_section(outcome), nodes, free

    return run


def shares(found):
    """The queue's share at each time in seconds, without times at which it stays the same."""
    [line] = found["lines"]
    steps = list(zip(found["t_s"], line["held"], strict=True))
    return [
        one for one, before in zip(steps, [(None, None), *steps], strict=False)
        if one[1] != before[1]
    ]  # fmt: skip


def test_a_share_is_of_the_nodes_that_exist_at_that_time(section):
    _, nodes, (first, second) = section()
    back = next(node for node in nodes if node["metadata"]["name"] == first)
    found, *_ = section(
        {"at": "20m", "delete": [f"node/{first}", f"node/{second}"]},
        {"at": "40m", "create": back},
    )
    assert found["resource"] == "openb/gpu-milli"
    assert shares(found)[-3:] == [
        (pytest.approx(2, abs=2), 50.0),
        (1200.0, 100.0),
        (2400.0, pytest.approx(66.67)),
    ]


def test_shares_before_the_deletion_of_all_nodes_stay(section):
    _, nodes, _ = section()
    names = [f"node/{node['metadata']['name']}" for node in nodes]
    found, *_ = section({"at": "20m", "delete": names})
    assert max(found["lines"][0]["held"]) == 50.0
    assert shares(found)[-1] == (1200.0, 0.0)
