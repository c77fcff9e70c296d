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


QUOTA = """
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaimTemplate
  metadata: {name: gpu, namespace: default}
  spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
- apiVersion: v1
  kind: ResourceQuota
  metadata: {name: gpus, namespace: default}
  spec: {hard: {gpu.deviceclass.resource.k8s.io/devices: "0"}}
  status:
    hard: {gpu.deviceclass.resource.k8s.io/devices: "0"}
    used: {gpu.deviceclass.resource.k8s.io/devices: "0"}
"""


def test_the_reason_names_the_quota_that_refuses_a_claim(tmp_path):
    """The scheduler says only that the claim was not created yet. The run ends nevertheless."""
    path = tmp_path / "scenario.yaml"
    claims = "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]"
    scenario = SCENARIO.replace("SPEC", claims).replace("duration", f"{QUOTA[1:]}duration")
    path.write_text(scenario)
    experiment = experiment_of(str(path), read_scenario(str(path)))
    pod = run_experiment(experiment, "test", NoProgress()).outcome.pods["default/p"]
    counted = "gpu.deviceclass.resource.k8s.io/devices"
    assert pod.reason == (
        f"ResourceClaim not created yet: exceeded quota: gpus, requested: {counted}=1, "
        f"used: {counted}=0, limited: {counted}=0"
    )
