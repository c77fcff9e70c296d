"""The note about CronJobs that are due in a period of time."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.snapshot.due_cron_job import due_cron_job_notes


def cron_job(name, schedule, **spec):
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": schedule, **spec},
    }


@pytest.mark.parametrize(
    ("took_s", "what"),
    [
        (7200, "2 CronJobs are due (default/often 24 times, default/hourly 2 times); their"),
        (600, "1 CronJob is due (default/often 2 times); its"),
        (60, ""),
    ],
)
def test_a_note_counts_the_times_at_which_cron_jobs_are_due(snapshot, make, took_s, what):
    """A suspended CronJob and a CronJob with a wrong schedule start no Jobs."""
    node = make.node("a")
    node["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"  # the time of the dump
    read = snapshot(
        node,
        cron_job("hourly", "0 * * * *"),
        cron_job("often", "*/5 * * * *"),
        cron_job("never", "x"),
        cron_job("suspended", "* * * * *", suspend=True),
    )
    end = read.taken_at + seconds(took_s)
    found = due_cron_job_notes(read.manifests, read.taken_at, end, "During the drains")
    note = f"During the drains, {what} Jobs are not simulated."
    assert list(found) == ([note] if what else [])


def test_uneven_times_are_counted_one_by_one(snapshot, make):
    """2026-01-01 is a Thursday: within a week, 09:00 comes five times from Monday to Friday."""
    node = make.node("a")
    node["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    read = snapshot(node, cron_job("weekdays", "0 9 * * 1-5"), cron_job("minutely", "* * * * *"))
    end = read.taken_at + seconds(7 * 24 * 3600)
    [note] = due_cron_job_notes(read.manifests, read.taken_at, end, "During the drains")
    assert "default/minutely over 100 times, default/weekdays 5 times" in note
