"""A what-if names the CronJobs that are due while it simulates."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.question import what_if

OFTEN = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "often", "namespace": "default"},
    "spec": {"schedule": "*/5 * * * *"},
}


@pytest.mark.parametrize(
    ("lasts", "due"),
    [("2m", ""), ("11m", "Within the simulated 11m00s, 1 CronJob is due (default/often 2 times)")],
)
def test_a_note_counts_the_cron_jobs_that_are_due_during_a_failure(snapshot, make, lasts, due):
    """The dump is of a full hour."""
    nodes = [make.node(name) for name in "ab"]
    nodes[0]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts=lasts)
    pod = make.pod("p", node_name="a", owner="rs")
    notes = what_if(snapshot(*nodes, pod, OFTEN), change).changed.notes
    found = [one for one in notes if "CronJob" in one]
    assert found == ([f"{due}; its Jobs are not simulated."] if due else [])
