"""fit --autoscale: pods fit until a group's maximum, a NodePool's limit or a quota binds."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from tests.unit.whatif.planner.conftest import budget, deployment

from fairlead.engine.core.instant import seconds
from fairlead.engine.core.status import SUCCESS, unschedulable
from fairlead.engine.framework.interface import PostFilterResult
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    AutoscaleOptions,
    read_autoscalers,
)
from fairlead.whatif.outcome.autoscaling.refused_pod import RefusedPods
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.planner import fit_elastic
from fairlead.whatif.planner.fit_elastic import elastic_fit, elastic_fit_answer
from fairlead.whatif.planner.new_pod import pod_source
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.inventory import Inventory

GROUPS = {
    "node-groups": [{"name": "general", "min": 1, "max": 3, "labels": {"pool": "a"}, "price": 0.5}]
}
POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "limits": {"cpu": "8"},
        "template": {
            "spec": {
                "requirements": [],
                "nodeClassRef": {"group": "x", "kind": "NodeClass", "name": "z"},
            }
        },
        "disruption": {"consolidateAfter": "30s"},
    },
}
TYPES = "name,cpu,memory,price\nsmall,4,16Gi,0.2\n"


@pytest.fixture
def fitted(snapshot, write):
    """Returns the result and the answer for pods like `like` in a cluster of `objects`."""

    def fit_pods(
        *objects,
        karpenter=False,
        pods_max=40,
        like="deploy/web",
        preempts=False,
        flags=None,
        types=TYPES,
        **more,
    ):
        fit_pods.read = read = snapshot(*objects)
        source = pod_source(None, like, "", Inventory(read.manifests))
        options = AutoscaleOptions(
            "cluster-autoscaler", str(write("groups.yaml", json.dumps(GROUPS)))
        )
        if karpenter:
            file = str(write("types.csv", types)) if types else None
            options = AutoscaleOptions("karpenter", instance_types=file)
        found = read_autoscalers("dump", read.manifests, options)
        config = found.config
        if flags is not None:
            config = replace(config, options=replace(config.options, **flags))
        experiment = Experiment(
            title="dump", source="dump", initial=read.manifests, start=read.taken_at,
            autoscaler=config, karpenter=found.karpenter, **more,
        )  # fmt: skip
        result = elastic_fit(experiment, source, NoProgress(), pods_max, preempts=preempts)
        return result, elastic_fit_answer(result, source, "dump", ())

    return fit_pods


def quota(**hard):
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": hard},
    }


def test_pods_fit_until_the_groups_maximum(fitted, make):
    """Three nodes of four cores: eleven pods of one core beside the one that runs."""
    found, answer = fitted(
        make.node("a", pool="a"), make.pod("other", node_name="a"), make.workload(replicas=0)
    )
    assert (found.count, found.refused_by) == (11, "autoscaler")
    assert "max node group size reached" in found.stop
    assert answer.verdict == "11 more pods of deploy/default/web fit, with 2 added nodes."
    assert answer.facts["cost_per_hour"] == 1.5
    # Nodes that the autoscaler does not manage are not included.
    cost = "Then the nodes of cluster-autoscaler cost 1.50 per hour, 1,095 per month."
    assert cost in answer.findings
    assert answer.facts["ready_after_s"] > 60


def test_no_note_says_why_pods_that_fit_had_to_wait(fitted, make):
    """They wait because other pods that fit nowhere take part in the same scale-up."""
    found, _ = fitted(make.node("a", pool="a"), make.workload(replicas=0))
    web = WorkloadRef("ReplicaSet", "default", "web-fit")
    refused = RefusedPods("full", 3, (web,), seconds(80))
    autoscaling = replace(found.autoscaling, refused=(refused,))
    notes = (*autoscaling.waiting_notes(0), "another note")
    outcome = replace(found.outcome, autoscaling=autoscaling, notes=notes)
    source = pod_source(None, "deploy/web", "", Inventory(fitted.read.manifests))
    answer = elastic_fit_answer(replace(found, outcome=outcome), source, "dump", ())
    assert answer.notes == ("another note",)


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "ReplicationController"])
def test_new_pods_get_what_admission_added_to_the_others(fitted, make, kind):
    """A sidecar of one core: three nodes of four cores take five pods beside the one that runs."""
    web = make.workload(kind)
    web["metadata"]["uid"] = "web"
    pod = make.pod("web-1", node_name="a", owner="web")
    pod["metadata"]["labels"] = {"app": "web"}
    pod["metadata"]["ownerReferences"][0] |= {"kind": kind, "uid": "web"}
    if kind == "ReplicationController":
        web["apiVersion"] = "v1"
        web["spec"]["selector"] = {"app": "web"}
    if kind == "StatefulSet":
        web["status"] = {"updateRevision": "1"}
        pod["metadata"]["labels"]["controller-revision-hash"] = "1"
        web["spec"]["volumeClaimTemplates"] = [
            {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1"}}}}
        ]
    sidecar = {"name": "p", "image": "p", "resources": {"requests": {"cpu": "1"}}}
    pod["spec"]["containers"].append(sidecar)
    found, _ = fitted(make.node("a", pool="a"), web, pod, like=f"{kind}/web")
    assert found.count == 5


@pytest.mark.parametrize("karpenter", [False, True])
def test_new_pods_leave_room_for_daemonset_pods_on_new_nodes(fitted, make, karpenter):
    """Three nodes of four cores: three pods on each beside a DaemonSet pod of half a core."""
    tolerations = [{"operator": "Exists"}]
    agent = make.workload("DaemonSet", "agent", cpu="500m", tolerations=tolerations)
    agent["spec"].pop("replicas")
    objects = (make.node("a", pool="a"), make.workload(replicas=0), agent, POOL)
    found, _ = fitted(*objects, karpenter=karpenter)
    agents = [pod for pod in found.outcome.pods.values() if pod.workload.name == "agent"]
    assert (found.count, len(agents)) == (9, 3)
    assert all(pod.is_placed for pod in agents)


def test_the_autoscaler_sees_new_pods_that_do_not_preempt(fitted, make):
    """Without --preempt, new pods have a scheduler profile of their own."""
    objects = make.node("a", pool="a"), make.workload(replicas=0)
    flags = {"allowed_scheduler_names": ("default-scheduler",)}
    found, _ = fitted(*objects, flags=flags)
    assert (found.count, found.autoscaling.added) == (12, 2)


def expendable(make, nodes):
    """A Deployment whose pods Cluster Autoscaler ignores, with its PriorityClass."""
    web = deployment(make, "web", nodes, priorityClassName="low")
    for one in web[2:]:
        one["spec"]["priority"] = -20
    return [make.priority_class("low", -20), *web]


def test_a_new_pod_in_the_room_of_a_present_pod_is_not_counted(fitted, make):
    """Cluster Autoscaler removes b, which has only expendable pods; a has room for one of two.

    A new pod takes this room.
    """
    found, answer = fitted(
        *(make.node(name, pool="a") for name in "ab"),
        make.pod("other", node_name="a"),
        *expendable(make, "aabb"),
    )
    placed = [pod for pod in found.outcome.placed if pod.owner in found.owners]
    assert (found.count, len(placed)) == (0, 1)
    assert found.autoscaling.nodes_after == 1
    assert answer.verdict == (
        "No further pod of deploy/default/web fits, whatever the autoscaler adds."
    )
    assert "below --expendable-pods-priority-cutoff" in found.stop


def test_the_answer_counts_present_pods_that_stay_pending(fitted, make):
    """A pod of the old template names a node that does not exist."""
    objects = deployment(make, "web", ["a", ""])
    objects[-1]["spec"]["nodeSelector"] = {"pool": "none"}
    found, answer = fitted(make.node("a", pool="a"), *objects)
    assert (found.count, found.without_node) == (11, 1)
    assert answer.verdict == (
        "11 more pods of deploy/default/web fit, with 2 added nodes: 13 replicas in all, 2 today "
        "(1 without a node)."
    )


def autoscaler(name, low):
    """An autoscaler of pods without a load."""
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": low,
            "maxReplicas": 9,
            "metrics": [{"type": "Resource", "resource": cpu}],
        },
    }


@pytest.mark.parametrize("least", [1, 2])
def test_autoscalers_enforce_their_limits_before_the_count(fitted, make, least):
    """`fit` has no option for a load, so no note names an autoscaler without a load."""
    node, api = make.node("a", pool="a"), deployment(make, "api", ["a"])
    found, answer = fitted(node, make.workload(replicas=0), *api, autoscaler("api", least))
    assert sum(pod.workload.name == "api" for pod in found.outcome.pods.values()) == least
    assert "HorizontalPodAutoscaler" not in str(answer.notes)


def test_the_count_begins_when_karpenter_has_consolidated_the_cluster(fitted, make):
    """Two pods on two nodes of 4 cores fit on one of them; the limit then allows one of 6."""
    pool = json.loads(json.dumps(POOL))
    pool["spec"]["limits"] = {"cpu": "10"}
    labels = {"karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": "four"}
    labels |= {"karpenter.sh/capacity-type": "on-demand", "karpenter.sh/registered": "true"}
    labels |= {"karpenter.sh/initialized": "true", "topology.kubernetes.io/zone": "z"}
    objects = [pool, make.workload(replicas=0, cpu="1"), *deployment(make, "api", ["a", "b"])]
    for name in "ab":
        node = make.node(name, **labels)
        node["spec"] = {"providerID": f"x:///{name}"}
        node["status"]["capacity"] = node["status"]["allocatable"]
        done = [{"type": one, "status": "True"} for one in ("Launched", "Registered")]
        claim = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "spec": {}}
        claim["metadata"] = {"name": name, "labels": labels}
        claim["status"] = {"nodeName": name, "providerID": f"x:///{name}"}
        claim["status"] |= dict.fromkeys(("capacity", "allocatable"), node["status"]["allocatable"])
        claim["status"]["conditions"] = [*done, {"type": "Initialized", "status": "True"}]
        objects += [node, claim]
    types = "name,cpu,memory,zones,price\nfour,4,16Gi,z,0.1\nsix,6,24Gi,z,0.2\n"
    found, _ = fitted(*objects, karpenter=True, types=types)
    assert (found.count, found.autoscaling.added) == (8, 1)


def test_new_pods_preempt_only_on_request(fitted, make):
    """Three nodes of four cores, of which a pod of low priority has three."""
    objects = (
        make.node("a", pool="a"),
        make.pod("low", cpu="3", node_name="a"),
        make.priority_class("high", 1000),
        make.workload(replicas=0, priorityClassName="high"),
    )
    found, answer = fitted(*objects)
    assert (found.count, found.victims, found.refused_by) == (9, (), "autoscaler")
    found, answer = fitted(*objects, preempts=True)
    assert (found.count, len(found.victims), found.lost) == (12, 1, 1)
    words = "1 pod of lower priority is preempted and finds no other node."
    assert words in answer.findings
    assert answer.tables[-1].rows == [{"pod": "default/low", "priority": 0}]


def test_the_answer_names_budgets_that_preemptions_breach(fitted, make):
    """Two pods of low priority are preempted. Their budget allows one eviction."""
    objects = (
        *(make.node(name, pool="a") for name in "ab"),
        *deployment(make, "low", ["a", "b"], cpu="3"),
        budget("low", minAvailable=1),
        make.priority_class("high", 1000),
        make.workload(replicas=0, priorityClassName="high"),
    )
    _, answer = fitted(*objects)
    assert answer.facts["breached_budgets"] == []
    found, answer = fitted(*objects, preempts=True)
    assert len(found.victims) == 2
    assert answer.facts["breached_budgets"] == [
        {"budget": "default/low", "evicted": 2, "allowed": 1}
    ]
    assert "This breaches budgets: default/low (2 evicted, 1 allowed)." in answer.findings


class PreemptsLow:
    """A PostFilter that preempts the pods of lower priority on the first node that has any."""

    name = "PreemptsLow"

    def __init__(self, handle):
        self._table = handle.cluster.table

    def post_filter(self, state, pod, diagnosis):
        for node in self._table.nodes():
            lower = tuple(other for other in node.pods.values() if other.priority < pod.priority)
            if lower:
                return PostFilterResult(SUCCESS, node.name, lower)
        return PostFilterResult(unschedulable("no pod has a lower priority"))


def test_plugins_of_the_user_preempt_only_on_request_as_well(fitted, make):
    objects = (
        make.node("a", pool="a"),
        make.pod("low", cpu="3", node_name="a"),
        make.priority_class("high", 1000),
        make.workload(replicas=0, priorityClassName="high"),
    )
    profile = Profile(plugins=(*DEFAULT_PLUGINS, ("PreemptsLow", 0)))
    factories = {"PreemptsLow": lambda handle, _: PreemptsLow(handle)}
    scheduler = SchedulerConfig(profiles=(profile,), out_of_tree=factories)
    found, _ = fitted(*objects, scheduler=scheduler)
    assert (found.count, found.victims) == (9, ())


def test_pods_fit_until_the_nodepools_limit(fitted, make):
    found, _ = fitted(make.node("a"), make.workload(replicas=0), POOL, karpenter=True)
    assert (found.count, found.autoscaling.added) == (12, 2)
    assert "exceed limits for nodepool" in found.stop


@pytest.mark.parametrize(("types", "words"), [(TYPES, ""), ("", "an estimated ")])
def test_the_answer_says_whether_the_cost_is_estimated(fitted, make, types, words):
    """Without a file, there are no prices."""
    kind = {"node.kubernetes.io/instance-type": "small", "karpenter.sh/nodepool": "default"}
    node = make.node("a", **kind, **{"karpenter.sh/capacity-type": "on-demand"})
    node["status"]["capacity"] = node["status"]["allocatable"]
    _, answer = fitted(node, make.workload(replicas=0), POOL, karpenter=True, types=types)
    [cost] = [one for one in answer.findings if "per hour" in one]
    assert cost.startswith(f"Then the nodes of karpenter cost {words}0.")


def test_a_quota_that_allows_more_pods_than_fit_is_not_the_limit(fitted, make):
    """The quota allows 20 pods, but three nodes of four cores have room for 12."""
    objects = make.node("a", pool="a"), make.workload(replicas=0), quota(pods="20")
    found, _ = fitted(*objects)
    assert (found.count, found.refused_by) == (12, "autoscaler")
    assert "max node group size reached" in found.stop


def test_a_quota_binds_first(fitted, make):
    found, _ = fitted(make.node("a", pool="a"), make.workload(replicas=0), quota(pods="3"))
    assert (found.count, found.refused_by) == (3, "admission")
    assert "exceeded quota" in found.stop


def test_without_a_cluster_limit_the_count_ends_at_the_limit_option(fitted, make):
    found, answer = fitted(make.node("a", pool="a"), make.workload(replicas=0), pods_max=5)
    assert (found.count, found.stop, found.refused_by) == (5, "", "limit")
    assert answer.verdict == "At least 5 more pods of deploy/default/web fit."
    assert answer.findings[0] == "No limit is reached below --max-limit, which is 5."


def test_the_count_grows_until_a_limit_binds(fitted, make, monkeypatch):
    """Simulations in which all pods find a node end early, and their results do not count."""
    monkeypatch.setattr(fit_elastic, "_FIRST", 2)
    found, answer = fitted(make.node("a", pool="a"), make.workload(replicas=0), pods_max=100)
    assert (found.count, found.tried, found.refused_by) == (12, 32, "autoscaler")
    assert answer.facts["nodes_after"] == 3


def test_existing_pods_of_the_workload_are_kept(fitted, make):
    """The new pods have its labels, but it does not adopt and delete them."""
    found, _ = fitted(make.node("a", pool="a"), make.workload(replicas=2))
    assert found.count == 10


def test_pods_with_claims_get_claims_of_their_own(fitted, make):
    claims = [
        {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    ]
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    workload = make.workload("StatefulSet", replicas=1)
    workload["spec"] |= {"volumeClaimTemplates": claims, "serviceName": "web"}
    found, _ = fitted(make.node("a", pool="a"), workload, storage, like="sts/web")
    assert found.count == 11
    assert [one.kind for one in found.owners] == ["StatefulSet"]


@pytest.mark.parametrize("claims", [False, True])
@pytest.mark.parametrize(
    ("partition", "count", "added"),
    [(0, 3, 2), (1, 4, 2), (3, 5, 2), (40, 12, 2)],
)
def test_pods_below_the_partition_get_the_older_template(
    fitted, make, partition, count, added, *, claims
):
    """On three nodes of four cores, pods of the older template need a core, others need three."""
    workload = make.workload("StatefulSet", replicas=0, cpu="3")
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    workload["spec"] |= {"updateStrategy": rolling, "serviceName": "web"}
    workload["status"] = {"currentRevision": "web-1", "updateRevision": "web-2"}
    if claims:
        template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
        template["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
        template["spec"]["storageClassName"] = "fast"
        workload["spec"]["volumeClaimTemplates"] = [template]
    older = make.workload("StatefulSet", cpu="1")["spec"]["template"]
    revision = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1}
    revision |= {"metadata": {"name": "web-1", "namespace": "default"}}
    revision |= {"data": {"spec": {"template": older}}}
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    storage |= {"metadata": {"name": "fast"}, "provisioner": "csi.example.com"}
    storage["volumeBindingMode"] = "WaitForFirstConsumer"
    found, _ = fitted(make.node("a", pool="a"), workload, revision, storage, like="sts/web")
    assert (found.count, found.autoscaling.added) == (count, added)


def test_reasons_that_differ_by_the_pods_name_count_as_one(fitted, make):
    """Karpenter's text about a missing StorageClass names the pod's own claim."""
    workload = make.workload("StatefulSet", replicas=1)
    template = {"metadata": {"name": "data"}, "spec": {"storageClassName": "none"}}
    workload["spec"] |= {"volumeClaimTemplates": [template], "serviceName": "web"}
    node = make.node("a", **{"karpenter.sh/nodepool": "default"})
    other = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "x"}
    objects = (node, POOL, workload, {**other, "metadata": {"name": "other"}})
    _, answer = fitted(*objects, like="sts/web", karpenter=True, pods_max=3)
    new, today = next(one for one in answer.tables if one.name == "refusals").rows
    assert (new["pods"], new["workload"]) == (3, "the new pods")
    assert (today["pods"], today["workload"]) == (1, "sts/default/web")
    assert "PersistentVolumeClaim=default/data-<pod>" in new["reason"] == today["reason"]


def test_a_fit_says_when_the_autoscaler_may_remove_nodes(fitted, make):
    pool = json.loads(json.dumps(POOL))
    pool["spec"]["disruption"] = {"consolidateAfter": "6h"}
    _, answer = fitted(make.node("a"), pool, make.workload(replicas=1), karpenter=True, pods_max=8)
    [when] = [one for one in answer.findings if "may remove nodes later" in one]
    assert when.startswith("karpenter may remove nodes later: consolidateAfter of 2 nodes passes")


@pytest.mark.parametrize(("settles", "count"), [(False, 5), (True, 4)])
def test_an_autoscaler_that_moves_pods_without_end_is_not_a_limit(
    fitted, make, monkeypatch, settles, count
):
    """One of five new pods was evicted shortly before the run ended, and waits for a new node."""
    run = fit_elastic.run_experiment

    def with_eviction(*arguments):
        finished = run(*arguments)
        end = finished.outcome
        if not end.waits:  # the run without the new pods
            return finished
        first = end.waits[0]
        again = replace(first, since=end.ended_at, until=None)
        pending = replace(end.pods[first.pod], node="", reason="Insufficient cpu")
        outcome = replace(
            end, settled=settles, waits=(*end.waits, again), pods={**end.pods, first.pod: pending}
        )
        return replace(finished, outcome=outcome)

    monkeypatch.setattr(fit_elastic, "run_experiment", with_eviction)
    found, answer = fitted(make.node("a", pool="a"), make.workload(replicas=0), pods_max=5)
    assert (found.count, found.stop) == (count, "Insufficient cpu" if settles else "")
    assert any("had not settled after" in one for one in answer.findings) != settles
    assert (
        60 < answer.facts["ready_after_s"] < 200
        if count == 5
        else answer.facts["ready_after_s"] == 0
    )
