"""Later pods: those that HorizontalPodAutoscalers and CronJobs add after the dump."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import CronJob, HorizontalPodAutoscaler
from fairlead.whatif.planner.cluster_size.later_pod import later_pod_notes


def autoscaler(most, status):
    value = {"metadata": {"name": "web"}, "spec": {"maxReplicas": most}, "status": status}
    return decode_as(HorizontalPodAutoscaler, value)


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
        ([cron_job(), cron_job()], "2 CronJobs run no pod now"),
    ],
    ids=["replicas", "minReplicas if the replicas are not known", "CronJobs"],
)
def test_a_note_counts_the_pods_that_may_be_added(objects, says):
    [note] = later_pod_notes(objects)
    assert says in note


def test_no_note_is_given_if_no_pods_are_added():
    """One CronJob is suspended, and another runs a Job now."""
    full = autoscaler(2, {"currentReplicas": 2})
    assert list(later_pod_notes([full, cron_job(suspend=True), cron_job(active=[{}])])) == []
