"""A pending pod is explained together with the pending pods that may be placed before it."""

from __future__ import annotations

import json

import pytest

from fairlead.cli.main import run
from fairlead.whatif.explain.pod import explain_pod, explanation_json


def rival(make, name, *, cpu="2", priority=0, **spec):
    return make.pod(name, owner=name, cpu=cpu, priority=priority, **spec)


HIGH = (
    "But 1 pending pod of higher priority comes first and takes room: default/high. Then this pod "
    "fits no node: Insufficient cpu."
)
BOTH = (
    "But 2 pending pods of higher priority come first and take room: default/high, default/mid. "
    "Then this pod fits no node: Insufficient cpu."
)
PEER = (
    "If 1 other pending pod of at least its priority is placed first (default/peer), this pod fits "
    "no node: Insufficient cpu."
)


@pytest.mark.parametrize(
    ("others", "cpu", "sentence"),
    [
        ([("high", "2", 1)], "2", HIGH),
        ([("high", "1", 2), ("mid", "1", 1)], "2", BOTH),
        ([("peer", "2", 0)], "2", PEER),
        ([("low", "2", -1)], "2", ""),
        ([("high", "1", 1)], "3", ""),
        ([("vast", "9", 1)], "2", ""),
    ],
)
def test_a_pod_that_fits_names_the_pods_that_can_take_its_room(
    snapshot, make, others, cpu, sentence
):
    """Pods of lower priority come later, and pods that fit nowhere take no room."""
    pods = [rival(make, name, cpu=size, priority=value) for name, size, value in others]
    read = snapshot(make.node("a", cpu), rival(make, "p"), *pods)
    found = explain_pod(read, "pod/p")
    assert found.evaluation.choices == ["a"]
    assert found.after_rivals == sentence


def test_a_rival_of_another_scheduler_may_be_placed_before_the_pod(snapshot, make):
    """The priority decides only within the queue of one scheduler."""
    other = rival(make, "peer", priority=1, schedulerName="other")
    bound = rival(make, "bound", cpu="1", schedulerName="other") | {"status": {"phase": "Running"}}
    bound["spec"]["nodeName"] = "a"
    found = explain_pod(snapshot(make.node("a", "3"), rival(make, "p"), other, bound), "pod/p")
    assert found.after_rivals == PEER


@pytest.mark.parametrize(
    ("others", "count"),
    [
        ([], 1),
        ([("peer-1", 0), ("peer-2", 0)], 3),
        ([("high", 1)], 2),
        ([("low", -1)], 1),
        ([(f"peer-{number}", 0) for number in range(12)], 0),
    ],
)
def test_the_new_nodes_suffice_if_rivals_come_first(snapshot, make, others, count):
    """Each new node has room for one pod. 0 means more than ten nodes."""
    full = rival(make, "full", cpu="3", priority=5, nodeName="a")
    pods = [rival(make, name, cpu="3", priority=value) for name, value in others]
    never = {"preemptionPolicy": "Never"}
    read = snapshot(make.node("a"), full, rival(make, "p", cpu="3", **never), *pods)
    found = explain_pod(read, "pod/p").new_node
    assert (found.like, found.refusal, found.count) == ("a", "", count)


def test_rivals_that_preempt_need_no_new_node(snapshot, make):
    """The rival takes the node of a pod of lower priority."""
    low = rival(make, "low", cpu="3", priority=-5, nodeName="a")
    high = rival(make, "high", cpu="3", priority=5)
    pod = rival(make, "p", cpu="3", preemptionPolicy="Never")
    found = explain_pod(snapshot(make.node("a"), low, high, pod), "pod/p").new_node
    assert (found.like, found.count) == ("a", 1)


def test_a_pod_on_a_node_has_no_rivals(snapshot, make):
    """It is explained as if it were pending now, but it keeps its room."""
    bound = rival(make, "p", nodeName="a")
    read = snapshot(make.node("a"), bound, rival(make, "high", priority=1))
    assert explain_pod(read, "pod/p").after_rivals == ""


@pytest.mark.parametrize(
    ("peers", "cpu", "larger"),
    [
        (3, "16", ("b", 1)),
        (3, "7", ("b", 2)),
        (12, "16", ("b", 3)),
        (0, "16", None),
        (3, "4", None),
    ],
    ids=["one is enough", "two are enough", "more than ten small nodes", "one small node", "equal"],
)
def test_fewer_larger_nodes_are_an_alternative(snapshot, make, peers, cpu, larger):
    """A node of 4 CPU has room for one pod of 3 CPU, and a node of 16 CPU for five.

    The taint of the largest node keeps the pods off.
    """
    nodes = [make.node("a"), make.node("b", cpu), make.node("c", "64")]
    nodes[2]["spec"] = {"taints": [{"key": "pool", "effect": "NoSchedule"}]}
    never = {"preemptionPolicy": "Never"}
    full = [
        rival(make, f"full-{name}", cpu=size, priority=5, nodeName=name)
        for name, size in (("a", "4"), ("b", cpu))
    ]
    pods = [rival(make, f"peer-{number}", cpu="3", **never) for number in range(peers)]
    read = snapshot(*nodes, *full, rival(make, "p", cpu="3", **never), *pods)
    explained = explain_pod(read, "pod/p")
    found = explained.larger_node
    assert (found and (found.like, found.count)) == larger
    assert explanation_json(explained)["larger_node"] == (found and found.to_json())


@pytest.mark.parametrize(
    ("peers", "like", "count"),
    [(5, "a,b,c", 3), (1, "a,b", 2), (0, "a", 1)],
    ids=["a node in each zone", "two zones are enough", "one node is enough"],
)
def test_new_nodes_are_in_several_zones_if_fewer_are_then_enough(
    snapshot, make, peers, like, count
):
    """A new node has room for 4 pods, and topology spread admits one new pod in each zone."""
    zone, selector = "topology.kubernetes.io/zone", {"matchLabels": {"app": "p"}}
    spread = {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": zone, "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": selector}
        ],
        "preemptionPolicy": "Never",
    }  # fmt: skip
    nodes = [make.node(name, **{zone: name}) for name in "abc"]
    full = [rival(make, f"full-{name}", cpu="4", priority=5, nodeName=name) for name in "abc"]
    pods = [rival(make, "p", cpu="1", **spread)]
    pods += [rival(make, f"peer-{number}", cpu="1", **spread) for number in range(peers)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "p"}
    explained = explain_pod(snapshot(*nodes, *full, *pods), "pod/p")
    found = explained.new_node
    assert (",".join(found.likes), found.count) == (like, count)
    in_json = explanation_json(explained)["new_node"]
    assert (in_json["like"], in_json["likes"]) == ("a", like.split(","))


def test_new_nodes_in_several_zones_keep_the_warning_about_a_failed_zone(make, tmp_path, capsys):
    """Topology spread needs a pod in zone a, but no node of this zone works."""
    zone, selector = "topology.kubernetes.io/zone", {"matchLabels": {"app": "p"}}
    spread = {"maxSkew": 1, "topologyKey": zone, "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": selector}  # fmt: skip
    failed, working = (make.node(name, **{zone: name}) for name in "ab")
    failed["spec"] = {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]}
    failed["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    full = rival(make, "full", cpu="4", priority=5, nodeName="b")
    waits = {"topologySpreadConstraints": [spread], "preemptionPolicy": "Never"}
    pods = [rival(make, f"p{number}", cpu="3", **waits) for number in range(3)]
    for pod in (full, *pods):
        pod["metadata"]["labels"] = {"app": "p"}
    path = tmp_path / "dump.json"
    path.write_text(json.dumps([failed, working, full, *pods]))
    assert run(["explain", str(path), "pod/p0"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "3 more nodes like a, b would take the pod, even if other pending pods of at least its "
        "priority come first, but no node of zone a takes pods now."
    ) in out


UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taints", "resources", "status"),
    [
        ([{"key": "pool", "effect": "NoSchedule"}], {}, "True"),
        ([], {"nvidia.com/gpu": "1"}, "True"),
        ([UNREACHABLE], {}, "Unknown"),
    ],
    ids=["with a taint", "with devices", "in a failed zone"],
)
def test_larger_nodes_that_may_not_take_the_pod_are_no_alternative(
    snapshot, make, taints, resources, status
):
    zone = "topology.kubernetes.io/zone"
    large = make.node("b", "16", **{zone: "2"})
    large["spec"] = {"taints": taints}
    large["status"]["allocatable"] |= resources
    large["status"]["conditions"] = [{"type": "Ready", "status": status}]
    full = [
        rival(make, f"full-{name}", cpu=size, priority=5, nodeName=name)
        for name, size in (("a", "4"), ("b", "16"))
    ]
    never = {"preemptionPolicy": "Never"}
    pods = [rival(make, name, cpu="3", **never) for name in ("p", "peer")]
    read = snapshot(make.node("a", **{zone: "1"}), large, *full, *pods)
    found = explain_pod(read, "pod/p")
    assert (found.new_node.count, found.larger_node) == (2, None)
