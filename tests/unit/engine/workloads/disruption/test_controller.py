"""The disruption controller: correct statuses, written only if they change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.engine.core.command import PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
)
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.disruption.budget_status import full_conditions
from fairlead.engine.workloads.disruption.controller import Disruption
from fairlead.engine.workloads.event_sink import Events
from fairlead.testing.builders import make_node

OWNER = ("ReplicaSet", "web", "rs")


@pytest.fixture
def world(new_world):
    return new_world(Disruption())


def pods(build, count, *, owner=OWNER, **fields):
    return [build.pod(f"web-{place}", owner, **fields) for place in range(count)]


def status(world, name="pdb"):
    found = world.get("PodDisruptionBudget", name)["status"]
    fields = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    return tuple(found.get(field, 0) for field in fields)


def condition(world):
    (one,) = world.get("PodDisruptionBudget", "pdb")["status"]["conditions"]
    return one["status"], one["reason"]


def is_ready(world, name, ready):
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    world.patch_status("Pod", name, {"conditions": conditions})


def test_the_status_of_a_budget_is_computed(world, build):
    """The status has the observed generation and the condition."""
    world.load(build.budget(minAvailable=2), *pods(build, 3))
    assert status(world) == (3, 3, 2, 1)
    assert world.get("PodDisruptionBudget", "pdb")["status"]["observedGeneration"] == 1
    assert condition(world) == ("True", "SufficientPods")


TRUE = {"expectedPods": 3, "currentHealthy": 3, "desiredHealthy": 2, "disruptionsAllowed": 1}


def test_a_correct_status_is_not_written(world, build):
    true = {**TRUE, "observedGeneration": 1}
    world.load(build.budget(minAvailable=2, status=true), *pods(build, 3))
    world.patch("Pod", "web-0", {"metadata": {"annotations": {"a": "b"}}})
    assert world.log == []


def test_a_loaded_status_of_an_older_generation_is_written(world, build):
    """The eviction API would otherwise refuse every eviction."""
    world.load(build.budget(minAvailable=2, status=TRUE), *pods(build, 3))
    assert world.get("PodDisruptionBudget", "pdb")["status"]["observedGeneration"] == 1


def test_the_status_of_a_new_budget_is_always_written(world, build):
    """The eviction API waits for status.observedGeneration."""
    world.load()
    world.create(build.budget(maxUnavailable=1))
    assert len(world.sent(PatchStatus)) == 1


def test_the_status_of_a_new_generation_is_always_written(world, build):
    """It is written even if the numbers are unchanged."""
    world.load(build.budget(minAvailable=2), *pods(build, 3))
    before = len(world.log)
    world.patch("PodDisruptionBudget", "pdb", {"metadata": {"generation": 2}})
    assert len(world.log) == before + 1
    assert world.get("PodDisruptionBudget", "pdb")["status"]["observedGeneration"] == 2


def test_a_changed_selector_selects_other_pods(world, build):
    world.load(
        build.budget(minAvailable=0),
        *pods(build, 3),
        build.pod("other", OWNER, labels={"app": "other"}),
    )
    selector = {"matchLabels": {"app": "other"}}
    world.patch("PodDisruptionBudget", "pdb", {"spec": {"selector": selector}})
    assert status(world) == (1, 1, 0, 1)
    is_ready(world, "web-0", ready=False)
    assert status(world) == (1, 1, 0, 1)


def test_changed_readiness_and_labels_update_the_status(world, build):
    world.load(build.budget(minAvailable=2), *pods(build, 3))
    is_ready(world, "web-0", ready=False)
    assert status(world) == (3, 2, 2, 0)
    assert condition(world) == ("False", "InsufficientPods")
    world.patch("Pod", "web-0", {"metadata": {"labels": {"app": "other"}}})
    assert status(world) == (2, 2, 2, 0)
    world.delete("Pod", "web-1")
    assert status(world) == (2, 1, 2, 0)
    world.delete("Pod", "web-1", grace=0)
    assert status(world) == (1, 1, 2, 0)


def test_a_deleted_budget_is_dropped(world, build):
    world.load(build.budget(minAvailable=2), *pods(build, 3))
    world.delete("PodDisruptionBudget", "pdb")
    before = len(world.log)
    is_ready(world, "web-0", ready=False)
    world.patch("Pod", "web-1", {"metadata": {"labels": {"app": "other"}}})
    assert len(world.log) == before


def test_a_pod_does_not_affect_budgets_of_other_namespaces(world, build):
    elsewhere = build.pod("web-9", OWNER)
    elsewhere["metadata"]["namespace"] = "elsewhere"
    world.load(build.budget(minAvailable=1), *pods(build, 2), elsewhere)
    assert status(world) == (2, 2, 1, 1)


# --- what the controllers are scaled to ----------------------------------------------------------


def deployment(build, replicas):
    return build.owned("Deployment", "web", replicas, uid="dep")


def replica_set(build, replicas, *, owned=False):
    made = build.owned("ReplicaSet", "web", replicas, uid="rs")
    if owned:
        reference = {"kind": "Deployment", "name": "web", "uid": "dep", "controller": True}
        made["metadata"]["ownerReferences"] = [reference]
    return made


def test_percentages_apply_to_the_desired_replicas(world, build):
    """The percentage does not refer to the existing pods: two of five are ready, three must be."""
    world.load(build.budget(minAvailable="50%"), replica_set(build, 5), *pods(build, 2))
    assert status(world) == (5, 2, 3, 0)
    world.patch("ReplicaSet", "web", {"spec": {"replicas": 2}})
    assert status(world) == (2, 2, 1, 1)


def test_a_deployment_gives_the_replicas_of_its_replica_sets(world, build):
    world.load(
        build.budget(maxUnavailable=1),
        deployment(build, 4),
        replica_set(build, 9, owned=True),
        *pods(build, 4),
    )
    assert status(world) == (4, 4, 3, 1)
    world.patch("Deployment", "web", {"spec": {"replicas": 6}})
    assert status(world) == (6, 4, 5, 0)


def test_a_replica_set_gives_the_replicas_if_its_deployment_is_unknown(world, build):
    world.load(build.budget(maxUnavailable=1), replica_set(build, 4, owned=True), *pods(build, 4))
    assert status(world)[0] == 4


def test_a_deployment_gives_the_replicas_of_unknown_replica_sets(world, build):
    labels = {"app": "web", "pod-template-hash": "54df9554fd"}
    owner = ("ReplicaSet", "web-54df9554fd", "rs")
    world.load(
        build.budget(maxUnavailable=1),
        deployment(build, 4),
        *pods(build, 2, owner=owner, labels=labels),
    )
    assert status(world)[0] == 4


def test_each_controller_counts_once(world, build):
    stateful = build.owned("StatefulSet", "db", 3, uid="sts")
    db = build.pod("db-0", ("StatefulSet", "db", "sts"))
    world.load(build.budget(maxUnavailable=1), replica_set(build, 4), stateful, db, *pods(build, 2))
    assert status(world)[0] == 7


def test_pods_without_a_controller_are_left_out(world, build):
    world.load(
        build.budget(maxUnavailable=1), replica_set(build, 2), build.pod("bare"), *pods(build, 2)
    )
    assert status(world) == (2, 3, 1, 2)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("DaemonSet", "daemonsets.apps does not implement the scale subresource"),
        ("Job", "jobs.batch does not implement the scale subresource"),
    ],
)
def test_a_controller_without_a_scale_allows_nothing(world, build, kind, message):
    """The status is written once, not after every change."""
    world.load(build.budget(maxUnavailable=1), *pods(build, 2, owner=(kind, "x", "u")))
    (command,) = world.sent(PatchStatus)
    assert command.fields == {"disruptionsAllowed": 0}
    assert (command.conditions[0].reason, command.conditions[0].message) == ("SyncFailed", message)
    is_ready(world, "web-0", ready=False)
    assert len(world.log) == 1


def test_a_budget_recovers_after_a_controller_without_a_scale_is_gone(world, build):
    """The condition changes, although no number changes."""
    world.load(build.budget(maxUnavailable=1), *pods(build, 1, owner=("Job", "x", "u")))
    world.delete("Pod", "web-0", grace=0)
    assert condition(world) == ("False", "InsufficientPods")


def test_unknown_controllers_count_with_their_highest_number_of_pods(world, build):
    """A pod that is missing for a while does not reduce the expected number."""
    world.load(build.budget(maxUnavailable=1), *pods(build, 3))
    assert status(world) == (3, 3, 2, 1)
    world.delete("Pod", "web-0", grace=0)
    assert status(world) == (3, 2, 2, 0)


def test_a_replaced_pod_does_not_increase_the_expected_pods(world, build):
    world.load(build.budget(maxUnavailable=1), *pods(build, 3))
    world.delete("Pod", "web-0", grace=0)
    world.create(build.pod("web-9", OWNER))
    assert status(world) == (3, 3, 2, 1)


def test_a_deleted_controller_counts_like_an_unknown_controller(world, build):
    """Its pods count as those of an unknown controller."""
    world.load(build.budget(minAvailable="50%"), replica_set(build, 8), *pods(build, 2))
    assert status(world) == (8, 2, 4, 0)
    controller = world.controllers[0]
    (patch,) = controller.handle(ObjectDeleted(decode(world.get("ReplicaSet", "web"))), world.now)
    assert (patch.fields["expectedPods"], patch.fields["desiredHealthy"]) == (2, 1)


def test_other_objects_are_ignored(world, build):
    world.load(build.budget(minAvailable=2), *pods(build, 3))
    before = len(world.log)
    controller = world.controllers[0]
    for change in (ObjectChanged, ObjectDeleted):
        assert controller.handle(change(make_node("n1")), world.now) == []
    assert len(world.log) == before


def test_a_loaded_status_gives_the_expected_pods(world, build):
    """One of four pods was missing when the dump was taken."""
    loaded = {"expectedPods": 4, "currentHealthy": 3, "desiredHealthy": 3, "disruptionsAllowed": 0}
    loaded["observedGeneration"] = 1
    world.load(build.budget(maxUnavailable=1, status=loaded), *pods(build, 3))
    assert world.log == []
    world.create(build.pod("web-3", OWNER))
    assert status(world) == (4, 4, 3, 1)


# --- evictions -----------------------------------------------------------------------------------


def test_an_eviction_counts_until_the_pod_is_deleted(world, build):
    """The disruption counts from the API server's entry in the status to the deletion."""
    world.load(build.budget(minAvailable=2), *pods(build, 3))
    assert world.evict("web-0")
    assert status(world) == (3, 2, 2, 0)
    assert world.get("PodDisruptionBudget", "pdb")["status"].get("disruptedPods", {}) == {}
    assert not world.evict("web-1")
    world.delete("Pod", "web-0", grace=0)
    assert status(world) == (2, 2, 2, 0)
    world.create(build.pod("web-9", OWNER))
    assert status(world) == (3, 3, 2, 1)


def test_an_eviction_that_does_not_start_is_dropped(world, build):
    """The entry is dropped more than two minutes after the API server added it."""
    world.load(build.budget(minAvailable=2), *pods(build, 3))
    noted = {"disruptionsAllowed": 0, "disruptedPods": {"web-0": "1970-01-12T13:46:40Z"}}
    world.patch_status("PodDisruptionBudget", "pdb", noted)
    assert status(world) == (3, 2, 2, 0)
    world.run(seconds(120))
    assert status(world) == (3, 2, 2, 0)
    world.run(seconds(1))
    assert status(world) == (3, 3, 2, 1)
    assert world.get("PodDisruptionBudget", "pdb")["status"]["disruptedPods"] == {}


def test_only_the_finished_entry_of_disrupted_pods_is_removed(world, build):
    world.load(build.budget(minAvailable=1), *pods(build, 4))
    stamp = "1970-01-12T13:46:40Z"
    noted = {"disruptedPods": {"web-0": stamp, "web-1": stamp}}
    world.patch_status("PodDisruptionBudget", "pdb", noted)
    world.delete("Pod", "web-0")
    assert world.get("PodDisruptionBudget", "pdb")["status"]["disruptedPods"] == {"web-1": stamp}


def test_a_refused_write_is_repeated(world, build):
    down = [True]
    world.refuse = lambda one: FailureReason.INTERNAL_ERROR if down[0] else None
    world.load(build.budget(minAvailable=2), *pods(build, 3))
    down[0] = False
    world.run(seconds(1))
    assert status(world) == (3, 3, 2, 1)


def test_a_write_that_is_always_refused_is_repeated_with_exponential_backoff(world, build):
    world.refuse = lambda one: FailureReason.INTERNAL_ERROR
    world.load(build.budget(minAvailable=2), *pods(build, 3))
    world.run(seconds(10))
    assert len(world.log) == 11  # after 0, 5, 15, 35, ... 5115 ms


def test_a_write_to_a_deleted_budget_is_not_repeated(world, build):
    """The write is dropped after a NotFound outcome, and after the deletion of the budget."""
    controller = world.controllers[0]
    world.refuse = lambda one: FailureReason.NOT_FOUND
    world.load(build.budget(minAvailable=2), *pods(build, 3))
    (refused,) = world.log
    assert controller.next_deadline() is None
    controller.handle(ObjectDeleted(decode(world.get("PodDisruptionBudget", "pdb"))), world.now)
    failed = CommandFailed(refused, FailureReason.INTERNAL_ERROR, "")
    assert controller.handle(failed, world.now) == []
    assert controller.next_deadline() is None


def test_changes_during_a_write_are_written_after_it(new_world, build):
    """While an outcome is pending, nothing is written; afterwards one write has all changes."""
    controller = Disruption()
    world = new_world(controller).load(build.budget(minAvailable=1), *pods(build, 4))
    tell = [decode(world.get("Pod", name)) for name in ("web-0", "web-1", "web-2")]
    gone = [controller.handle(ObjectDeleted(pod), world.now) for pod in tell]
    assert [len(commands) for commands in gone] == [1, 0, 0]
    (first,) = gone[0]
    (second,) = controller.handle(CommandSucceeded(first), world.now)
    assert (first.fields["expectedPods"], second.fields["expectedPods"]) == (3, 1)
    assert controller.handle(CommandSucceeded(second), world.now) == []


def test_an_eviction_during_a_write_is_kept_in_the_status(new_world, build):
    """Only entries that are known to be obsolete are removed."""
    stamp = "1970-01-12T13:46:40Z"
    noted = {"disruptedPods": {"web-0": stamp, "web-1": stamp}}
    controller = Disruption()
    world = new_world(controller).load(build.budget(minAvailable=1, status=noted), *pods(build, 4))
    (command,) = controller.handle(ObjectDeleted(decode(world.get("Pod", "web-0"))), world.now)
    assert command.fields["disruptedPods"] == {"web-0": None, "web-1": stamp}


# --- announced disruptions -----------------------------------------------------------------------


def announce(world, name, *, reason="PreemptionByScheduler", since="1970-01-12T13:46:40Z"):
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "lastTransitionTime": since,
    }
    world.patch_status("Pod", name, {"conditions": [target]})


def test_a_stale_disruption_target_condition_is_reset(world, build):
    world.load(*pods(build, 1))
    announce(world, "web-0")
    world.run(seconds(119))
    assert world.log == []
    world.run(seconds(1))
    (one,) = world.get("Pod", "web-0")["status"]["conditions"]
    assert (one["type"], one["status"]) == ("DisruptionTarget", "False")


def test_a_new_disruption_target_condition_has_its_own_timeout(world, build):
    world.load(*pods(build, 1))
    announce(world, "web-0")
    announce(world, "web-0", since="1970-01-12T13:47:40Z")
    world.run(seconds(179))
    assert world.log == []
    world.run(seconds(1))
    assert len(world.log) == 1


def test_disruption_target_conditions_of_ended_pods_and_kubelets_are_kept(world, build):
    world.load(*pods(build, 2))
    announce(world, "web-0")
    world.delete("Pod", "web-0")
    announce(world, "web-1", reason="TerminationByKubelet")
    world.run(seconds(500))
    assert world.log == []


# --- safety --------------------------------------------------------------------------------------


@given(
    replicas=st.integers(1, 5),
    spec=st.one_of(
        st.integers(0, 5).map(lambda value: {"minAvailable": value}),
        st.sampled_from(["0%", "30%", "50%", "100%"]).map(lambda value: {"minAvailable": value}),
        st.integers(0, 5).map(lambda value: {"maxUnavailable": value}),
        st.sampled_from(["0%", "30%", "50%", "100%"]).map(lambda value: {"maxUnavailable": value}),
    ),
    steps=st.lists(
        st.tuples(st.sampled_from(["evict", "end", "ready"]), st.integers(0, 9)), max_size=20
    ),
    knows_its_owner=st.booleans(),
)
def test_no_eviction_reduces_the_healthy_pods_below_the_desired_number(
    new_world, build, *, replicas, spec, steps, knows_its_owner
):
    """This holds while replacements are created and deleted, with known and unknown owners."""
    world = new_world(Disruption(), Workloads(), place=lambda pod: "n1")
    owner = [replica_set(build, replicas)] if knows_its_owner else []
    world.load(build.budget(**spec), *owner, *pods(build, replicas))
    for act, number in steps:
        alive = sorted(world.pods())
        if not alive:
            break
        name = alive[number % len(alive)]
        if act == "evict":
            _, healthy, desired, allowed = status(world)
            was_ready = bool(world.get("Pod", name).get("status", {}).get("conditions"))
            granted = world.evict(name)
            assert granted == (allowed > 0)
            if granted:
                assert healthy - was_ready >= desired
        elif act == "ready":
            is_ready(world, name, ready=True)
        for one in list(world.pods(alive=False)):
            if act == "end" and one not in world.pods():
                world.delete("Pod", one, grace=0)
        expected, healthy, desired, allowed = status(world)
        ready = [
            one
            for one in world.pods().values()
            if any(c["type"] == "Ready" for c in one.get("status", {}).get("conditions", ()))
        ]
        assert healthy == len(ready)
        assert allowed == (max(0, healthy - desired) if expected else 0)


def notes(world):
    return [(event.type, event.reason, event.note) for event in world.events]


def test_a_budget_without_pods_is_reported_once(new_world, build):
    world = new_world(Disruption(Events(), full_conditions)).load()
    world.create(build.budget(minAvailable=1))
    world.patch("PodDisruptionBudget", "pdb", {"metadata": {"labels": {"a": "b"}}})
    assert notes(world) == [("Normal", "NoPods", "No matching pods found")]
    world.create(build.pod("web-0"))
    world.delete("Pod", "web-0", grace=0)
    assert len(world.events) == 2


def test_pods_without_a_controller_that_cannot_be_counted_are_reported(new_world, build):
    world = new_world(Disruption(Events(), full_conditions)).load(build.pod("web-0"))
    world.create(build.budget(maxUnavailable=1))
    ((kind, reason, note),) = notes(world)
    assert (kind, reason) == ("Warning", "UnmanagedPods")
    assert note == (
        "Pods selected by this PodDisruptionBudget (selector: &LabelSelector{MatchLabels:"
        "map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{},}) were found "
        "to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which "
        "may result in undefined behavior. To account for these pods please set "
        '".spec.minAvailable" field of the PDB to an integer value.'
    )


def test_a_pod_with_several_budgets_is_reported(new_world, build):
    world = new_world(Disruption(Events(), full_conditions)).load(
        build.budget("a", minAvailable=1), build.budget("b", minAvailable=1)
    )
    world.events.clear()
    world.create(build.pod("web-0"))
    note = 'Pod "ns"/"web-0" matches multiple PodDisruptionBudgets.  Chose "a" arbitrarily.'
    assert notes(world) == [("Warning", "MultiplePodDisruptionBudgets", note)]
    assert world.events[0].regarding.kind == "Pod"


def test_a_failed_count_keeps_the_generation_of_the_last_count(new_world, build):
    """upstream: pkg/controller/disruption/disruption.go:failSafe"""
    world = new_world(Disruption(Events(), full_conditions)).load(
        build.pod("a", ("Job", "sum", "job"))
    )
    world.create(build.budget(maxUnavailable=1))
    (failed,) = world.get("PodDisruptionBudget", "pdb")["status"]["conditions"]
    assert failed["reason"] == "SyncFailed"
    assert "observedGeneration" not in failed


@pytest.mark.parametrize(("kind", "is_failed"), [("KafkaSet", True), ("Rollout", False)])
def test_a_kind_that_the_loaded_status_names_has_no_scale(world, build, kind, is_failed):
    """Nothing else in a snapshot states whether a custom resource has a scale."""
    message = "kafkasets.example.com does not implement the scale subresource"
    failed = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed"}
    budget = build.budget(maxUnavailable=1)
    budget["status"] = {"conditions": [{**failed, "message": message}]}
    world.load(budget, *pods(build, 2, owner=(kind, "x", "u")))
    (command,) = world.sent(PatchStatus)
    assert command.fields["disruptionsAllowed"] == (0 if is_failed else 1)
    assert command.conditions[0].message == (message if is_failed else "")


def test_a_failed_count_is_reported(new_world, build):
    world = new_world(Disruption(Events(), full_conditions)).load(
        build.pod("a", ("Job", "sum", "job"))
    )
    world.create(build.budget(maxUnavailable=1))
    note = (
        "Failed to calculate the number of expected pods: "
        "jobs.batch does not implement the scale subresource"
    )
    assert notes(world) == [("Warning", "CalculateExpectedPodCountFailed", note)]
    world.create(build.pod("b", ("Job", "sum", "job")))
    assert len(world.events) == 1


def test_a_failed_count_is_written_once_at_a_time(new_world, build):
    controller = Disruption()
    allowing = build.budget(maxUnavailable=1, status={"disruptionsAllowed": 1})
    world = new_world(controller)
    members = [build.pod(name, ("Job", "sum", "job")) for name in "abc"]
    commands = [
        controller.handle(ObjectChanged(decode(one)), world.now)
        for one in (members[0], allowing, *members[1:])
    ]
    assert [len(found) for found in commands] == [0, 1, 0, 0]
    (written,) = controller.handle(CommandSucceeded(commands[1][0]), world.now)
    assert written.fields["disruptionsAllowed"] == 0


def test_no_events_are_recorded_in_a_simulation(new_world, build):
    world = new_world(Disruption()).load()
    world.create(build.budget(minAvailable=1))
    assert world.events == []


def test_conditions_have_the_observed_generation_if_configured(new_world, build):
    world = new_world(Disruption(Events(), full_conditions)).load(
        build.pod("web-0"), build.pod("web-1")
    )
    world.create(build.budget(minAvailable=1))
    (first,) = world.get("PodDisruptionBudget", "pdb")["status"]["conditions"]
    since = first["lastTransitionTime"]
    assert (first["observedGeneration"], first["status"], first["message"]) == (1, "True", "")
    world.run(seconds(60))
    world.create(build.pod("web-2"))
    (later,) = world.get("PodDisruptionBudget", "pdb")["status"]["conditions"]
    assert later["lastTransitionTime"] == since
    for name in ("web-0", "web-1"):
        world.delete("Pod", name, grace=0)
    (last,) = world.get("PodDisruptionBudget", "pdb")["status"]["conditions"]
    assert (last["status"], last["reason"]) == ("False", "InsufficientPods")
    assert last["lastTransitionTime"] != since
