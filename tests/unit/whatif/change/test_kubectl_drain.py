"""When kubectl drain refuses pods, and with which messages (recorded with kubectl 1.32)."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.kubectl_drain import kubectl_drain
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.fail_on import check, parse_fail_on
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result
from fairlead.whatif.snapshot.inventory import Inventory

ALL = ("--ignore-daemonsets", "--delete-emptydir-data", "--force")


def owned(pod, kind, name):
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


@pytest.fixture
def objects(make):
    """A node with two bare pods, one with an emptyDir, and a DaemonSet pod; and an empty node."""
    scratch = make.pod("scratch", node_name="a", volumes=[{"name": "v", "emptyDir": {}}])
    done = make.pod("done", node_name="a")
    done["status"]["phase"] = "Succeeded"
    mirror = make.pod("mirror", "kube-system", node_name="a")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    agent = make.workload("DaemonSet", "agent")
    del agent["spec"]["replicas"]
    return [
        make.node("a"),
        make.node("b"),
        make.pod("bare", node_name="a"),
        scratch,
        done,
        mirror,
        agent,
        owned(make.pod("agent-1", node_name="a"), "DaemonSet", "agent"),
    ]


def refused(found, objects, flags):
    return [
        one.message for one in kubectl_drain(["a", "b"], Inventory(found(*objects)), flags).refused
    ]


def test_refusals_have_the_messages_of_kubectl(found, objects):
    [message] = refused(found, objects, ())
    assert message == (
        "[cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): "
        "default/agent-1, cannot delete Pods with local storage (use --delete-emptydir-data to "
        "override): default/scratch, cannot delete cannot delete Pods that declare no controller "
        "(use --force to override): default/bare]"
    )
    [message] = refused(found, objects, ALL[:2])
    assert message == (
        "cannot delete cannot delete Pods that declare no controller (use --force to override): "
        "default/bare, default/scratch"
    )
    assert refused(found, objects, ALL) == []
    assert refused(found, objects, None) == []


@pytest.mark.parametrize(("daemon_set", "is_refused"), [("agent", True), ("gone", False)])
def test_a_finished_pod_of_a_daemon_set_counts_if_it_is_replaced(
    found, objects, make, daemon_set, is_refused
):
    """kubectl accepts the finished pod, but soon finds its replacement instead."""
    failed = owned(make.pod("agent-2", node_name="b"), "DaemonSet", daemon_set)
    failed["status"]["phase"] = "Failed"
    inventory = Inventory(found(*objects, failed))
    drain = kubectl_drain(["b"], inventory, ())
    assert bool(drain.refused) is is_refused
    assert [one.flag for one in drain.needed] == (["--ignore-daemonsets"] if is_refused else [])


def test_a_pod_of_a_daemon_set_of_another_group_needs_no_flag(found, objects, make):
    """Recorded with kubectl 1.36; kubectl 1.32 does not find the DaemonSet."""
    other = owned(make.pod("other", node_name="b"), "DaemonSet", "kruise")
    other["metadata"]["ownerReferences"][0]["apiVersion"] = "apps.kruise.io/v1alpha1"
    result = kubectl_drain(["b"], Inventory(found(*objects, other)), ())
    assert (result.needed, result.refused) == ((), ())


def test_a_pod_of_a_deleted_daemon_set_needs_force(found, objects, make):
    orphan = owned(make.pod("orphan", node_name="b"), "DaemonSet", "gone")
    assert refused(found, [*objects, orphan], ALL[:2])[1] == (
        'cannot delete daemonsets.apps "gone" not found: default/orphan'
    )
    assert refused(found, [*objects, orphan], ALL) == []
    unknown = [one for one in objects if one["kind"] != "DaemonSet"]  # a dump of nodes and pods
    assert refused(found, [*unknown, orphan], ALL) == []


def test_the_pods_that_make_a_flag_necessary_are_listed(found, objects):
    needed = kubectl_drain(["a"], Inventory(found(*objects)), None).needed
    assert [(one.flag, one.pods) for one in needed] == [
        ("--ignore-daemonsets", ("default/agent-1",)),
        ("--delete-emptydir-data", ("default/scratch",)),
        ("--force", ("default/bare", "default/scratch")),
    ]


def test_a_refused_node_is_cordoned_and_not_drained(snapshot, objects):
    change = ClusterChange(drain=("a", "b"), drain_as_kubectl=True, ignore_daemonsets=True)
    answer = what_if(snapshot(*objects), change)
    assert answer.difference.is_empty
    assert whatif_result(answer)["difference"]  # exit status 1
    assert [node.unschedulable for node in answer.changed.nodes] == [True, True]
    assert answer.verdict.first.sentence == (
        "kubectl drain refuses 1 of 2 nodes: it needs --delete-emptydir-data and --force."
    )
    assert check(parse_fail_on("undrained"), answer.effect).evidence == ("node a",)
    flags = {"ignore_daemonsets": True, "delete_emptydir_data": True, "force": True}
    allowed = what_if(
        snapshot(*objects), ClusterChange(drain=("a",), drain_as_kubectl=True, **flags)
    )
    assert len(allowed.difference.evicted) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"drain_as_kubectl": True}, "--drain-as-kubectl: needs --drain"),
        ({"drain": ("a",), "force": True}, "--force: needs --drain-as-kubectl"),
    ],
)
def test_drain_flags_without_a_drain_are_refused(snapshot, objects, change, said):
    with pytest.raises(InputError, match=said):
        what_if(snapshot(*objects), ClusterChange(**change))


def test_a_pod_of_a_daemon_set_that_is_created_before_the_drain_needs_the_flag(snapshot, make):
    """The dump was taken before the DaemonSet had created its pod on the node."""
    agent = make.workload("DaemonSet", "agent")
    del agent["spec"]["replicas"]
    answer = what_if(snapshot(make.node("a"), agent), ClusterChange(drain=("a",)))
    [flag] = answer.effect.drain.needed
    assert (flag.flag, len(flag.pods)) == ("--ignore-daemonsets", 1)
    [step] = [one for one in answer.next_steps if one.makes_change]
    assert step.command == "kubectl drain a --ignore-daemonsets"


@pytest.mark.parametrize(
    ("kind", "spec", "flag"),
    [
        ("DaemonSet", {}, "--ignore-daemonsets"),
        ("ReplicaSet", {"volumes": [{"name": "v", "emptyDir": {}}]}, "--delete-emptydir-data"),
    ],
)
def test_pods_that_are_created_between_the_dump_and_the_drain_are_checked(
    snapshot, make, kind, spec, flag
):
    """The dump has a workload without its pod; the change is made when its pod runs."""
    owner = make.workload(kind, "web", replicas=1, **spec)
    owner["metadata"]["uid"] = "web"
    cluster = snapshot(make.node("a"), owner)
    change = ClusterChange(drain=("a",), drain_as_kubectl=True)
    answer = what_if(cluster, change)
    assert answer.verdict.first.sentence == f"kubectl drain refuses a: it needs {flag}."
    [pod] = answer.changed.pods.values()
    assert pod.node == "a"
    given = ClusterChange(
        drain=("a",), drain_as_kubectl=True, ignore_daemonsets=True, delete_emptydir_data=True
    )
    assert not what_if(cluster, given).effect.drain.refused
    [needed] = what_if(cluster, ClusterChange(drain=("a",))).effect.drain.needed
    assert needed.flag == flag


def test_pods_that_the_change_deletes_need_no_flag(snapshot, make):
    cluster = snapshot(make.node("a"), make.pod("bare", node_name="a"))
    change = ClusterChange(delete=("pod/bare",), drain=("a",), drain_as_kubectl=True)
    answer = what_if(cluster, change)
    assert (answer.effect.drain.needed, answer.effect.drain.refused) == ((), ())
