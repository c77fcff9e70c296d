"""Jobs: pods are created until enough have succeeded, or the Job has failed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.engine.core.command import CreateObject, PatchObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector
from fairlead.engine.workloads.environment import served_environment
from fairlead.engine.workloads.job.finished_condition import finished_condition
from fairlead.engine.workloads.job.index_set import format_indexes, parse_indexes
from fairlead.engine.workloads.job.progress import JobProgress
from fairlead.engine.workloads.job.tracking_finalizer import EndedJobPods, JobOrphans

OWNER = ("Job", "sum", "job")


@pytest.fixture
def world(new_world):
    return new_world(Workloads(), GarbageCollector(), place=lambda pod: "n1")


def job(build, *, status=None, **spec):
    made = build.owned("Job", "sum", uid="job", version="batch/v1", selector=None, **spec)
    return made | {"status": status or {}}


@pytest.mark.parametrize(
    ("case", "spec", "status", "phases", "wanted"),
    [
        ("one by default", {}, {}, [], 1),
        ("parallelism", {"parallelism": 3}, {}, [], 3),
        ("no more than are missing", {"parallelism": 3, "completions": 2}, {}, [], 2),
        ("running ones count", {"parallelism": 3, "completions": 9}, {}, ["Running"], 3),
        ("successes count", {"parallelism": 3, "completions": 3}, {}, ["Succeeded"], 2),
        (
            "also those whose pods are gone",
            {"parallelism": 3, "completions": 3},
            {"succeeded": 2},
            ["Succeeded"],
            1,
        ),
        ("done", {"completions": 2}, {"succeeded": 2}, [], 0),
        (
            "no completions: the first success ends the intake",
            {"parallelism": 3},
            {},
            ["Succeeded"],
            0,
        ),
        (
            "but lets the others run",
            {"parallelism": 3},
            {},
            ["Succeeded", "Running", "Running"],
            2,
        ),
        ("complete", {}, {"conditions": [{"type": "Complete", "status": "True"}]}, [], 0),
        ("failed", {}, {"conditions": [{"type": "Failed", "status": "True"}]}, [], 0),
        (
            "suspended",
            {"suspend": True},
            {"conditions": [{"type": "Suspended", "status": "True"}]},
            ["Running"],
            0,
        ),
        ("resumed", {}, {"conditions": [{"type": "Suspended", "status": "False"}]}, [], 1),
        ("failures are made up for", {"backoffLimit": 1}, {}, ["Failed"], 1),
        ("as many as allowed", {"backoffLimit": 1}, {}, ["Failed", "Failed"], 0),
        ("counted once", {"backoffLimit": 1}, {"failed": 1}, ["Failed"], 1),
        ("six by default", {}, {"failed": 6}, [], 1),
        ("and not seven", {"parallelism": 2}, {"failed": 7}, ["Running"], 0),
        ("too many active", {"parallelism": 1}, {}, ["Running", "Running"], 1),
    ],
)
def test_the_number_of_active_pods_that_a_job_needs(
    world, build, *, case, spec, status, phases, wanted
):
    pods = [build.pod(f"sum-{place}", OWNER, phase=phase) for place, phase in enumerate(phases)]
    world.load(job(build, status=status, **spec), *pods)
    assert len(world.pods()) == wanted, case


def test_pods_carry_the_jobs_labels(world, build):
    world.load(job(build))
    (pod,) = world.pods().values()
    assert pod["metadata"]["labels"] == {
        "app": "web",
        "job-name": "sum",
        "controller-uid": "job",
        "batch.kubernetes.io/job-name": "sum",
        "batch.kubernetes.io/controller-uid": "job",
    }


def test_a_preempted_pod_is_replaced_after_the_backoff_while_it_terminates(world, build):
    """It counts as a failed pod, so its successor is created after the backoff."""
    world.load(job(build, completions=1), build.pod("sum-a", OWNER))
    world.delete("Pod", "sum-a")
    world.run(seconds(9))
    assert world.pods() == {}
    world.run(seconds(1))
    assert list(world.replaces().values()) == ["sum-a"]


def test_a_failed_pod_is_replaced_until_the_limit(world, build):
    world.load(job(build, backoffLimit=2))
    for _ in range(3):
        (name,) = world.pods()
        world.patch_status("Pod", name, {"phase": "Failed"})
        world.run(seconds(40))
    assert world.pods() == {}


@pytest.mark.parametrize(
    ("policy", "limit", "restarts", "is_over"),
    [
        ("OnFailure", 3, [2], False),
        ("OnFailure", 3, [2, 1], True),
        ("OnFailure", 0, [1], True),
        ("OnFailure", 0, [0], False),
        ("OnFailure", None, [5], False),
        ("OnFailure", None, [6], True),
        ("Never", 1, [5], False),
    ],
)
def test_a_job_fails_when_container_restarts_reach_its_limit(
    world, build, *, policy, limit, restarts, is_over
):
    """Restarts of init containers count too; only with restartPolicy OnFailure."""
    limits = {} if limit is None else {"backoffLimit": limit}
    one = job(build, completions=1, **limits)
    one["spec"]["template"]["spec"]["restartPolicy"] = policy
    world.load(one)
    (name,) = world.pods()
    main, *initial = [{"name": f"c{i}", "restartCount": n} for i, n in enumerate(restarts)]
    containers = {"containerStatuses": [main], "initContainerStatuses": initial}
    world.patch_status("Pod", name, {"phase": "Running", **containers})
    assert (world.pods() == {}) is is_over


def test_restarts_of_finished_pods_do_not_count(world, build):
    one = job(build, completions=2, parallelism=2, backoffLimit=2)
    one["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    world.load(one)
    first, second = world.pods()
    restarted = {"containerStatuses": [{"name": "c", "restartCount": 1}]}
    world.patch_status("Pod", first, {"phase": "Succeeded", **restarted})
    world.patch_status("Pod", second, {"phase": "Running", **restarted})
    assert second in world.pods()


def test_success_is_counted_once(world, build):
    """The pod changes afterwards, and is finally deleted."""
    world.load(job(build, completions=2))
    (name,) = world.pods()
    world.patch_status("Pod", name, {"phase": "Succeeded"})
    world.patch("Pod", name, {"metadata": {"labels": {"seen": "yes"}}})
    world.delete("Pod", name)
    (last,) = world.pods()
    world.patch_status("Pod", last, {"phase": "Succeeded"})
    assert world.pods() == {}


def test_increased_parallelism_counts_succeeded_pods(world, build):
    world.load(job(build, completions=4, status={"succeeded": 1}))
    world.patch("Job", "sum", {"spec": {"parallelism": 9}})
    assert len(world.pods()) == 3


def test_pods_of_a_deleted_job_are_deleted(world, build):
    """kubectl deletes in this way: it requests background deletion."""
    world.load(job(build))
    world.delete("Job", "sum")
    assert world.pods() == {}


@given(
    parallelism=st.integers(1, 4),
    completions=st.integers(1, 6),
    ends=st.lists(st.tuples(st.sampled_from(["Succeeded", "Failed", "lost"]), st.integers(0, 9))),
)
def test_exactly_the_completions_of_a_job_succeed(new_world, build, parallelism, completions, ends):
    """The active pods are the missing completions, at most the parallelism."""
    world = new_world(Workloads(), GarbageCollector(), place=lambda pod: "n1")
    world.load(job(build, parallelism=parallelism, completions=completions, backoffLimit=100))
    succeeded = 0
    for end, place in ends:
        alive = sorted(world.pods())
        assert len(alive) == min(parallelism, completions - succeeded)
        if not alive:
            break
        name = alive[place % len(alive)]
        if end == "lost":
            world.delete("Pod", name)
        else:
            world.patch_status("Pod", name, {"phase": end})
            succeeded += end == "Succeeded"
        world.run(seconds(600))
    assert succeeded <= completions


# --- as kubectl sees it ------------------------------------------------------------------------


@pytest.fixture
def seen(new_world):
    controller = Workloads(environment=served_environment())
    return new_world(controller, place=lambda pod: "n1", runs=True).load()


def new_job(build, **spec):
    return job(build, **spec) | {"status": {}}


def status(world):
    """Return the status after the controller has synced the Job again."""
    world.run(seconds(1))
    return world.get("Job", "sum")["status"]


def conditions(world):
    return {one["type"]: (one["status"], one["reason"]) for one in status(world)["conditions"]}


def end(world, name, phase="Succeeded", **fields):
    world.patch_status("Pod", name, {"phase": phase, **fields})


def indexes(world):
    return sorted(
        pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        for pod in world.pods().values()
    )


def of_index(world, index):
    return next(
        name
        for name, pod in world.pods().items()
        if pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == str(index)
    )


def test_the_status_of_a_job_is_written_until_its_end(seen, build):
    seen.create(new_job(build, completions=2, parallelism=1))
    first = status(seen)
    assert (first["active"], first["ready"], first["terminating"]) == (1, 1, 0)
    assert first["startTime"]
    end(seen, *seen.pods())
    assert (status(seen)["active"], status(seen)["succeeded"]) == (1, 1)
    end(seen, *seen.pods())
    last = status(seen)
    assert "active" not in last
    assert last["completionTime"]
    assert conditions(seen) == {
        "SuccessCriteriaMet": ("True", "CompletionsReached"),
        "Complete": ("True", "CompletionsReached"),
    }
    assert [event.note for event in seen.events][-1] == "Job completed"


def test_the_backoff_increases_with_each_failure(seen, build):
    seen.create(new_job(build))
    for wait_s in (10, 20, 40):
        end(seen, *seen.pods(), "Failed")
        seen.run(seconds(wait_s - 1))
        assert seen.pods() == {}
        seen.run(seconds(1))
        assert len(seen.pods()) == 1


def test_too_many_failures_fail_a_job(seen, build):
    """Active pods are deleted first, and the Job has failed after they have ended."""
    seen.create(new_job(build, completions=2, parallelism=2, backoffLimit=0))
    failed, other = sorted(seen.pods())
    end(seen, failed, "Failed")
    assert conditions(seen) == {"FailureTarget": ("True", "BackoffLimitExceeded")}
    seen.delete("Pod", other, grace=0)
    assert conditions(seen)["Failed"] == ("True", "BackoffLimitExceeded")
    assert status(seen)["failed"] == 2, "who had not ended by then has failed, too"
    assert seen.events[-1].note == "Job has reached the specified backoff limit"


def test_an_active_deadline_fails_a_job(seen, build):
    seen.create(new_job(build, activeDeadlineSeconds=60))
    seen.run(seconds(59))
    assert len(seen.pods()) == 1
    seen.run(seconds(1))
    assert seen.pods() == {}
    assert conditions(seen)["FailureTarget"] == ("True", "DeadlineExceeded")


def test_a_suspended_job_has_no_pods_and_no_failures(seen, build):
    seen.create(new_job(build, backoffLimit=0))
    seen.patch("Job", "sum", {"spec": {"suspend": True}})
    assert seen.pods() == {}
    assert conditions(seen) == {"Suspended": ("True", "JobSuspended")}
    assert "startTime" not in status(seen)
    for name in seen.pods(alive=False):
        seen.delete("Pod", name, grace=0)
    seen.run(seconds(100))
    seen.patch("Job", "sum", {"spec": {"suspend": False}})
    assert len(seen.pods()) == 1
    assert conditions(seen) == {"Suspended": ("False", "JobResumed")}
    assert status(seen)["startTime"]
    assert "failed" not in status(seen)


def test_each_index_is_completed_once(seen, build):
    seen.create(new_job(build, completions=5, parallelism=2, completionMode="Indexed"))
    assert indexes(seen) == ["0", "1"]
    pod = seen.pods()[of_index(seen, 1)]
    assert pod["metadata"]["name"].startswith("sum-1-")
    assert pod["spec"]["hostname"] == "sum-1"
    assert pod["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    end(seen, of_index(seen, 1))
    assert indexes(seen) == ["0", "2"]
    end(seen, of_index(seen, 0), "Failed")
    seen.run(seconds(10))
    assert indexes(seen) == ["0", "2"]
    for index in (2, 3, 4):
        end(seen, of_index(seen, index))
    assert status(seen)["completedIndexes"] == "1-4"
    end(seen, of_index(seen, 0))
    assert conditions(seen)["Complete"] == ("True", "CompletionsReached")


def test_each_index_has_its_own_failures(seen, build):
    indexed = {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}
    seen.create(new_job(build, **indexed, backoffLimitPerIndex=1))
    for _ in range(2):
        end(seen, of_index(seen, 0), "Failed")
        seen.run(seconds(20))
    assert indexes(seen) == ["1"]
    assert status(seen)["failedIndexes"] == "0"
    end(seen, of_index(seen, 1))
    assert conditions(seen)["Failed"] == ("True", "FailedIndexes")


def test_an_index_in_backoff_counts_towards_the_parallelism(seen, build):
    """The next index starts later, although one pod less than `parallelism` is running."""
    indexed = {"completions": 3, "parallelism": 2, "completionMode": "Indexed"}
    seen.create(new_job(build, **indexed, backoffLimitPerIndex=3))
    end(seen, of_index(seen, 0), "Failed")
    seen.run(seconds(9))
    assert indexes(seen) == ["1"]
    seen.run(seconds(1))
    assert indexes(seen) == ["0", "1"]


def test_indexes_beyond_a_reduced_number_of_completions_do_not_count(seen, build):
    """If the number is raised again, they run again."""
    indexed = {"completions": 3, "parallelism": 3, "completionMode": "Indexed"}
    seen.create(new_job(build, **indexed))
    end(seen, of_index(seen, 2))
    assert status(seen)["completedIndexes"] == "2"
    seen.patch("Job", "sum", {"spec": {"completions": 2, "parallelism": 2}})
    assert indexes(seen) == ["0", "1"]
    assert "completedIndexes" not in status(seen)
    assert "succeeded" not in status(seen)
    seen.patch("Job", "sum", {"spec": {"completions": 3, "parallelism": 3}})
    assert indexes(seen) == ["0", "1", "2"]
    for index in (0, 1, 2):
        assert "conditions" not in status(seen)
        end(seen, of_index(seen, index))
    assert conditions(seen)["Complete"] == ("True", "CompletionsReached")


TARGET = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}


def policy(action):
    return {"rules": [{"action": action, "onPodConditions": [{"type": "DisruptionTarget"}]}]}


EACH = {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}


def notes_of(seen, index):
    return seen.pods()[of_index(seen, index)]["metadata"]["annotations"]


def test_an_ignored_failure_delays_the_next_pod_of_its_index(seen, build):
    """The failure does not count towards the limit, but the backoff doubles."""
    more = {"backoffLimitPerIndex": 0, "podFailurePolicy": policy("Ignore")}
    seen.create(new_job(build, **EACH, **more))
    for wait, failures in ((10, 1), (20, 2)):
        end(seen, of_index(seen, 0), "Failed", **TARGET)
        seen.run(seconds(wait - 1))
        assert indexes(seen) == ["1"]
        seen.run(seconds(1))
        assert indexes(seen) == ["0", "1"]
        notes = notes_of(seen, 0)
        assert notes["batch.kubernetes.io/job-index-failure-count"] == "0"
        assert notes["batch.kubernetes.io/job-index-ignored-failure-count"] == str(failures)
    assert status(seen)["failedIndexes"] == ""


@pytest.mark.parametrize(
    ("before", "phase", "is_given_up"),
    [
        ("1", "Running", False),
        ("2", "Running", True),
        ("x", "Running", False),
        ("1", "Failed", False),
        ("2", "Failed", True),
    ],
)
def test_the_failures_of_an_index_are_kept_after_a_restart(
    new_world, build, before, phase, is_given_up
):
    """The annotation of the pod has the number of failures before this pod."""
    notes = {
        "batch.kubernetes.io/job-completion-index": "0",
        "batch.kubernetes.io/job-index-failure-count": before,
    }
    meta = {"annotations": notes, "uid": "uid-x", "finalizers": [TRACKING]}
    pod = build.pod("sum-0-x", OWNER, phase=phase, meta=meta)
    world = new_world(Workloads(environment=served_environment()), place=lambda pod: "n1")
    world.load(job(build, **EACH, backoffLimitPerIndex=2), pod)
    if phase == "Running":
        end(world, "sum-0-x", "Failed")
    assert (status(world).get("failedIndexes") == "0") is is_given_up


def test_failed_indexes_come_before_the_success_policy(build):
    """If the last indexes succeed and fail at the same time."""
    rules = {"rules": [{"succeededIndexes": "0"}]}
    one = decode(job(build, **EACH, backoffLimitPerIndex=0, successPolicy=rules))
    progress = JobProgress(succeeded=1, completed={0: None}, failed_indexes={1: None})
    found = finished_condition(one, progress, restarts=0, is_idle=True, now=0)
    assert found is not None
    assert (found.reason, found.is_success) == ("FailedIndexes", False)


def test_a_success_policy_may_require_only_some_indexes(seen, build):
    rules = {"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 1}]}
    indexed = {"completions": 4, "parallelism": 4, "completionMode": "Indexed"}
    seen.create(new_job(build, **indexed, successPolicy=rules))
    end(seen, of_index(seen, 1))
    assert len(seen.pods()) == 3
    end(seen, of_index(seen, 2))
    assert seen.pods() == {}
    assert conditions(seen)["SuccessCriteriaMet"] == ("True", "SuccessPolicy")


def test_a_failure_policy_may_ignore_disruptions(seen, build):
    """The next pod is created only after this pod is deleted."""
    seen.create(new_job(build, backoffLimit=0, podFailurePolicy=policy("Ignore")))
    (name,) = seen.pods()
    seen.patch_status("Pod", name, TARGET)
    seen.delete("Pod", name)
    seen.run(seconds(100))
    assert seen.pods() == {}
    assert status(seen)["terminating"] == 1
    end(seen, name, "Failed")
    seen.delete("Pod", name, grace=0)
    seen.run(seconds(12))
    assert len(seen.pods()) == 1
    assert "failed" not in status(seen)


def test_a_failure_policy_may_fail_the_job_after_a_disruption(seen, build):
    seen.create(new_job(build, podFailurePolicy=policy("FailJob")))
    (name,) = seen.pods()
    end(seen, name, "Failed", **TARGET)
    assert conditions(seen)["Failed"] == ("True", "PodFailurePolicy")
    (failed,) = [one for one in status(seen)["conditions"] if one["type"] == "Failed"]
    assert failed["message"] == (
        f"Pod ns/{name} has condition DisruptionTarget matching FailJob rule at index 0"
    )


def test_a_failure_policy_may_fail_the_job_after_an_exit_code(seen, build):
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    seen.create(new_job(build, podFailurePolicy={"rules": [rule]}))
    (name,) = seen.pods()
    ended = [{"name": "c", "state": {"terminated": {"exitCode": 42}}}]
    end(seen, name, "Failed", containerStatuses=ended)
    (failed,) = [one for one in status(seen)["conditions"] if one["type"] == "Failed"]
    assert failed["message"] == (
        f"Container c for pod ns/{name} failed with exit code 42 matching FailJob rule at index 0"
    )


def test_without_a_failure_policy_an_eviction_counts_as_a_failure(seen, build):
    seen.create(new_job(build, backoffLimit=0))
    (name,) = seen.pods()
    seen.patch_status("Pod", name, TARGET)
    seen.delete("Pod", name)
    assert conditions(seen)["FailureTarget"] == ("True", "BackoffLimitExceeded")


def test_a_job_of_another_controller_is_ignored(seen, build):
    seen.create(new_job(build, managedBy="example.com/other"))
    assert seen.pods() == {}
    assert not seen.sent(PatchStatus)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", []), ("3", [3]), ("1,3-5,7", [1, 3, 4, 5, 7]), ("1,2", [1, 2]), ("0-2", [0, 1, 2])],
)
def test_indexes_are_written_as_intervals(text, numbers):
    assert parse_indexes(text, 8) == numbers
    assert format_indexes(numbers) == text


def test_invalid_indexes_are_ignored():
    assert parse_indexes("a,2-,x-3,4", 8) == [2, 4]


def test_indexes_above_the_completions_are_ignored():
    """Their number does not matter; the result has at most the completions of the Job."""
    assert parse_indexes("1,6-99999999999,99999999998", 8) == [1, 6, 7]


# --- no pod goes uncounted -----------------------------------------------------------------------

TRACKING = "batch.kubernetes.io/job-tracking"


def written(world):
    """Return the patches of the Job's status, in order."""
    return [dict(one.fields) for one in world.sent(PatchStatus) if one.target.kind == "Job"]


def held(world):
    return [
        name
        for name, pod in world.pods(alive=False).items()
        if TRACKING in pod["metadata"].get("finalizers", ())
    ]


def test_a_pod_is_listed_before_it_is_released_and_counted(seen, build):
    """The steps follow each other, a second after the pod has ended."""
    seen.create(new_job(build))
    (name,) = held(seen)
    uid = seen.get("Pod", name)["metadata"]["uid"]
    seen.run(seconds(2))
    seen.log.clear()
    end(seen, name)
    assert written(seen) == []
    seen.run(seconds(1))
    listed, counted = written(seen)
    assert listed["uncountedTerminatedPods"] == {"succeeded": [uid]}
    assert [one["type"] for one in listed["conditions"]] == ["SuccessCriteriaMet"]
    assert counted["succeeded"] == 1
    assert counted["uncountedTerminatedPods"] == {"succeeded": None}
    assert [one["type"] for one in counted["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert held(seen) == []


def test_a_deleted_pod_keeps_its_finalizer_until_it_is_counted(seen, build):
    seen.create(new_job(build))
    (name,) = held(seen)
    seen.delete("Pod", name, grace=0)
    assert seen.get("Pod", name) is not None
    assert status(seen)["failed"] == 1
    assert seen.get("Pod", name) is None


def refuse_one_release(world):
    refusals = [FailureReason.INTERNAL_ERROR]

    def refuse(command):
        is_release = isinstance(command, PatchObject) and command.target.kind == "Pod"
        return refusals.pop() if is_release and refusals else None

    world.refuse = refuse


def test_a_refused_release_is_repeated(seen, build):
    seen.create(new_job(build))
    (name,) = held(seen)
    seen.run(seconds(2))
    refuse_one_release(seen)
    end(seen, name)
    seen.run(seconds(1))
    assert held(seen) == [name]
    seen.run(seconds(1))
    assert held(seen) == []


def test_a_refused_release_without_a_job_is_repeated(new_world, build):
    world = new_world(JobOrphans())
    world.load(job(build), build.pod("sum-a", OWNER, meta={"finalizers": [TRACKING]}))
    refuse_one_release(world)
    world.delete("Job", "sum")
    assert held(world) == ["sum-a"]
    world.run(seconds(1))
    assert held(world) == []


def test_pods_of_a_deleted_job_lose_the_finalizer(new_world, build):
    world = new_world(JobOrphans())
    pod = build.pod("sum-a", OWNER, meta={"finalizers": [TRACKING, "example.com/mine"]})
    world.load(job(build), pod)
    assert held(world) == ["sum-a"]
    world.delete("Job", "sum")
    assert world.get("Pod", "sum-a")["metadata"]["finalizers"] == ["example.com/mine"]


def test_the_finalizer_of_a_pod_of_another_controller_is_kept(new_world, build):
    owner = ("Workflow", "sum", "job")
    world = new_world(JobOrphans())
    world.load(build.pod("sum-a", owner, meta={"finalizers": [TRACKING]}))
    assert held(world) == ["sum-a"]


@pytest.mark.parametrize(
    ("policy", "phase", "is_held"),
    [
        ("Failed", "Running", True),
        ("Failed", "Failed", False),
        ("TerminatingOrFailed", "Running", False),
    ],
)
def test_a_simulation_releases_a_deleted_pod_when_the_job_counts_it(
    new_world, build, policy, phase, is_held
):
    world = new_world(EndedJobPods())
    pods = [build.pod(name, OWNER, meta={"finalizers": [TRACKING]}) for name in ("sum-a", "sum-b")]
    world.load(job(build, podReplacementPolicy=policy), *pods)
    world.delete("Pod", "sum-a")
    world.patch_status("Pod", "sum-a", {"phase": phase})
    assert held(world) == (["sum-a", "sum-b"] if is_held else ["sum-b"])


@pytest.mark.parametrize("is_finished", [False, True], ids=["deleted", "finished"])
def test_a_simulation_releases_deleted_pods_of_a_job_that_is_over(new_world, build, is_finished):
    world = new_world(EndedJobPods())
    pod = build.pod("sum-a", OWNER, meta={"finalizers": [TRACKING]})
    world.load(job(build, podReplacementPolicy="Failed"), pod)
    world.delete("Pod", "sum-a")
    assert held(world) == ["sum-a"]
    if is_finished:
        conditions = [{"type": "Failed", "status": "True"}]
        world.patch("Job", "sum", {"status": {"conditions": conditions}})
    else:
        world.delete("Job", "sum")
    assert held(world) == []


@pytest.mark.parametrize(
    ("listed", "phase", "total"),
    [([], "Succeeded", 3), (["uid-gone"], "Succeeded", 4), (["uid-gone"], "Running", 3)],
    ids=["ended meanwhile", "and one was released meanwhile", "none ended"],
)
def test_counting_continues_after_a_restart(new_world, build, listed, phase, total):
    """Pods listed in the status are counted, and so are pods that ended during the restart."""
    pod = build.pod("sum-a", OWNER, phase=phase, meta={"finalizers": [TRACKING], "uid": "uid-a"})
    initial = {"succeeded": 2, "startTime": "1970-01-12T13:46:40Z"}
    initial["uncountedTerminatedPods"] = {"succeeded": listed}
    world = new_world(Workloads(environment=served_environment()))
    world.load(job(build, status=initial, completions=9), pod)
    assert status(world)["succeeded"] == total


def test_the_interim_condition_of_a_job_precedes_the_final_one(seen, build):
    """This also holds for indexed Jobs, whose pods need not be listed first."""
    seen.create(new_job(build, completionMode="Indexed", completions=1))
    seen.run(seconds(2))
    seen.log.clear()
    end(seen, *seen.pods())
    seen.run(seconds(1))
    first, last = written(seen)
    assert first["succeeded"] == 1
    assert [one["type"] for one in first["conditions"]] == ["SuccessCriteriaMet"]
    assert [one["type"] for one in last["conditions"]] == ["SuccessCriteriaMet", "Complete"]


def test_a_terminating_job_removes_finalizers_and_counts_no_pods(seen, build):
    seen.create(new_job(build))
    (name,) = held(seen)
    meta = {"deletionTimestamp": "2027-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"]}
    seen.patch("Job", "sum", {"metadata": {**meta, "generation": 2}})
    assert held(seen) == []
    seen.delete("Pod", name)
    assert status(seen)["terminating"] == 1
    assert "failed" not in status(seen)


def refuse_third_pod(world):
    """Refuse pods while two pods have not finished, as a quota does; return the refusal times."""
    times, began = [], world.now

    def refuse(command):
        if not isinstance(command, CreateObject) or command.manifest["kind"] != "Pod":
            return None
        if len(world.pods()) < 2:
            return None
        times.append((world.now - began) // seconds(1))
        return FailureReason.FORBIDDEN

    world.refuse = refuse
    return times


def test_refused_pods_of_a_job_are_created_again_after_a_backoff_of_at_most_a_minute(world, build):
    times = refuse_third_pod(world)
    world.create(job(build, parallelism=4, completions=4))
    world.run(seconds(200))
    assert list(dict.fromkeys(times)) == [0, 1, 3, 7, 15, 31, 63, 123, 183]


def test_a_job_in_backoff_creates_pods_a_second_after_one_has_ended(world, build):
    refuse_third_pod(world)
    world.create(job(build, parallelism=4, completions=4))
    world.run(seconds(130))
    for name in list(world.pods()):
        world.patch_status("Pod", name, {"phase": "Succeeded"})
    assert len(world.pods()) == 0
    world.run(seconds(1))
    assert len(world.pods()) == 2
