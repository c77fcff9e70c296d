"""A what-if names the CronJobs that are due while it simulates."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.question import what_if

OFTEN: dict[str, Any] = {
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


SUSPENDED = {**OFTEN, "spec": {**OFTEN["spec"], "suspend": True}}


@pytest.mark.parametrize(
    ("present", "change", "is_due"),
    [
        pytest.param(OFTEN, {"delete": ("cronjob/often",)}, False, id="deleted"),
        pytest.param(OFTEN, {"set": ("cronjob/often:spec.suspend=true",)}, False, id="suspended"),
        pytest.param(SUSPENDED, {"set": ("cronjob/often:spec.suspend=null",)}, True, id="resumed"),
        pytest.param(OFTEN, {"cordon": ("b",)}, True, id="unchanged"),
    ],
)
def test_the_note_is_about_the_cron_jobs_after_the_change(snapshot, make, present, change, is_due):
    nodes = [make.node(name) for name in "ab"]
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    job = {"jobTemplate": {"spec": {"template": template}}}
    cron_job = {**present, "spec": {**present["spec"], **job}}
    found = what_if(
        snapshot(*nodes, make.pod("p", node_name="a", owner="rs"), cron_job),
        ClusterChange(failures=Failures(fail_node=("a",)), lasts="11m", **change),
    )
    notes = [note for note in found.changed.notes if "CronJob" in note]
    assert any("1 CronJob is due" in note for note in notes) is is_due
    assert bool(notes) is is_due
