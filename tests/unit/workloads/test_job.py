"""Jobs: pods until enough have succeeded, and not for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.workloads.controller import Workloads

OWNER = ("Job", "sum", "job")


@pytest.fixture
def world(new_world):
    return new_world(Workloads(), place=lambda pod: "n1")


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
            {},
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
def test_wanted(world, build, *, case, spec, status, phases, wanted):
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


def test_a_preempted_pod_is_replaced_while_it_terminates(world, build):
    world.load(job(build, completions=1), build.pod("sum-a", OWNER))
    world.delete("Pod", "sum-a")
    assert list(world.replaces().values()) == ["sum-a"]


def test_a_failed_pod_is_replaced_until_the_limit(world, build):
    world.load(job(build, backoffLimit=2))
    for _ in range(3):
        (name,) = world.pods()
        world.patch_status("Pod", name, {"phase": "Failed"})
    assert world.pods() == {}


def test_success_is_counted_once(world, build):
    """Although the pod goes on changing, and is deleted in the end."""
    world.load(job(build, completions=2))
    (name,) = world.pods()
    world.patch_status("Pod", name, {"phase": "Succeeded"})
    world.patch("Pod", name, {"metadata": {"labels": {"seen": "yes"}}})
    world.delete("Pod", name)
    (last,) = world.pods()
    world.patch_status("Pod", last, {"phase": "Succeeded"})
    assert world.pods() == {}


def test_more_parallelism_counts_what_has_succeeded(world, build):
    world.load(job(build, completions=4, status={"succeeded": 1}))
    world.patch("Job", "sum", {"spec": {"parallelism": 9}})
    assert len(world.pods()) == 3


def test_with_its_owner_a_pod_goes(world, build):
    """As kubectl does it, which asks for background deletion."""
    world.load(job(build))
    world.delete("Job", "sum")
    assert world.pods() == {}


@given(
    parallelism=st.integers(1, 4),
    completions=st.integers(1, 6),
    ends=st.lists(st.tuples(st.sampled_from(["Succeeded", "Failed", "lost"]), st.integers(0, 9))),
)
def test_a_job_does_its_work_and_no_more(new_world, build, parallelism, completions, ends):
    """As many active as are missing, at most its parallelism; exactly its completions succeed."""
    world = new_world(Workloads(), place=lambda pod: "n1")
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
    assert succeeded <= completions
