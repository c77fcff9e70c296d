"""What-ifs that add nodes, delete them by label, or change fields, requests and priorities."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.unit.whatif import rollout

from fairlead.api.well_known_label import HOSTNAME, region_and_zone
from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.applied_file import NO_MANAGED_FIELDS
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.edit.vertical_pod_autoscaler import recommended_edits
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.fail_on import parse_fail_on
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.question import what_if
from fairlead.whatif.snapshot.inventory import Inventory

POOL = {"topology.kubernetes.io/zone": "a", "pool": "old"}


def running(make, replicas, cpu="1", **spec):
    """A Deployment `web` with its ReplicaSet and its pods on node a."""
    deployment = make.workload(name="web", replicas=replicas, cpu=cpu, **spec)
    return [make.node("a", **POOL), deployment]


@pytest.fixture
def ask(snapshot):
    """Returns the answer about `change` in a cluster of `objects`."""

    def ask_what_if(objects, conditions=None, **change):
        found = (conditions,) if conditions else ()
        return what_if(snapshot(*objects), ClusterChange(**change), *found)

    return ask_what_if


def placed(answer):
    return sorted({pod.node for pod in answer.difference.placed})


def test_new_nodes_take_pods_that_are_pending(ask, make):
    tainted = make.node("a", **POOL)
    tainted["spec"] = {
        "unschedulable": True,
        "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
            {"key": "team", "value": "x", "effect": "NoSchedule"},
        ],
    }
    toleration = {"key": "team", "operator": "Exists"}
    spec = {"nodeSelector": {"pool": "old"}, "tolerations": [toleration]}
    web = make.workload(name="web", replicas=6, **spec)
    daemon = make.workload("DaemonSet", "agent", cpu="100m", **spec)
    del daemon["spec"]["replicas"]
    answer = ask([tainted, web, daemon], add_nodes=2, like="a")
    assert placed(answer) == ["new-node-1", "new-node-2"]
    assert len(answer.difference.placed) == 6 + 2
    new = next(one for one in answer.changed.nodes if one.name == "new-node-1")
    assert new.labels == {**POOL, "kubernetes.io/hostname": "new-node-1"}


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ("a", "a (cpu) request more than the node has. They keep running, but if the kubelet "),
        ("ab", "a (cpu), b (cpu) request more than these nodes have. They keep running, but if "),
    ],
)
def test_nodes_that_become_too_small_for_their_pods_are_named(ask, make, nodes, says):
    pods = [make.pod(f"p{name}", node_name=name, cpu="2") for name in "ab"]
    edits = tuple(f"node/{name}:status.allocatable.cpu=1" for name in nodes)
    cluster = (make.node("a"), make.node("b"), *pods)
    notes = ask(cluster, set=edits).changed.notes
    assert any(note.startswith(f"The pods on {says}") for note in notes)
    assert not any("request more" in note for note in ask(cluster, cordon=("a",)).changed.notes)


def test_several_nodes_are_copied_in_turn(ask, make):
    models = [make.node("a", zone="1"), make.node("b", cpu="8", zone="2")]
    answer = ask(models, add_nodes=5, like="a,b")
    new = [one for one in answer.changed.nodes if one.name.startswith("new-node")]
    assert [one.labels["zone"] for one in new] == ["1", "2", "1", "2", "1"]
    assert [one.allocatable["cpu"] for one in new] == [4000, 8000, 4000, 8000, 4000]


def test_pending_pods_leave_the_room_of_daemonsets_on_new_nodes(ask, make):
    """Each node has four cores: three pods fit beside a DaemonSet pod of half a core."""
    web = make.workload(name="web", replicas=8)
    daemon = make.workload("DaemonSet", "agent", cpu="500m", tolerations=[{"operator": "Exists"}])
    del daemon["spec"]["replicas"]
    answer = ask([make.node("a"), web, daemon], add_nodes=1, like="a")
    assert Counter(pod.workload.name for pod in answer.difference.placed) == {"web": 3, "agent": 1}
    reasons = {pod.reason for pod in answer.difference.placed if pod.workload.name == "web"}
    preemption = "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    refusals = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"
    assert reasons == {f"{refusals}, preemption: {preemption}"}


@pytest.mark.parametrize(
    ("listed", "selector", "agents"),
    [(False, {}, 1), (False, {"pool": "old"}, 1), (False, {HOSTNAME: "a"}, 0), (True, {}, 1)],
    ids=["missing", "label of the pool", "label of one node", "in the dump"],
)
def test_new_nodes_run_the_pods_of_daemonsets_that_the_dump_lacks(
    ask, make, listed, selector, agents
):
    """A dump of nodes and pods has no DaemonSets. Their pods need room on new nodes, too."""
    agent = make.pod("agent-a", cpu="2", node_name="a", nodeSelector=selector, priority=5)
    agent["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "agent",
         "controller": True}
    ]  # fmt: skip
    agent["metadata"]["labels"] = {"app": "agent"}
    daemon = make.workload("DaemonSet", "agent", cpu="2")
    del daemon["spec"]["replicas"]
    daemon["metadata"]["uid"] = "agent"
    node = make.node("a", pool="old", **{HOSTNAME: "a"})
    web = make.workload(name="web", replicas=8, cpu="1")
    objects = [node, agent, web, *([daemon] if listed else [])]
    answer = ask(objects, add_nodes=1, like="a")
    new = [pod for pod in answer.difference.placed if pod.node == "new-node-1"]
    found = Counter(pod.workload.name for pod in new)
    assert (found["agent"], found["web"]) == (agents, 4 - 2 * agents)


def test_pods_that_the_change_creates_use_its_new_nodes(ask, make):
    """Node a has room for the pod too; the scheduler prefers the empty new node."""
    node = make.node("a", **{"kubernetes.io/hostname": "a"})
    objects = [node, make.workload(replicas=0), make.pod("p", cpu="2", node_name="a")]
    answer = ask(objects, scale=("deploy/web=1",), add_nodes=1, like="a")
    assert placed(answer) == ["new-node-1"]


def test_new_nodes_can_replace_a_pool_that_is_deleted(ask, make):
    daemon = make.workload("DaemonSet", "agent", cpu="100m")
    del daemon["spec"]["replicas"]
    objects = [*running(make, 3), make.node("b", **POOL), make.node("c"), daemon]
    answer = ask(objects, delete=("node/pool=old",), add_nodes=1, like="a")
    assert [node.name for node in answer.changed.nodes] == ["c", "new-node-1"]
    assert not answer.difference.gone
    assert len(answer.difference.removed) == 2  # the agent's pods are deleted with their nodes
    agent = next(one for one in answer.effect.workloads if one.workload.name == "agent")
    assert (agent.readiness.wanted, agent.readiness.at_end) == (2, 2)


def test_an_updated_pod_of_a_daemonset_without_room_is_pending_instead_of_the_old_pod(ask, make):
    """The pod of node a is replaced first; the pod of node b stays."""
    daemon = make.workload("DaemonSet", "agent", cpu="1")
    del daemon["spec"]["replicas"]
    objects = [make.node("a"), make.node("b"), daemon]
    found = ask(objects, set_resources=("ds/agent=cpu=5",)).difference
    [pending] = found.pending
    [updated] = found.updated
    assert updated.pod == pending
    assert updated.before.node == pending.pinned_to
    assert not found.removed


def test_new_nodes_can_be_of_an_instance_type(ask, make, write):
    types = write("types.csv", "name,cpu,memory,zones\nbig,16,64Gi,a b\n")
    conditions = Conditions(instance_types=types)
    objects = [make.node("a", cpu="1", **POOL), make.workload(name="web", replicas=4, cpu="8")]
    answer = ask(objects, conditions, add_nodes=2, like="a", instance_type="big")
    assert len(answer.difference.placed) == 4
    zones = {one.labels["topology.kubernetes.io/zone"] for one in answer.changed.nodes}
    assert zones == {"a", "b"}
    with pytest.raises(InputError, match=r"there is no instance type small in .*; known: big"):
        ask(objects, conditions, add_nodes=2, instance_type="small")


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_new_nodes_have_the_labels_of_the_first_node_of_their_type_by_name(ask, make, write, names):
    """The zone has the region of its last node by name."""
    gpu = "karpenter.k8s.aws/instance-gpu-name"
    labels = {
        "a": {gpu: "a10g", ZONE_LABEL: "1", "topology.kubernetes.io/region": "old"},
        "b": {gpu: "l4", ZONE_LABEL: "1", "topology.kubernetes.io/region": "new"},
    }
    kind = {"node.kubernetes.io/instance-type": "big"}
    nodes = [make.node(name, **kind, **labels[name]) for name in names]
    types = write("types.csv", "name,cpu,memory\nbig,16,64Gi\n")
    conditions = Conditions(instance_types=types)
    answer = ask(nodes, conditions, add_nodes=1, like="a", instance_type="big")
    [new] = [one.labels for one in answer.changed.nodes if one.name.startswith("new-node")]
    assert (new[gpu], new["topology.kubernetes.io/region"]) == ("a10g", "new")


ZONE_LABEL = "topology.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
LEGACY = "failure-domain.beta.kubernetes.io"
PLACE = {
    "topology.kubernetes.io/region": "r",
    ZONE_LABEL: "a",
    f"{LEGACY}/region": "r",
    f"{LEGACY}/zone": "a",
    "topology.ebs.csi.aws.com/zone": "a",
    "topology.k8s.aws/zone-id": "r1-az1",
    "node.kubernetes.io/instance-type": "small",
    "beta.kubernetes.io/instance-type": "small",
}


@pytest.mark.parametrize("like", ["a", ""])
def test_all_labels_of_a_new_node_state_the_same_place_and_type(ask, make, write, like):
    """`--fail-zone` and the node controller read the legacy labels first."""
    types = write("types.csv", "name,cpu,memory,zones\nbig,16,64Gi,a b\n")
    objects = [make.node("a", **PLACE), make.node("b", **{**PLACE, ZONE_LABEL: "b"})]
    objects[1]["metadata"]["labels"][f"{LEGACY}/zone"] = "b"
    conditions = Conditions(instance_types=types)
    answer = ask(objects, conditions, add_nodes=2, like=like, instance_type="big")
    new = [one.labels for one in answer.changed.nodes if one.name.startswith("new-node")]
    assert [region_and_zone(labels) for labels in new] == [("r", "a"), ("r", "b")]
    assert {labels.get("beta.kubernetes.io/instance-type", "big") for labels in new} == {"big"}
    if like:
        [beta] = [labels for labels in new if labels[ZONE_LABEL] == "b"]
        assert beta["topology.ebs.csi.aws.com/zone"] == "b"
        assert "topology.k8s.aws/zone-id" not in beta


@pytest.mark.parametrize("like", ["a", ""])
def test_new_nodes_of_an_instance_type_reach_the_volumes_of_their_zone(ask, make, write, like):
    """The driver of the volumes labels new nodes, as it has labelled the other nodes."""
    types = write("types.csv", "name,cpu,memory\nbig,16,64Gi\n")
    driver = {"name": "ebs.csi.aws.com", "nodeID": "i", "topologyKeys": [EBS_ZONE]}
    nodes = [
        make.node(name, **{ZONE_LABEL: f"z-{name}", EBS_ZONE: f"z-{name}"}) for name in ("a", "b")
    ]
    csi = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name},
            "spec": {"drivers": [driver]},
        }
        for name in ("a", "b")
    ]
    web = make.workload(name="web", replicas=1, cpu="12", nodeSelector={EBS_ZONE: "z-b"})
    change = {"add_nodes": 2, "like": like, "instance_type": "big"}
    answer = ask([*nodes, *csi, web], Conditions(instance_types=types), **change)
    assert placed(answer) == ["new-node-2"]


@pytest.mark.parametrize("columns", [",", "windows,arm64;amd64", "linux;windows,arm64;amd64"])
def test_new_nodes_of_an_instance_type_have_the_system_of_the_copied_node(
    ask, make, write, columns
):
    """The file may state no operating system, or several."""
    types = write("types.csv", f"name,cpu,memory,os,arch\nbig,16,64Gi,{columns}\n")
    labels = {"kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64"}
    objects = [make.node("a", cpu="1", **labels)]
    objects.append(make.workload(name="web", replicas=1, cpu="8", nodeSelector=labels))
    change = {"add_nodes": 1, "like": "a", "instance_type": "big"}
    answer = ask(objects, Conditions(instance_types=types), **change)
    assert placed(answer) == ["new-node-1"]


@pytest.mark.parametrize("label", [ZONE_LABEL, f"{LEGACY}/zone"])
@pytest.mark.parametrize("zones", ["", "a b c"], ids=["zones of the cluster", "zones of the file"])
def test_nodes_of_an_instance_type_are_in_the_zones_of_several_copied_nodes(
    ask, make, write, zones, label
):
    """No new node is in zone c, and three of four are copies of node 2."""
    types = write("types.csv", f"name,cpu,memory,zones\nbig,16,64Gi,{zones}\n")
    nodes = [make.node(str(at), **{label: zone, "n": str(at)}) for at, zone in enumerate("cab")]
    change = {"add_nodes": 4, "like": "2:3,1", "instance_type": "big"}
    answer = ask(nodes, Conditions(instance_types=types), **change)
    new = [one.labels for one in answer.changed.nodes if one.name.startswith("new-node")]
    found = [(one["n"], region_and_zone(one)[1]) for one in new]
    assert sorted(found) == [("1", "a"), *[("2", "b")] * 3]
    assert {one["node.kubernetes.io/instance-type"] for one in new} == {"big"}


def test_several_copied_nodes_without_zones_can_get_an_instance_type(ask, make, write):
    types = write("types.csv", "name,cpu,memory\nbig,16,64Gi\n")
    nodes = [make.node(name, n=name) for name in ("a", "b")]
    change = {"add_nodes": 2, "like": "a,b", "instance_type": "big"}
    answer = ask(nodes, Conditions(instance_types=types), **change)
    new = [one.labels["n"] for one in answer.changed.nodes if one.name.startswith("new-node")]
    assert sorted(new) == ["a", "b"]


@pytest.mark.parametrize(("other", "has"), [("b", "is in zone b"), ("d", "has no zone")])
def test_an_instance_type_must_be_offered_in_the_zones_of_several_copied_nodes(
    ask, make, write, other, has
):
    types = write("types.csv", "name,cpu,memory,zones\nbig,16,64Gi,a c\n")
    nodes = [make.node(zone, **{ZONE_LABEL: zone}) for zone in ("a", "b", "c")]
    nodes.append(make.node("d"))
    change = {"add_nodes": 2, "like": f"a,{other}", "instance_type": "big"}
    text = f"--like: node {other} {has}, but big is offered only in a, c"
    with pytest.raises(InputError, match=text):
        ask(nodes, Conditions(instance_types=types), **change)


def test_new_nodes_have_the_labels_of_their_instance_type(ask, make, write):
    """The labels come from the file, and from the name of the type; others from the node."""
    cpus, disk = "karpenter.k8s.aws/instance-cpu", "example.com/disk"
    types = write("types.csv", f"name,cpu,memory,{disk}\nm6i.2xlarge,8,32Gi,nvme\n")
    beta = "beta.kubernetes.io/instance-type"
    labels = {"node.kubernetes.io/instance-type": "m6i.xlarge", beta: "m6i.xlarge", cpus: "4"}
    labels |= POOL
    web = make.workload(name="web", replicas=1, nodeSelector={cpus: "8", disk: "nvme", **POOL})
    change = {"add_nodes": 1, "like": "a", "instance_type": "m6i.2xlarge"}
    answer = ask([make.node("a", **labels), web], Conditions(instance_types=types), **change)
    assert placed(answer) == ["new-node-1"]
    [new] = [one for one in answer.changed.nodes if one.name == "new-node-1"]
    assert new.labels[beta] == "m6i.2xlarge"


def test_new_nodes_of_an_instance_type_keep_as_much_for_the_system_as_the_existing_nodes(
    ask, make, write
):
    types = write("types.csv", "name,cpu,memory\nbig,16,64Gi\n")
    existing = make.node("a", cpu="3")
    existing["status"]["capacity"] = {**existing["status"]["allocatable"], "cpu": "4"}
    objects = [existing, make.workload(name="web", replicas=2, cpu="8")]
    conditions = Conditions(instance_types=types)
    answer = ask(objects, conditions, add_nodes=1, like="a", instance_type="big")
    assert len(answer.difference.placed) == 1
    assert any("1000m cpu as on a, or" in note for note in answer.changed.notes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"add_nodes": 2}, "--add-nodes: needs --like NODE, or --instance-type NAME"),
        ({"like": "a"}, "--like: needs --add-nodes"),
        ({"add_nodes": 0, "like": "a"}, "--add-nodes: 0 is not from 1 to"),
        ({"add_nodes": 1, "like": "x"}, "--like: there is no Node x"),
        ({"add_nodes": 1, "like": "a,x"}, "--like: there is no Node x"),
        ({"add_nodes": 1, "instance_type": "x"}, "--instance-type: needs --instance-types FILE"),
        ({"delete": ("node/pool=new",)}, "--delete: no Node matches pool=new"),
        ({"delete": ("nodes/=",)}, "--delete: '=' is not a selector"),
        ({"server_side": True}, "--server-side: needs --apply"),
        ({"set": ("deploy/web",)}, "--set: 'deploy/web' is not KIND/NAMESPACE/NAME:path=value"),
        ({"set": ("deploy/web:spec.x=1",)}, "--set: Deployment default/web: spec.x: there is no"),
        ({"set_resources": ("deploy/web",)}, "--set-resources: 'deploy/web' is not KIND/"),
        ({"set_resources": ("deploy/web:x=cpu=1",)}, "--set-resources: .*there is no container x"),
        (
            {"set_resources": ("deploy/web=cpu=x",)},
            "--set-resources: Deployment default/web: cpu: 'x' is not a quantity, such as 2, 500m",
        ),
        (
            {"set_resources": ("deploy/web=memory=16",)},
            "--set-resources: .*memory: 16 is only 16 bytes; write a unit, such as 16Gi",
        ),
        (
            {"set_resources": ("deploy/web=nvidia=1",)},
            "--set-resources: Deployment default/web: nvidia: is not a resource of containers",
        ),
        (
            {"set_resources": ("deploy/web=cpu=20%",)},
            "--set-resources: Deployment default/web: cpu: '20%': a percentage needs a sign and",
        ),
        (
            {"set_resources": ("deploy/web=cpu=-101%",)},
            "--set-resources: .*cpu: '-101%': an amount cannot shrink by more than 100%",
        ),
        (
            {"set_resources": ("deploy/web=example.com/gpu=+10%",)},
            "--set-resources: .*'[+]10%': only these resources can change in percent: cpu, memory",
        ),
        (
            {"set_resources": ("deploy/web=limits.cpu=+10%",)},
            "--set-resources: .*container c has no cpu limit that [+]10% could change",
        ),
        ({"set_resources": ("node/a=cpu=1",)}, "--set-resources: cannot change a Node, only"),
        ({"priority_class": ("high",)}, "--priority-class: 'high' is not NAME=VALUE"),
        ({"priority_class": ("hi=1",)}, "--priority-class: there is no PriorityClass hi; did you"),
        ({"priority_class": ("system-node-critical=1",)}, "--priority-class: .* is built in"),
        ({"priority_class": ("high=2000000000",)}, "--priority-class: .*maximum allowed value"),
        ({"priority_class": ("high=99999999999",)}, "--priority-class: .*maximum allowed value"),
        ({"priority_class": (f"high={10**30}",)}, "--priority-class: .*maximum allowed value"),
        ({"priority_class": (f"high=-{10**30}",)}, "--priority-class: .*must be between"),
    ],
)
def test_invalid_edits_are_refused_in_one_line(ask, make, change, said):
    with pytest.raises(InputError, match=said):
        ask([*running(make, 1), make.priority_class("high", 9)], **change)


def test_objects_of_any_kind_are_deleted_by_label(ask, make):
    pods = [make.pod(name, node_name="a") for name in ("p", "q", "r")]
    for each in pods[:2]:
        each["metadata"]["labels"] = {"app.kubernetes.io/name": "x"}
    answer = ask([make.node("a"), *pods], delete=("pod/default/app.kubernetes.io/name=x",))
    assert [pod.name for pod in answer.difference.removed] == ["p", "q"]
    everywhere = ask([make.node("a"), *pods], delete=("pod/app.kubernetes.io/name=x",))
    assert everywhere.difference == answer.difference


def test_changed_requests_cause_a_rollout_and_raise_a_lower_limit(ask, make):
    objects = running(make, 2)
    container = objects[1]["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["limits"] = {"cpu": "1", "memory": "1Gi"}
    answer = ask(objects, set_resources=("deploy/web=cpu=1500m,example.com/gpu=0",))
    assert len(answer.difference.updated) == 2
    assert {pod.requests["cpu"] for pod in answer.changed.pods.values()} == {1500}
    assert answer.changed.notes[0] == (
        "Deployment default/web: container c gets a cpu limit of 1500m instead of 1, because a "
        "request must not exceed its limit."
    )
    assert not any("limit of" in note for note in answer.without.notes)


def test_percentages_change_the_present_requests_of_each_container(ask, make):
    """The container b has only a limit, which is the request of new pods; d has no amounts."""
    objects = running(make, 2)
    containers = objects[1]["spec"]["template"]["spec"]["containers"]
    containers[0]["resources"] = {"requests": {"cpu": "500m", "memory": "4Gi"}}
    containers.append({"name": "b", "image": "b", "resources": {"limits": {"memory": "1Gi"}}})
    containers.append({"name": "d", "image": "d"})
    answer = ask(objects, set_resources=("deploy/web=cpu=-12.5%,memory=-20%",))
    [requests] = {tuple(pod.requests.items()) for pod in answer.changed.pods.values()}
    assert dict(requests)["cpu"] == 438
    assert dict(requests)["memory"] == (3277 + 820) << 20
    assert answer.changed.notes[0] == (
        "Deployment default/web: container c requests cpu 438m instead of 500m; container c "
        "requests memory 3277Mi instead of 4Gi; container b has no cpu request that -12.5% could "
        "change; container b requests memory 820Mi instead of 1Gi; container d has no cpu request "
        "that -12.5% could change; container d has no memory request that -20% could change."
    )


def test_a_change_of_zero_percent_keeps_an_amount_that_is_not_a_whole_mebibyte(ask, make):
    objects = running(make, 1)
    container = objects[1]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1", "memory": "1000M"}}
    answer = ask(objects, set_resources=("deploy/web=cpu=+0%,memory=-0%",))
    assert answer.changed.notes[0] == (
        "Deployment default/web: container c keeps requests cpu 1; container c keeps requests "
        "memory 1G."
    )


def test_a_percentage_above_the_limit_raises_the_limit(ask, make):
    objects = running(make, 1)
    container = objects[1]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1"}, "limits": {"cpu": "1200m"}}
    answer = ask(objects, set_resources=("deploy/web=cpu=+50%",))
    assert [pod.requests["cpu"] for pod in answer.changed.pods.values()] == [1500]
    assert answer.changed.notes[1].startswith(
        "Deployment default/web: container c gets a cpu limit of 1500m instead of 1200m"
    )


def test_a_field_of_any_object_can_be_set(ask, make):
    answer = ask(running(make, 2), set=("deploy/web:spec.replicas=3",))
    assert len(answer.difference.placed) == 1
    cordoned = ask(running(make, 2), set=("node/a:spec.unschedulable=true",))
    assert cordoned.changed.nodes[0].unschedulable
    gold = "deploy/web:spec.template.spec.priorityClassName=gold"
    with pytest.raises(InputError, match="no PriorityClass with name gold was found"):
        ask(running(make, 2), set=(gold,))


def test_a_part_of_a_value_can_be_set_after_the_value(ask, make):
    path = "deploy/web:spec.template.spec.tolerations"
    edits = (f"{path}=[{{key: a, operator: Exists}}]", f"{path}[0].key=b")
    [pod] = ask([make.node("a"), make.workload(replicas=1)], set=edits).difference.updated
    assert pod.pod.workload.name == "web"


def test_edits_of_an_object_are_valid_or_invalid_together(ask, make):
    """The second edit makes the first one valid, or changes another field."""
    objects, path = [make.node("a"), make.workload(replicas=1)], "deploy/web:spec.template.spec"
    policy, servers = f"{path}.dnsPolicy=None", f"{path}.dnsConfig={{nameservers: [10.0.0.1]}}"
    assert ask(objects, set=(policy, servers)).difference.updated
    with pytest.raises(InputError, match=r"dnsConfig: Required value"):
        ask(objects, set=(policy, f"{path}.hostNetwork=true"))


def test_a_changed_priority_applies_to_new_pods_only(ask, make):
    low = make.pod("low", cpu="3", node_name="a", owner="rs", priority=1, priorityClassName="low")
    high = make.workload(name="web", replicas=1, cpu="3", priorityClassName="high")
    classes = [make.priority_class("low", 1), make.priority_class("high", 2)]
    objects = [make.node("a"), low, *classes]
    answer = ask(objects, priority_class=("low=5",))
    assert answer.difference.is_empty
    assert answer.changed.notes[0] == (
        "PriorityClass low: 1 becomes 5. 1 pod has it and keeps priority 1, "
        "because the priority of an existing pod does not change. New pods get 5."
    )
    waiting = [*objects, {**high, "spec": {**high["spec"], "replicas": 0}}]
    change = {"priority_class": ("high=0",), "scale": ("deploy/web=1",)}
    assert not ask(waiting, **change).difference.preempted
    assert ask(waiting, scale=change["scale"]).difference.preempted


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        ({}, {"globalDefault": True}, " and may preempt pods of lower priority"),
        (None, {"globalDefault": True}, " and may preempt pods of lower priority"),
        (None, {"globalDefault": True, "preemptionPolicy": "Never"}, ""),
        ({}, {}, None),
        ({"globalDefault": True}, {"globalDefault": True}, None),
    ],
)
def test_a_new_default_of_priorities_has_a_note(ask, make, write, old, new, effect):
    high = make.priority_class("high", 9)
    objects = [make.node("a"), make.pod("p", node_name="a"), make.priority_class("low", 1)]
    objects += [make.pod("q", node_name="a", priority=3), make.pod("r", priorityClassName="low")]
    present = [] if old is None else [{**high, **old}]
    answer = ask([*objects, *present], apply=(write("class.json", {**high, **new}),))
    head = "PriorityClass high becomes the default: new pods without a class get priority 9"
    note = f"{head}{effect}. 2 present pods keep priority 0, 3 until replaced."
    found = [one for one in answer.changed.notes if "becomes the default" in one]
    assert found == ([] if effect is None else [note])


def test_a_class_that_becomes_or_stops_being_the_default_has_a_note(ask, make):
    objects = [make.node("a"), make.pod("p", node_name="a"), make.priority_class("low", 1)]
    answer = ask(objects, set=("pc/low:globalDefault=true",))
    assert answer.changed.notes[0] == (
        "PriorityClass low becomes the default: new pods without a class get priority 1 and may "
        "preempt pods of lower priority. 1 present pod keeps priority 0 until replaced."
    )
    objects[1] = make.pod("p", node_name="a", priority=1, priorityClassName="low")
    objects[2] = {**objects[2], "globalDefault": True}
    answer = ask(objects, set=("pc/low:globalDefault=false",))
    assert answer.changed.notes[0] == (
        "PriorityClass low is no longer the default: new pods without a class get priority 0. "
        "1 pod has it and keeps priority 1."
    )


def test_a_deleted_class_that_is_still_named_has_a_note(ask, make):
    low = make.pod("low", node_name="a", owner="rs", priority=1, priorityClassName="low")
    web = make.workload(name="web", replicas=0, priorityClassName="low")
    objects = [make.node("a"), low, make.priority_class("low", 1), make.priority_class("new", 2)]
    assert ask([*objects, web], delete=("pc/low",)).changed.notes[0] == (
        "PriorityClass low is deleted, but Deployment default/web still names it: new pods, "
        "including replacements, are refused. 1 pod has it and keeps priority 1."
    )
    note = "PriorityClass low is deleted. 1 pod has it and keeps priority 1."
    assert ask(objects, delete=("pc/low",)).changed.notes[0] == note
    assert not any("PriorityClass" in one for one in ask(objects, delete=("pc/new",)).changed.notes)


def test_a_workload_that_names_a_deleted_class_can_be_changed(ask, make, write):
    """The API server accepts the workload, because the Priority plugin checks only pods."""
    low, classes = make.priority_class("low", 1), [make.priority_class("other", 2)]
    objects = [*running(make, 2, priorityClassName="low"), low, *classes]
    edit = "deploy/web:spec.template.metadata.labels.x=y"
    answer = ask(objects, delete=("pc/low",), set=(edit,))
    [error] = answer.effect.lasting_errors
    assert error.message.endswith("is forbidden: no PriorityClass with name low was found")
    named = write("b.json", make.workload(name="b", priorityClassName="low"))
    answer = ask(objects, delete=("pc/low",), apply=(named,))
    assert [str(one.workload) for one in answer.effect.lasting_errors] == ["deploy/default/b"]
    with pytest.raises(InputError, match="no PriorityClass with name low was found; known: other"):
        ask([*running(make, 2), *classes], apply=(named,))


def test_a_class_that_is_created_again_with_another_policy_has_a_note(ask, make, write):
    low = make.pod("low", node_name="a", priority=1, priorityClassName="low")
    objects = [make.node("a"), low, make.priority_class("low", 1)]
    never = write("never.json", {**make.priority_class("low", 1), "preemptionPolicy": "Never"})
    assert ask(objects, delete=("pc/low",), apply=(never,)).changed.notes[0] == (
        "PriorityClass low: the preemptionPolicy PreemptLowerPriority becomes Never for new pods. "
        "1 pod has it and keeps PreemptLowerPriority."
    )


@pytest.mark.parametrize(
    ("edit", "instead"),
    [
        ("value=5", "--priority-class low=5"),
        ("preemptionPolicy=Never", "--delete priorityclass/low --apply FILE"),
    ],
)
def test_an_edit_of_an_immutable_field_of_a_class_names_the_option_for_it(ask, make, edit, instead):
    with pytest.raises(InputError) as caught:
        ask([make.node("a"), make.priority_class("low", 1)], set=(f"pc/low:{edit}",))
    assert caught.value.problem == f"cannot be updated, only deleted and created again: {instead}"


def test_an_applied_class_with_another_value_names_the_option_for_it(ask, make, write):
    """A pipeline that applies manifests gets the same hint as --set gives."""
    cluster = [make.node("a"), make.priority_class("low", 1)]
    same = write("same.json", make.priority_class("low", 1))
    assert ask(cluster, apply=(same,)).effect.is_none
    file = write("low.json", make.priority_class("low", 5))
    with pytest.raises(InputError) as caught:
        ask(cluster, apply=(file,))
    again = "cannot be updated, only deleted and created again: --priority-class low=5"
    assert (caught.value.field, caught.value.problem) == ("value", again)


def test_server_side_apply_finds_conflicts_if_the_dump_can_show_them(ask, make, write):
    deployment = make.workload(name="web", replicas=2)
    file = write("new.json", make.workload(name="web", replicas=1))
    answer = ask([make.node("a"), deployment], apply=(file,), server_side=True)
    assert len(answer.difference.removed) == 1
    assert NO_MANAGED_FIELDS in answer.changed.notes
    deployment["metadata"]["managedFields"] = [
        {
            "manager": "hpa",
            "operation": "Update",
            "apiVersion": "apps/v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        }
    ]
    with pytest.raises(InputError, match=r'conflict with "hpa" using apps/v1: \.spec\.replicas'):
        ask([make.node("a"), deployment], apply=(file,), server_side=True)
    change = {"apply": (file,), "server_side": True, "force_conflicts": True}
    assert len(ask([make.node("a"), deployment], **change).difference.removed) == 1


def test_the_verdict_on_a_deleted_pool_names_the_pods_that_cannot_move(ask, make):
    daemon = make.workload("DaemonSet", "agent", cpu="100m")
    del daemon["spec"]["replicas"]
    answer = ask([make.node("a", **POOL), make.node("b"), daemon], delete=("node/pool=old",))
    assert answer.verdict.first.kind is OutcomeKind.REMOVED


def held(make, kind, replicas=1, **spec):
    """Return a workload `web` that does not replace pods, or creates none."""
    found = make.workload(kind, "web", replicas=replicas)
    found["spec"] |= spec
    return found


@pytest.mark.parametrize(
    ("kind", "spec", "note"),
    [
        ("Deployment", {"paused": True}, " is paused, so its new template replaces no pods."),
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}},
         " has the update strategy OnDelete, so it replaces only deleted pods."),
        ("StatefulSet", {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
         " has the partition 2, so 2 of 3 pods keep the old template."),
        ("StatefulSet", {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 3}}},
         " has the partition 3, so its new template replaces no pods."),
        ("ReplicaSet", {}, " applies its new template only to pods that it creates later."),
        ("Deployment", {}, ""),
    ],
)  # fmt: skip
def test_a_workload_that_keeps_its_pods_is_named(ask, make, kind, spec, note):
    workload = held(make, kind, **spec)
    answer = ask([make.node("a"), workload], set_resources=(f"{kind}/web=cpu=2",))
    assert (f"{kind} default/web{note}" in answer.changed.notes) == bool(note)


@pytest.mark.parametrize("pauses", [True, False])
@pytest.mark.parametrize("order", [1, -1])
def test_notes_on_kept_pods_see_all_edits_of_a_workload(ask, make, pauses, order):
    """A Deployment that is paused after all edits keeps its pods; the order does not matter."""
    workload = held(make, "Deployment", paused=not pauses)
    image = "deploy/web:spec.template.spec.containers[0].image=v2"
    edits = (image, f"deploy/web:spec.paused={str(pauses).lower()}")[::order]
    answer = ask([make.node("a"), workload], set=edits)
    note = "Deployment default/web is paused, so its new template replaces no pods."
    assert (note in answer.changed.notes) == pauses


@pytest.mark.parametrize("spec", ["Always", [{"template": {}}]])
def test_a_custom_resource_whose_spec_is_no_map_can_be_changed(ask, make, spec):
    """It has no rollout, whatever its spec contains."""
    meta = {"name": "w", "namespace": "default"}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, "spec": spec}
    answer = ask([make.node("a"), widget], set=("widget/w:metadata.labels.app=web",))
    assert answer.verdict.first.kind is OutcomeKind.UNCHANGED


@pytest.mark.parametrize(
    ("policy", "unready", "is_held"),
    [("OrderedReady", (0,), True), ("OrderedReady", (1,), True), ("OrderedReady", (), False),
     ("OrderedReady", (2, 10), True), ("OrderedReady", (11,), False), ("Parallel", (0,), False)],
)  # fmt: skip
def test_a_stateful_set_that_waits_for_an_unready_pod_is_named(ask, make, policy, unready, is_held):
    """It replaces its 11 pods in order, and only while all of them are ready; the 12th is deleted.

    The first unready pod is named: 2 before 10.
    """
    pods = []
    for number in range(12):
        pod = make.pod(f"web-{number}", node_name="a", owner="web")
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "apps/v1", "kind": "StatefulSet"}
        pod["metadata"]["labels"] = {"app": "web"}
        status = "False" if number in unready else "True"
        pod["status"]["conditions"] = [{"type": "Ready", "status": status}]
        pods.append(pod)
    workload = held(make, "StatefulSet", 11, podManagementPolicy=policy)
    workload["metadata"]["uid"] = pods[0]["metadata"]["ownerReferences"][0]["uid"]
    answer = ask([make.node("a", cpu="64"), workload, *pods], set_resources=("sts/web=cpu=200m",))
    waits = "The rollout of StatefulSet default/web waits until its pod web-{} is ready.".format
    notes = [one for one in answer.changed.notes if one.startswith("The rollout")]
    assert notes == [waits(number) for number in unready[:1] if is_held]
    assert bool(answer.difference.updated) != is_held
    assert (answer.verdict.first.kind is OutcomeKind.UNFINISHED) == is_held
    if is_held:
        sentence = "The rollout of sts/default/web does not finish: 12 pods keep the old template."
        assert answer.verdict.first.sentence == sentence
        assert [one.outdated for one in answer.effect.workloads] == [12]
        assert not answer.effect.is_none
        assert not any("--horizon" in str(step) for step in answer.next_steps)


@pytest.mark.parametrize("deletes_pod", [False, True])
def test_a_stateful_set_with_an_unschedulable_pod_needs_its_deletion(ask, make, deletes_pod):
    """The new template fits. The controller replaces the pod only if it is deleted afterwards."""
    pod = make.pod("web-0", cpu="99", owner="web")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    pod["metadata"]["labels"] = {"app": "web"}
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod["status"] = {"phase": "Pending", "conditions": [scheduled]}
    workload = make.workload("StatefulSet", replicas=1, cpu="99")
    workload["metadata"]["uid"] = "web"
    deleted = ("pod/web-0",) if deletes_pod else ()
    answer = ask([make.node("a"), workload, pod], set_resources=("sts/web=cpu=1",), delete=deleted)
    (end,) = answer.changed.pods.values()
    assert (end.node, end.requests["cpu"]) == (("a", 1000) if deletes_pod else ("", 99_000))
    note = "The rollout of StatefulSet default/web waits until its pod web-0 is ready."
    assert (note in answer.changed.notes) != deletes_pod
    assert sum(one.outdated for one in answer.effect.workloads) == (not deletes_pod)


@pytest.mark.parametrize("option", ["scale", "set"])
@pytest.mark.parametrize(
    ("policy", "replicas", "is_held"),
    [("OrderedReady", 3, True), ("OrderedReady", 1, False), ("Parallel", 3, False)],
    ids=["in order", "its last pods go", "in parallel"],
)
def test_a_stateful_set_that_waits_for_a_pod_before_it_scales_is_named(
    ask, make, option, policy, replicas, is_held
):
    """Its second pod is terminating on a node whose kubelet does not answer."""
    nodes, pods = [make.node(name) for name in "ab"], []
    unready = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2025-12-31T23:00:00Z"}
    nodes[1]["status"]["conditions"] = [unready]
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    nodes[1]["spec"] = {"taints": [taint | {"timeAdded": unready["lastTransitionTime"]}]}
    workload = held(make, "StatefulSet", 2, podManagementPolicy=policy)
    workload["metadata"]["uid"] = "web"
    for number, node in enumerate("ab"):
        pod = make.pod(f"web-{number}", node_name=node, owner="web")
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(pod)
    pods[1]["metadata"]["deletionTimestamp"] = "2025-12-31T23:59:00Z"
    text = f"sts/web={replicas}" if option == "scale" else f"sts/web:spec.replicas={replicas}"
    answer = ask([*nodes, workload, *pods], **{option: (text,)})
    note = "StatefulSet default/web creates and deletes no pods until its pod web-1 is ready."
    assert (note in answer.changed.notes) == is_held
    assert bool(answer.difference.placed) == (policy == "Parallel")


@pytest.mark.parametrize(
    ("policy", "replicas", "cpu", "sentence"),
    [
        pytest.param("OrderedReady", 4, "1", "2 pods of sts/default/web are not created: the "
                     "StatefulSet waits until its pods with lower ordinals are ready.",
                     id="a pod is not ready"),
        pytest.param("OrderedReady", 3, "99", "1 pod of sts/default/web is not created: the "
                     "StatefulSet waits until its pods with lower ordinals are ready.",
                     id="a pod is pending"),
        pytest.param("OrderedReady", 2, "1", "Nothing changes for any pod.", id="no new pods"),
        pytest.param("Parallel", 4, "1", "2 more pods of sts/default/web run after 1s, and none is "
                     "displaced.", id="in parallel"),
    ],
)  # fmt: skip
def test_new_pods_that_a_stateful_set_holds_back_are_a_difference(
    ask, make, policy, replicas, cpu, sentence
):
    """The first pod is ready; the second is not, or requests more than the node has."""
    workload = held(make, "StatefulSet", 2, podManagementPolicy=policy)
    workload["metadata"]["uid"] = "web"
    pods = [make.pod("web-0", node_name="a", owner="web")]
    pods.append(make.pod("web-1", node_name="" if cpu == "99" else "a", owner="web", cpu=cpu))
    for number, pod in enumerate(pods):
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "apps/v1", "kind": "StatefulSet"}
        pod["metadata"]["labels"] = {"app": "web"}
        if pod["spec"].get("nodeName"):
            status = "False" if number else "True"
            pod["status"]["conditions"] = [{"type": "Ready", "status": status}]
    answer = ask([make.node("a", cpu="9"), workload, *pods], scale=(f"sts/web={replicas}",))
    assert answer.verdict.first.sentence == sentence
    assert answer.effect.is_none == (replicas == 2)
    new = 0 if policy == "Parallel" else replicas - 2
    assert sum(one.missing for one in answer.effect.workloads) == new


def waiting_set(make, name, nodes):
    """Return a StatefulSet with a pod on each of `nodes`; its first pod is not ready."""
    workload = make.workload("StatefulSet", name, replicas=len(nodes))
    workload["metadata"]["uid"] = name
    pods = [make.pod(f"{name}-{n}", node_name=node, owner=name) for n, node in enumerate(nodes)]
    for number, pod in enumerate(pods):
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name}
        pod["metadata"]["ownerReferences"][0] |= owner
        pod["metadata"]["labels"] = {"app": name}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True" if number else "False"}]
    return [workload, *pods]


def test_new_pods_are_named_beside_pods_that_are_not_created_again(ask, make):
    """The drain evicts db-1; db waits for db-0 before it creates db-1 again, and then db-2."""
    sets = [*waiting_set(make, "db", "ab"), *waiting_set(make, "web", "aa")]
    nodes = [make.node(name, cpu="9") for name in "ab"]
    answer = ask([*nodes, *sets], scale=("sts/db=3", "sts/web=3"), drain=("b",))
    [sentence] = [one.sentence for one in answer.verdict.findings if one.kind == "not_created"]
    until = "StatefulSet waits until its pods with lower ordinals are ready."
    assert sentence == (
        f"1 pod of sts/default/db is not created again: the {until} 2 pods of sts/default/db, "
        f"sts/default/web are not created: each {until}"
    )


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
def test_a_workload_that_is_being_deleted_ignores_a_change(ask, make, kind):
    web = make.workload(kind, "web", replicas=1)
    web["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
    note = f"{kind} default/web is being deleted (finalizer a/b), so its controller ignores the "
    image = "spec.template.spec.containers[0].image=new"
    answer = ask([make.node("a"), web], set=(f"{kind}/web:{image}",))
    assert f"{note}change." in answer.changed.notes
    assert answer.effect.is_none
    if kind != "DaemonSet":
        assert (
            f"{note}change." in ask([make.node("a"), web], scale=(f"{kind}/web=2",)).changed.notes
        )
    labelled = ask([make.node("a"), web], set=(f"{kind}/web:metadata.labels.a=b",))
    assert f"{note}change." not in labelled.changed.notes


@pytest.mark.parametrize(
    "change", [{"scale": ("deploy/web=2",)}, {"set": ("deploy/web:spec.replicas=2",)}]
)
def test_a_workload_of_a_namespace_that_is_being_deleted_creates_no_pods(ask, make, change):
    """The pods of the namespace are gone before the change, so no pod changes."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Terminating"},
    }
    answer = ask([make.node("a"), namespace, make.workload("Deployment", "web")], **change)
    note = "Deployment default/web creates no pods, and is deleted with it."
    assert f"Namespace default is being deleted, so {note}" in answer.changed.notes
    assert answer.effect.is_none


def test_a_cron_job_that_is_being_deleted_ignores_a_change(ask, make):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            "name": "job",
            "namespace": "default",
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["foregroundDeletion"],
        },
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template}}},
    }
    notes = ask([make.node("a"), job], set=("cronjob/job:spec.suspend=true",)).changed.notes
    assert any(one.startswith("CronJob default/job is being deleted (finalizer ") for one in notes)


def test_a_paused_deployment_without_a_replica_set_creates_no_pods(ask, make):
    answer = ask([make.node("a"), held(make, "Deployment", paused=True)], scale=("deploy/web=2",))
    assert not answer.changed.pods
    note = "Deployment default/web is paused and has no ReplicaSet, so it creates no pods."
    assert note in answer.changed.notes
    sentence = "1 pod of deploy/default/web is not created: the Deployment is paused and has no "
    assert answer.verdict.first.sentence == f"{sentence}ReplicaSet."
    assert not answer.effect.is_none


def test_a_scaled_workload_with_an_autoscaler_or_a_custom_owner_has_a_note(ask, make):
    """The cluster scales the workload again, but this what-if does not."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5},
    }
    objects = [make.node("a"), make.workload(), hpa]
    note = "HorizontalPodAutoscaler default/web scales Deployment default/web again by its metrics."
    for replicas, has_note in ((2, True), (0, False)):
        notes = ask(objects, scale=(f"deploy/web={replicas}",)).changed.notes
        assert (note in notes) == has_note
    # The feature gate HPAScaleToZero allows 0 for an autoscaler with such a metric.
    queue = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "3"}}
    hpa["spec"] |= {"minReplicas": 0, "metrics": [{"type": "External", "external": queue}]}
    assert note in ask(objects, scale=("deploy/web=0",)).changed.notes
    owned = make.workload("ReplicaSet")
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    owned["metadata"]["ownerReferences"] = [{**kind, "name": "web", "uid": "r", "controller": True}]
    meta = {"name": "web", "namespace": "default", "uid": "r"}
    objects = [make.node("a"), {**kind, "metadata": meta, "spec": {"replicas": 1}}]
    notes = ask([*objects, owned], scale=("rs/web=2",)).changed.notes
    assert notes[0].startswith("Rollout default/web owns ReplicaSet default/web and may set its")
    answer = ask([*objects, owned], scale=("rollout/web=2",))
    assert answer.changed.notes[0] == (
        "Rollout default/web is scaled through its ReplicaSet default/web, because its controller "
        "is not simulated."
    )
    assert [str(one.workload) for one in answer.effect.workloads] == ["rs/default/web"]
    assert not any("owns ReplicaSet" in note for note in answer.changed.notes)
    hpa["spec"]["scaleTargetRef"] = {**kind, "name": "web"}
    notes = ask([*objects, owned, hpa], scale=("rollout/web=2",)).changed.notes
    assert notes[1].startswith("HorizontalPodAutoscaler default/web scales Rollout default/web")
    assert ask([*objects, owned, hpa], scale=("rollout/web=6",)).changed.notes[1] == (
        "HorizontalPodAutoscaler default/web allows 0 to 5 replicas of Rollout default/web, so it "
        "does not keep 6. Here, 6 replicas stay, because the controller of Rollouts is not "
        "simulated."
    )
    older = make.workload("ReplicaSet", "old")
    older["metadata"]["ownerReferences"] = owned["metadata"]["ownerReferences"]
    with pytest.raises(InputError, match="cannot be scaled; name its ReplicaSet default/web"):
        ask([*objects, owned, older], scale=("rollout/web=2",))
    pod = make.pod(node_name="a", owner="web")
    pod["metadata"]["ownerReferences"][0] |= kind
    with pytest.raises(InputError, match="; fairlead fit --like rollout/web counts how many more"):
        ask([*objects, pod], scale=("rollout/web=2",))


def controlled(workload, owner):
    """Return `workload` with `owner`, a custom resource or pod, as its controller."""
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    reference |= {"name": owner["metadata"]["name"], "uid": "u"}
    workload["metadata"]["ownerReferences"] = [reference]
    return workload


def test_a_custom_resource_is_not_scaled_through_a_workload_of_another_purpose(ask, make):
    """A Kafka of Strimzi runs an operator in its only Deployment."""
    meta = {"name": "web", "namespace": "default", "uid": "u"}
    kafka = {"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": meta}
    kafka["spec"] = {"kafka": {"replicas": 3}}
    operator = controlled(make.workload("Deployment", "web-entity-operator"), kafka)
    with pytest.raises(InputError, match="a Kafka cannot be scaled; name its Deployment"):
        ask([make.node("a"), kafka, operator], scale=("kafka/web=2",))


@pytest.mark.parametrize(
    ("runner", "hint"),
    [
        (
            "StrimziPodSet",
            "StrimziPodSet default/web controls its pods; fairlead fit --like stri",
        ),
        ("Kafka", "only Deployment, ReplicaSet, StatefulSet, ReplicationController; fairlead fit"),
    ],
)
@pytest.mark.parametrize("selected", [False, True])
def test_a_hint_names_the_custom_resource_that_runs_most_pods(ask, make, runner, hint, *, selected):
    """A Kafka controls the resource that runs its brokers, or selects their pods."""
    meta = {"name": "web", "namespace": "default", "uid": "u"}
    kafka = {"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "metadata": meta}
    kafka["spec"] = {"replicas": 1}
    pod_set = {"apiVersion": "core.strimzi.io/v1", "kind": "StrimziPodSet", "metadata": {**meta}}
    if selected:
        kafka["status"] = {"labelSelector": "app=web"}
    else:
        pod_set = controlled(pod_set, kafka)
    operator = controlled(make.workload("Deployment", "web-entity-operator"), kafka)
    operator["spec"]["replicas"] = 1
    owner = pod_set if runner == "StrimziPodSet" else kafka
    brokers = [controlled(make.pod(f"k-{one}", node_name="a"), owner) for one in range(3)]
    for one in brokers:
        one["metadata"]["labels"] = {"app": "web"}
    with pytest.raises(InputError) as caught:
        ask([make.node("a"), kafka, pod_set, operator, *brokers], scale=("kafka/web=2",))
    assert caught.value.problem.startswith(f"a Kafka cannot be scaled; {hint}")


def test_a_custom_resource_is_not_scaled_if_its_pods_control_stateful_sets(ask, make):
    """The leaders of a LeaderWorkerSet control the StatefulSets of its workers."""
    meta = {"name": "web", "namespace": "default", "uid": "u"}
    leaders = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
    leaders |= {"metadata": meta, "spec": {"replicas": 1}}
    leader = make.pod("web-0", node_name="a", owner="web")
    own = controlled(make.workload("StatefulSet", "web"), leaders)
    leader = controlled(leader, own)
    workers = controlled(make.workload("StatefulSet", "web-0"), leader)
    objects = [make.node("a"), leaders, own, leader]
    assert ask(objects, scale=("leaderworkerset/web=2",)).changed.pods
    with pytest.raises(InputError, match="a LeaderWorkerSet cannot be scaled; name its Stateful"):
        ask([*objects, workers], scale=("leaderworkerset/web=2",))


def test_a_hint_names_a_workload_that_other_custom_resources_own(ask, make):
    """The parts of a Federation are custom resources, each with a Deployment."""
    meta = {"namespace": "default", "uid": "u"}
    api = {"apiVersion": "example.com/v1"}
    federation = {**api, "kind": "Federation", "metadata": {**meta, "name": "web"}}
    part = {**api, "kind": "Part", "metadata": {**meta, "name": "web-a"}, "spec": {"replicas": 3}}
    part = controlled(part, federation)
    own = controlled(make.workload("Deployment", "web-a"), part)
    with pytest.raises(InputError, match="; only Deployment, ReplicaSet, StatefulSet"):
        ask([make.node("a"), federation, part], scale=("federation/web=2",))
    with pytest.raises(InputError, match="cannot be scaled; name its Deployment default/web-a"):
        ask([make.node("a"), federation, part, own], scale=("federation/web=2",))


@pytest.mark.parametrize("api_version", ["apps/v1", "apps.kruise.io/v1"])
def test_the_error_for_a_scaled_daemon_set_does_not_name_fit(ask, make, api_version):
    """The command fit refuses a DaemonSet."""
    agent = {**make.workload("DaemonSet", "agent"), "apiVersion": api_version}
    pod = controlled(make.pod("agent-x", node_name="a"), agent)
    resource = "daemonset" if api_version == "apps/v1" else "daemonset.apps.kruise.io"
    with pytest.raises(InputError, match="a DaemonSet cannot be scaled") as refused:
        ask([make.node("a"), agent, pod], scale=(f"{resource}/agent=2",))
    assert "fairlead fit" not in str(refused.value)


def test_terminating_pods_that_go_with_their_failed_node_are_named_as_such(ask, make):
    """The kubelet of node b does not answer, so its pods stay until the node is deleted."""
    nodes, web = [make.node("a"), make.node("b")], make.workload("ReplicaSet", replicas=2)
    for node, status in zip(nodes, ("True", "Unknown"), strict=True):
        node["metadata"]["creationTimestamp"] = "2025-01-01T00:00:00Z"
        ready = {"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        node["status"]["conditions"] = [ready]
    unreachable = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    nodes[1]["spec"] = {"taints": [unreachable]}
    web["metadata"]["uid"] = "web"
    pods = [make.pod(f"web-{at}", node_name=name, owner="web") for at, name in enumerate("aabb")]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
    for pod in pods[2:]:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:05:30Z"
    answer = ask([*nodes, web, *pods], delete=("node/b",))
    assert answer.verdict.first.sentence == (
        "2 terminating pods of rs/default/web are removed; without the change, they would stay."
    )


def test_scaled_workloads_with_autoscalers_have_one_note(ask, make):
    """Another note states that the autoscalers have no load in the simulation."""
    objects = [make.node("a", cpu="16")]
    for name in "abc":
        hpa = external_autoscaler()
        hpa["metadata"]["name"] = hpa["spec"]["scaleTargetRef"]["name"] = name
        objects += [make.workload(name=name), {**hpa, "spec": {**hpa["spec"], "metrics": []}}]
    scale = tuple(f"deploy/{name}=2" for name in "abc")
    notes = [one for one in ask(objects, scale=scale).changed.notes if "Autoscaler" in one]
    again, load = notes
    assert again == (
        "HorizontalPodAutoscaler default/a scales Deployment default/a again by its metrics; "
        "2 more autoscalers do the same."
    )
    assert load.startswith("HorizontalPodAutoscaler default/a and 2 more have no load here, so ")


def test_the_error_for_a_scaled_job_names_its_parallelism(snapshot, make):
    job = make.workload("Job", "sum", restartPolicy="Never")
    job |= {"apiVersion": "batch/v1", "spec": {"template": job["spec"]["template"]}}
    wanted = "a Job cannot be scaled; use --set job/default/sum:spec.parallelism=4"
    with pytest.raises(InputError, match=wanted):
        what_if(snapshot(make.node("a"), job), ClusterChange(scale=("job/default/sum=4",)))


@pytest.mark.parametrize(("group", "has_note"), [("apps/v1", True), ("apps.kruise.io/v1", False)])
def test_an_autoscaler_of_another_group_does_not_scale_the_workload(ask, make, group, has_note):
    """OpenKruise has StatefulSets, too."""
    hpa = external_autoscaler()
    hpa["spec"]["scaleTargetRef"] |= {"apiVersion": group, "kind": "StatefulSet"}
    objects = [make.node("a"), make.workload("StatefulSet"), hpa]
    notes = ask(objects, scale=("sts/web=2",)).changed.notes
    assert any("scales StatefulSet default/web again" in one for one in notes) == has_note


METRIC_NOTE = (
    "HorizontalPodAutoscaler default/web has no value for External metric queue here, so the "
    "number of replicas changes only if it is outside the limits."
)


def external_autoscaler(**metadata):
    """An autoscaler of Deployment web that follows the length of a queue."""
    metric = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "5"}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default", **metadata},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 5,
            "metrics": [{"type": "External", "external": metric}],
        },
    }


def test_the_note_about_an_autoscaler_names_load_only_for_cpu_and_memory(ask, make):
    objects = [make.node("a"), make.workload(), external_autoscaler()]
    notes = [one for one in ask(objects, scale=("deploy/web=3",)).changed.notes if "Autos" in one]
    assert notes == [
        "HorizontalPodAutoscaler default/web scales Deployment default/web again by its metrics.",
        METRIC_NOTE,
    ]


@pytest.mark.parametrize("replicas", [0, 3])
def test_a_scaled_object_scales_a_workload_again_even_from_zero(ask, make, replicas):
    owner = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web", "uid": "1"}
    autoscaler = external_autoscaler(ownerReferences=[{**owner, "controller": True}])
    objects = [make.node("a"), make.workload(replicas=2), autoscaler]
    answer = ask(objects, scale=(f"deploy/web={replicas}",))
    assert (
        "ScaledObject default/web and its HorizontalPodAutoscaler default/web scale Deployment "
        "default/web again; their triggers and metrics are not simulated."
    ) in answer.changed.notes


# --- --apply-vpa ---------------------------------------------------------------------------------


def vpa(target="web", recommended=None, policies=(), kind="Deployment", **fields):
    """A VerticalPodAutoscaler that recommends an amount for container c."""
    found = [] if recommended is None else [{"containerName": "c", "target": recommended}]
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": f"{target}-vpa", "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": target},
            "updatePolicy": {"updateMode": "Off"},
            "resourcePolicy": {"containerPolicies": list(policies)},
        },
        "status": {"recommendation": {"containerRecommendations": found}},
        **fields,
    }


def limited(make, **limits):
    """A Deployment whose container requests one core and has these limits."""
    found = make.workload(name="web", replicas=1)
    found["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = limits
    return found


def test_recommended_requests_are_applied(ask, make):
    answer = ask([*running(make, 2), vpa(recommended={"cpu": "250m"})], apply_vpa=True)
    assert {pod.requests["cpu"] for pod in answer.changed.pods.values()} == {250}
    note = "Deployment default/web: container c requests cpu 250m instead of 1."
    assert note in answer.changed.notes


def test_a_request_that_follows_from_the_limit_is_known(ask, make):
    """The API server sets a missing request of a pod to the limit, but not in the template."""
    web = limited(make, cpu="1")
    del web["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    answer = ask([make.node("a"), web, vpa(recommended={"cpu": "2"})], apply_vpa=True)
    note = "Deployment default/web: container c requests cpu 2 instead of 1, limit 2 instead of 1."
    assert note in answer.changed.notes
    answer = ask([make.node("a"), web, vpa(recommended={"cpu": "1"})], apply_vpa=True)
    assert any(
        "changes no request of Deployment default/web." in one for one in answer.changed.notes
    )


@pytest.mark.parametrize(
    ("limits", "policies", "recommended", "expected"),
    [
        pytest.param({"cpu": "4"}, [], "250m", ("250m", "1"), id="a limit keeps its ratio"),
        pytest.param({"cpu": "1"}, [], "250m", ("250m", "250m"), id="an equal limit stays equal"),
        pytest.param(
            {"cpu": "2"},
            [{"containerName": "*", "controlledValues": "RequestsOnly"}],
            "4",
            ("2", "2"),
            id="a limit that is not controlled caps the request",
        ),
        pytest.param(
            {"cpu": "4"},
            [{"containerName": "c", "minAllowed": {"cpu": "500m"}}],
            "250m",
            ("500m", "2"),
            id="a recommendation below minAllowed is raised",
        ),
        pytest.param(
            {"cpu": "4"},
            [{"containerName": "*", "maxAllowed": {"cpu": 2, "memory": "1Gi"}}],
            "3",
            ("2", "8"),
            id="a recommendation above maxAllowed is lowered",
        ),
        pytest.param(
            {"cpu": "4"},
            [{"containerName": "c", "minAllowed": {"cpu": "3"}, "maxAllowed": {"cpu": "2"}}],
            "250m",
            ("2", "8"),
            id="maxAllowed prevails over minAllowed",
        ),
        pytest.param(
            {"cpu": "4"},
            [{"containerName": "c", "maxAllowed": {"cpu": "0"}}],
            "2",
            ("2", "8"),
            id="a bound of zero has no effect",
        ),
    ],
)
def test_limits_follow_requests_according_to_the_vpa_policy(
    snapshot, make, limits, policies, recommended, expected
):
    stated = vpa(recommended={"cpu": recommended}, policies=policies)
    objects = [make.node("a"), limited(make, **limits), stated]
    inventory = Inventory(snapshot(*objects).manifests)
    (edit,) = recommended_edits(inventory, "")
    (container,) = edit.content["spec"]["template"]["spec"]["containers"]
    resources = container["resources"]
    assert (resources["requests"]["cpu"], resources["limits"]["cpu"]) == expected


def recommends(cpu, **policy):
    """A VerticalPodAutoscaler of Deployment web that recommends this amount of CPU."""
    return vpa(recommended={"cpu": cpu}, policies=[{"containerName": "*", **policy}])


def limit_range(name="range", item_type="Container", **item):
    """A LimitRange with one item."""
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"limits": [{"type": item_type, **item}]},
    }


@pytest.mark.parametrize(
    ("limits", "others", "expected"),
    [
        pytest.param(
            {"cpu": "1"}, [recommends("3"), limit_range(max={"cpu": "2"})], ("2", "2"),
            id="a recommendation above max is lowered",
        ),
        pytest.param(
            {"cpu": "4"}, [recommends("3"), limit_range(max={"cpu": "6"})], ("1500m", "6"),
            id="the limit is within max as well",
        ),
        pytest.param(
            {"cpu": "4"}, [recommends("250m"), limit_range(min={"cpu": "500m"})], ("500m", "2"),
            id="a recommendation below min is raised",
        ),
        pytest.param(
            {"cpu": "1"},
            [recommends("3"), limit_range(max={"cpu": 2}), limit_range("b", max={"cpu": "1500m"})],
            ("1500m", "1500m"),
            id="the strictest of several bounds",
        ),
        pytest.param(
            {}, [recommends("250m"), limit_range(default={"cpu": "2"})], ("250m", "500m"),
            id="a default limit keeps its ratio",
        ),
        pytest.param(
            {},
            [recommends("4", controlledValues="RequestsOnly"), limit_range(default={"cpu": "2"})],
            ("2", None),
            id="a default limit caps the request",
        ),
        pytest.param(
            {"cpu": "1"},
            [recommends("1", minAllowed={"cpu": "3"}), limit_range(max={"cpu": "2"})],
            ("3", "3"),
            id="minAllowed prevails over a LimitRange",
        ),
        pytest.param(
            {"cpu": "1"}, [recommends("3"), limit_range(item_type="Pod", max={"cpu": "2"})],
            ("3", "3"),
            id="bounds of whole pods do not matter",
        ),
    ],
)  # fmt: skip
def test_recommendations_respect_limit_ranges(snapshot, make, limits, others, expected):
    objects = [make.node("a"), limited(make, **limits), *others]
    (edit,) = recommended_edits(Inventory(snapshot(*objects).manifests), "")
    (container,) = edit.content["spec"]["template"]["spec"]["containers"]
    resources = container["resources"]
    assert (resources["requests"]["cpu"], resources["limits"].get("cpu")) == expected


@pytest.mark.parametrize(
    ("others", "change"),
    [
        (
            [recommends("3"), limit_range(max={"cpu": "4"})],
            (
                "requests cpu 2 instead of 1, limit 4 instead of 2 (the VPA recommends 3, but "
                "LimitRanges of the namespace allow at most 2)"
            ),
        ),
        (
            [recommends("250m"), limit_range(min={"cpu": "500m"})],
            (
                "requests cpu 500m instead of 1, limit 1 instead of 2 (the VPA recommends 250m, "
                "but LimitRanges of the namespace allow at least 500m)"
            ),
        ),
        (
            [recommends("3", maxAllowed={"cpu": "1500m"})],
            (
                "requests cpu 1500m instead of 1, limit 3 instead of 2 (the VPA recommends 3, but "
                "its maxAllowed is 1500m)"
            ),
        ),
        (
            [recommends("3", controlledValues="RequestsOnly")],
            (
                "requests cpu 2 instead of 1 (the VPA recommends 3, but the limit, which the VPA "
                "keeps, allows at most 2)"
            ),
        ),
        ([recommends("3")], "requests cpu 3 instead of 1, limit 6 instead of 2"),
    ],
)
def test_the_note_says_why_a_request_is_not_the_recommended_one(snapshot, make, others, change):
    """Limits change, too, because they keep their ratio to the requests."""
    objects = [make.node("a"), limited(make, cpu="2"), *others]
    (edit,) = recommended_edits(Inventory(snapshot(*objects).manifests), "")
    assert edit.note == f"Deployment default/web: container c {change}."


def vpa_of(name, created, mode, cpu):
    """A VerticalPodAutoscaler of Deployment web with another name, age and update mode."""
    found = vpa(recommended={"cpu": cpu})
    found["metadata"] |= {"name": name, "creationTimestamp": f"2026-01-{created:02}T00:00:00Z"}
    found["spec"]["updatePolicy"]["updateMode"] = mode
    return found


@pytest.mark.parametrize(
    ("autoscalers", "expected"),
    [
        pytest.param(
            [vpa_of("a", 2, "Auto", "2"), vpa_of("b", 1, "Auto", "3")], "3", id="the oldest"
        ),
        pytest.param(
            [vpa_of("b", 1, "Auto", "3"), vpa_of("a", 1, "Auto", "2")], "2", id="the first by name"
        ),
        pytest.param(
            [vpa_of("a", 1, "Off", "2"), vpa_of("b", 2, "Initial", "3")], "3", id="not the one Off"
        ),
        pytest.param(
            [vpa_of("a", 2, "Off", "2"), vpa_of("b", 1, "Off", "3")], "3", id="the oldest, all Off"
        ),
    ],
)
def test_one_of_several_vpas_controls_a_workload(snapshot, make, autoscalers, expected):
    objects = [make.node("a"), make.workload(name="web"), *autoscalers]
    edits = list(recommended_edits(Inventory(snapshot(*objects).manifests), ""))
    (edit,) = [one for one in edits if one.target is not None]
    assert f"requests cpu {expected} instead of 1." in edit.note
    (note,) = [one.note for one in edits if one.target is None]
    assert note.endswith(" controls Deployment default/web.")


@pytest.mark.parametrize(
    ("autoscaler", "note"),
    [
        (vpa("gone", {"cpu": "2"}), "there is no Deployment default/gone, so nothing changes."),
        (vpa("web", {"cpu": "1"}), "changes no request of Deployment default/web."),
        (vpa("web", {"cpu": "2"}, [{"containerName": "c", "mode": "Off"}]),
         "changes no request of Deployment default/web."),
        (vpa("web", {"cpu": "2"}, kind="CronJob"), "has a CronJob as its target, so it is not"),
    ],
)  # fmt: skip
def test_a_note_says_why_a_recommendation_changes_nothing(ask, make, autoscaler, note):
    other = vpa("other", {"cpu": "500m"})
    objects = [*running(make, 1), make.workload(name="other"), other, autoscaler]
    answer = ask(objects, apply_vpa=True)
    assert any(note in one for one in answer.changed.notes)


@pytest.mark.parametrize(
    ("autoscalers", "message"),
    [
        ([], "--apply-vpa: the dump has no VerticalPodAutoscaler with a recommendation"),
        ([vpa()], "--apply-vpa: the dump has no VerticalPodAutoscaler with a recommendation"),
        ([vpa(recommended={"cpu": "much"})], "Recommendations.c.target.cpu: 'much'"),
        ([vpa(recommended={"cpu": "1"}, policies=[{"minAllowed": {"cpu": "few"}}])],
         "web-vpa: spec.resourcePolicy.containerPolicies.*.minAllowed.cpu: 'few'"),
        ([vpa(recommended={"cpu": "1"}, spec=3)], "web-vpa: spec: expected object, got int"),
        ([vpa(recommended={"cpu": "1"}), limit_range(default={"cpu": "few"})],
         "LimitRange default/range: spec.limits[0].default[cpu]: 'few'"),
    ],
)  # fmt: skip
def test_missing_or_malformed_recommendations_are_refused(ask, make, autoscalers, message):
    with pytest.raises(InputError) as refused:
        ask([*running(make, 1), *autoscalers], apply_vpa=True)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "edits",
    [
        {"set_resources": ("deploy/web=cpu=2",)},
        {"set": ("deploy/web:spec.template.spec.containers[c].resources.requests.cpu=2",)},
        {"set": ("deploy/web:spec.template.spec.containers[c].resources={}",)},
    ],
)
def test_another_value_for_a_recommended_request_is_refused(ask, make, edits):
    with pytest.raises(InputError) as refused:
        ask([*running(make, 1), vpa(recommended={"cpu": "250m"})], apply_vpa=True, **edits)
    assert "replaces a value that --apply-vpa sets" in str(refused.value)


def test_other_resources_than_the_recommended_ones_can_be_set(ask, make):
    edits = {"set_resources": ("deploy/web=memory=1Gi",)}
    answer = ask([*running(make, 1), vpa(recommended={"cpu": "250m"})], apply_vpa=True, **edits)
    (pod,) = answer.changed.pods.values()
    assert (pod.requests["cpu"], pod.requests["memory"]) == (250, 2**30)


# --- the admission of VerticalPodAutoscalers -----------------------------------------------------


def vpa_in_mode(mode):
    """A VerticalPodAutoscaler of Deployment web with the update mode `mode`, None for no mode."""
    found = vpa(recommended={"cpu": "250m"})
    found["spec"]["updatePolicy"] = {"updateMode": mode} if mode else {}
    return found


@pytest.mark.parametrize("mode", ["Initial", "Recreate", "InPlaceOrRecreate", None])
@pytest.mark.parametrize(
    "field", ["resources.requests.cpu=2", "resources.requests.memory=1Gi", "image=web:2"]
)
def test_a_vpa_sets_the_requests_of_pods_of_a_changed_template(ask, make, mode, field):
    change = f"deploy/web:spec.template.spec.containers[c].{field}"
    answer = ask([*running(make, 1), vpa_in_mode(mode)], set=(change,))
    (pod,) = answer.changed.pods.values()
    assert pod.requests["cpu"] == 250
    (note,) = [one for one in answer.changed.notes if one.startswith("VerticalPodAutoscaler")]
    assert f"web-vpa (update mode {mode or 'Auto'}) sets the requests of new pods of" in note
    assert note.endswith("--delete verticalpodautoscaler/default/web-vpa leaves it out.")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"drain": ("a",)}, 250),
        ({"drain": ("a",), "delete": ("verticalpodautoscaler/default/web-vpa",)}, 300),
        (
            {
                "drain": ("a",),
                "set": ("verticalpodautoscaler/web-vpa:spec.updatePolicy.updateMode=Off",),
            },
            300,
        ),
    ],
    ids=["the present VPA", "a deleted VPA", "mode Off"],
)
def test_a_vpa_sets_the_requests_of_a_pod_that_is_created_again(ask, make, change, expected):
    """The pod has an older recommendation, 300m; the limit keeps its ratio to the request."""
    labels = {"app": "web", "pod-template-hash": "1"}
    owner = make.workload("ReplicaSet", "web-1")
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
    owner["metadata"] |= {"uid": "web-1", "labels": labels}
    owner["metadata"]["ownerReferences"] = [{**reference, "uid": "web"}]
    owner["spec"]["selector"] = {"matchLabels": labels}
    owner["spec"]["template"]["metadata"] = {"labels": labels}
    deployment = make.workload()
    deployment["metadata"]["uid"] = "web"
    amounts = {"requests": {"cpu": "300m"}, "limits": {"cpu": "600m"}}
    container = {"name": "c", "image": "i", "resources": amounts}
    pod = make.pod("web-1-a", node_name="a", owner="web-1", containers=[container])
    pod["metadata"] |= {"labels": labels, "annotations": {"vpaUpdates": "Pod resources updated"}}
    objects = [make.node("a"), make.node("b"), deployment, owner, pod, vpa_in_mode("Recreate")]
    answer = ask(objects, **change)
    (pod,) = answer.changed.pods.values()
    assert (pod.node, pod.requests["cpu"]) == ("b", expected)
    found = [one for one in answer.changed.notes if one.startswith("VerticalPodAutoscaler")]
    assert len(found) == (expected == 250)
    for note in found:
        change = "requests cpu 250m instead of 300m, limit 500m instead of 600m"
        assert f"Deployment default/web: container c {change}." in note


@pytest.mark.parametrize(
    ("mode", "change"),
    [
        ("Off", {"set_resources": ("deploy/web=cpu=2",)}),
        ("Auto", {"set_resources": ("deploy/web=cpu=250m",)}),
        (
            "Auto",
            {
                "set_resources": ("deploy/web=cpu=2",),
                "delete": ("verticalpodautoscaler/default/web-vpa",),
            },
        ),
    ],
    ids=["mode Off", "the recommended amount", "the VPA is deleted"],
)
def test_a_vpa_does_not_replace_requests(ask, make, mode, change):
    answer = ask([*running(make, 1), vpa_in_mode(mode)], **change)
    (pod,) = answer.changed.pods.values()
    wanted = {"deploy/web=cpu=2": 2000, "deploy/web=cpu=250m": 250}
    (text,) = change.get("set_resources", ("",))
    assert pod.requests["cpu"] == wanted.get(text, 1000)
    assert not any("VerticalPodAutoscaler" in one for one in answer.changed.notes)


@pytest.mark.parametrize(
    ("change", "has_note"), [("resources.requests.cpu=2", True), ("image=web:2", False)]
)
def test_a_vpa_that_the_dump_lacks_is_named(ask, make, change, has_note):
    """The pods have an annotation of the VPA's webhook."""
    objects = rollout.at_rest()
    pod = next(one for one in objects if one["kind"] == "Pod")
    pod["metadata"]["annotations"] = {"vpaUpdates": "Pod resources updated by web"}
    change = f"deploy/web:spec.template.spec.containers[c].{change}"
    answer = ask([make.node("n0"), *objects], set=(change,))
    found = [one for one in answer.changed.notes if one.startswith("A VerticalPodAutoscaler")]
    assert bool(found) is has_note


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
}


@pytest.mark.parametrize(
    ("is_new", "label", "result"),
    [
        (True, "web", "is new and allows 0 disruptions"),
        (True, "wbe", "is new and selects no pods"),
        (False, "web", None),
        (False, "wbe", "selects no pods"),
    ],
)
def test_a_budget_that_selects_no_pods_is_named(ask, make, write, is_new, label, result):
    """Its selector has a typing error; otherwise, it allows 0 disruptions as it did before."""
    selector = {"matchLabels": {"app": label}}
    budget = {**BUDGET, "spec": {"maxUnavailable": 0, "selector": selector}}
    objects = [*running(make, 2), *([] if is_new else [BUDGET])]
    answer = ask(objects, apply=(write("budget.json", budget),))
    assert [one.words for one in answer.effect.budgets] == ([result] if result else [])
    if result:
        sentence = f"Budget default/web {result}, and nothing changes for any pod."
        if label == "web":
            sentence += (
                " It needs all its pods, so the eviction of a ready pod is never allowed, and a "
                "drain of its node blocks."
            )
        assert answer.verdict.first.sentence == sentence


@pytest.mark.parametrize(
    ("replicas", "cpu", "blocks"), [(2, "1", True), (3, "1", False), (3, "64", False)]
)
def test_a_budget_blocks_drains_for_ever_only_if_its_workload_has_all_pods(
    ask, make, write, replicas, cpu, blocks
):
    """minAvailable 2 counts two pods if a quota admits two, or one if the next waits for it."""
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    meta = {"name": "q", "namespace": "default"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta}
    quota["spec"] = {"hard": {"pods": "2"}}
    stateful_set = make.workload("StatefulSet", "web", replicas=replicas, cpu=cpu)
    files = (write("budget.json", {**BUDGET, "spec": spec}), write("web.json", stateful_set))
    answer = ask([make.node("a"), quota], apply=files)
    said = " ".join(one.sentence for one in answer.verdict.findings)
    assert "Budget default/web is new and allows 0 disruptions." in said
    assert ("needs all its pods" in said) == blocks


@pytest.mark.parametrize(
    ("old", "new", "evidence"),
    [
        (None, {"maxUnavailable": 0}, ["default/web"]),
        ({"minAvailable": 1}, {"minAvailable": "100%"}, ["default/web"]),
        ({"maxUnavailable": 1}, {"maxUnavailable": 2}, []),
        ({"maxUnavailable": 0}, {"maxUnavailable": 0}, []),
    ],
)
def test_a_budget_that_blocks_drains_is_a_condition(ask, make, write, old, new, evidence):
    """No pod is displaced, so pdb-breached does not hold. A blocking budget may be older."""
    selector = {"selector": {"matchLabels": {"app": "web"}}}
    present = [] if old is None else [{**BUDGET, "spec": {**old, **selector}}]
    file = write("budget.json", {**BUDGET, "spec": {**new, **selector}})
    effect = ask([*running(make, 2), *present], apply=(file,)).effect
    assert parse_fail_on("pdb-blocks-drains").evidence(effect) == evidence
    assert parse_fail_on("pdb-breached").evidence(effect) == []


def test_edits_of_one_object_are_one_write(ask, make):
    """The intermediate state, a budget with both rules, would be invalid."""
    rules = ("pdb/web:spec.minAvailable=1", "pdb/web:spec.maxUnavailable=null")
    answer = ask([*running(make, 2), BUDGET], set=rules)
    [budget] = answer.effect.budgets
    assert (budget.rule, budget.allowed_without, budget.allowed_at_end) == ("minAvailable 1", 0, 1)


def test_edits_of_one_object_may_have_several_options(ask, make):
    """There is one rollout, not two."""
    answer = ask(
        running(make, 1),
        set=("deploy/web:spec.template.metadata.labels.tier=b", "deploy/web:spec.replicas=3"),
        set_resources=("deploy/web=cpu=100m",),
    )
    pods = [one for one in answer.changed.pods.values() if one.is_placed]
    assert [one.requests["cpu"] for one in pods] == [100, 100, 100]
    sets = {one.revision for one in answer.changed.pods.values()}
    assert len(sets) == 1


def job(make, completions, parallelism, **spec):
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sums", "namespace": "default"},
        "spec": {
            "completions": completions,
            "parallelism": parallelism,
            "template": {"spec": make.pod()["spec"] | {"restartPolicy": "Never"}},
            **spec,
        },
    }


@pytest.mark.parametrize(
    ("mode", "edit", "problem"),
    [
        ("NonIndexed", "spec.completions=5", "spec.completions: Invalid value: 5: field is immut"),
        ("NonIndexed", "spec.template.spec.priority=7", "spec.template: Invalid value"),
        ("Indexed", "spec.completions=5", "can only be modified in tandem with spec.parallelism"),
        ("NonIndexed", "spec.parallelism=3", ""),
    ],
)
def test_only_mutable_fields_of_a_job_can_be_edited(ask, make, mode, edit, problem):
    objects = [make.node("a", cpu="9"), job(make, 4, 2, completionMode=mode)]
    if problem:
        with pytest.raises(InputError, match=problem):
            ask(objects, set=(f"job/sums:{edit}",))
    else:
        assert len(ask(objects, set=(f"job/sums:{edit}",)).difference.placed) == 1


def test_parallelism_and_completions_of_an_indexed_job_grow_together(ask, make):
    objects = [make.node("a", cpu="9"), job(make, 2, 2, completionMode="Indexed")]
    both = ("job/sums:spec.completions=4", "job/sums:spec.parallelism=4")
    assert len(ask(objects, set=both).difference.placed) == 2


def test_the_template_of_a_suspended_job_can_be_edited(ask, make):
    """Its scheduling directives may change; the template has no metadata."""
    objects = [make.node("a", cpu="9", pool="x"), job(make, 2, 2, suspend=True)]
    edits = ("job/sums:spec.template.spec.nodeSelector.pool=x", "job/sums:spec.suspend=false")
    assert len(ask(objects, set=edits).difference.placed) == 2


def test_a_workload_that_is_applied_and_edited_starts_as_edited(ask, make, write):
    """No pod is made from the template in the file."""
    db = make.workload("StatefulSet", "db", replicas=2)
    db["spec"]["podManagementPolicy"] = "Parallel"
    path = write("db.json", db)
    answer = ask([make.node("a", cpu="9")], apply=(path,), set_resources=("sts/db=cpu=3",))
    assert {pod.requests["cpu"] for pod in answer.difference.placed} == {3000}
    assert answer.difference.recovered_after == seconds(1)
