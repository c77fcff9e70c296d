"""BudgetRoom: the disruptions that budgets allow now and at most, and their pods."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.workloads.disruption.budget_room import BudgetRoom

OWNER = ("ReplicaSet", "web", "rs")
NOW = 0


def room_of(*manifests):
    return BudgetRoom([decode(one) for one in manifests], NOW)


def pods(build, ready, unready=0):
    """Return pods of one ReplicaSet: `ready` ready ones, then `unready` others."""
    made = [build.pod(f"web-{place}", OWNER) for place in range(ready + unready)]
    for one in made[ready:]:
        one["status"]["conditions"] = []
    return made


def replica_set(build, replicas):
    return build.owned("ReplicaSet", "web", replicas, uid="rs")


@pytest.mark.parametrize(
    ("spec", "replicas", "are_ready", "rule", "now", "at_best"),
    [
        ({"minAvailable": 2}, 2, (2, 0), "minAvailable 2", 0, 0),
        ({"minAvailable": 2}, 3, (2, 1), "minAvailable 2", 0, 1),
        ({"minAvailable": 1}, 3, (2, 0), "minAvailable 1", 1, 2),
        ({"minAvailable": "100%"}, 3, (3, 0), "minAvailable 100%", 0, 0),
        ({"maxUnavailable": 1}, 4, (3, 1), "maxUnavailable 1", 0, 1),
        ({"maxUnavailable": 0}, 4, (4, 0), "maxUnavailable 0", 0, 0),
        ({}, 2, (2, 0), "no limit", 0, 2),
    ],
)
def test_the_allowed_disruptions_now_and_at_most(
    build, *, spec, replicas, are_ready, rule, now, at_best
):
    """At best, all pods that the controllers want are ready."""
    room = room_of(build.budget(**spec), replica_set(build, replicas), *pods(build, *are_ready))
    (limit,) = room.limits()
    assert (limit.key, limit.rule, limit.now, limit.at_best) == ("ns/pdb", rule, now, at_best)
    assert (limit.healthy, limit.wanted) == (are_ready[0], max(replicas, sum(are_ready)))
    assert limit.is_permanent is (at_best == 0)


def test_a_budget_whose_status_names_a_kind_without_a_scale_allows_nothing(build):
    problem = "kafkasets.example.com does not implement the scale subresource"
    budget = build.budget(maxUnavailable=1)
    budget["status"] = {"conditions": [{"type": "DisruptionAllowed", "message": problem}]}
    [limit] = room_of(budget, build.pod("a", ("KafkaSet", "k", "u"))).limits()
    assert (limit.now, limit.at_best, limit.problem) == (0, 0, problem)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"maxUnavailable": 1}, "jobs.batch does not implement the scale subresource"),
        ({"minAvailable": 1}, ""),
        ({"maxUnavailable": "x"}, "invalid value"),
    ],
)
def test_a_budget_that_cannot_be_counted_allows_nothing(build, spec, problem):
    owner = OWNER if spec == {"maxUnavailable": "x"} else ("Job", "sum", "job")
    (limit,) = room_of(build.budget(**spec), build.pod("a", owner)).limits()
    assert problem in limit.problem
    assert bool(limit.problem) is bool(problem)
    assert (limit.now, limit.at_best) == (0, 0)
    assert (limit.healthy, limit.desired, limit.wanted) == (1, 0 if problem else 1, 1)


def test_without_controllers_the_status_gives_the_expected_pods(build):
    """A dump may lack the controllers."""
    written = build.budget(minAvailable="50%", status={"expectedPods": 8})
    (limit,) = room_of(written, *pods(build, 3)).limits()
    assert (limit.wanted, limit.at_best) == (8, 4)
    (limit,) = room_of(build.budget(minAvailable="50%"), *pods(build, 3)).limits()
    assert (limit.wanted, limit.at_best) == (3, 1)


def test_limits_are_in_the_order_of_their_names(build):
    room = room_of(*(build.budget(name, minAvailable=1) for name in ("c", "a", "b")))
    assert [limit.key for limit in room.limits()] == ["ns/a", "ns/b", "ns/c"]
    assert [limit.key for limit in room.of(decode(build.pod("a")))] == ["ns/a", "ns/b", "ns/c"]


def test_finished_pods_and_those_of_other_namespaces_do_not_count(build):
    elsewhere = build.pod("far", OWNER)
    elsewhere["metadata"]["namespace"] = "elsewhere"
    done = build.pod("done", OWNER, phase="Succeeded")
    room = room_of(build.budget(minAvailable=1), *pods(build, 2), done, elsewhere)
    (limit,) = room.limits()
    assert (limit.healthy, limit.now) == (2, 1)
    assert room.of(decode(elsewhere)) == room.guarding(decode(elsewhere)) == []
    assert room.of(decode(build.pod("x", labels={"app": "other"}))) == []


GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}


@pytest.mark.parametrize(
    ("pod", "spec", "is_guarded"),
    [
        ({}, {"minAvailable": 2}, True),
        ({"phase": "Pending"}, {"minAvailable": 2}, False),
        ({"phase": "Failed"}, {"minAvailable": 2}, False),
        ({"meta": GONE}, {"minAvailable": 2}, False),
        ({"meta": {"labels": {}}}, {"minAvailable": 2, "selector": {}}, False),
    ],
)
def test_a_pod_that_does_not_run_is_not_guarded(build, pod, spec, is_guarded):
    one = build.pod("web-9", OWNER, **pod)
    room = room_of(build.budget(**spec), one)
    assert room.guarding(decode(one)) == (room.limits() if is_guarded else [])


@pytest.mark.parametrize(
    ("policy", "healthy", "is_guarded"),
    [
        ("IfHealthyBudget", 2, False),
        ("IfHealthyBudget", 1, True),
        ("AlwaysAllow", 1, False),
        ("AlwaysAllow", 2, False),
    ],
)
def test_an_unready_pod_is_not_guarded_if_the_policy_allows_its_eviction(
    build, policy, healthy, is_guarded
):
    """It is not guarded either if enough other pods are healthy; two are desired."""
    budget = build.budget(minAvailable=2, unhealthyPodEvictionPolicy=policy)
    made = pods(build, healthy, unready=1)
    room = room_of(budget, *made)
    assert room.guarding(decode(made[-1])) == (room.limits() if is_guarded else [])
    assert room.guarding(decode(made[0])) == room.limits()


def test_two_budgets_also_guard_an_unready_pod(build):
    """The eviction API refuses before it checks whether the pod is ready."""
    made = pods(build, 2, unready=1)
    room = room_of(build.budget("a", minAvailable=1), build.budget("b", minAvailable=1), *made)
    assert len(room.guarding(decode(made[-1]))) == 2


def test_a_preemption_breaches_a_budget_by_unready_victims_too(build):
    """Unlike the eviction API, preemption never spares a budget because a victim is not ready."""
    room = room_of(build.budget(minAvailable=1), *pods(build, 2, 2))
    victims = [decode(one) for one in pods(build, 0, 2)]
    assert not room.breached(victims[:1])
    assert [(limit.key, limit.now, n) for limit, n in room.breached(victims)] == [("ns/pdb", 1, 2)]
