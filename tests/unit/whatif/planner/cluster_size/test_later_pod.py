"""Later pods: those that HorizontalPodAutoscalers and CronJobs add after the dump."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import CronJob, Deployment, HorizontalPodAutoscaler
from fairlead.whatif.planner.cluster_size.later_pod import later_pod_notes

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
SCALED_OBJECT = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web"}


def autoscaler(most, status, *, least=1, target=None, owner=None):
    owners = [{**owner, "uid": "u", "controller": True}] if owner else []
    value = {
        "metadata": {"name": "web", "namespace": "default", "ownerReferences": owners},
        "spec": {"minReplicas": least, "maxReplicas": most, "scaleTargetRef": target or TARGET},
        "status": status,
    }
    return decode_as(HorizontalPodAutoscaler, value)


def deployment(replicas):
    value = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {}, "template": {"spec": {"containers": []}}},
    }
    return decode_as(Deployment, value)


def cron_job(*, suspend=False, active=()):
    value = {
        "metadata": {"name": "report"},
        "spec": {"schedule": "0 3 * * *", "suspend": suspend},
        "status": {"active": list(active)},
    }
    return decode_as(CronJob, value)


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        ([autoscaler(5, {"currentReplicas": 2})], "1 HorizontalPodAutoscaler can add 3 pods"),
        ([autoscaler(5, {})], "1 HorizontalPodAutoscaler can add 4 pods"),
        (
            [autoscaler(5, {"currentReplicas": 2}), deployment(4)],
            "1 HorizontalPodAutoscaler can add 1 pod",
        ),
        (
            [autoscaler(5, {}, least=0), deployment(0)],
            "1 HorizontalPodAutoscaler can add 5 pods",
        ),
        (
            [autoscaler(5, {}, owner=SCALED_OBJECT), deployment(0)],
            "1 HorizontalPodAutoscaler can add 5 pods",
        ),
        ([cron_job(), cron_job()], "2 CronJobs run no pod now"),
    ],
    ids=[
        "replicas of the status",
        "minReplicas if the replicas are not known",
        "replicas of the workload, which are newer than the status",
        "0 replicas and minReplicas 0",
        "0 replicas and an owner that scales from 0",
        "CronJobs",
    ],
)
def test_a_note_counts_the_pods_that_may_be_added(objects, says):
    [note] = later_pod_notes(objects)
    assert says in note


def test_no_note_is_given_if_no_pods_are_added():
    """One CronJob is suspended, and another runs a Job now."""
    full = autoscaler(2, {"currentReplicas": 2})
    assert list(later_pod_notes([full, cron_job(suspend=True), cron_job(active=[{}])])) == []


@pytest.mark.parametrize(
    "objects",
    [
        [autoscaler(5, {"currentReplicas": 2}), deployment(0)],
        [autoscaler(5, {"currentReplicas": 0}, target={**TARGET, "kind": "Rollout"})],
    ],
    ids=["a workload of the dump", "a target that the dump lacks"],
)
def test_an_autoscaler_is_off_at_0_replicas(objects):
    assert list(later_pod_notes(objects)) == []
