"""The PodGroups of scheduling.k8s.io and their members, after changes and assumptions."""

from __future__ import annotations

from fairlead.api.codec import decode
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.state.cluster import Cluster, PodGroupChange
from fairlead.testing.builders import make_node, make_pod

KEY = "default/g"
IN_GROUP = {"schedulingGroup": {"podGroupName": "g"}}


def pod_group(api_version="scheduling.k8s.io/v1alpha2"):
    meta = {"name": "g", "namespace": "default"}
    return decode({"apiVersion": api_version, "kind": "PodGroup", "metadata": meta})


def cluster_with(*objects):
    cluster = Cluster()
    for one in objects:
        cluster.apply(ObjectChanged(one))
    return cluster


def counts(cluster):
    return cluster.pod_groups.member_count(KEY), cluster.pod_groups.scheduled_count(KEY)


def test_pods_are_members_before_their_group_exists():
    cluster = cluster_with(make_node("n"), make_pod("a", spec=IN_GROUP), make_pod("b"))
    assert counts(cluster) == (1, 0)
    assert cluster.pod_groups.find(KEY) is None
    cluster.apply(ObjectChanged(pod_group()))
    assert cluster.pod_groups.group_of(cluster.pods["default/a"]) is not None


def test_an_assumption_counts_until_it_is_reverted():
    cluster = cluster_with(make_node("n"), make_pod("a", spec=IN_GROUP))
    pod = cluster.pods["default/a"]
    cluster.assume(pod, "n")
    assert counts(cluster) == (1, 1)
    assert list(cluster.pod_groups.unscheduled(KEY)) == []
    cluster.forget(pod)
    assert counts(cluster) == (1, 0)
    assert list(cluster.pod_groups.unscheduled(KEY)) == [pod]


def test_a_deleted_or_finished_pod_is_no_member():
    bound = make_pod("a", node="n", spec=IN_GROUP)
    cluster = cluster_with(make_node("n"), bound, make_pod("b", node="n", spec=IN_GROUP))
    assert counts(cluster) == (2, 2)
    cluster.apply(ObjectDeleted(bound))
    done = make_pod("b", node="n", spec=IN_GROUP, status={"phase": "Succeeded"})
    cluster.apply(ObjectChanged(done))
    assert counts(cluster) == (0, 0)


def test_an_assumption_about_a_deleted_pod_makes_no_member():
    cluster = cluster_with(make_node("n"), make_pod("a", spec=IN_GROUP))
    pod = cluster.pods["default/a"]
    cluster.apply(ObjectDeleted(pod.pod))
    cluster.assume(pod, "n")
    assert counts(cluster) == (0, 0)


def test_groups_of_other_apis_are_not_kept():
    cluster = cluster_with(pod_group("scheduling.volcano.sh/v1beta1"))
    assert cluster.changes == []
    cluster.apply(ObjectChanged(pod_group()))
    assert cluster.changes == [PodGroupChange(None, pod_group())]
    cluster.apply(ObjectDeleted(pod_group("scheduling.volcano.sh/v1beta1")))
    assert cluster.pod_groups.find(KEY) is not None
    cluster.apply(ObjectDeleted(pod_group()))
    assert cluster.pod_groups.find(KEY) is None
