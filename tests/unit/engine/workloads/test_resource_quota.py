"""The quota controller asks for a recount after each change, and again after a refusal."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.core.command import ObjectRef, UpdateQuotaStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import CommandFailed, FailureReason, ObjectChanged
from fairlead.engine.workloads.resource_quota import ResourceQuotas

QUOTA = ObjectRef("ResourceQuota", "ns", "q", "uid-q")


@pytest.mark.parametrize(
    ("reason", "again"),
    [(FailureReason.INTERNAL_ERROR, [UpdateQuotaStatus(QUOTA)]), (FailureReason.NOT_FOUND, None)],
)
def test_a_refused_recount_is_repeated_unless_the_quota_is_gone(reason, again):
    quotas = ResourceQuotas()
    meta = {"name": "q", "namespace": "ns", "uid": "uid-q"}
    quota = decode({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta})
    quotas.handle(ObjectChanged(quota), 0)
    (write,) = quotas.handle_deadline(0)
    quotas.handle(CommandFailed(write, reason, "no"), 0)
    due = quotas.next_deadline()
    assert due == (None if again is None else seconds(1))
    assert again is None or quotas.handle_deadline(seconds(1)) == again
