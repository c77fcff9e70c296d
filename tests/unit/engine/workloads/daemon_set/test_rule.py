"""DaemonSets: the nodes that need a pod, and one pod on each of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode, decode_as
from fairlead.api.objects import Pod
from fairlead.engine.core.command import CreateObject, DeleteObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import CommandSucceeded, ObjectChanged, ObjectsLoaded
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.daemon_set.rule import (
    NodeEligibility,
    daemon_template,
    node_eligibility,
    target_node,
)
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector
from fairlead.engine.workloads.environment import served_environment

OWNER = ("DaemonSet", "agent", "ds")


def daemon_set(build, **spec):
    return build.owned("DaemonSet", "agent", uid="ds", template=build.template(**spec))


def pinned_node(pod):
    return target_node(decode_as(Pod, {"spec": pod["spec"]}))


@pytest.fixture
def world(new_world):
    return new_world(Workloads(), GarbageCollector(), place=pinned_node)


def taint(key, effect):
    return {"key": key, "effect": effect}


STAYS = NodeEligibility(should_run=False, should_continue=True)
GOES = NodeEligibility(should_run=False, should_continue=False)
RUNS = NodeEligibility(should_run=True, should_continue=True)


@pytest.mark.parametrize(
    ("case", "spec", "node", "expected"),
    [
        ("any node", {}, {}, RUNS),
        ("a cordoned one", {}, {"taints": ["unschedulable:NoSchedule"]}, RUNS),
        ("one that is not ready", {}, {"taints": ["not-ready:NoExecute"]}, RUNS),
        ("an unreachable one", {}, {"taints": ["unreachable:NoExecute"]}, RUNS),
        ("one under pressure", {}, {"taints": ["memory-pressure:NoSchedule"]}, RUNS),
        ("one without network", {}, {"taints": ["network-unavailable:NoSchedule"]}, STAYS),
        (
            "the host's network needs no other",
            {"hostNetwork": True},
            {"taints": ["network-unavailable:NoSchedule"]},
            RUNS,
        ),
        ("a taint keeps new pods away", {}, {"taints": ["x:NoSchedule"]}, STAYS),
        ("a NoExecute taint drives them off", {}, {"taints": ["x:NoExecute"]}, GOES),
        ("a preference is none", {}, {"taints": ["x:PreferNoSchedule"]}, RUNS),
        (
            "an own toleration",
            {"tolerations": [{"operator": "Exists"}]},
            {"taints": ["x:NoExecute"]},
            RUNS,
        ),
        ("a selector that matches", {"nodeSelector": {"os": "linux"}}, {}, RUNS),
        ("a selector that does not", {"nodeSelector": {"os": "windows"}}, {}, GOES),
        ("a fixed other node", {"nodeName": "n2"}, {}, GOES),
        ("this fixed node", {"nodeName": "n1"}, {}, RUNS),
    ],
)
def test_which_nodes_need_a_pod(build, case, spec, node, expected):
    """Short taint names stand for those under node.kubernetes.io/."""
    taints = []
    for text in node.get("taints", ()):
        key, effect = text.split(":")
        taints.append(taint(key if key == "x" else f"node.kubernetes.io/{key}", effect))
    one = decode(build.node("n1", labels={"os": "linux"}, taints=taints))
    daemon = decode_as(Pod, daemon_template(build.template(**spec)))
    assert node_eligibility(daemon, one) == expected, case


def test_every_node_gets_its_pinned_pod(world, build):
    """The pod has upstream's form; tolerations of DaemonSets follow those of the template."""
    own = {"key": "mine", "operator": "Exists"}
    world.load(build.node("n1"), build.node("n2"), daemon_set(build, tolerations=[own]))
    pods = list(world.pods().values())
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["n1", "n2"]
    (term,) = pods[0]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    tolerations = pods[0]["spec"]["tolerations"]
    assert tolerations[0] == own
    assert [
        (one["key"].removeprefix("node.kubernetes.io/"), one["effect"]) for one in tolerations[1:]
    ] == [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ]


def test_existing_pods_count(world, build):
    """Bound pods for their node, pending pods for the node of their node affinity."""
    waiting = build.pod("b", OWNER, node="", phase="Pending")
    waiting["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
                ]
            }
        }
    }
    world.load(
        build.node("n1"), build.node("n2"), daemon_set(build), build.pod("a", OWNER), waiting
    )
    assert world.log == []


def test_preferred_affinity_is_kept_and_required_affinity_is_replaced(world, build):
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux"]}]}
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": []}}
            ],
        },
        "podAntiAffinity": {},
    }
    world.load(
        build.node("n1", labels={"os": "linux"}),
        build.node("n2"),
        daemon_set(build, affinity=affinity),
    )
    (pod,) = world.pods().values()
    assert pod["spec"]["nodeName"] == "n1"
    made = pod["spec"]["affinity"]
    assert made["podAntiAffinity"] == {}
    assert made["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]


def test_a_new_node_gets_a_pod(world, build):
    world.load(build.node("n1"), daemon_set(build))
    world.create(build.node("n2"))
    assert sorted(pod["spec"]["nodeName"] for pod in world.pods().values()) == ["n1", "n2"]


def test_a_node_that_becomes_eligible_gets_a_pod_and_loses_it_again(world, build):
    world.load(build.node("n1"), daemon_set(build, nodeSelector={"pool": "a"}))
    assert world.pods() == {}
    world.patch("Node", "n1", {"metadata": {"labels": {"pool": "a"}}}, namespace="")
    assert len(world.pods()) == 1
    world.patch("Node", "n1", {"metadata": {"labels": {"pool": "b"}}}, namespace="")
    assert world.pods() == {}
    assert world.sent(DeleteObject)[0].why == "its DaemonSet does not select its node"


def test_a_no_schedule_taint_does_not_delete_the_existing_pod(world, build):
    world.load(build.node("n1"), daemon_set(build))
    (name,) = world.pods()
    tainted = {"spec": {"taints": [taint("x", "NoSchedule")]}}
    world.patch("Node", "n1", tainted, namespace="")
    assert set(world.pods()) == {name}
    world.delete("Pod", name, grace=0)
    assert world.pods() == {}


def test_a_pod_in_creation_is_not_requested_again(build):
    controller = Workloads()
    snapshot = [decode(build.node("n1")), decode(daemon_set(build))]
    (command,) = controller.handle(ObjectsLoaded(snapshot), 0)
    assert controller.handle(CommandSucceeded(command), 0) == []
    relabelled = decode(build.node("n1", labels={"a": "b"}))
    assert controller.handle(ObjectChanged(relabelled), 0) == []


def test_irrelevant_changes_of_a_node_cause_no_sync(world, build):
    world.load(build.node("n1"), daemon_set(build))
    before = len(world.log)
    world.patch("Node", "n1", {"metadata": {"annotations": {"a": "b"}}}, namespace="")
    assert len(world.log) == before


def test_a_preempted_pod_is_replaced_after_its_deletion(world, build):
    """Unlike a replica, it is not replaced earlier, because its node needs only one pod."""
    world.load(build.node("n1"), daemon_set(build), build.pod("a", OWNER))
    world.delete("Pod", "a")
    assert world.pods() == {}
    world.delete("Pod", "a", grace=0)
    assert list(world.replaces().values()) == ["a"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_finished_pod_is_deleted_and_replaced(world, build, phase):
    world.load(build.node("n1"), daemon_set(build), build.pod("a", OWNER))
    world.patch_status("Pod", "a", {"phase": phase})
    assert list(world.replaces().values()) == ["a"]
    assert world.get("Pod", "a") is None


@pytest.mark.parametrize(
    ("phase", "event_type", "reason", "note"),
    [
        (
            "Failed",
            "Warning",
            "FailedDaemonPod",
            "Found failed daemon pod ns/{}, will try to kill it",
        ),
        (
            "Succeeded",
            "Normal",
            "SucceededDaemonPod",
            "Found succeeded daemon pod ns/{}, will try to delete it",
        ),
    ],
)
def test_a_finished_pod_is_reported_before_its_deletion(
    seen, build, phase, event_type, reason, note
):
    seen.create(new_set(build))
    name = min(seen.pods())
    before = len(seen.events)
    place = f"{name} on node {seen.get('Pod', name)['spec']['nodeName']}"
    seen.patch_status("Pod", name, {"phase": phase})
    found, deleted, created = seen.events[before:]
    assert (found.type, found.reason, found.note) == (event_type, reason, note.format(place))
    assert [deleted.reason, created.reason] == ["SuccessfulDelete", "SuccessfulCreate"]


def test_of_two_pods_on_a_node_the_older_is_kept(world, build):
    young = build.pod("a", OWNER, meta={"creationTimestamp": "2030-01-01T00:00:00Z"})
    old = build.pod("b", OWNER, meta={"creationTimestamp": "2020-01-01T00:00:00Z"})
    world.load(build.node("n1"), daemon_set(build), young, old)
    assert set(world.pods()) == {"b"}


def test_pending_pods_of_a_deleted_node_are_deleted(world, build):
    """Bound pods are deleted by the pod garbage collector."""
    world.place = lambda pod: None
    world.load(build.node("n1"), build.node("n2"), daemon_set(build), build.pod("a", OWNER))
    assert len(world.pods()) == 2
    world.delete("Node", "n2", namespace="")
    world.delete("Node", "n1", namespace="")
    assert set(world.pods()) == {"a"}


def test_pods_of_an_unknown_daemon_set_are_left_alone(world, build):
    world.load(build.node("n1"), build.pod("a", OWNER))
    world.delete("Pod", "a", grace=0)
    assert world.pods() == {}


def test_no_node_is_synced_for_a_deleted_daemon_set(world, build):
    world.load(build.node("n1"), daemon_set(build))
    world.delete("DaemonSet", "agent")
    world.create(build.node("n2"))
    assert world.pods() == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "remove", "taint", "untaint", "lose"]),
            st.sampled_from(["n1", "n2", "n3"]),
        ),
        max_size=14,
    )
)
def test_settled_means_one_pod_on_each_eligible_node(new_world, build, steps):
    """After any changes of nodes and pods, other nodes have no pods."""
    world = new_world(Workloads(), GarbageCollector(), place=pinned_node).load(daemon_set(build))
    for act, name in steps:
        exists = world.get("Node", name, "") is not None
        if act == "add" and not exists:
            world.create(build.node(name))
        elif act == "remove" and exists:
            world.delete("Node", name, namespace="")
            for pod in [
                key for key, one in world.pods().items() if one["spec"]["nodeName"] == name
            ]:
                world.delete("Pod", pod, grace=0)
        elif act in ("taint", "untaint") and exists:
            taints = [taint("x", "NoExecute")] if act == "taint" else None
            world.patch("Node", name, {"spec": {"taints": taints}}, namespace="")
        elif act == "lose" and world.pods():
            world.delete("Pod", min(world.pods()), grace=0)
        for pod in list(world.pods(alive=False)):
            if pod not in world.pods():
                world.delete("Pod", pod, grace=0)
        wanted = sorted(
            key[2]
            for key, one in world.objects.items()
            if key[0] == "Node" and not one.get("spec", {}).get("taints")
        )
        assert sorted(pod["spec"]["nodeName"] for pod in world.pods().values()) == wanted
    assert all(
        command.manifest["kind"] == "Pod" for command in world.sent(CreateObject)[3:] if command
    )


# --- updates and status ------------------------------------------------------------------------


@pytest.fixture
def seen(new_world, build):
    """Four nodes, each with a ready pod; the controller keeps the status current."""
    controller = Workloads(environment=served_environment())
    world = new_world(controller, place=pinned_node, runs=True)
    return world.load(*(build.node(f"n{place}") for place in range(4)))


def status(world):
    return world.get("DaemonSet", "agent")["status"]


def images(world):
    return sorted(
        (pod["spec"]["nodeName"], pod["spec"]["containers"][0]["image"])
        for pod in world.pods().values()
    )


def update(world, build, image="web:2"):
    world.patch("DaemonSet", "agent", {"spec": {"template": build.template(image)}})


def rolling(**bounds):
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": bounds}}


def new_set(build, **fields):
    return build.owned("DaemonSet", "agent", uid="ds", **fields)


def finish_deletion(world):
    for name in [one for one in world.pods(alive=False) if one not in world.pods()]:
        world.delete("Pod", name, grace=0)


def test_status_counts_nodes(seen, build):
    seen.create(new_set(build))
    assert status(seen) == {
        "currentNumberScheduled": 4,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 4,
        "numberReady": 4,
        "updatedNumberScheduled": 4,
        "numberAvailable": 4,
    }


def test_a_pod_on_a_node_that_needs_none_is_misscheduled(seen, build):
    """A NoSchedule taint evicts no pod."""
    seen.create(new_set(build))
    taints = [{"key": "x", "effect": "NoSchedule"}]
    seen.patch("Node", "n1", {"spec": {"taints": taints}}, namespace="")
    assert (status(seen)["numberMisscheduled"], status(seen)["desiredNumberScheduled"]) == (1, 3)


def test_an_update_replaces_pods_node_by_node(seen, build):
    seen.create(new_set(build))
    update(seen, build)
    assert len(seen.pods()) == 3
    assert "updatedNumberScheduled" not in status(seen)
    for done in range(1, 5):
        finish_deletion(seen)
        assert [image for _, image in images(seen)].count("web:2") == done
    assert status(seen)["updatedNumberScheduled"] == 4
    revisions = [one for key, one in sorted(seen.objects.items()) if key[0] == "ControllerRevision"]
    assert sorted(one["revision"] for one in revisions) == [1, 2]
    labels = {pod["metadata"]["labels"]["controller-revision-hash"] for pod in seen.pods().values()}
    newest = max(revisions, key=lambda one: one["revision"])
    assert labels == {newest["metadata"]["labels"]["controller-revision-hash"]}


def test_max_unavailable_pods_are_replaced_at_a_time(seen, build):
    seen.create(new_set(build, **rolling(maxUnavailable="50%")))
    update(seen, build)
    assert len(seen.pods()) == 2


def test_unavailable_outdated_pods_are_replaced_at_once(seen, build):
    """Their nodes count as unavailable, so no available pod is deleted."""
    seen.create(new_set(build))
    for name in sorted(seen.pods())[:2]:
        seen.start(name, ready=False)
    seen.settle()
    update(seen, build)
    assert len(seen.pods()) == 2


def test_an_update_waits_for_unavailable_new_pods(seen, build):
    seen.create(new_set(build))
    seen.runs = False
    update(seen, build)
    finish_deletion(seen)
    seen.run(seconds(3600))
    assert [image for _, image in images(seen)].count("web:2") == 1


def test_new_pods_are_available_after_min_ready_seconds(seen, build):
    seen.create(new_set(build, minReadySeconds=30))
    assert status(seen)["numberUnavailable"] == 4
    seen.run(seconds(30))
    update(seen, build)
    finish_deletion(seen)
    assert len(seen.pods()) == 4
    seen.run(seconds(29))
    assert len(seen.pods()) == 4
    seen.run(seconds(1))
    assert len(seen.pods()) == 3


def test_with_a_surge_the_new_pod_is_created_first(seen, build):
    seen.create(new_set(build, **rolling(maxSurge=1, maxUnavailable=0)))
    seen.runs = False
    update(seen, build)
    assert len(images(seen)) == 5
    seen.runs = True
    (new,) = [
        name
        for name, pod in seen.pods().items()
        if pod["spec"]["containers"][0]["image"] == "web:2"
    ]
    seen.start(new)
    seen.settle()
    for _ in range(5):
        finish_deletion(seen)
    assert images(seen) == [(f"n{place}", "web:2") for place in range(4)]


SURGE = rolling(maxSurge=1, maxUnavailable=0)


def image_counts(world):
    """Return the number of live pods by node."""
    nodes = [node for node, _ in images(world)]
    return {node: nodes.count(node) for node in sorted(set(nodes))}


def test_a_surge_counts_only_nodes_whose_new_pod_is_not_available(seen, build):
    """The next node does not wait until the outdated pod of the previous node is gone."""
    seen.create(new_set(build, **SURGE))
    update(seen, build)
    assert images(seen) == [(f"n{place}", "web:2") for place in range(4)]


def test_outdated_pods_that_are_not_ready_are_replaced_beyond_the_surge(seen, build):
    seen.create(new_set(build, **SURGE))
    for name in sorted(seen.pods())[:3]:
        seen.start(name, ready=False)
    seen.settle()
    seen.runs = False
    update(seen, build)
    assert sorted(image_counts(seen).values()) == [1, 1, 1, 2]
    assert [image for _, image in images(seen)].count("web:2") == 4


def test_with_a_surge_a_terminating_pod_is_replaced_before_its_end(seen, build):
    seen.create(new_set(build, **SURGE))
    seen.delete("Pod", min(seen.pods()))
    assert image_counts(seen) == {f"n{place}": 1 for place in range(4)}
    assert len(seen.pods(alive=False)) == 5


def test_with_a_surge_nodes_that_need_no_pod_keep_it_until_others_have_one(seen, build):
    """A node that no longer tolerates new pods loses its outdated pod without a successor."""
    seen.create(new_set(build, **SURGE))
    taints = [{"key": "x", "effect": "NoSchedule"}]
    seen.patch("Node", "n1", {"spec": {"taints": taints}}, namespace="")
    update(seen, build)
    assert images(seen) == [(f"n{place}", "web:2") for place in (0, 2, 3)]


def test_without_surge_the_older_pod_is_kept_even_if_it_is_outdated(seen, build):
    seen.create(new_set(build, **SURGE))
    seen.runs = False
    update(seen, build)
    assert len(images(seen)) == 5
    seen.patch("DaemonSet", "agent", {"spec": rolling(maxSurge=0, maxUnavailable=1)})
    assert sorted(image_counts(seen).values()) in ([1, 1, 1], [1, 1, 1, 1])


def test_a_terminating_finished_pod_is_replaced(world, build):
    held = build.pod("a", OWNER, phase="Failed")
    held["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}
    world.load(build.node("n1"), daemon_set(build), held)
    assert len(world.pods()) == 1


def test_pods_that_fail_repeatedly_are_replaced_with_backoff(new_world, build):
    """So a kubelet that rejects pods does not get too many."""
    world = new_world(Workloads(), place=pinned_node).load(build.node("n1"), new_set(build))
    for _ in range(200):
        for name in world.pods():
            world.patch_status("Pod", name, {"phase": "Failed"})
        world.run(seconds(1))
    made = len([one for one in world.sent(CreateObject) if one.manifest["kind"] == "Pod"])
    assert 6 <= made <= 10


def test_on_delete_does_not_delete_outdated_pods(seen, build):
    seen.create(new_set(build, updateStrategy={"type": "OnDelete"}))
    update(seen, build)
    assert len(seen.pods()) == 4
    name = min(seen.pods())
    seen.delete("Pod", name, grace=0)
    assert [image for _, image in images(seen)].count("web:2") == 1


def kept_images(world):
    """Return the image in each ControllerRevision, oldest first."""
    revisions = [one for key, one in world.objects.items() if key[0] == "ControllerRevision"]
    return [
        one["data"]["spec"]["template"]["spec"]["containers"][0]["image"]
        for one in sorted(revisions, key=lambda one: one["revision"])
    ]


def finish_update(world):
    while [one for one in world.pods(alive=False) if one not in world.pods()]:
        finish_deletion(world)


def test_history_of_limit_zero_keeps_only_the_update_revision(seen, build):
    """The first revision of the DaemonSet is deleted, too."""
    seen.create(new_set(build, revisionHistoryLimit=0))
    for number in (2, 3, 4):
        update(seen, build, f"web:{number}")
        finish_update(seen)
    assert kept_images(seen) == ["web:4"]


def test_revisions_of_existing_pods_count_towards_the_history_limit(seen, build):
    """Pods have the revisions 1 and 3; revision 2 is deleted although the limit is 1."""
    on_delete = {"updateStrategy": {"type": "OnDelete"}}
    seen.create(new_set(build, revisionHistoryLimit=1, **on_delete))
    update(seen, build, "web:2")
    update(seen, build, "web:3")
    assert kept_images(seen) == ["web:1", "web:3"]
    seen.delete("Pod", min(seen.pods()), grace=0)
    update(seen, build, "web:4")
    assert kept_images(seen) == ["web:1", "web:3", "web:4"]


def test_loaded_pods_are_not_rolled_out_again(world, build):
    """The hash in the labels of the pods was computed by another cluster."""
    label = {"controller-revision-hash": "59dcf5c", "app": "web"}
    world.load(
        build.node("n1"),
        daemon_set(build),
        build.pod("agent-a", OWNER, labels=label),
    )
    assert world.log == []
