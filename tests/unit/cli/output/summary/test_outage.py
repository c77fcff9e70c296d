"""The text about an outage."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fairlead.cli.output.summary.simulation import print_simulation
from fairlead.whatif.result.outage_json import outage_json
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

SCENARIO = """\
cluster: {generated: {nodes: 3, zones: 3, allocatable: {cpu: 2}}}
duration: 1h
objects:
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: web, namespace: default}
  spec:
    replicas: 1
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec:
        containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
        affinity:
          nodeAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In,
                values: [zone-a]}]}
            - weight: 50
              preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In,
                values: [zone-b]}]}
events:
- {at: 1m, fail-zone: zone-a}
"""
SECOND = "- {at: 20m, fail-zone: zone-b}\n"


@pytest.mark.parametrize("events", ["", SECOND], ids=["one node", "two nodes in turn"])
def test_pods_of_several_failed_nodes_count_for_each(tmp_path, events):
    """The numbers of the nodes then add up to more than the number of pods."""
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO + events)
    experiment = experiment_of(str(path), read_scenario(str(path)))
    outcome = run_experiment(experiment).outcome
    screen = io.StringIO()
    print_simulation(experiment, outcome, Console(file=screen, width=100))
    assert outcome.outage.concerned == 1
    assert [one.pods for one in outcome.outage.nodes] == [1] * (2 if events else 1)
    says = "Pods that were on several failed nodes in turn count for each of these nodes."
    assert (says in screen.getvalue()) == bool(events)


@pytest.mark.parametrize(
    ("event", "failures"),
    [("flap: node-1@2m/8m, for: 50m", 5), ("fail-zone: zone-a, for: 20m", 1)],
    ids=["five failures", "one failure"],
)
def test_a_row_says_for_how_many_failures_it_stands(tmp_path, event, failures):
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.replace("fail-zone: zone-a", event))
    experiment = experiment_of(str(path), read_scenario(str(path)))
    outcome = run_experiment(experiment).outcome
    screen = io.StringIO()
    print_simulation(experiment, outcome, Console(file=screen, width=100))
    text = screen.getvalue()
    assert outage_json(outcome.outage, outcome.started_at)["nodes"][0]["failures"] == failures
    assert ("1 node failed 5 times, with" in text) == (failures == 5)
    assert ("FAILURES" in text) == (failures == 5)
    assert ("For a node with several failures, BACK is" in text) == (failures == 5)


def test_a_row_of_a_zone_stands_for_one_state(tmp_path):
    """The zone of three nodes stays Normal while one of them fails and returns five times."""
    path = tmp_path / "s.yaml"
    flap = "flap: node-1@2m/8m, for: 50m"
    path.write_text(SCENARIO.replace("zones: 3", "zones: 1").replace("fail-zone: zone-a", flap))
    experiment = experiment_of(str(path), read_scenario(str(path)))
    outcome, screen = run_experiment(experiment).outcome, io.StringIO()
    print_simulation(experiment, outcome, Console(file=screen, width=100))
    assert len(outcome.outage.zones) > 5
    rows = [line for line in screen.getvalue().splitlines() if "nodes/s" in line]
    assert [row.split() for row in rows] == [
        ["zone-a", "0s", "Normal", "0", "to", "1", "of", "3", "0.1", "nodes/s"]
    ]


def test_the_return_of_pods_is_not_stated_if_no_pod_was_on_the_failed_node(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.replace("fail-zone: zone-a", "fail-zone: zone-c"))
    experiment = experiment_of(str(path), read_scenario(str(path)))
    outcome = run_experiment(experiment).outcome
    screen = io.StringIO()
    print_simulation(experiment, outcome, Console(file=screen, width=100))
    assert outcome.outage.concerned == 0
    assert "No pods were evicted because of taints.\n" in screen.getvalue()
    assert "is back" not in screen.getvalue()
