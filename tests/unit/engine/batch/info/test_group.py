"""PodGroups of every API are converted to one form, and pods are assigned to groups."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.batch.info.group import group_info, group_name, shadow_group
from fairlead.testing.batch_builders import make_group, make_task


@pytest.mark.parametrize(
    "api",
    [
        "scheduling.incubator.k8s.io/v1alpha1",
        "scheduling.sigs.dev/v1alpha2",
        "scheduling.volcano.sh/v1beta1",
        "scheduling.x-k8s.io/v1alpha1",
    ],
)
def test_groups_of_kube_batch_volcano_and_scheduler_plugins_are_equal(api):
    body = {
        "apiVersion": api,
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ns", "creationTimestamp": "1970-01-01T00:00:02Z"},
        "spec": {"minMember": 3, "queue": "q", "priorityClassName": "high"},
        "status": {"phase": "Pending"},
    }
    found = group_info(decode(body))
    assert (found.namespace, found.name, found.min_member) == ("ns", "g", 3)
    assert (found.queue, found.priority_class_name, found.priority) == ("q", "high", None)
    assert (found.created, found.status.phase) == (2_000_000_000, "Pending")
    assert found.api_group == api.partition("/")[0]


@pytest.mark.parametrize(
    ("policy", "minimum"), [({"gang": {"minCount": 4}}, 4), ({"basic": {}}, 0), (None, 0)]
)
def test_the_group_of_upstream_has_a_scheduling_policy(policy, minimum):
    spec = {"priority": 7} | ({"schedulingPolicy": policy} if policy else {})
    body = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": spec,
    }
    found = group_info(decode(body))
    assert (found.min_member, found.priority) == (minimum, 7)


def test_an_annotation_may_name_the_queue():
    group = decode(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {
                "name": "g",
                "namespace": "ns",
                "annotations": {"scheduling.volcano.sh/queue-name": "q"},
            },
        }
    )
    assert group_info(group).queue == "q"


@pytest.mark.parametrize(
    ("pod", "name"),
    [
        (make_task("p", "by-annotation"), "by-annotation"),
        (make_task("p", labels={"scheduling.x-k8s.io/pod-group": "by-label"}), "by-label"),
        (make_task("p", labels={"pod-group.scheduling.sigs.k8s.io": "older"}), "older"),
        (make_task("p", spec={"schedulingGroup": {"podGroupName": "by-field"}}), "by-field"),
        (make_task("p"), ""),
    ],
)
def test_a_pod_belongs_to_the_group_that_it_names(pod, name):
    assert group_name(pod) == name


def test_a_pod_without_a_group_is_a_group_of_its_own():
    made = {"creation_timestamp": "1970-01-01T00:00:02Z"}
    found = shadow_group(make_task("p", spec={"priorityClassName": "high"}, meta=made))
    assert (found.name, found.min_member, found.ref) == ("uid-p", 1, None)
    assert (found.priority_class_name, found.created) == ("high", 2_000_000_000)


def test_pods_of_one_controller_are_one_group():
    owner = {"kind": "Job", "name": "j", "uid": "uid-job", "controller": True}
    pod = decode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "ns", "ownerReferences": [owner]},
        }
    )
    assert shadow_group(pod).name == "uid-job"


@pytest.mark.parametrize(("text", "minimum"), [("3", 3), ("many", 1), ("1_0", 1), ("", 1)])
def test_an_annotation_sets_the_minimum_of_a_group_of_one_controller(text, minimum):
    pod = make_task("p", annotations={"scheduling.k8s.io/group-min-member": text})
    assert shadow_group(pod).min_member == minimum


def test_an_annotation_of_a_pod_without_a_group_names_the_queue():
    pod = make_task("p", annotations={"scheduling.volcano.sh/queue-name": "research"})
    assert shadow_group(pod).queue == "research"
    assert shadow_group(make_task("p")).queue == ""


def test_a_group_is_identified_by_its_uid():
    assert group_info(make_group("g", 1)).ref.uid == "uid-group-g"
