"""Jobs are created from manifests, scheduled, run and completed in a simulated cluster."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import POD, kind_of
from fairlead.engine.batch.configuration_file import shipped_configuration
from fairlead.engine.batch.controller import Batch
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.engine import Engine
from fairlead.engine.kubelet.controller import Kubelets
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.workloads.controller import Workloads
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_767_225_600)


def engine():
    config, cluster = EngineConfig(), Cluster()
    batch = Batch(shipped_configuration("fairlead"), cluster, SilentReporter(), TieBreak(0))
    return Engine(cluster, (Kubelets(config.kubelet), Workloads(config.workloads), batch))


def node(name):
    offered = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": offered, "capacity": offered},
    }


def group(name, members, api):
    return {
        "apiVersion": api,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": members},
    }


def job(name, members):
    """Return a Job of `members` pods that request one CPU and run for a minute."""
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    marks = {"scheduling.k8s.io/group-name": name, "fairlead.dev/run-duration": "60s"}
    pod = {"schedulerName": "kube-batch", "restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"annotations": marks}, "spec": pod}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"parallelism": members, "completions": members, "template": template},
    }


@pytest.fixture(params=["scheduling.volcano.sh/v1beta1", "scheduling.incubator.k8s.io/v1alpha1"])
def world(request):
    """A cluster of two nodes with four CPUs each, and two jobs of six pods."""
    made = SimulatedWorld(engine(), start=START, seed=0)
    made.load([
        node("n1"), node("n2"),
        group("a", 6, request.param), group("b", 6, request.param), job("a", 6), job("b", 6),
    ])  # fmt: skip
    made.api = request.param
    return made


def phases(world, name):
    """Return the phases of a job's pods."""
    pods = world.store.list(POD, "default")
    return {p["status"]["phase"] for p in pods if p["metadata"]["name"].startswith(f"{name}-")}


def status(world, name):
    return world.store.get(kind_of(group(name, 1, world.api)), "default", name)["status"]


def test_jobs_run_one_after_the_other(world):
    world.run(START + seconds(30))
    assert (phases(world, "a"), phases(world, "b")) == ({"Running"}, {"Pending"})
    assert (status(world, "a")["phase"], status(world, "a")["running"]) == ("Running", 6)
    (condition,) = status(world, "b")["conditions"]
    assert (condition["type"], condition["status"]) == ("Unschedulable", "True")
    world.run(START + seconds(90))
    assert (phases(world, "a"), phases(world, "b")) == ({"Succeeded"}, {"Running"})
    world.run(START + seconds(300))
    assert (phases(world, "a"), phases(world, "b")) == ({"Succeeded"}, {"Succeeded"})
    assert status(world, "b")["conditions"][0]["status"] == "False"
    assert status(world, "b")["succeeded"] == 6
