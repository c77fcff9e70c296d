"""CronJobs: Jobs are created on schedule, and finished Jobs are deleted."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import CreateObject, DeleteObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import CommandFailed, FailureReason
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.cron_job.controller import CronJobs
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector
from fairlead.engine.workloads.environment import served_environment
from fairlead.engine.workloads.job.ttl_after_finished import TtlAfterFinished


@pytest.fixture
def world(new_world):
    """A world that starts at 13:46:40."""
    controllers = (
        Workloads(environment=served_environment()),
        GarbageCollector(),
        CronJobs(),
        TtlAfterFinished(),
    )
    return new_world(*controllers, place=lambda pod: "n1", runs=True).load()


def cron_job(build, schedule="* * * * *", *, job=None, **spec):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"template": build.template()}}
    template["spec"] |= job or {}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "ns", "uid": "cron"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def jobs(world):
    return sorted(key[2] for key in world.objects if key[0] == "Job")


def status(world):
    return world.get("CronJob", "tick").get("status", {})


def finish(world, phase="Succeeded"):
    for name in list(world.pods()):
        world.patch_status("Pod", name, {"phase": phase})
    world.run(seconds(1))


def said(world):
    return [event.reason for event in world.events if event.regarding.kind == "CronJob"]


def test_a_job_is_created_at_its_scheduled_time(world, build):
    """It is created a tenth of a second later; its name contains the minutes since 1970."""
    world.create(cron_job(build))
    assert jobs(world) == []
    world.run(seconds(20))
    assert jobs(world) == []
    world.run(seconds(0.1))
    assert jobs(world) == ["tick-16667"]
    made = world.get("Job", "tick-16667")
    assert made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "cron"
    stamp = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    assert made["metadata"]["annotations"] == {stamp: "1970-01-12T13:47:00Z"}
    assert status(world)["lastScheduleTime"] == "1970-01-12T13:47:00Z"
    assert [one["name"] for one in status(world)["active"]] == ["tick-16667"]
    assert len(world.pods()) == 1


def test_finished_jobs_are_reported_and_removed_from_the_status(world, build):
    world.create(cron_job(build, successfulJobsHistoryLimit=2))
    for _ in range(4):
        world.run(seconds(60))
        finish(world)
    assert jobs(world) == ["tick-16669", "tick-16670"]
    assert status(world)["lastSuccessfulTime"]
    assert "active" not in status(world)
    assert said(world).count("SawCompletedJob") == 4


def test_failed_jobs_have_their_own_history_limit(world, build):
    world.create(cron_job(build, job={"backoffLimit": 0}))
    for _ in range(3):
        world.run(seconds(60))
        finish(world, "Failed")
    assert jobs(world) == ["tick-16669"]


def test_a_job_that_another_client_created_is_not_managed(world, build):
    """`kubectl create job --from` creates such a Job; it runs beside scheduled Jobs."""
    world.create(cron_job(build, concurrencyPolicy="Forbid"))
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": "cron"}
    job = build.owned("Job", "by-hand", uid="j", version="batch/v1")
    job["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    world.create(job)
    assert "active" not in status(world)
    (note,) = {event.note for event in world.events if event.reason == "UnexpectedJob"}
    assert note == "Saw a job that the controller did not create or forgot: by-hand"
    world.run(seconds(60))
    assert jobs(world) == ["by-hand", "tick-16667"]
    finish(world)
    assert said(world).count("SawCompletedJob") == 1
    assert status(world)["lastSuccessfulTime"]


def test_concurrency_policy_allow_runs_jobs_concurrently(world, build):
    world.create(cron_job(build))
    world.run(seconds(180))
    assert len(jobs(world)) == 3


def test_concurrency_policy_forbid_skips_runs_while_a_job_is_active(world, build):
    """The last skipped run starts once, as soon as the active Job has finished."""
    world.create(cron_job(build, concurrencyPolicy="Forbid"))
    world.run(seconds(200))
    assert jobs(world) == ["tick-16667"]
    assert said(world).count("JobAlreadyActive") == 1
    finish(world)
    assert jobs(world) == ["tick-16667", "tick-16670"]


def test_concurrency_policy_replace_deletes_the_active_job(world, build):
    world.create(cron_job(build, concurrencyPolicy="Replace"))
    world.run(seconds(140.1))
    assert jobs(world) == ["tick-16669"]


def test_a_suspended_cron_job_continues_with_the_last_missed_run(world, build):
    world.create(cron_job(build, suspend=True))
    world.run(seconds(3600))
    assert jobs(world) == []
    world.patch("CronJob", "tick", {"spec": {"suspend": False}})
    assert jobs(world) == ["tick-16726"]


def test_a_changed_schedule_starts_no_run_that_it_would_have_missed(world, build):
    """At 13:56:40, a daily schedule becomes one of every two minutes; the next time is 13:58."""
    world.create(cron_job(build, schedule="0 0 * * *"))
    world.run(seconds(600))
    world.patch("CronJob", "tick", {"spec": {"schedule": "*/2 * * * *"}})
    assert jobs(world) == []
    world.run(seconds(80))
    assert jobs(world) == []
    world.run(seconds(0.1))
    assert jobs(world) == ["tick-16678"]


@pytest.mark.parametrize(("minutes", "is_reported"), [(99, False), (102, True)])
def test_more_than_a_hundred_missed_runs_are_reported(world, build, minutes, is_reported):
    world.create(cron_job(build, suspend=True))
    world.run(seconds(60 * minutes))
    world.patch("CronJob", "tick", {"spec": {"suspend": False}})
    assert len(jobs(world)) == 1
    assert ("TooManyMissedTimes" in said(world)) is is_reported


def test_a_running_job_that_is_deleted_is_reported_as_missing(world, build):
    world.create(cron_job(build, concurrencyPolicy="Forbid"))
    world.run(seconds(20.1))
    world.delete("Job", "tick-16667")
    assert said(world).count("MissingJob") == 1
    assert "active" not in status(world)


def test_a_run_after_its_starting_deadline_is_skipped(world, build):
    world.create(cron_job(build, schedule="0 14 * * *", suspend=True, startingDeadlineSeconds=60))
    world.run(seconds(3600))
    world.patch("CronJob", "tick", {"spec": {"suspend": False}})
    assert jobs(world) == []


@pytest.mark.parametrize(
    ("fields", "reason", "note"),
    [
        ({"schedule": "now"}, "UnparseableSchedule", 'unparseable schedule: "now" : '),
        ({"timeZone": "Moon"}, "UnknownTimeZone", 'invalid timeZone: "Moon": unknown time zone'),
        (
            {"schedule": "@every 1s", "timeZone": "Moon"},
            "UnknownTimeZone",
            'invalid timeZone: "Moon": unknown time zone',
        ),
    ],
)
def test_an_invalid_schedule_is_reported_once(world, build, fields, reason, note):
    world.create(cron_job(build, **fields))
    world.patch("CronJob", "tick", {"metadata": {"labels": {"x": "y"}}})
    (event,) = world.events
    assert event.reason == reason
    assert event.note.startswith(note)


def test_a_refused_creation_of_a_job_is_repeated(world, build):
    down = [True]
    world.refuse = lambda one: (
        FailureReason.FORBIDDEN if down[0] and isinstance(one, CreateObject) else None
    )
    down[0] = False
    world.create(cron_job(build, schedule="@hourly"))
    down[0] = True
    world.run(seconds(14 * 60))
    assert jobs(world) == []
    assert said(world)[0] == "FailedCreate"
    down[0] = False
    world.run(seconds(10))
    assert len(jobs(world)) == 1


def test_a_job_that_exists_despite_a_failed_creation_is_kept(world, build):
    """The API server created the Job, but its response was lost."""
    world.create(cron_job(build))
    world.run(seconds(60))
    made = jobs(world)
    command = next(one for one in world.sent(CreateObject) if one.target.kind == "Job")
    cron_jobs = world.controllers[2]
    failed = CommandFailed(command, FailureReason.INTERNAL_ERROR, "connection lost")
    assert cron_jobs.handle(failed, world.now) == []
    assert cron_jobs.handle_deadline(world.now) == []
    assert jobs(world) == made


def test_a_job_missing_in_the_status_is_listed_after_a_restart_in_the_same_minute(
    world, new_world, build
):
    """The controller stopped after it had created the Job and before it wrote the status."""
    world.create(cron_job(build))
    world.run(seconds(60))
    (name,) = jobs(world)
    cron, job = world.get("CronJob", "tick"), world.get("Job", name)
    restarted = new_world(CronJobs())
    restarted.now = world.now
    restarted.load({**cron, "status": {}}, job)
    assert [entry["name"] for entry in status(restarted)["active"]] == [name]


def test_a_refused_status_is_written_again(world, build):
    """The Job is running before it is listed, and the last time is stored along with it."""
    down = [True]
    world.refuse = lambda one: (
        FailureReason.CONFLICT if down[0] and isinstance(one, PatchStatus) else None
    )
    world.create(cron_job(build, schedule="@hourly"))
    world.run(seconds(14 * 60))
    (name,) = jobs(world)
    assert status(world) == {}
    down[0] = False
    world.run(seconds(10))
    assert [entry["name"] for entry in status(world)["active"]] == [name]
    assert status(world)["lastScheduleTime"] == "1970-01-12T14:00:00Z"


def test_a_refused_deletion_is_repeated(world, build):
    """The Job exceeds the history limit."""
    down = [True]
    world.refuse = lambda one: (
        FailureReason.INTERNAL_ERROR if down[0] and isinstance(one, DeleteObject) else None
    )
    world.create(cron_job(build, schedule="@hourly", successfulJobsHistoryLimit=0))
    world.run(seconds(14 * 60))
    finish(world)
    assert len(jobs(world)) == 1
    down[0] = False
    world.run(seconds(10))
    assert jobs(world) == []


def test_last_schedule_time_is_not_written_before_the_job_exists(world, build):
    """Otherwise a restarted controller would skip the run."""
    world.refuse = lambda one: (
        FailureReason.INTERNAL_ERROR
        if isinstance(one, CreateObject) and one.target.kind == "Job"
        else None
    )
    world.create(cron_job(build, schedule="@hourly"))
    world.run(seconds(14 * 60))
    statuses = [one.fields for one in world.sent(PatchStatus) if one.target.kind == "CronJob"]
    assert not any("lastScheduleTime" in one for one in statuses)


def test_jobs_of_a_deleted_cron_job_are_deleted(world, build):
    world.create(cron_job(build))
    world.run(seconds(60))
    world.delete("CronJob", "tick")
    world.run(seconds(600))
    assert jobs(world) == []
    assert world.pods() == {}


def test_a_finished_job_is_deleted_after_its_ttl(world, build):
    job = build.owned("Job", "sum", uid="job", version="batch/v1", ttlSecondsAfterFinished=100)
    world.create(job)
    finish(world)
    world.run(seconds(99))
    assert jobs(world) == ["sum"]
    world.run(seconds(1))
    assert jobs(world) == []
    assert world.pods(alive=False) == {}


def test_a_refused_deletion_of_a_finished_job_is_repeated(world, build):
    job = build.owned("Job", "sum", uid="job", version="batch/v1", ttlSecondsAfterFinished=100)
    world.create(job)
    finish(world)
    refusals = [FailureReason.INTERNAL_ERROR]
    world.refuse = lambda one: (
        refusals.pop() if isinstance(one, DeleteObject) and refusals else None
    )
    world.run(seconds(100))
    assert jobs(world) == ["sum"]
    world.run(seconds(1))
    assert jobs(world) == []


def test_a_changed_job_does_not_change_the_status(world, build):
    """The status of the CronJob refers to the version that was created."""
    world.create(cron_job(build))
    world.run(seconds(20))
    before = len([one for one in world.sent(PatchStatus) if one.target.kind == "CronJob"])
    world.patch("Job", "tick-16667", {"metadata": {"resourceVersion": "77"}})
    assert len([one for one in world.sent(PatchStatus) if one.target.kind == "CronJob"]) == before
