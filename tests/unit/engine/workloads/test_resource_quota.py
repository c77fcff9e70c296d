"""The quota controller requests a recount after each change and each refusal."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.core.command import ObjectRef, UpdateQuotaStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
)
from fairlead.engine.workloads.resource_quota import ResourceQuotas

QUOTA = ObjectRef("ResourceQuota", "ns", "q", "uid-q")


@pytest.mark.parametrize(
    ("reason", "again"),
    [(FailureReason.INTERNAL_ERROR, [UpdateQuotaStatus(QUOTA)]), (FailureReason.NOT_FOUND, None)],
)
def test_a_refused_recount_is_repeated_unless_the_quota_is_deleted(reason, again):
    quotas = ResourceQuotas()
    meta = {"name": "q", "namespace": "ns", "uid": "uid-q"}
    quota = decode({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta})
    quotas.handle(ObjectChanged(quota), 0)
    (write,) = quotas.handle_deadline(0)
    quotas.handle(CommandFailed(write, reason, "no"), 0)
    due = quotas.next_deadline()
    assert due == (None if again is None else seconds(0.005))
    assert again is None or quotas.handle_deadline(due) == again


def test_a_recount_that_is_always_refused_is_repeated_with_exponential_backoff():
    quotas = ResourceQuotas()
    meta = {"name": "q", "namespace": "ns", "uid": "uid-q"}
    quota = decode({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta})
    quotas.handle(ObjectChanged(quota), 0)
    now, gaps = 0, []
    for _ in range(4):
        (write,) = quotas.handle_deadline(now)
        quotas.handle(CommandFailed(write, FailureReason.INTERNAL_ERROR, "no"), now)
        due = quotas.next_deadline()
        gaps.append((due - now) / seconds(0.005))
        now = due
    assert gaps == [1, 2, 4, 8]
    quotas.handle(ObjectChanged(quota), now)
    (write,) = quotas.handle_deadline(now)
    quotas.handle(CommandFailed(write, FailureReason.INTERNAL_ERROR, "no"), now)
    assert quotas.next_deadline() - now == seconds(0.005)


def in_quota(start=0, **meta):
    """Return a controller that knows a quota and a terminating pod, and has counted both."""
    quotas = ResourceQuotas(start=start)
    meta_of_quota = {"name": "q", "namespace": "ns", "uid": "uid-q"}
    quotas.handle(
        ObjectChanged(
            decode({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta_of_quota})
        ),
        start,
    )
    doomed = terminating(**meta)
    quotas.handle_pod(doomed, start)
    quotas.handle_deadline(start)
    return quotas, doomed


def terminating(deleted="1970-01-01T00:06:00Z", grace_s=30, phase="Running"):
    """Return a pod whose kubelet should have stopped it at `deleted`."""
    meta = {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": grace_s}
    return decode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "ns", "uid": "uid-p", **meta},
            "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
            "status": {"phase": phase},
        }
    )


@pytest.mark.parametrize(
    ("deleted", "start", "due"),
    [
        ("1970-01-01T00:06:00Z", 0, 600),
        ("1970-01-01T00:06:00Z", seconds(200), 500),
        ("1970-01-01T00:09:29Z", 0, 600),
        ("1970-01-01T00:09:30Z", 0, 900),  # at 10 minutes it still counts
    ],
)
def test_a_periodic_recount_is_due_for_a_stuck_terminating_pod(deleted, start, due):
    """The recounts are every five minutes from the start of the controller."""
    quotas, _ = in_quota(start, deleted=deleted)
    assert quotas.next_deadline() == seconds(due)
    assert quotas.handle_deadline(seconds(due)) == [UpdateQuotaStatus(QUOTA)]
    assert quotas.next_deadline() is None


def test_a_pod_deleted_in_time_needs_no_periodic_recount():
    quotas, doomed = in_quota()
    quotas.handle(ObjectDeleted(doomed), seconds(360))
    quotas.handle_deadline(seconds(360))
    assert quotas.next_deadline() is None


def test_a_pod_that_ends_needs_no_periodic_recount():
    quotas, _ = in_quota(phase="Failed")
    assert quotas.next_deadline() is None
