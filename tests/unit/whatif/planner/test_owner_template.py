"""Replacements of pods that differ from the template of their owner."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import READY, deployment

from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node.node_bound import fewest_nodes
from fairlead.whatif.planner.node_drain.drain_planner import PlannedDrain


def stateful_set(make, *, old="1", new="3", strategy=None, revisions=("db-1", "db-2")):
    """A StatefulSet db with two pods of the revision db-1; its template is that of db-2."""
    sts = make.workload("StatefulSet", "db", replicas=2, cpu=new)
    sts["metadata"]["uid"] = "db-uid"
    sts["spec"]["updateStrategy"] = strategy or {"type": "OnDelete"}
    sts["status"] = {"replicas": 2, "currentRevision": "db-1", "updateRevision": "db-2"}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db-uid"}
    views = [
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "namespace": "default",
                "ownerReferences": [{**owner, "controller": True}],
            },
            "revision": number,
            "data": {"spec": {"template": make.workload(name="db", cpu=cpu)["spec"]["template"]}},
        }
        for number, (name, cpu) in enumerate([("db-1", old), ("db-2", new)], 1)
        if name in revisions
    ]
    pods = []
    for number in range(2):
        pod = make.pod(f"db-{number}", cpu=old, node_name="a")
        pod["metadata"] |= {
            "labels": {"app": "db", "controller-revision-hash": "db-1"},
            "ownerReferences": [{**owner, "controller": True}],
        }
        pod["status"]["conditions"] = READY
        pods.append(pod)
    return [sts, *views, *pods]


def new_cpu(model, key):
    """The CPU request of the replacement of a pod, in millicores."""
    return model.replacement(model.cluster.pods[key]).shape.milli_cpu


@pytest.fixture
def model(snapshot, make):
    """The model of a cluster of `objects` and two nodes."""

    def make_model(*objects):
        return ClusterModel(snapshot(make.node("a"), make.node("b"), *objects), SchedulerConfig())

    return make_model


def test_on_delete_recreates_from_the_template(model, make):
    """Pods of the old revision are replaced by pods of the update revision, once."""
    found = model(*stateful_set(make))
    pod = found.cluster.pods["default/db-0"]
    new = found.replacement(pod)
    assert new.shape.milli_cpu == 3000
    assert new.labels["controller-revision-hash"] == "db-2"
    assert new.pod.metadata.name == "db-0"
    assert found.as_replacement(pod).shape is new.shape
    assert found.replacement(new).shape is new.shape


def autoscaler(mode, cpu="2"):
    """A VerticalPodAutoscaler of the StatefulSet."""
    found = {"containerName": "c", "target": {"cpu": cpu}}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
            "updatePolicy": {"updateMode": mode},
        },
        "status": {"recommendation": {"containerRecommendations": [found]}},
    }


@pytest.mark.parametrize(("mode", "cpu"), [("Initial", 2000), ("Off", 1000)])
def test_a_new_pod_gets_the_requests_that_a_vpa_recommends(model, make, mode, cpu):
    """The template and the pods have a request of 1 CPU."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    found = model(*stateful_set(make, strategy=strategy), autoscaler(mode))
    assert new_cpu(found, "default/db-1") == cpu


@pytest.mark.parametrize("mode", ["Recreate", "Off"])
def test_a_vpa_also_changes_pods_of_another_revision(model, make, mode):
    found = model(*stateful_set(make), autoscaler(mode))
    assert new_cpu(found, "default/db-1") == (2000 if mode == "Recreate" else 3000)


def test_a_waiting_pod_keeps_its_spec(model, make):
    """It exists already, so no controller creates it again."""
    objects = stateful_set(make)
    del objects[-1]["spec"]["nodeName"], objects[-1]["status"]
    assert new_cpu(model(*objects), "default/db-1") == 1000


@pytest.mark.parametrize("revisions", [("db-1", "db-2"), (), ("db-2",)])
def test_a_partition_keeps_lower_ordinals(model, make, revisions):
    """Below the partition pods come from the current revision, known or not."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    found = model(*stateful_set(make, strategy=strategy, revisions=revisions))
    assert new_cpu(found, "default/db-0") == 1000
    assert new_cpu(found, "default/db-1") == 3000


def test_priorities_of_the_template_are_resolved(model, make):
    """Admission completes the pod of the template as it does for a real controller."""
    objects = stateful_set(make)
    objects[0]["spec"]["template"]["spec"]["priorityClassName"] = "high"
    found = model(*objects, make.priority_class("high", 1000))
    assert found.replacement(found.cluster.pods["default/db-0"]).priority == 1000


def test_daemonset_pods_are_created_from_the_template(model, make):
    """A pod of an older revision is replaced on its node."""
    agent = make.workload("DaemonSet", "agent", cpu="2")
    agent["metadata"]["uid"] = "agent-uid"
    agent["spec"]["updateStrategy"] = {"type": "OnDelete"}
    pods = [make.pod(f"agent-{name}", node_name=name) for name in "ab"]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "agent-uid"}
    for pod, revision in zip(pods, ("1", "2"), strict=True):
        pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        pod["metadata"]["labels"] = {"app": "agent", "controller-revision-hash": revision}
    view = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": "agent-2",
            "namespace": "default",
            "ownerReferences": [{**owner, "controller": True}],
        },
        "revision": 2,
        "data": {"spec": {"template": agent["spec"]["template"]}},
    }
    found = model(agent, view, *pods)
    assert new_cpu(found, "default/agent-a") == 2000
    new = found.replacement(found.cluster.pods["default/agent-a"])
    assert found.schedule(new).node.name == "a"
    assert new_cpu(found, "default/agent-b") == 1000


def resized(make, generation=2, **annotations):
    """A Deployment of one core whose pod was resized to three."""
    objects = deployment(make, "web", ["a"])
    pod = objects[-1]
    pod["metadata"] |= {"generation": generation, "annotations": annotations}
    pod["spec"]["containers"].append(
        {"name": "injected", "resources": {"requests": {"cpu": "500m"}}}
    )
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "3", "memory": "1Gi"}
    return objects


@pytest.mark.parametrize(
    ("case", "cpu"),
    [({}, 1500), ({"generation": 1}, 3500), ({"vpaUpdates": "cpu request"}, 3500)],
)
def test_replacements_of_resized_pods_have_the_resources_of_the_template(model, make, case, cpu):
    """Changes by admission at creation are kept: injected containers, defaults, VPA's requests."""
    found = model(*resized(make, **case))
    new = found.replacement(found.cluster.pods["default/web-1-0"])
    assert new.shape.milli_cpu == cpu
    assert new.shape.memory == 1 << 30


def test_drains_and_bounds_count_the_new_pods(planner, make):
    """A resized pod moves to a node whose room suffices only for a pod of the template."""
    objects = resized(make)
    plan = planner(make.node("a", cpu="4"), make.node("b", cpu="2"), *objects)
    assert fewest_nodes(plan.model, ["a", "b"]).count == 1
    assert not plan.lacking_elsewhere("a")
    assert isinstance(plan.empty("a"), PlannedDrain)


def test_a_bound_ignores_the_resources_that_a_resized_pod_reports(model, make):
    """The resources in the status of a pod are those of the old pod, not of the new one."""
    objects = resized(make)
    app = objects[-1]["spec"]["containers"][0]
    report = {"name": app["name"], "resources": app["resources"]}
    objects[-1]["status"]["containerStatuses"] = [report]
    found = model(*objects, *deployment(make, "api", ["b"]))
    assert fewest_nodes(found, ["a", "b"]).count == 1


def test_the_number_of_pods_can_block_a_drain(planner, make):
    """Node b can run one pod, but two leave node a."""
    small = make.node("b")
    small["status"]["allocatable"]["pods"] = "1"
    pods = deployment(make, "web", ["a", "a"], cpu="100m")
    assert planner(make.node("a"), small, *pods).lacking_elsewhere("a") == "pods"


def test_a_larger_template_blocks_a_drain(planner, make):
    """The pods of three cores do not fit where those of one core would."""
    plan = planner(make.node("a", cpu="8"), make.node("b", cpu="2"), *stateful_set(make))
    assert plan.lacking_elsewhere("a") == "cpu"
    assert not isinstance(plan.empty("a"), PlannedDrain)


def test_a_pod_whose_template_has_scheduling_gates_is_assigned_to_a_node_anew(planner, make):
    """The program that removed the gate chose the node of the pod, but not that of the next pod."""
    web = deployment(make, "web", ["a", "b"])
    for owner in web[:2]:
        owner["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/topology"}]
    for pod in web[2:]:
        pod["metadata"]["generation"] = 2
        pod["spec"]["nodeSelector"] = {HOSTNAME: pod["spec"]["nodeName"], "rack": "1"}
    nodes = [make.node(name, **{HOSTNAME: name, "rack": "1"}) for name in ("a", "b")]
    others = [make.node("c", **{HOSTNAME: "c", "rack": "2"})]
    drain = planner(*nodes, *others, *web).empty("a")
    assert isinstance(drain, PlannedDrain)
    assert [(move.pod, move.target) for move in drain.moves] == [("default/web-1-0", "b")]
