"""The explanation of all nodes: which take new pods, what is free, and for which pending pods."""

from __future__ import annotations

import json

import pytest

from fairlead.cli.main import run
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.pod import explain_pod
from fairlead.whatif.explain.room_for_pending import room_if_returned, single_pods
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.planner.cluster_model import ClusterModel

NOW = "2026-03-01T10:05:00Z"
LATER = "2026-03-01T10:04:00Z"
READY = {"type": "Ready", "status": "True", "lastTransitionTime": LATER, "lastHeartbeatTime": NOW}
LOST = {**READY, "status": "Unknown", "reason": "NodeStatusUnknown"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def explained(snapshot):
    def explain(*objects, target="nodes"):
        return explain_object(snapshot(*objects), target, SchedulerConfig(), NO_CHOICE)

    return explain


def rows(answer, name):
    return [dict(row) for row in answer.to_json()[name]]


def lost_node(make, name, cpu="4", **labels):
    node = make.node(name, cpu, **labels)
    node["spec"] = {"taints": [UNREACHABLE]}
    node["status"]["conditions"] = [LOST]
    return node


def pending(make, name, *, cpu="1", owner="web", **spec):
    pod = make.pod(name, owner=owner, cpu=cpu, **spec)
    pod["status"] = {"phase": "Pending"}
    return pod


def virtual_node(make, name="aci"):
    node = make.node(name, "10k", type="virtual-kubelet")
    node["spec"] = {"taints": [{"key": "virtual-kubelet.io/provider", "effect": "NoSchedule"}]}
    return node


def test_virtual_nodes_do_not_count(explained, make):
    """A virtual node states far more cores than all machines together."""
    fargate = make.node("f", "2", **{"eks.amazonaws.com/compute-type": "fargate"})
    pod = make.pod("job", node_name="f")
    answer = explained(make.node("a"), virtual_node(make), fargate, pod)
    assert answer.verdict == "The node takes new pods."
    free, virtual = answer.findings
    assert free.startswith("Pods on this node request 0 of 4 cpu and ")
    assert virtual == "2 virtual nodes are not counted: aci, f, with 1 pod."
    assert [row["node"] for row in rows(answer, "in_service")] == ["a"]
    assert answer.to_json()["virtual_nodes"] == ["aci", "f"]


def test_a_cluster_may_have_only_virtual_nodes(explained, make):
    answer = explained(virtual_node(make))
    assert answer.verdict == "Only virtual nodes are in service."
    assert answer.findings == ("1 virtual node is not counted: aci, with 0 pods.",)


def test_a_virtual_node_does_not_make_a_pod_fit(snapshot, make):
    """A pod that does not tolerate the taint of the virtual node is too large for all others."""
    nodes = [make.node("a"), virtual_node(make)]
    found = explain_pod(snapshot(*nodes, make.pod("p", cpu="16")), "pod/p")
    assert found.new_node.refusal == "no node is large enough; the largest has 4 cpu"
    tolerant = make.pod("p", cpu="16k", tolerations=[{"operator": "Exists"}])
    assert explain_pod(snapshot(*nodes, tolerant), "pod/p").new_node.like != "aci"


@pytest.mark.parametrize("target", ["nodes", "node", "no"])
def test_all_nodes_are_explained_at_once(explained, make, target):
    """The node with the most free cpu comes first. A lost node could take pods after its return."""
    serving = make.node("a", **{ZONE: "west"})
    serving["status"]["conditions"] = [READY]
    serving["spec"] = {"taints": [{"key": "dedicated", "value": "db", "effect": "NoExecute"},
                                  {"key": "slow", "effect": "PreferNoSchedule"}]}  # fmt: skip
    answer = explained(
        serving,
        make.node("b", "2"),
        lost_node(make, "lost", **{ZONE: "east"}),
        make.pod("db", node_name="a", cpu="1500m", owner="db"),
        make.pod("old", node_name="lost", owner="old"),
        pending(make, "small"),
        *(pending(make, f"big-{number}", cpu="3") for number in range(2)),
        target=target,
    )
    assert answer.verdict == "2 of 3 nodes take new pods."
    free, waiting = answer.findings
    assert free == (
        "Pods on these nodes request 1.5 of 6 cpu and 0 of 32Gi memory; the most free on one node "
        "is 2.5 cpu and 16Gi memory."
    )
    assert waiting == (
        "3 pods are pending: there is room for 1 of them now. No node takes the other 2 pods: "
        "Insufficient cpu, node(s) had untolerated taint(s). If all nodes were in service, there "
        "would be room for 1 more."
    )
    assert rows(answer, "out_of_service") == [
        {
            "node": "lost",
            "zone": "east",
            "pods": 1,
            "since_s": 60.0,
            "why": "not Ready (NodeStatusUnknown)",
            "room_for": 1,
        }
    ]
    first, second = rows(answer, "in_service")
    assert first == {
        "node": "a",
        "zone": "west",
        "pool": "",
        "ready_s": 60.0,
        "pods": 1,
        "allowed_pods": 110,
        "requested": {"cpu": 1500, "memory": 0},
        "allocatable": {"cpu": 4000, "memory": 16 << 30},
        "free": {"cpu": 2500, "memory": 16 << 30},
        "pods_words": "1 of 110",
        "cpu_words": "1.5 of 4",
        "cpu_free": "2.5",
        "memory_words": "0 of 16Gi",
        "memory_free": "16Gi",
        "devices_free": "",
        "room_for": 0,
        "taints": "dedicated=db:NoExecute",
    }
    assert (second["node"], second["room_for"], second["taints"]) == ("b", 1, "")


def test_a_node_has_room_for_pods_after_its_terminating_pods_have_stopped(explained, make):
    """A kubelet that answers again lets them stop."""
    stuck = make.pod("stuck", node_name="lost", cpu="4", owner="web")
    stuck["metadata"] |= {"deletionTimestamp": LATER, "deletionGracePeriodSeconds": 30}
    answer = explained(lost_node(make, "lost"), stuck, pending(make, "new", cpu="4"))
    assert answer.verdict == "No node takes new pods."
    [waiting] = answer.findings
    assert waiting == (
        "1 pod is pending, and no node takes it now: node(s) had untolerated taint(s). If all "
        "nodes were in service, there would be room for 1."
    )
    [row] = rows(answer, "out_of_service")
    assert row["room_for"] == 1


def leaving_node(make, *, cordoned):
    node = make.node("a")
    node["metadata"] |= {"deletionTimestamp": NOW, "finalizers": ["example.com/hold"]}
    node["spec"] = {"unschedulable": cordoned}
    return node


def test_a_node_that_is_being_deleted_does_not_return(explained, make):
    answer = explained(leaving_node(make, cordoned=True), pending(make, "new"))
    [row] = rows(answer, "out_of_service")
    why = "being deleted, and waits for finalizer example.com/hold; cordoned"
    assert (row["why"], row["room_for"]) == (why, None)
    assert answer.findings == (
        "1 pod is pending, and no node takes it now: node(s) were unschedulable (cordoned).",
    )


def test_a_node_that_is_being_deleted_takes_pods_if_nothing_keeps_them_away(explained, make):
    """The scheduler ignores the deletionTimestamp of nodes. A note says that the node leaves."""
    answer = explained(leaving_node(make, cordoned=False), pending(make, "new"))
    assert answer.verdict == "The node takes new pods."
    [row] = rows(answer, "in_service")
    assert row["room_for"] == 1
    [note] = [one for one in answer.notes if "removed" in one]
    assert note.startswith("a was being removed when the dump was taken")


def test_the_return_of_nodes_may_give_no_more_room(explained, make):
    waiting = pending(make, "new", cpu="4"), pending(make, "large", cpu="9")
    answer = explained(make.node("a"), lost_node(make, "lost"), *waiting)
    assert answer.findings[-1] == (
        "2 pods are pending: there is room for 1 of them now. No node takes the other pod: "
        "Insufficient cpu, node(s) had untolerated taint(s). Even if all nodes were in service, "
        "no node would take it."
    )


def test_free_resources_that_round_to_zero_have_no_sign(explained, make):
    answer = explained(make.node("a", "1"), make.pod("p", node_name="a", cpu="1001m"))
    [row] = rows(answer, "in_service")
    assert (row["free"]["cpu"], row["cpu_free"]) == (-1, "0")


def test_pods_that_fit_nowhere_are_counted(explained, make):
    """Nodes out of service would not help."""
    answer = explained(make.node("a"), lost_node(make, "lost"), pending(make, "vast", cpu="9"))
    assert answer.findings[1] == (
        "1 pod is pending, and no node takes it now: Insufficient cpu, node(s) had untolerated "
        "taint(s). Even if all nodes were in service, no node would take it."
    )


def test_nodes_out_of_service_do_not_matter_if_all_pods_fit(explained, make):
    answer = explained(make.node("a"), lost_node(make, "lost"), pending(make, "new"))
    assert answer.findings[-1] == "1 pod is pending: there is room for it now."


def test_pods_that_rules_keep_off_nodes_do_not_lack_room(explained, make):
    """The reasons that concern the most pods come first."""
    picky = [pending(make, f"picky-{number}") for number in range(2)]
    for one in picky:
        one["spec"]["nodeSelector"] = {"disk": "ssd"}
    answer = explained(make.node("a"), *picky, pending(make, "vast", cpu="9"))
    assert answer.findings[1] == (
        "3 pods are pending, and no node takes them now. 2 pods: node(s) didn't match Pod's node "
        "affinity/selector. 1 pod: Insufficient cpu."
    )


def test_members_of_groups_are_not_counted(explained, make):
    """They start only together."""
    member = pending(make, "m", schedulerName="volcano")
    answer = explained(make.node("a"), member)
    assert answer.findings[1] == (
        "1 pending pod is not counted, because it starts only with a group or does not enter the "
        "scheduler's queue; the explanation of all pods says why."
    )
    assert rows(answer, "in_service")[0]["room_for"] is None


def test_equal_pods_are_tried_again_after_a_placement(explained, make):
    """The second pod of `peer` needs a pod of `base`, which is placed after the first one."""
    term = {
        "labelSelector": {"matchLabels": {"app": "base"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    base = pending(make, "b-base")
    base["metadata"]["labels"] = {"app": "base"}
    pods = [
        pending(make, name, owner="peer", affinity=affinity) for name in ("a-peer", "c-peer")
    ]  # fmt: skip
    answer = explained(make.node("a", **{"kubernetes.io/hostname": "a"}), base, *pods)
    assert "there is room for 2 of them now" in answer.findings[1]


def test_pods_with_different_claims_are_tried_separately(explained, make):
    """The pods are equal apart from the names of their claims."""
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "disk"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "present", "namespace": "default"},
        "spec": {
            "storageClassName": "disk",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    pods = [
        pending(
            make,
            f"p-{name}",
            volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
        )
        for name in ("absent", "present")
    ]
    answer = explained(make.node("a"), storage, claim, *pods)
    assert answer.findings[1] == (
        "2 pods are pending: there is room for 1 of them now. No node takes the other pod: "
        'persistentvolumeclaim "absent" not found.'
    )


def test_a_nominated_pod_uses_the_room_that_is_kept_for_it(explained, make):
    """Its nomination keeps other pods away, but not the pod itself."""
    pod = pending(make, "p", cpu="4", priority=5)
    pod["status"]["nominatedNodeName"] = "a"
    answer = explained(make.node("a"), pod, pending(make, "low", owner="low"))
    assert answer.findings[1] == (
        "2 pods are pending: there is room for 1 of them now. No node takes the other pod: "
        "Insufficient cpu."
    )


def test_many_nodes_are_grouped_by_pool_and_taints(explained, make):
    """The row has the largest free amounts of one node, because a pod needs one node."""
    pools = [("gpu", 2), ("web", 20)]
    nodes = [
        make.node(f"{pool}-{number:02}", **{"karpenter.sh/nodepool": pool})
        for pool, count in pools
        for number in range(count)
    ]
    nodes[0]["spec"] = nodes[1]["spec"] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    nodes[1]["status"]["allocatable"] |= {"nvidia.com/gpu": "4"}
    used = [make.pod(f"p-{one['metadata']['name']}", node_name=one["metadata"]["name"], cpu="3")
            for one in nodes[3:]]  # fmt: skip
    answer = explained(*nodes, *used)
    assert [(table.name, table.shown) for table in answer.tables[-2:]] == [
        ("pools", 10),
        ("in_service", 0),
    ]
    shown = ("nodes", "node", "pool", "cpu_words", "cpu_most", "devices_free", "taints")
    assert [tuple(row[name] for name in shown) for row in rows(answer, "pools")] == [
        (20, "web-00 and 19 more", "web", "57 of 80", "4", "", ""),
        (2, "gpu-00 and 1 more", "gpu", "0 of 8", "4", "4 of 4 nvidia.com/gpu", "gpu:NoSchedule"),
    ]


def test_many_nodes_out_of_service_are_grouped_by_reason(explained, make):
    """The row says for how many pods there would be room if all nodes of the row returned."""
    nodes = [lost_node(make, f"lost-{number:02}", "2", **{ZONE: "east"}) for number in range(12)]
    pods = [pending(make, f"p-{number:02}", cpu="2") for number in range(20)]
    answer = explained(*nodes, make.node("a", "1"), *pods)
    [reason] = rows(answer, "node_reasons")
    assert (reason["nodes"], reason["zone"], reason["room_for"]) == (12, "east", 12)
    assert [row["room_for"] for row in rows(answer, "out_of_service")] == [1] * 12
    tables = [(table.name, table.shown) for table in answer.tables[:2]]
    assert tables == [("node_reasons", 10), ("out_of_service", 0)]


def test_the_verdicts_of_healthy_clusters(explained, make):
    """Without pending pods, no room for pods is stated."""
    answer = explained(make.node("a"))
    assert answer.verdict == "The node takes new pods."
    assert answer.findings == ("Pods on this node request 0 of 4 cpu and 0 of 16Gi memory.",)
    assert rows(answer, "in_service")[0]["room_for"] is None
    assert explained(make.node("a"), make.node("b")).verdict == "All 2 nodes take new pods."


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ("a", "The node is in service, but it has no free cpu."),
        ("ab", "All 2 nodes are in service, but 1 of them has no free cpu."),
        ("ac", "All 2 nodes are in service, but they have no free cpu."),
        ("abl", "2 of 3 nodes are in service, but 1 of them has no free cpu."),
        ("al", "1 of 2 nodes is in service, but it has no free cpu."),
        ("as", "All 2 nodes are in service, but they have no free cpu or no room for another pod."),
    ],
)  # fmt: skip
def test_the_verdict_counts_full_nodes(explained, make, nodes, sentence):
    """Nodes named a and c have no free cpu, s allows no further pod, and l is not Ready."""
    known = {name: make.node(name) for name in "acbs"} | {"l": lost_node(make, "l")}
    known["s"]["status"]["allocatable"]["pods"] = "0"
    pods = [make.pod(f"full-{name}", node_name=name, cpu="4") for name in nodes if name in "ac"]
    assert explained(*(known[name] for name in nodes), *pods).verdict == sentence


def test_devices_that_a_node_offers_no_longer_are_listed(explained, make):
    """The device plugin has stopped, so the allocatable amount is 0."""
    with_gpu, stopped = make.node("a"), make.node("b")
    with_gpu["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    stopped["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    answer = explained(with_gpu, stopped, make.node("c"))
    found = {row["node"]: row["devices_free"] for row in rows(answer, "in_service")}
    assert found == {"a": "8 of 8 nvidia.com/gpu", "b": "0 of 0 nvidia.com/gpu", "c": ""}


class CountingModel(ClusterModel):
    """A model that notes the pods of all scheduling cycles."""

    def schedule(self, pod):
        self.tried.append(pod.key)
        return super().schedule(pod)


@pytest.mark.parametrize("is_terminating", [False, True])
def test_pods_that_are_too_large_for_returned_nodes_are_not_tried(snapshot, make, is_terminating):
    """Pods that depend on others, and all pods if a pod stops, are tried nevertheless."""
    old = make.pod("old", node_name="l", cpu="1", owner="old")
    if is_terminating:
        old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "x"}}}  # fmt: skip
    pods = [
        pending(make, "fits", cpu="2"),
        pending(make, "large", cpu="9"),
        pending(make, "spread", cpu="9", topologySpreadConstraints=[spread]),
    ]
    model = CountingModel(snapshot(lost_node(make, "l"), old, *pods), SchedulerConfig())
    model.tried = []
    assert room_if_returned(model, ["l"], single_pods(model)) == 1
    assert ("default/large" in model.tried) is is_terminating
    assert {"default/fits", "default/spread"} < {*model.tried, ""}


def test_large_pods_that_default_constraints_keep_off_other_nodes_are_tried(snapshot, make):
    """When the small pod runs in the returned zone, the large one may join the pod on node a."""
    default = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [default]}
    config = SchedulerConfig((Profile(args={"PodTopologySpread": args}),))
    replicas = make.workload("ReplicaSet", "web", replicas=3)
    pods = [
        make.pod("running", node_name="a", cpu="1", owner="web"),
        pending(make, "first", cpu="1"),
        pending(make, "second", cpu="3"),
    ]
    for pod in pods:
        pod["metadata"]["labels"] = replicas["spec"]["selector"]["matchLabels"]
    nodes = [make.node("a", **{ZONE: "west"}), lost_node(make, "l", "2", **{ZONE: "east"})]
    model = ClusterModel(snapshot(*nodes, replicas, *pods), config)
    assert room_if_returned(model, ["l"], single_pods(model)) == 2


def test_the_command_prints_every_node_if_asked(make, tmp_path, capsys):
    """`--all-nodes` prints a row for every node, as `-o details` does."""
    nodes = [make.node(f"n-{number:02}") for number in range(30)]
    objects = [*nodes, make.pod("p", node_name="n-00")]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    assert run(["explain", str(path), "nodes"]) == 0
    short = capsys.readouterr().out
    assert "n-01 and 29 more" in short
    assert "\nn-29" not in short
    assert run(["explain", str(path), "nodes", "--all-nodes"]) == 0
    printed = capsys.readouterr().out
    assert "\nn-29" in printed
    assert run(["explain", str(path), "nodes", "-o", "details"]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize("changed_at", [LATER, NOW])
def test_the_time_since_nodes_are_ready_is_shown_if_time_has_passed(explained, make, changed_at):
    """A hand-written dump may be as old as the conditions of its nodes."""
    node = make.node("a")
    node["status"]["conditions"] = [{**READY, "lastTransitionTime": changed_at}]
    answer = explained(node)
    assert rows(answer, "in_service")[0]["ready_s"] == (60 if changed_at == LATER else 0)
    [shown] = (one.columns for one in answer.tables if one.name == "in_service")
    assert ("ready_s" in [one.key for one in shown]) == (changed_at == LATER)
