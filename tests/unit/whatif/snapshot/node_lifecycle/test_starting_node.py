"""Nodes that were starting when the dump was taken have started in answers."""

from __future__ import annotations

import json

import pytest
import yaml

from fairlead.cli.commands.snapshot_anonymous import rewrite
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.configuration.autoscaling.autoscaler import KARPENTER, AutoscaleOptions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.pod_columns import encode_columns
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.fit import PODS_MAX, fit
from fairlead.whatif.planner.new_pod import pod_source
from fairlead.whatif.question import what_if
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario
from fairlead.whatif.snapshot.dump_note import dump_notes
from fairlead.whatif.snapshot.snapshot import read_dump, read_snapshot, snapshot_annotations

REGISTERED_AT = "2026-05-05T10:00:00Z"
TAKEN_AT = "2026-05-05T10:00:25Z"
NO_NETWORK = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized"
)
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
EVICTING = {**NOT_READY, "effect": "NoExecute", "timeAdded": "2026-05-05T10:00:01Z"}
UNINITIALIZED = {
    "key": "node.cloudprovider.kubernetes.io/uninitialized",
    "value": "true",
    "effect": "NoSchedule",
}
NO_ROUTE = {"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}
UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
CILIUM = {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}
EBS = {"key": "ebs.csi.aws.com/agent-not-ready", "effect": "NoExecute"}
DEDICATED = {"key": "dedicated", "value": "web", "effect": "NoSchedule"}
POOL = "eks.amazonaws.com/nodegroup"
TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
GPU = "nvidia.com/gpu"
SIZE = {"cpu": "3920m", "memory": "14881692Ki", "pods": "58", "ephemeral-storage": "17Gi"}


def posted(kind, status, at, **more):
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": at,
        "lastHeartbeatTime": TAKEN_AT,
        **more,
    }


def not_ready(at=REGISTERED_AT):
    return posted("Ready", "False", at, reason="KubeletNotReady", message=NO_NETWORK)


def ready(at="2026-05-05T10:00:20Z"):
    message = "kubelet is posting ready status"
    return posted("Ready", "True", at, reason="KubeletReady", message=message)


def node(name="new", condition=None, taints=(NOT_READY, EVICTING), size=SIZE, **fields):
    """A node of EKS that registered 25 seconds before the dump was taken."""
    meta = fields.pop("meta", {})
    healthy = [posted("MemoryPressure", "False", REGISTERED_AT)]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "creationTimestamp": REGISTERED_AT,
            "labels": {"kubernetes.io/hostname": name, POOL: "main", TYPE: "m5.xlarge"},
            **meta,
        },
        "spec": {"providerID": f"aws:///eu-1a/i-{name}", "taints": list(taints)},
        "status": {
            "capacity": size,
            "allocatable": size,
            "conditions": [*healthy, condition or not_ready(), *fields.pop("more", ())],
            "nodeInfo": {"kubeletVersion": "v1.36.1"},
        },
    }


def old(name="old", size=SIZE, **labels):
    """A Ready node of the same node group."""
    meta = node(name)["metadata"]
    meta = {
        **meta,
        "creationTimestamp": "2026-05-01T10:00:00Z",
        "labels": {**meta["labels"], **labels},
    }
    return node(name, ready("2026-05-01T10:00:20Z"), (), size, meta=meta)


@pytest.fixture
def dump(tmp_path):
    """Returns the path of a dump of the objects, in the form of kubectl."""

    def write(*objects, encode=json.dumps):
        path = tmp_path / ("dump.json" if encode is json.dumps else "dump.yaml")
        listing = {"apiVersion": "v1", "kind": "List", "items": list(objects), "metadata": {}}
        path.write_text(encode(listing))
        return str(path)

    return write


@pytest.fixture
def taken(dump):
    """Returns the snapshot of the objects, which was taken at TAKEN_AT."""
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "new", "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": "new", "renewTime": "2026-05-05T10:00:25.000000Z"},
    }
    return lambda *objects, **encode: read_snapshot(dump(lease, *objects, **encode))


def found(snapshot, name="new"):
    return next(
        one for one in snapshot.manifests if one.ref.name == name and one.kind.kind == "Node"
    )


def status_of_ready(snapshot):
    conditions = found(snapshot).node.status.conditions
    return next((one.status for one in conditions if one.type == "Ready"), "")


def keys_of_taints(snapshot):
    return [one.key for one in found(snapshot).node.spec.taints]


WAITING = [
    EVICTING,
    UNINITIALIZED,
    NO_ROUTE,
    UNREGISTERED,
    CILIUM,
    EBS,
    {"key": "startup-taint.cluster-autoscaler.kubernetes.io/x", "effect": "NoSchedule"},
    {"key": "readiness.k8s.io/network", "effect": "NoSchedule"},
]


@pytest.mark.parametrize("taint", WAITING, ids=lambda one: one["key"])
def test_a_pod_that_waits_for_a_starting_node_gets_it(taken, make, taint):
    more = [posted("NetworkUnavailable", "True", REGISTERED_AT, reason="NoRouteCreated")]
    starting = node(taints=(NOT_READY, taint), more=more)
    outcome = what_if(taken(starting, make.pod()), ClusterChange()).changed
    assert [pod.node for pod in outcome.pods.values()] == ["new"]
    assert not outcome.pending


def test_the_note_names_the_nodes_and_the_assumption(taken):
    nodes = (node(), node("next", taints=(NOT_READY, UNINITIALIZED, CILIUM, EBS)))
    notes = list(dump_notes(taken(*nodes, old())))
    assert (
        "new, next are starting in the dump. The answer assumes that they have started and are "
        "Ready, without ebs.csi.aws.com/agent-not-ready, node.cilium.io/agent-not-ready."
    ) in notes
    notes = list(dump_notes(taken(node(), old())))
    assert (
        "new is starting in the dump. The answer assumes that it has started and is Ready."
    ) in notes


def test_a_node_that_is_ready_may_still_wait_for_an_agent(taken):
    snapshot = taken(node(condition=ready(), taints=(EBS, DEDICATED)))
    assert keys_of_taints(snapshot) == ["dedicated"]
    since = [one.last_transition_time for one in found(snapshot).node.status.conditions]
    assert since[-1] == "2026-05-05T10:00:20Z"  # its Ready condition stays as it is


def autoscaler(*args):
    """The Deployment of a Cluster Autoscaler with the flags `args`."""
    container = {
        "name": "cluster-autoscaler",
        "image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.0",
        "command": ["./cluster-autoscaler", "--cloud-provider=aws", *args],
    }
    labels = {"app": "cluster-autoscaler"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "cluster-autoscaler", "namespace": "kube-system"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("--startup-taint=nvidia.com/gpu-init",), id="startup taint"),
        pytest.param(("--startup-taint", "a,nvidia.com/gpu-init"), id="one of several"),
        pytest.param(("--ignore-taint=nvidia.com/gpu-init",), id="the deprecated flag"),
        pytest.param(("--startup-taint-prefix=nvidia.com/gpu-",), id="prefix"),
    ],
)
def test_the_cluster_autoscaler_of_the_dump_names_startup_taints(taken, flags):
    taint = {"key": "nvidia.com/gpu-init", "effect": "NoSchedule"}
    starting = node(condition=ready(), taints=(taint, DEDICATED))
    snapshot = taken(starting, autoscaler(*flags))
    assert keys_of_taints(snapshot) == ["dedicated"]
    assert "without nvidia.com/gpu-init" in snapshot.start_notes[0]


def test_a_status_taint_stays(taken):
    status = "status-taint.cluster-autoscaler.kubernetes.io/disk"
    taints = [{"key": key, "effect": "NoSchedule"} for key in (status, "maintenance")]
    snapshot = taken(
        node(condition=ready(), taints=taints), autoscaler("--status-taint=maintenance")
    )
    assert keys_of_taints(snapshot) == [status, "maintenance"]
    assert snapshot.start_notes == ()


MINUTES = "2026-05-05T09:45:00Z"  # 15 minutes and 25 seconds before the dump


@pytest.mark.parametrize(
    "failed",
    [
        pytest.param(node(condition=not_ready("2026-05-05T10:00:11Z")), id="it was Ready before"),
        pytest.param(
            node(condition=not_ready(MINUTES), meta={"creationTimestamp": MINUTES}),
            id="it did not start in time",
        ),
        pytest.param(
            node(condition=posted("Ready", "Unknown", REGISTERED_AT)), id="its kubelet is silent"
        ),
        pytest.param(
            node(meta={"deletionTimestamp": TAKEN_AT, "finalizers": ["a.example/b"]}),
            id="it is being deleted",
        ),
        pytest.param(
            node(meta={"annotations": {"fairlead.dev/kubelet": "not-ready"}}),
            id="an annotation sets its state",
        ),
        pytest.param(
            node(condition=posted("Ready", "False", None)), id="the time of its failure is unknown"
        ),
    ],
)
def test_a_failed_node_stays_out_of_service(taken, make, failed):
    snapshot = taken(failed, make.pod())
    assert status_of_ready(snapshot) in ("False", "Unknown")
    assert snapshot.start_notes == ()
    assert len(what_if(snapshot, ClusterChange()).changed.pending) == 1


def test_a_new_node_without_conditions_loses_its_startup_taints(taken):
    bare = node(taints=(NOT_READY, DEDICATED))
    bare["status"]["conditions"] = []
    assert keys_of_taints(taken(bare)) == ["dedicated"]
    bare["spec"]["taints"] = [DEDICATED]
    snapshot = taken(bare)
    assert (status_of_ready(snapshot), snapshot.start_notes) == ("", ())


def test_a_cordon_and_lasting_taints_stay(taken):
    starting = node(taints=(NOT_READY, DEDICATED))
    starting["spec"]["unschedulable"] = True
    snapshot = taken(starting)
    assert (status_of_ready(snapshot), keys_of_taints(snapshot)) == ("True", ["dedicated"])
    assert found(snapshot).node.spec.unschedulable


def test_other_objects_of_a_dump_stay_as_they_are(taken, make):
    snapshot = taken(node(), old(), *(make.pod(f"p{n}", node_name="old") for n in range(3)))
    assert [one.ref.name for one in snapshot.manifests] == ["new", "new", "old", "p0", "p1", "p2"]
    assert found(snapshot, "old").view is not None


def test_yaml_dumps_and_snapshot_files_are_alike(taken, make, dump, tmp_path):
    objects = node(), old(), make.pod(), make.pod("web-2", node_name="old")
    from_yaml = taken(*objects, encode=yaml.safe_dump)
    assert status_of_ready(from_yaml) == "True"
    raw = read_dump(dump(*objects))
    columns = tmp_path / "cluster.snapshot"
    metadata = {"annotations": snapshot_annotations(from_yaml.taken_at)}
    columns.write_bytes(encode_columns([one.text for one in raw.manifests], metadata))
    assert status_of_ready(read_snapshot(str(columns))) == "True"


def test_a_dump_is_also_read_as_it_is(dump):
    snapshot = read_dump(dump(node()))
    assert (status_of_ready(snapshot), snapshot.start_notes) == ("False", ())


# --- resources and labels that come later -------------------------------------------------------


def test_resources_of_a_device_plugin_are_those_of_the_node_group(taken, make):
    """Of the newest node that has started, and only if the kubelet has not posted them."""
    older = old("older", {**SIZE, GPU: "1"})
    older["metadata"]["creationTimestamp"] = "2026-04-01T10:00:00Z"
    newest = old(size={**SIZE, GPU: "4", "cpu": "8"})
    other = old("other", {**SIZE, "example.com/fpga": "1"}, **{POOL: "other"})
    snapshot = taken(older, newest, other, node(size={**SIZE, GPU: "0"}))
    assert found(snapshot).node.status.allocatable == {**SIZE, GPU: "4"}
    assert found(snapshot).node.status.capacity == {**SIZE, GPU: "4"}
    assert snapshot.start_notes[1].startswith(f"new had not reported {GPU} yet. The amounts are")


def test_a_ready_node_may_still_wait_for_a_device_plugin(taken):
    snapshot = taken(old(size={**SIZE, GPU: "4"}), node(condition=ready(), taints=()))
    assert found(snapshot).node.status.allocatable == {**SIZE, GPU: "4"}


@pytest.mark.parametrize(
    ("size", "meta"),
    [
        pytest.param({**SIZE, "hugepages-2Mi": "1Gi"}, {}, id="the other node has huge pages"),
        pytest.param(
            {**SIZE, GPU: "4"}, {"creationTimestamp": "2026-05-05T09:40:00Z"}, id="it is old"
        ),
        pytest.param(
            {**SIZE, GPU: "4"},
            {
                "labels": {
                    POOL: "main",
                    TYPE: "m5.xlarge",
                    "karpenter.sh/initialized": "true",
                }
            },
            id="Karpenter has initialized it",
        ),
    ],
)
def test_a_ready_node_that_has_started_keeps_its_resources(taken, size, meta):
    snapshot = taken(old(size=size), node(condition=ready(), taints=(), meta=meta))
    assert found(snapshot).node.status.allocatable == SIZE
    assert snapshot.start_notes == ()


def test_the_model_may_be_young_too(taken):
    """All nodes of the cluster were created recently; one of them has started."""
    size = {**SIZE, GPU: "4"}
    started = node("first", ready(), (), size, meta={"creationTimestamp": "2026-05-05T09:58:00Z"})
    started["metadata"]["labels"] = node()["metadata"]["labels"]
    snapshot = taken(started, node(), node("next", ready(), ()))
    assert found(snapshot).node.status.allocatable == size
    assert found(snapshot, "next").node.status.allocatable == size


def test_the_first_node_of_a_group_has_only_the_resources_that_it_reported(taken):
    snapshot = taken(old("other", {**SIZE, GPU: "1"}, **{POOL: "other"}), node())
    assert found(snapshot).node.status.allocatable == SIZE
    said = "This answer lacks resources that new had not reported yet, such as GPUs: "
    assert snapshot.start_notes[1].startswith(said)


def test_drivers_repeat_the_zone_of_the_node(taken):
    """The model is in another zone. Volumes of the driver need the label of the driver."""
    starting = node()
    starting["metadata"]["labels"][ZONE] = "a"
    snapshot = taken(old(**{ZONE: "b", EBS_ZONE: "b"}), starting)
    labels = found(snapshot).node.metadata.labels
    assert (labels[ZONE], labels[EBS_ZONE]) == ("a", "a")


def test_a_node_that_the_cloud_provider_has_not_labelled_has_no_zone(taken):
    snapshot = taken(old(**{ZONE: "b", EBS_ZONE: "b"}), node(taints=(NOT_READY, UNINITIALIZED)))
    assert EBS_ZONE not in found(snapshot).node.metadata.labels
    assert snapshot.start_notes[1:] == (
        "new had no zone label yet, so pods that need a zone do not fit there.",
    )


# --- Karpenter ----------------------------------------------------------------------------------

STARTUP = {"key": "example.com/agent", "effect": "NoSchedule"}
LABELS = {
    "karpenter.sh/nodepool": "default",
    "karpenter.sh/capacity-type": "on-demand",
    TYPE: "m5.xlarge",
    ZONE: "z-a",
    "team": "web",
}


def node_claim(node_name="", **meta):
    """The NodeClaim of the node, which has launched its instance."""
    launched = {"type": "Launched", "status": "True", "lastTransitionTime": REGISTERED_AT}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": "default-x1",
            "creationTimestamp": "2026-05-05T09:59:30Z",
            "labels": LABELS,
            **meta,
        },
        "spec": {
            "requirements": [],
            "expireAfter": "Never",
            "taints": [DEDICATED],
            "startupTaints": [STARTUP],
        },
        "status": {
            "providerID": "aws:///eu-1a/i-new",
            **({"nodeName": node_name} if node_name else {}),
            "capacity": {**SIZE, GPU: "1"},
            "allocatable": {**SIZE, GPU: "1"},
            "conditions": [launched],
        },
    }


NODE_POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "spec": {"requirements": [], "taints": [DEDICATED], "startupTaints": [STARTUP]}
        },
        "disruption": {"consolidateAfter": "Never"},
    },
}
OF_CLAIM = {"labels": {"kubernetes.io/hostname": "new"}}


def test_an_unregistered_node_of_karpenter_becomes_as_its_node_claim(taken):
    snapshot = taken(node(taints=(NOT_READY, UNREGISTERED), meta=OF_CLAIM), node_claim())
    started = found(snapshot).node
    done = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    assert started.metadata.labels == {"kubernetes.io/hostname": "new", **LABELS, **done}
    assert keys_of_taints(snapshot) == ["dedicated"]
    assert started.status.allocatable == {**SIZE, GPU: "1"}


def test_a_ready_node_of_karpenter_may_wait_for_a_device_plugin(taken):
    """No other node has a GPU."""
    snapshot = taken(node(condition=ready(), taints=(), meta=OF_CLAIM), node_claim())
    assert found(snapshot).node.status.allocatable == {**SIZE, GPU: "1"}


def test_startup_taints_of_a_registered_node_are_those_of_its_pool(taken):
    """A registered node without a NodeClaim in the dump, and a taint of the same key."""
    registered = node(
        taints=(NOT_READY, STARTUP, {**STARTUP, "effect": "NoExecute"}), meta={"labels": LABELS}
    )
    snapshot = taken(registered, NODE_POOL)
    assert [one.effect for one in found(snapshot).node.spec.taints] == ["NoExecute"]


def test_a_node_claim_or_pool_of_a_starting_node_with_a_field_of_the_wrong_type_is_refused(dump):
    """Otherwise its startup taints or its resources would be left out silently."""
    registered = node(taints=(NOT_READY, STARTUP), meta={"labels": LABELS})
    pool = {**NODE_POOL, "spec": {"template": {"spec": {"startupTaints": "none"}}}}
    field = r"NodePool default: spec\.template\.spec\.startupTaints: Expected `array`"
    with pytest.raises(InputError, match=rf"dump\.json: {field}"):
        read_snapshot(dump(registered, pool))
    claim = {**node_claim(), "status": {"allocatable": {GPU: []}}}
    with pytest.raises(InputError, match=r"NodeClaim default-x1: status\.allocatable\[nvidia"):
        read_snapshot(dump(registered, NODE_POOL, claim))


def test_a_label_of_the_wrong_type_on_another_node_is_refused(taken):
    """The start reads the instance types of all nodes before the objects are loaded."""
    other = node("old", meta={"labels": {"node.kubernetes.io/instance-type": ["m5.large"]}})
    field = r"metadata\.labels\[node\.kubernetes\.io/instance-type\]: Expected `str`"
    with pytest.raises(InputError, match=rf"Node old: {field}"):
        what_if(taken(node(), other), ClusterChange())


def test_a_node_without_provider_id_belongs_to_the_node_claim_that_names_it(taken):
    starting = node(taints=(NOT_READY, UNINITIALIZED), meta=OF_CLAIM)
    del starting["spec"]["providerID"]
    snapshot = taken(starting, node_claim("new"))
    assert found(snapshot).node.spec.provider_id == "aws:///eu-1a/i-new"


def test_a_node_that_karpenter_is_removing_does_not_start(taken):
    going = node_claim(deletionTimestamp=TAKEN_AT, finalizers=["karpenter.sh/termination"])
    assert status_of_ready(taken(node(), going)) == "False"


@pytest.mark.parametrize("has_node", [True, False], ids=["with a Node", "without a Node"])
def test_karpenter_launches_no_second_node_for_waiting_pods(taken, make, write, has_node):
    """The instance is launched. The pod waits for its Node, which may have registered."""
    types = write("types.csv", "name,cpu,memory,zones,price\nm5.xlarge,4,16Gi,z-a,0.2\n")
    tolerations = [{"key": "dedicated", "operator": "Exists"}]
    nodes = [node(taints=(NOT_READY, UNREGISTERED), meta=OF_CLAIM)] if has_node else []
    snapshot = taken(
        old(), *nodes, node_claim(), NODE_POOL, make.pod(cpu="3900m", tolerations=tolerations),
        make.pod("first", node_name="old"),
    )  # fmt: skip
    karpenter = AutoscaleOptions(KARPENTER, instance_types=types)
    outcome = what_if(snapshot, ClusterChange(), Conditions(autoscale=karpenter)).changed
    expected = "new" if has_node else "default-x1"
    assert [one.node for key, one in outcome.pods.items() if "web" in key] == [expected]
    assert outcome.autoscaling is not None
    assert outcome.autoscaling.added == 0


# --- other commands and controllers -------------------------------------------------------------


def test_cluster_autoscaler_adds_no_node_for_a_pod_that_waits(taken, make, write):
    groups = {"node-groups": [{"name": "main", "min": 0, "max": 9, "labels": {POOL: "main"}}]}
    snapshot = taken(old(), node(), make.pod("web", cpu="3"), make.pod("first", node_name="old"))
    chosen = AutoscaleOptions("cluster-autoscaler", write("groups.yaml", json.dumps(groups)))
    outcome = what_if(snapshot, ClusterChange(), Conditions(autoscale=chosen)).changed
    assert [one.node for key, one in outcome.pods.items() if "web" in key] == ["new"]
    assert outcome.autoscaling is not None
    assert outcome.autoscaling.added == 0


def test_pods_of_daemon_sets_run_on_the_node_and_keep_their_room(taken, make):
    """One pod is bound and waits for the network, the other one does not exist yet."""
    agents = [make.workload("DaemonSet", name, cpu="1") for name in ("cni", "logs")]
    for agent in agents:
        agent["metadata"]["uid"] = f"uid-{agent['metadata']['name']}"
        del agent["spec"]["replicas"]
    bound = make.pod("cni-x", node_name="new", tolerations=[{"operator": "Exists"}])
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cni", "uid": "uid-cni"}
    bound["metadata"].update(ownerReferences=[{**owner, "controller": True}], labels={"app": "cni"})
    bound["status"] = {"phase": "Pending"}
    outcome = what_if(taken(node(), *agents, bound, make.pod("web")), ClusterChange()).changed
    assert {one.node for one in outcome.pods.values()} == {"new"}
    assert len(outcome.pods) == 3
    assert all(one.started_at is not None for one in outcome.pods.values())


def test_planners_place_pods_on_the_node(taken, make):
    snapshot = taken(old(), node(taints=(NOT_READY, CILIUM)), make.pod("web", node_name="old"))
    source = pod_source(None, "pod/web", "", snapshot.inventory())
    found = fit(ClusterModel(snapshot, SchedulerConfig()), source, NoProgress(), PODS_MAX)
    assert found.by_node == {"new": 3, "old": 2}


def test_a_scenario_starts_with_the_started_node(dump, make, write):
    path = write("scenario.yaml", json.dumps({"cluster": {"files": [dump(node(), make.pod())]}}))
    experiment = experiment_of(path, read_scenario(path))
    assert "new is starting in the dump" in "".join(experiment.notes)
    assert run_experiment(experiment).outcome.pending == []


def test_a_copy_of_a_dump_has_the_node_as_it_was(dump, tmp_path):
    """The copy is a report of the cluster, not an answer."""
    copy = tmp_path / "copy.json"
    rewrite(copy, dump(node(), old()), None, None, as_list=True)
    assert status_of_ready(read_dump(str(copy))) == "False"
    assert status_of_ready(read_snapshot(str(copy))) == "True"


def test_an_anonymised_dump_has_the_same_starting_node(dump, tmp_path):
    starting = node(taints=(NOT_READY, CILIUM, EBS))
    starting["metadata"]["labels"][ZONE] = "eu-1a"
    copy, path = tmp_path / "copy.json", dump(starting, old(**{ZONE: "eu-1a", EBS_ZONE: "eu-1a"}))
    rewrite(copy, path, tmp_path / "key.json", None, as_list=True)
    started, other = (one.node for one in read_snapshot(str(copy)).manifests)
    assert started.spec.taints == ()
    assert started.metadata.labels[EBS_ZONE] == other.metadata.labels[EBS_ZONE] == "eu-1a"
