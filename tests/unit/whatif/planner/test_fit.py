"""fit: n pods fit and the next one does not, with its reason, quotas, priorities and claims."""

from __future__ import annotations

import re
from collections import Counter

import pytest
import yaml
from tests.unit.whatif.planner.conftest import budget, deployment, job_of, least_cpu

from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.framework.profile import PointPlugins, Profile
from fairlead.engine.framework.user_plugin.plugin_factory import factory_of, with_plugin
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.fit import PODS_MAX, BreachedBudget, fit, fit_answer
from fairlead.whatif.planner.new_pod import pod_source, read_pod_file
from fairlead.whatif.planner.waiting_pods import WaitingPodCounts
from fairlead.whatif.question import what_if
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.inventory import Inventory

ZONE = "topology.kubernetes.io/zone"
SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
]

_OF_TEMPLATE = ("accessModes", "resources")


@pytest.fixture
def fitted(snapshot):
    """Returns the result for pods like `like` in a cluster of `objects`."""

    def fit_pods(
        like,
        *objects,
        preempts=False,
        pods_max=PODS_MAX,
        pod_file=None,
        config=SchedulerConfig(),  # noqa: B008 - frozen
    ):
        read = snapshot(*objects)
        source = pod_source(pod_file, like, "", Inventory(read.manifests))
        model = ClusterModel(read, config)
        return fit(model, source, NoProgress(), pods_max, preempts=preempts)

    return fit_pods


def autoscaler(most):
    """A HorizontalPodAutoscaler of deploy/default/web."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": most,
        },
    }


def quota(**hard):
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": hard},
    }


def test_pods_fit_until_no_node_has_room(fitted, make):
    """Two nodes of 4 and 2 cores, one core taken: five pods of one core fit."""
    found = fitted(
        "deploy/web",
        make.node("a"),
        make.node("b", cpu="2"),
        make.pod("other", node_name="a"),
        make.workload(replicas=0),
    )
    assert (found.count, found.by_node) == (5, {"a": 3, "b": 2})
    assert found.refused_by == "scheduling"
    assert [(one.plugin, one.reason, one.nodes) for one in found.refusals] == [
        ("NodeResourcesFit", "Insufficient cpu", 2)
    ]


def test_spread_constraints_count(fitted, make):
    """The full zone z1 stops the fourth pod although z2 has room: skew 1 allows 2 against 1."""
    found = fitted(
        "deploy/web",
        make.node("a", cpu="1", **{ZONE: "z1"}),
        make.node("b", cpu="8", **{ZONE: "z2"}),
        make.workload(replicas=0, topologySpreadConstraints=SPREAD),
    )
    assert found.count == 3
    assert {one.plugin for one in found.refusals} == {"NodeResourcesFit", "PodTopologySpread"}


def test_a_quota_stops_the_count_with_the_message_of_admission(fitted, make):
    found = fitted("deploy/web", make.node(cpu="64"), make.workload(replicas=0), quota(pods="3"))
    assert (found.count, found.refused_by) == (3, "admission")
    assert "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3" in found.stop


def test_a_limit_range_that_makes_the_pods_invalid_stops_the_count(fitted, make):
    """The default limit is below the request of the template."""
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "limits", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "500m"}}]},
    }
    found = fitted("deploy/web", make.node("a"), limits, make.workload(replicas=0))
    assert (found.count, found.refused_by) == (0, "admission")
    assert "must be less than or equal to cpu limit of 500m" in found.stop


def test_pending_pods_are_placed_first(fitted, make):
    found = fitted(
        "deploy/web", make.node(), make.pod("first", cpu="3"), make.pod("big", cpu="9"),
        make.workload(replicas=0),
    )  # fmt: skip
    assert (found.count, found.waiting) == (1, WaitingPodCounts(placed=1, without_node=1))


def test_pending_pods_that_fit_nowhere_are_counted(snapshot, make):
    read = snapshot(make.node(), make.pod("big", cpu="9"), make.workload(replicas=0))
    model = ClusterModel(read, SchedulerConfig())
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    answer = fit_answer(fit(model, source, NoProgress()), source, model, "dump", ())
    assert answer.findings[1:] == ("1 pending pod found no node.",)


def test_waiting_pods_preempt_as_the_scheduler_does(fitted, make):
    """The urgent pod preempts two pods. One of them is created again, on the other node."""
    found = fitted(
        "deploy/web",
        make.node("a"), make.node("b", cpu="2"),
        *deployment(make, "app", ["a"]),
        make.pod("bare", cpu="3", node_name="a"),
        make.priority_class("high", 1000),
        make.pod("urgent", cpu="4", priorityClassName="high"),
        make.workload(replicas=0),
    )  # fmt: skip
    assert found.waiting == WaitingPodCounts(placed=1, preempted=2, lost=1)
    assert found.by_node == {"b": 1}
    assert not found.victims


def test_pods_of_lower_priority_are_preempted_only_with_the_option(fitted, make):
    objects = (
        make.node(),
        make.pod("low", cpu="4", node_name="n"),
        make.priority_class("high", 1000),
        make.workload(replicas=0, priorityClassName="high"),
    )
    without = fitted("deploy/web", *objects)
    assert (without.count, without.fits_by_preemption) == (0, True)
    found = fitted("deploy/web", *objects, preempts=True)
    assert (found.count, found.fits_by_preemption) == (4, False)
    assert [pod.key for pod in found.victims] == ["default/low"]


NO_RESOURCES_FILTER = SchedulerConfig(
    profiles=(Profile(points={"Filter": PointPlugins((), ("NodeResourcesFit",))}),)
)


@pytest.mark.parametrize(
    ("score", "count", "refusing"),
    [
        pytest.param(PointPlugins(), 7, 1, id="the best score is that of a full node"),
        pytest.param(PointPlugins((), ("*",)), 8, 2, id="all nodes have the same score"),
    ],
)
def test_the_count_ends_where_a_kubelet_refuses_what_the_scheduler_lets_pass(
    fitted, make, score, count, refusing
):
    """Two kubelets admit eight pods. Without the filter, the scheduler can choose a full node."""
    points = {"Filter": PointPlugins((), ("NodeResourcesFit",)), "Score": score}
    found = fitted(
        "deploy/web",
        make.node("a"),
        make.node("b"),
        make.workload(replicas=0),
        config=SchedulerConfig(profiles=(Profile(points=points),)),
    )
    assert (found.count, found.refused_by) == (count, "kubelet")
    assert found.stop == "the scheduler chooses a node whose kubelet refuses the pod: OutOfcpu"
    assert [(one.plugin, one.reason, one.nodes) for one in found.refusals] == [
        ("kubelet", "OutOfcpu", refusing)
    ]


def test_a_pod_that_the_kubelet_refuses_leaves_no_trace_in_the_model(snapshot, make):
    """The usage of the node and the waiting pod are as before the refused placement."""
    read = snapshot(make.node("a", cpu="1"), make.pod("x", node_name="a"), make.pod("waits"))
    model = ClusterModel(read, NO_RESOURCES_FILTER)
    [pod] = model.waiting_pods()
    before = list(model.node("a").requested)
    decision = model.schedule(pod)
    assert decision.plugins == ("kubelet",)
    assert list(model.node("a").requested) == before
    assert [one.key for one in model.waiting_pods()] == [pod.key]


def test_a_refused_pod_does_not_free_the_host_port_of_another_pod(snapshot, make):
    """Another profile, whose filter NodePorts is enabled, must still find the port in use."""
    ports = [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    there = make.pod("x", node_name="a", containers=ports)
    read = snapshot(make.node("a"), there, make.pod("waits", containers=ports))
    config = SchedulerConfig(
        profiles=(Profile(points={"Filter": PointPlugins((), ("NodePorts",))}),)
    )
    model = ClusterModel(read, config)
    [pod] = model.waiting_pods()
    before = list(model.node("a").used_ports)
    assert model.schedule(pod).plugins == ("kubelet",)
    assert before
    assert list(model.node("a").used_ports) == before


def test_a_critical_pod_does_not_fit_if_the_kubelet_would_end_other_pods(snapshot, make):
    """A kubelet ends less important pods for a critical pod; a plan must not count on this."""
    critical = make.pod("waits", priority=2_000_000_000)
    read = snapshot(make.node("a", cpu="1"), make.pod("x", node_name="a"), critical)
    model = ClusterModel(read, NO_RESOURCES_FILTER)
    [pod] = model.waiting_pods()
    assert "it would end other pods" in model.schedule(pod).message


@pytest.mark.parametrize(("disabled", "count"), [((), 4), (("DefaultPreemption",), 0)])
def test_the_option_has_no_effect_on_a_profile_that_does_not_preempt(fitted, make, disabled, count):
    objects = (
        make.node(),
        make.pod("low", cpu="4", node_name="n"),
        make.priority_class("high", 1000),
        make.workload(replicas=0, priorityClassName="high"),
    )
    profile = Profile(points={"PostFilter": PointPlugins((), disabled)})
    config = SchedulerConfig((profile,))
    found = fitted("deploy/web", *objects, preempts=True, config=config)
    assert (found.count, found.lacks_preemption) == (count, bool(disabled))


def test_preemption_is_not_proposed_if_it_would_not_place_the_pod(fitted, make):
    objects = (make.node(), make.pod("equal", cpu="4", node_name="n"), make.workload(replicas=0))
    assert not fitted("deploy/web", *objects).fits_by_preemption


def test_the_answer_names_budgets_that_preemption_breaches(fitted, make):
    """Both pods of the budget are preempted, but it allows one eviction."""
    objects = (
        make.node(),
        *deployment(make, "app", ["n", "n"], cpu="2"),
        budget("app", maxUnavailable=1),
        make.priority_class("high", 1000),
        make.workload(replicas=0, priorityClassName="high"),
    )
    assert not fitted("deploy/web", *objects, preempts=True, pods_max=2).breached
    found = fitted("deploy/web", *objects, preempts=True)
    assert found.breached == [BreachedBudget("default/app", 2, 1)]


def test_each_pod_of_a_stateful_set_has_a_claim(fitted, make):
    """The claims wait for their pods, and the volumes of the class can be made in zone z1 only."""
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "example.com/local",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1"]}]}],
    }
    stateful_set = make.workload("StatefulSet", "db", replicas=0)
    stateful_set["spec"]["volumeClaimTemplates"] = [
        {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    ]
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    found = fitted("sts/db", *nodes, storage_class, stateful_set)
    assert found.by_node == {"a": 4}
    assert not found.disks


@pytest.mark.parametrize("is_written", [False, True])
def test_a_claim_that_an_earlier_pod_of_the_name_left_is_used_again(
    fitted, make, write, is_written
):
    """A StatefulSet keeps the claims of pods that it deletes. The volume is in the full zone z1."""
    name = "db-0" if is_written else "db-1"
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"data-{name}",
            "namespace": "default",
            "uid": "c",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "pv",
        },
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv", "labels": {ZONE: "z1"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.example", "volumeHandle": "v"},
            "claimRef": {"namespace": "default", "name": f"data-{name}", "uid": "c"},
        },
    }
    db = make.workload("StatefulSet", "db", replicas=1)
    db["spec"]["volumeClaimTemplates"] = [
        {"metadata": {"name": "data"}, "spec": {key: claim["spec"][key] for key in _OF_TEMPLATE}}
    ]
    full = make.pod("full", node_name="a", cpu="4")
    nodes = [make.node("a", **{ZONE: "z1"}), make.node("b", **{ZONE: "z2"})]
    objects = [*nodes, full, claim, volume]
    if is_written:
        found = fitted(None, *objects, pod_file=write("db.json", db))
    else:
        found = fitted("sts/db", *objects, db)
    assert (found.count, found.refused_by) == (0, "scheduling")
    assert [(one.plugin, one.nodes) for one in found.refusals] == [
        ("NodeResourcesFit", 1),
        ("VolumeZone", 1),
    ]


@pytest.mark.parametrize(("mode", "disks"), [("ReadWriteOnce", 1), ("ReadWriteMany", 0)])
def test_pods_that_share_a_disk_of_one_node_are_noted(fitted, make, mode, disks):
    """The scheduler places them on several nodes, but the disk is attached to one node."""
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "disk",
            "namespace": "default",
            "uid": "disk",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"accessModes": [mode], "volumeName": "pv"},
    }
    disk = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "accessModes": [mode],
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
            "claimRef": {"namespace": "default", "name": "disk", "uid": "disk"},
        },
    }
    nodes = [make.node("a"), make.node("b")]
    found = fitted("deploy/web", *nodes, make.workload(replicas=0, volumes=[volume]), claim, disk)
    assert found.count == 8
    assert found.disks == ["default/disk"] * disks


def test_a_file_with_a_pod_can_be_the_template(fitted, make, write):
    found = fitted(None, make.node(), pod_file=write("pod.json", make.pod("p", cpu="2")))
    assert found.count == 2


@pytest.mark.parametrize(
    ("kind", "field"),
    [("Pod", "spec.containers"), ("Deployment", "spec.template.spec.containers")],
)
def test_a_file_with_a_pod_without_containers_is_refused(snapshot, make, write, kind, field):
    """Such a pod requests nothing, so as many of them would fit as nodes allow pods."""
    pod, web = make.pod("p", containers=[]), make.workload(containers=[])
    path = str(write("new.json", pod if kind == "Pod" else web))
    with pytest.raises(InputError, match=f"{field}: Required value"):
        pod_source(path, None, "", Inventory(snapshot(make.node("n")).manifests))


def test_copies_of_a_pod_lack_its_ephemeral_containers(fitted, make):
    """`kubectl debug` adds them to running pods; the API server refuses them in new pods."""
    debugged = make.pod("p", cpu="1", node_name="a", ephemeralContainers=[{"name": "debug"}])
    assert fitted("pod/p", make.node("a", cpu="4"), debugged).count == 3


def test_ephemeral_containers_of_a_template_are_refused(fitted, make):
    """The API server refuses them in workloads, so it would create no pod of this template."""
    web = make.workload(ephemeralContainers=[{"name": "debug"}])
    with pytest.raises(InputError, match="ephemeral containers not allowed in pod template"):
        fitted("deploy/web", make.node(), web)


def test_the_count_can_be_limited(fitted, make):
    found = fitted("deploy/web", make.node(), make.workload(replicas=0), pods_max=2)
    assert (found.count, found.refused_by) == (2, "limit")


@pytest.mark.parametrize("cores", [(4, 4, 4), (3, 5, 2), (1, 1, 7)])
def test_a_simulation_places_exactly_the_reported_number_of_pods(snapshot, make, cores):
    """If the workload is scaled up by this number, all pods run; with one more pod, one waits."""
    zones = ("z1", "z2", "z3")
    objects = [
        *(make.node(f"n{i}", str(cpu), **{ZONE: zones[i]}) for i, cpu in enumerate(cores)),
        make.workload(replicas=0, topologySpreadConstraints=SPREAD),
    ]
    read = snapshot(*objects)
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    count = fit(ClusterModel(read, SchedulerConfig()), source, NoProgress()).count
    for more in (0, 1):
        change = ClusterChange(scale=(f"deploy/web={count + more}",))
        assert len(what_if(read, change).changed.pending) == more


def test_the_answer_states_the_total_replicas(snapshot, make):
    read = snapshot(make.node(), make.workload(replicas=1))
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    model = ClusterModel(read, SchedulerConfig())
    found = fit_answer(fit(model, source, NoProgress()), source, model, "dump.yaml", ()).to_json()
    assert found["verdict"].endswith("fit, on 1 node: 5 replicas in all, 1 today.")
    assert found["replicas_today"] == 1


def test_replicas_that_a_paused_deployment_never_created_do_not_count(snapshot, make):
    workload = make.workload(replicas=1)
    workload["spec"]["paused"] = True
    read = snapshot(make.node(), workload)
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    model = ClusterModel(read, SchedulerConfig())
    found = fit_answer(fit(model, source, NoProgress()), source, model, "dump.yaml", ()).to_json()
    assert found["verdict"].endswith("fit, on 1 node.")


@pytest.mark.parametrize(
    ("most", "findings"),
    [
        (
            4,
            ["HorizontalPodAutoscaler default/web allows at most 4 replicas (maxReplicas)."],
        ),
        (5, []),
    ],
)
def test_the_answer_says_that_an_autoscaler_allows_fewer_replicas(snapshot, make, most, findings):
    """Four more pods fit beside the first."""
    read = snapshot(make.node(), make.workload(replicas=1), autoscaler(most))
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    model = ClusterModel(read, SchedulerConfig())
    found = fit_answer(fit(model, source, NoProgress()), source, model, "dump.yaml", ()).to_json()
    assert found["count"] == 4
    assert [one for one in found["findings"] if "Autoscaler" in one] == findings


@pytest.mark.parametrize(("policy", "is_stated"), [("OrderedReady", True), ("Parallel", False)])
def test_the_answer_names_the_pod_that_a_stateful_set_waits_for(snapshot, make, policy, is_stated):
    db = make.workload("StatefulSet", "db", replicas=1)
    db["metadata"]["uid"] = "db"
    db["spec"]["podManagementPolicy"] = policy
    pod = make.pod("db-0", node_name="n", owner="db")
    pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    read = snapshot(make.node(), db, pod)
    source = pod_source(None, "sts/db", "", Inventory(read.manifests))
    model = ClusterModel(read, SchedulerConfig())
    found = fit_answer(fit(model, source, NoProgress()), source, model, "dump.yaml", ()).to_json()
    assert found["count"]
    sentence = (
        "The StatefulSet creates no further pod until default/db-0 is ready (podManagementPolicy)."
    )
    assert (sentence in found["findings"]) is is_stated


@pytest.mark.parametrize(
    ("partition", "newest", "is_stated"),
    [(3, "db-2", True), (1, "db-2", False), (3, "db-1", False)],
)
def test_the_answer_says_that_the_dump_lacks_the_older_template(
    snapshot, make, partition, newest, is_stated
):
    """With one replica, the next pod is db-1. Pods below the partition get the older template."""
    db = make.workload("StatefulSet", "db", replicas=1, cpu="1")
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    db["spec"]["updateStrategy"] = rolling
    db["status"] = {"currentRevision": "db-1", "updateRevision": newest}
    read = snapshot(make.node("a"), db)
    model = ClusterModel(read, SchedulerConfig())
    source = pod_source(None, "sts/db", "", read.inventory())
    result = fit(model, source, NoProgress())
    answer = fit_answer(result, source, model, "dump", ())
    words = (
        "New pods of sts/default/db with numbers below 3 get the template of its revision db-1 "
        "(partition of the updateStrategy). The dump lacks this ControllerRevision, so the answer "
        "about these pods assumes the newest template."
    )
    assert (words in answer.findings) == is_stated
    assert any("ControllerRevision" in one for one in answer.findings) == is_stated


def test_the_answer_names_number_reason_and_places(snapshot, make):
    read = snapshot(make.node(), make.workload(replicas=0))
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    model = ClusterModel(read, SchedulerConfig())
    found = fit_answer(fit(model, source, NoProgress()), source, model, "dump.yaml", ()).to_json()
    assert found["verdict"] == "4 more pods of deploy/default/web fit, on 1 node."
    assert found["findings"] == [
        "The next pod is not placed: 0/1 nodes are available: 1 Insufficient cpu."
    ]
    assert found["nodes"] == [{"node": "n", "zone": "", "pods": 4}]
    assert found["refusals"] == [
        {"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 1, "change": ""}
    ]


@pytest.mark.parametrize(
    ("cpu", "change"),
    [
        ("1500m", "n: lower the cpu request from 1500m to 1"),
        ("3", "add a node like n"),
        ("64", "no node is large enough; the largest has 4 cpu"),
    ],
)
def test_a_pod_that_fits_nowhere_would_fit_after_a_change(snapshot, make, cpu, change):
    """A request is not lowered by more than half if a new node would take the pod.

    A request of 64 cores is not lowered for a node with 4 cores.
    """
    used = make.pod("used", node_name="n", cpu="3")
    read = snapshot(make.node(), used, make.workload(cpu=cpu, replicas=0))
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    model = ClusterModel(read, SchedulerConfig())
    found = fit_answer(fit(model, source, NoProgress()), source, model, "dump.yaml", ()).to_json()
    assert [one["change"] for one in found["refusals"]] == [change]


@pytest.mark.parametrize(
    ("least", "change"),
    [("1", "n: lower the cpu request from 1500m to 1"), ("1100m", "n: delete pod default/used")],
)
def test_no_change_lowers_a_request_below_a_minimum(fitted, make, least, change):
    """The LimitRange refuses pods that request less than `least`."""
    used = make.pod("used", node_name="n", cpu="3")
    web = make.workload(cpu="1500m", replicas=0)
    found = fitted("deploy/web", make.node(), used, least_cpu(least), web)
    assert [one.change for one in found.refusals] == [change]


@pytest.mark.parametrize("revision", ["\u00b2", "9" * 5_000], ids=["superscript", "long"])
def test_a_revision_that_is_no_number_counts_as_the_oldest(snapshot, make, revision):
    old, new = (
        make.workload("ReplicaSet", name, cpu=cpu) for name, cpu in (("a", "3"), ("b", "1"))
    )
    deployment = make.workload("Deployment")
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web"}
    for one, text in ((old, revision), (new, "1")):
        notes = {"deployment.kubernetes.io/revision": text}
        one["metadata"] |= {"ownerReferences": [owner | {"controller": True}], "annotations": notes}
    read = snapshot(make.node("n"), deployment, old, new)
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    assert source.owner["name"] == "b"


def test_pods_of_a_custom_resource_are_like_one_of_its_pods(snapshot, make):
    """A CloneSet has no template that Fairlead reads; the node has room for two more pods."""
    api = "apps.kruise.io/v1alpha1"
    meta = {"name": "web", "namespace": "default", "uid": "web-uid"}
    owner = {"apiVersion": api, "kind": "CloneSet", "metadata": meta}
    pod = make.pod("web-1", cpu="1", node_name="n", owner="web")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": api, "kind": "CloneSet"}
    read = snapshot(make.node("n", cpu="3"), owner, pod)
    source = pod_source(None, "cloneset/web", "", Inventory(read.manifests))
    model = ClusterModel(read, SchedulerConfig())
    found = fit_answer(fit(model, source, NoProgress()), source, model, "dump.yaml", ()).to_json()
    assert found["verdict"] == "2 more pods of cloneset/default/web fit, on 1 node."


FIT = "fit, on 1 node"


def _replica(make, name, owner, namespace="shop", created="2026-01-01T00:00:00Z", **fields):
    """A pod whose controller (`KIND/NAME`) is not in the dump."""
    kind, _, controller = owner.partition("/")
    pod = make.pod(name, namespace, **fields)
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": controller, "uid": controller}
    meta = pod["metadata"]
    meta["creationTimestamp"] = created
    meta["ownerReferences"] = [{**reference, "controller": True}]
    if kind == "ReplicaSet":
        meta["labels"] = {"pod-template-hash": controller.rpartition("-")[2]}
    return pod


@pytest.mark.parametrize(
    ("like", "expected"),
    [
        ("deploy/shop/web", f"2 more pods of deploy/shop/web {FIT}: 4 replicas in all, 2 today."),
        ("deployment/web", f"2 more pods of deploy/shop/web {FIT}: 4 replicas in all, 2 today."),
        ("rs/shop/web-b", f"2 more pods of rs/shop/web-b {FIT}: 3 replicas in all, 1 today."),
        ("sts/shop/db", f"4 more pods of sts/shop/db {FIT}: 5 replicas in all, 1 today."),
        ("cronjob/shop/nightly", f"4 more pods of cronjob/shop/nightly {FIT}."),
        ("cloneset/shop/cache", f"4 more pods of cloneset/shop/cache {FIT}."),
    ],
)  # fmt: skip
def test_a_workload_that_only_its_pods_name_is_counted(snapshot, make, like, expected):
    """The dump has pods and nodes only; the newest pod is the template."""
    pods = [
        _replica(make, "web-a-1", "ReplicaSet/web-a", cpu="100m", node_name="n"),
        _replica(make, "web-b-1", "ReplicaSet/web-b", created="2026-02-01T00:00:00Z", cpu="2",
                 node_name="n"),
        _replica(make, "db-0", "StatefulSet/db", cpu="1", node_name="n"),
        _replica(make, "nightly-29000000-x", "Job/nightly-29000000", cpu="1", node_name="n"),
        _replica(make, "cache-1", "CloneSet/cache", cpu="1", node_name="n"),
    ]  # fmt: skip
    read = snapshot(make.node("n", cpu="9200m"), *pods)
    source = pod_source(None, like, "", Inventory(read.manifests))
    model = ClusterModel(read, SchedulerConfig())
    found = fit_answer(fit(model, source, NoProgress()), source, model, "dump.yaml", ()).to_json()
    assert found["verdict"] == expected


def test_a_workload_of_this_name_in_another_namespace_is_not_meant(fitted, make):
    """The user named the namespace, and pods in this namespace name the workload."""
    pod = _replica(make, "web-a-1", "ReplicaSet/web-a", cpu="1", node_name="n")
    other = make.workload("Deployment", "web")
    assert fitted("deploy/shop/web", make.node("n", cpu="3"), pod, other).count == 2


@pytest.mark.parametrize(
    ("like", "problem"),
    [
        ("deploy/web", "deploy/web is in several namespaces (mail, shop); name one of them"),
        ("ds/shop/log", "the dump lacks DaemonSet shop/log"),
        ("deploy/shop/log", "there is no Deployment shop/log"),
        ("deploy/shop/old", "the dump lacks Deployment shop/old"),
        ("deploy//web", "'deploy//web' is not KIND/NAME or KIND/NAMESPACE/NAME"),
    ],
)
def test_a_workload_without_replicas_in_the_dump_is_refused(fitted, make, like, problem):
    old = {**_replica(make, "old", "ReplicaSet/old-1"), "status": {"phase": "Failed"}}
    pods = [
        _replica(make, "web-1", "ReplicaSet/web-a"),
        _replica(make, "web-1", "ReplicaSet/web-a", namespace="mail"),
        _replica(make, "log-1", "DaemonSet/log"),
        old,
    ]
    with pytest.raises(InputError, match=re.escape(problem)):
        fitted(like, make.node("n"), *pods)


@pytest.mark.parametrize(
    ("claim", "mode", "count"),
    [
        ("db-1", "ReadWriteOnce", 4),
        ("data-db-1", "ReadWriteOnce", 4),
        ("shared", "ReadWriteOnce", 1),
        ("db-1-content", "ReadWriteMany", 1),
    ],
)
def test_pods_of_a_custom_resource_get_their_own_claims(snapshot, make, claim, mode, count):
    """CloudNativePG names the claim of a pod like the pod, OpenKruise adds the template's name.

    A volume that several nodes can use is not the volume of one pod.
    """
    api = "postgresql.cnpg.io/v1"
    meta = {"name": "db", "namespace": "default", "uid": "db-uid"}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    pod = make.pod("db-1", cpu="1", node_name="a", owner="db", volumes=volumes)
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": api, "kind": "Cluster"}
    read = snapshot(
        make.node("a", cpu="2", rack="a"),
        make.node("b", cpu="3", rack="b"),
        {"apiVersion": api, "kind": "Cluster", "metadata": meta},
        pod,
        *local_storage(claim, "a", mode),
    )
    source = pod_source(None, "cluster/db", "", Inventory(read.manifests))
    found = fit(ClusterModel(read, SchedulerConfig()), source, NoProgress())
    assert found.count == count


def local_storage(claim, node, mode="ReadWriteOnce"):
    """A bound claim with a volume on `node`, and a class that provisions volumes on any node."""
    spec = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "local",
        "volumeName": "v",
    }
    term = {"key": "rack", "operator": "In", "values": [node]}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    return (
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "rancher.io/local-path",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": "default", "annotations": bound},
            "spec": spec,
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "v"},
            "spec": {
                "accessModes": [mode],
                "capacity": {"storage": "1Gi"},
                "claimRef": {"name": claim, "namespace": "default"},
                "storageClassName": "local",
                "local": {"path": "/mnt"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            },
            "status": {"phase": "Bound"},
        },
    )


def test_only_the_pods_below_the_partition_get_the_older_template(fitted, make):
    """The first pod requests 2 cores, and the pods after it one; without claims, they are equal."""
    db = make.workload("StatefulSet", "db", replicas=0)
    db["spec"] |= {
        "serviceName": "db",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
    }
    db["status"] = {"currentRevision": "db-1", "updateRevision": "db-2"}
    older = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "db-1", "namespace": "default"},
        "revision": 1,
        "data": {"spec": {"template": make.workload(cpu="2")["spec"]["template"]}},
    }
    assert fitted("sts/db", make.node("a", cpu="4"), db, older).count == 3


@pytest.mark.parametrize(
    ("like", "problem"),
    [
        (None, "name either --pod FILE or --like KIND/NAMESPACE/NAME"),
        ("ds/agent", "runs one pod on each node"),
        ("daemonset.apps.kruise.io/guard", "runs one pod on each node"),
        ("node/n", "Node n controls no pods$"),
        ("deploy/nothing", "there is no Deployment nothing"),
    ],
)
def test_a_source_without_pods_is_refused(fitted, make, like, problem):
    guard = {**make.workload("DaemonSet", "guard"), "apiVersion": "apps.kruise.io/v1alpha1"}
    with pytest.raises(InputError, match=problem):
        fitted(like, make.node(), make.workload("DaemonSet", "agent"), guard, make.workload())


def test_the_pods_of_the_only_workload_of_a_custom_resource_are_counted(fitted, make, snapshot):
    owned = {**make.workload("ReplicationController"), "apiVersion": "v1"}
    owned["spec"]["selector"] = {"app": "web"}
    owner = {"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "name": "web"}
    owned["metadata"]["ownerReferences"] = [{**owner, "uid": "d", "controller": True}]
    meta = {"name": "web", "namespace": "default", "uid": "d"}
    config = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "metadata": meta}
    config["spec"] = {"replicas": 1}
    found = fitted("deploymentconfig/web", make.node(), config, owned)
    assert found.count == 4
    like = pod_source(
        None, "deploymentconfig/web", "", snapshot(make.node(), config, owned).inventory()
    )
    assert (like.title, like.replicas) == ("deploymentconfig/default/web", 1)
    older = {**owned, "metadata": {**owned["metadata"], "name": "old"}}
    with pytest.raises(InputError, match="name its ReplicationController default/web"):
        fitted("deploymentconfig/web", make.node(), config, owned, older)


def test_an_error_names_the_custom_resource_that_controls_the_pods(fitted, make):
    """A Kafka of Strimzi runs an operator in its only Deployment, and brokers elsewhere."""
    meta = {"name": "web", "namespace": "default", "uid": "u"}
    kafka = {"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": meta}
    pod_set = {"apiVersion": "core.strimzi.io/v1", "kind": "StrimziPodSet", "metadata": {**meta}}
    operator, broker = make.workload("Deployment", "operator"), make.pod("k-0", node_name="a")
    for one, owner in ((pod_set, kafka), (operator, kafka), (broker, pod_set)):
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        one["metadata"]["ownerReferences"] = [{**reference, "name": "web", "uid": "u"}]
    operator["spec"]["replicas"] = 0
    problem = "counted; StrimziPodSet default/web controls its pods: name that instead"
    with pytest.raises(InputError, match=problem):
        fitted("kafka/web", make.node("a"), kafka, pod_set, operator, broker)
    assert fitted("strimzipodset/web", make.node("a"), kafka, pod_set, operator, broker)


def test_a_gated_pod_is_refused_with_the_gate(fitted, make):
    web = make.workload(replicas=0, schedulingGates=[{"name": "later"}])
    with pytest.raises(InputError, match="kept out of the scheduling queue by SchedulingGates"):
        fitted("deploy/web", make.node(), web)


def test_each_pod_gets_claims_of_its_templates(fitted, make):
    """Two devices, so two pods fit; the controller that creates the claims does not run here."""
    gpu = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    kinds = {
        "DeviceClass": ({"name": "gpu"}, {}),
        "ResourceSlice": (
            {"name": "s"},
            {"driver": "d.example.com", "nodeName": "a", "pool": pool, "devices": devices},
        ),
        "ResourceClaimTemplate": (
            {"name": "t", "namespace": "default"},
            {"spec": {"devices": gpu}},
        ),
    }
    wanted = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    workload = make.workload(replicas=0)
    workload["spec"]["template"]["spec"]["resourceClaims"] = wanted
    found = fitted(
        "deploy/web",
        make.node("a"),
        workload,
        *(
            {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}
            for kind, (meta, spec) in kinds.items()
        ),
    )
    assert (found.count, found.by_node) == (2, {"a": 2})
    assert found.refused_by == "scheduling"


def test_pods_that_share_devices_are_noted(snapshot, make):
    """The claim has the only device of the node, and all pods use it."""
    gpu = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": "d.example.com", "nodeName": "n", "pool": pool}
    api = {"apiVersion": "resource.k8s.io/v1"}
    workload = make.workload(replicas=0)
    claims = [{"name": "gpu", "resourceClaimName": "one"}]
    workload["spec"]["template"]["spec"]["resourceClaims"] = claims
    read = snapshot(
        make.node(),
        workload,
        {**api, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        {
            **api,
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {**devices, "devices": [{"name": "gpu-0"}]},
        },
        {
            **api,
            "kind": "ResourceClaim",
            "metadata": {"name": "one", "namespace": "default"},
            "spec": {"devices": gpu},
        },
    )
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    model = ClusterModel(read, SchedulerConfig())
    found = fit_answer(fit(model, source, NoProgress()), source, model, "dump.yaml", ()).to_json()
    assert found["count"] == 4
    assert found["findings"][1] == (
        "All these pods use the same devices, those of the claim one. With "
        "resourceClaimTemplateName instead of resourceClaimName, each pod would need devices "
        "of its own."
    )


def test_a_left_over_claim_of_an_ephemeral_volume_keeps_the_pod_pending(fitted, make):
    """The API server accepts the pod. The scheduler rejects it: it does not own the claim."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    left = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "web-0-scratch", "namespace": "default"},
        "spec": spec,
    }
    ephemeral = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    workload = make.workload(kind="StatefulSet", replicas=0)
    workload["spec"]["template"]["spec"]["volumes"] = [ephemeral]
    found = fitted("sts/web", make.node("a"), left, workload)
    assert (found.count, found.refused_by) == (0, "scheduling")
    owner = "PVC default/web-0-scratch was not created for pod default/web-0 (pod is not owner)"
    assert owner in found.stop
    assert [one.reason for one in found.refusals] == [owner]


@pytest.mark.parametrize(
    ("room", "verdict"),
    [
        (0, "It is unknown whether a further pod of deploy/default/web fits: the scheduling"),
        (1, "At least 1 more pod of deploy/default/web fits; then the scheduling cycle of the"),
    ],
)
def test_a_failing_plugin_is_not_a_reason_of_the_nodes(snapshot, make, room, verdict):
    class Broken:
        name = "Broken"

        def score(self, state, pod, node):
            if len(node.pods) >= room:
                raise ValueError("no data")
            return 0

    read = snapshot(make.node("a"), make.node("b"), make.workload(replicas=0))
    plugins = {"Broken": factory_of(Broken)}
    profile = with_plugin(SchedulerConfig().profiles[0], "Broken", Broken, 1)
    config = SchedulerConfig(profiles=(profile,), out_of_tree=plugins)
    model = ClusterModel(read, config)
    source = pod_source(None, "deploy/web", "", Inventory(read.manifests))
    result = fit(model, source, NoProgress())
    answer = fit_answer(result, source, model, "dump", ())
    assert answer.verdict.startswith(verdict)
    assert "plugin 'Broken' failed in score: ValueError: no data" in answer.findings[0]
    assert result.refusals == []


STORAGE = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/disk
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: i}]}
"""


def test_a_storage_class_of_the_file_is_needed_unless_it_is_in_the_snapshot(snapshot, make, write):
    file = read_pod_file(str(write("pod.yaml", STORAGE)), "")
    assert file.written.title == "Pod default/p"
    lacking = Inventory(snapshot(make.node("n")).manifests)
    assert [one.title for one in file.needed(lacking)] == ["StorageClass fast"]
    assert list(file.notes(lacking)) == []
    stated = next(yaml.safe_load_all(STORAGE))
    assert file.needed(Inventory(snapshot(make.node("n"), stated).manifests)) == []


def test_pods_of_a_new_deployment_are_spread_as_in_a_simulation(fitted, snapshot, make, write):
    """The scheduler derives the default constraints from the ReplicaSet of the pods."""
    web = make.workload(replicas=4, cpu="100m")
    file = write("web.json", web)
    nodes = [make.node("large", cpu="32", **{ZONE: "z1"}), make.node("small", **{ZONE: "z2"})]
    found = fitted(None, *nodes, pod_file=file, pods_max=4)
    answer = what_if(snapshot(*nodes), ClusterChange(apply=(file,)))
    simulated = Counter(pod.node for pod in answer.difference.placed)
    assert found.by_node == dict(simulated) == {"large": 2, "small": 2}


@pytest.mark.parametrize(
    ("api_version", "fields"),
    [
        ("scheduling.k8s.io/v1alpha2", {"spec": {"schedulingGroup": {"podGroupName": "g"}}}),
        (
            "scheduling.x-k8s.io/v1alpha1",
            {"metadata": {"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}},
        ),
    ],
)
def test_the_error_about_a_pod_group_names_one_of_its_pods(fitted, make, api_version, fields):
    """A PodGroup controls no pods, and its pods need not be alike."""
    group = {"apiVersion": api_version, "kind": "PodGroup"}
    group |= {"metadata": {"name": "g", "namespace": "default"}, "spec": {}}
    member = make.pod("member", node_name="a")
    for key, value in fields.items():
        member[key] |= value
    with pytest.raises(InputError, match="name a pod of the group, such as pod/default/member"):
        fitted("podgroup/g", make.node("a"), make.pod("other", node_name="a"), member, group)


@pytest.mark.parametrize(
    ("owner", "elsewhere", "change"),
    [
        ("deploy", False, "a: scale down deploy/default/web until pod default/web-1-0 is gone"),
        ("deploy", True, "add a node like a"),
        (
            "deploy and hpa",
            False,
            (
                "a: scale down deploy/default/web until pod default/web-1-0 is gone "
                "(HorizontalPodAutoscaler default/web may scale it up again)"
            ),
        ),
        ("job", False, "a: wait until pod default/j-0 is gone"),
        ("", False, "a: delete pod default/alone"),
    ],
    ids=["Deployment", "a new node would do", "autoscaled", "Job", "no controller"],
)
def test_no_change_deletes_a_pod_that_its_controller_creates_again(
    fitted, make, owner, elsewhere, change
):
    """The new pod needs the room of the only pod on a, and may not run on a new node."""
    others = {
        "deploy": deployment(make, "web", ["a"], cpu="4"),
        "deploy and hpa": [*deployment(make, "web", ["a"], cpu="4"), autoscaler(2)],
        "job": job_of(make, "a"),
        "": [make.pod("alone", node_name="a", cpu="4")],
    }[owner]
    if owner == "job":
        others[-1]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "4"}}
    node = make.node("a", **{HOSTNAME: "a"})
    selector = {} if elsewhere else {"nodeSelector": {HOSTNAME: "a"}}
    found = fitted(
        "deploy/new", node, *others, make.workload(name="new", replicas=0, cpu="4", **selector)
    )
    assert [one.change for one in found.refusals] == [change]
