"""Fixtures that build clusters for planners and read their answers."""

from __future__ import annotations

import pytest

from fairlead.api.codec import as_json
from fairlead.api.objects import PodDisruptionBudget
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.workloads.disruption.budget_room import BudgetRoom
from fairlead.whatif.outcome.image_platform import SAME_PLATFORM
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node_drain.autoscaler_rule import AutoscalerRules
from fairlead.whatif.planner.node_drain.drain_planner import DrainPlanner
from fairlead.whatif.planner.rebalance import Rebalancer
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.progress import NoProgress

READY = [{"type": "Ready", "status": "True"}]
DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds-uid"}


def deployment(make, name, nodes, *, cpu="1", **spec):
    """A Deployment whose ready replicas are on `nodes`, with its ReplicaSet and pods."""
    labels = {"app": name, "pod-template-hash": "1"}
    web = make.workload("Deployment", name, replicas=len(nodes), cpu=cpu, **spec)
    owned = make.workload("ReplicaSet", f"{name}-1", replicas=len(nodes), cpu=cpu, **spec)
    owned["spec"]["selector"] = web["spec"]["selector"]
    owned["spec"]["template"] = {**web["spec"]["template"], "metadata": {"labels": labels}}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": f"{name}-uid"}
    web["metadata"]["uid"] = f"{name}-uid"
    owned["metadata"] |= {
        "uid": f"{name}-1-uid",
        "ownerReferences": [{**owner, "controller": True}],
    }
    pods = []
    for number, node in enumerate(nodes):
        pod = make.pod(f"{name}-1-{number}", cpu=cpu, node_name=node, owner=f"{name}-1", **spec)
        pod["metadata"]["labels"] = labels
        pod["metadata"]["ownerReferences"][0]["uid"] = f"{name}-1-uid"
        pod["status"]["conditions"] = READY
        pods.append(pod)
    return [web, owned, *pods]


def job_of(make, *nodes, **spec):
    """A Job with a pod on each of `nodes`."""
    labels = {"batch.kubernetes.io/controller-uid": "job-1"}
    found = make.workload("Job", "j", restartPolicy="Never")
    found["apiVersion"] = "batch/v1"
    found["metadata"]["uid"] = "job-1"
    found["spec"]["template"]["metadata"]["labels"] = labels
    count = len(nodes)
    selector = {"matchLabels": labels}
    found["spec"] = {
        "template": found["spec"]["template"], "selector": selector, "parallelism": count,
        "completions": count, **spec,
    }  # fmt: skip
    found["status"] = {"active": count, "startTime": "2026-01-01T00:00:00Z"}
    pods = []
    for number, node in enumerate(nodes):
        pod = make.pod(f"j-{number}", node_name=node, owner="j", restartPolicy="Never")
        pod["metadata"]["labels"] = labels
        pod["metadata"]["ownerReferences"][0] |= {
            "apiVersion": "batch/v1", "kind": "Job", "uid": "job-1",
        }  # fmt: skip
        pods.append(pod)
    return [found, *pods]


def least_cpu(cpu):
    """A LimitRange that refuses containers that request less than `cpu`."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "least", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "min": {"cpu": cpu}}]},
    }


def pod_quota(pods):
    """A ResourceQuota of `pods` pods."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": pods}},
    }


def manifests(version, *objects):
    """Return `objects`, all of the API `version`, as a dump contains them."""
    return [{"apiVersion": version, "kind": type(one).__name__, **as_json(one)} for one in objects]


def budget(name, **spec):
    """Return a budget for the pods of the Deployment with this name."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**spec, "selector": {"matchLabels": {"app": name}}},
    }


def with_priority(objects, value):
    """Return `objects`, in which all pods and templates of pods have the priority `value`."""
    for one in objects:
        spec = one["spec"] if one["kind"] == "Pod" else one["spec"]["template"]["spec"]
        spec |= {"priorityClassName": "spare"}
        if one["kind"] == "Pod":
            spec["priority"] = value
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": "spare"}, "value": value,
        },
        *objects,
    ]  # fmt: skip


def overprovisioned(make, priority):
    """Return three full nodes, each with a pod of a Deployment and a pod that keeps room free."""
    nodes = [make.node(name, cpu="2") for name in "abc"]
    web, spare = deployment(make, "web", "abc"), deployment(make, "spare", "abc")
    return [*nodes, budget("web", maxUnavailable=1), *web, *with_priority(spare, priority)]


def daemon_pod(make, node, cpu="500m"):
    """A pod of a DaemonSet, which the DaemonSet controller has pinned to `node`."""
    pod = make.pod(f"agent-{node}", cpu=cpu, node_name=node)
    name = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    pinned = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    pod["spec"]["affinity"] = {"nodeAffinity": pinned}
    pod["metadata"]["ownerReferences"] = [{**DAEMON, "controller": True}]
    pod["status"]["conditions"] = READY
    return pod


@pytest.fixture
def planner(snapshot):
    """Returns a planner of drains for a cluster of `objects`."""

    def make_planner(*objects):
        model = ClusterModel(snapshot(*objects), SchedulerConfig())
        return DrainPlanner(model, BudgetRoom(model.objects, model.now))

    return make_planner


@pytest.fixture
def experiment(snapshot):
    """Returns the simulation of a cluster of `objects`."""

    def make_experiment(*objects):
        read = snapshot(*objects)
        return Experiment(
            title="t", source="t", initial=read.manifests, start=read.taken_at, steps_begin=None
        )

    return make_experiment


def rebalanced(planner, moves=20, ignored=(), images=SAME_PLATFORM):
    """Returns the plan of `rebalance` with at most `moves` moves."""
    model = planner.model
    budgets = [one for one in model.objects if isinstance(one, PodDisruptionBudget)]
    rules = AutoscalerRules(AutoscalingOptions(), budgets, model.now, ignored)
    return Rebalancer(planner, rules, images).run(moves, NoProgress())
