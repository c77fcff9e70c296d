"""Pods that a plugin excludes from the queue: the outcome has a reason without an attempt."""

from __future__ import annotations

import pytest

from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

SCENARIO = """
title: waiting
cluster: {generated: {nodes: 1, allocatable: {cpu: "4", memory: 4Gi}}}
objects:
- apiVersion: v1
  kind: Pod
  metadata: {name: p, namespace: default}
  spec:
    SPEC
    containers: [{name: c, image: i}]
duration: 1m
"""


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            "resourceClaims: [{name: gpu, resourceClaimName: none}]",
            'could not find ResourceClaim "default/none"',
        ),
        (
            "resourceClaims: [{name: gpu, resourceClaimTemplateName: none}]",
            'pod "default/p": ResourceClaim not created yet',
        ),
        ("schedulingGates: [{name: example.com/later}]", "example.com/later"),
        ("nodeSelector: {no: such}", "0/1 nodes are available"),
        ("restartPolicy: Always", ""),
    ],
)
def test_a_waiting_pod_has_a_reason(tmp_path, spec, why):
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.replace("SPEC", spec))
    experiment = experiment_of(str(path), read_scenario(str(path)))
    pod = run_experiment(experiment, "test", NoProgress()).outcome.pods["default/p"]
    assert why in pod.reason
    assert bool(pod.reason) is not pod.is_placed
