"""Placements without extenders, of pods whose resources an extender checks."""

from __future__ import annotations

import pytest

from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.fit import fit
from fairlead.whatif.planner.new_pod import pod_source
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.inventory import Inventory

GPU = "example.com/gpu"
MEMORY = "example.com/gpu-memory"
CONFIG = f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: http://127.0.0.1:9
  filterVerb: filter
  managedResources:
  - {{name: {GPU}, ignoredByScheduler: true}}
  - {{name: {MEMORY}, ignoredByScheduler: true}}
"""


@pytest.mark.parametrize(
    ("resource", "count"),
    [
        pytest.param(GPU, 2, id="only the node with GPUs takes pods with a GPU"),
        pytest.param(MEMORY, 8, id="a resource that no node reports stays ignored"),
    ],
)
def test_the_scheduler_checks_resources_of_extenders_that_nodes_report(
    snapshot, make, write, resource, count
):
    """Two nodes of 4 cores; one of them has two GPUs."""
    has_gpus = make.node("a")
    has_gpus["status"]["allocatable"][GPU] = "2"
    web = make.workload("ReplicaSet", "web", cpu="1")
    resources = web["spec"]["template"]["spec"]["containers"][0]["resources"]
    resources["requests"][resource] = "1"
    resources["limits"] = {resource: "1"}
    read = snapshot(has_gpus, make.node("b"), web)
    config = read_scheduler_config(write("scheduler.yaml", CONFIG), allow_extenders=True)
    source = pod_source(None, "rs/web", "", Inventory(read.manifests))
    assert fit(ClusterModel(read, config), source, NoProgress()).count == count
