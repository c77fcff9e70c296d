"""Pods leave nodes whose NoExecute taints they do not tolerate."""

from __future__ import annotations

import pytest

from fairlead.api.objects import Toleration
from fairlead.engine.core.command import (
    Condition,
    DeleteObject,
    ObjectRef,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import EvictionCancelled, EvictionTimed, PodEvicted
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.nodelifecycle.eviction.taint_eviction import TaintEviction
from fairlead.engine.nodelifecycle.profile import V1_16, V1_36

REF = ObjectRef("Pod", "default", "p1", "uid-p1")
DISRUPTED = Condition(
    "DisruptionTarget",
    "True",
    "DeletionByTaintManager",
    "Taint manager: deleting due to NoExecute taint",
)


def taints(*keys, **others):
    return [{"key": key, "effect": "NoExecute"} | others for key in keys]


class Evictor:
    """The controller, reported of one thing at a time; instants are seconds."""

    def __init__(self, given, profile=V1_36):
        self.given = given
        self.records = []
        self.controller = TaintEviction(profile, self)

    def report(self, record):
        self.records.append(record)

    def node(self, after_s, *keys, name="n1", **others):
        node = self.given.node(name, taints=taints(*keys, **others))
        return self.controller.handle(ObjectChanged(node), seconds(after_s))

    def pod(self, after_s, *tolerations, **others):
        pod = self.given.pod(tolerations=tolerations, **others)
        return self.controller.handle(ObjectChanged(pod), seconds(after_s))

    def gone(self, after_s, view):
        return self.controller.handle(ObjectDeleted(view), seconds(after_s))

    @property
    def due_s(self):
        due = self.controller.next_deadline()
        return None if due is None else due / seconds(1)

    def fire(self, after_s):
        return self.controller.handle_deadline(seconds(after_s))


@pytest.fixture
def evictor(given):
    return Evictor(given)


def toleration(key, limit_s=None):
    limit = {} if limit_s is None else {"tolerationSeconds": limit_s}
    return {"key": key, "operator": "Exists"} | limit


CANCELLING = RecordEvent(
    REF,
    "Normal",
    "TaintManagerEviction",
    "",
    "Cancelling deletion of Pod default/p1",
    "taint-eviction-controller",
)


def is_eviction(commands):
    kinds = [type(command) for command in commands]
    return kinds == [RecordEvent, PatchStatus, DeleteObject]


# --- what happens when -------------------------------------------------------------------------


def test_a_pod_that_does_not_tolerate_goes_at_once(evictor):
    """First the event, then the condition, then the deletion with the pod's own grace."""
    evictor.pod(0)
    note = "Marking for deletion Pod default/p1"
    assert evictor.node(1, "a") == [
        RecordEvent(REF, "Normal", "TaintManagerEviction", "", note, "taint-eviction-controller"),
        PatchStatus(REF, conditions=(DISRUPTED,)),
        DeleteObject(REF, None, "taint a:NoExecute"),
    ]


def test_a_pod_that_tolerates_for_a_time_goes_when_it_is_over(evictor):
    evictor.pod(0, toleration("a", 30))
    assert evictor.node(1, "a") == []
    assert evictor.due_s == 31
    assert is_eviction(evictor.fire(31))
    assert evictor.due_s is None


def test_a_pod_that_tolerates_for_ever_stays(evictor):
    evictor.pod(0, toleration("a"))
    assert evictor.node(1, "a") == []
    assert evictor.due_s is None


def test_a_pod_that_tolerates_for_no_time_goes_at_once(evictor):
    evictor.pod(0, toleration("a", 0))
    assert is_eviction(evictor.node(1, "a"))


def test_taints_of_other_effects_are_no_reason(evictor):
    evictor.pod(0)
    assert evictor.node(1, "a", effect="NoSchedule") == []


def test_a_pod_that_comes_to_a_tainted_node_is_weighed_when_it_comes(evictor):
    evictor.node(0, "a")
    assert evictor.pod(5, node="") == []
    assert is_eviction(evictor.pod(6))


def test_what_was_loaded_is_weighed_in_any_order(evictor, given):
    pod, node = given.pod(), given.node(taints=taints("a"))
    assert is_eviction(evictor.controller.handle(ObjectsLoaded([pod, node]), 0))


def test_a_change_of_anything_else_is_not_looked_at(evictor):
    evictor.node(0, "a")
    evictor.pod(1, toleration("a", 30))
    assert evictor.pod(5, toleration("a", 30), status={"phase": "Failed"}) == []
    assert evictor.node(6, "a") == []
    assert evictor.due_s == 31


# --- timers ------------------------------------------------------------------------------------


def test_taints_that_go_cancel_with_an_event(evictor):
    evictor.pod(0, toleration("a", 30))
    evictor.node(1, "a")
    assert evictor.node(5) == [CANCELLING]
    assert evictor.fire(31) == []
    assert evictor.records[-1] == EvictionCancelled(REF, seconds(5))


def test_without_a_timer_nothing_is_cancelled(evictor):
    evictor.pod(0, toleration("a"))
    evictor.node(1, "a")
    assert evictor.node(5) == []


def test_a_timer_is_neither_shortened_nor_put_off(evictor):
    evictor.pod(0, toleration("a", 100), toleration("b", 30))
    evictor.node(1, "a")
    evictor.node(5, "a", "b")
    evictor.node(6, "b")  # what justified it is gone, and it stays all the same
    evictor.pod(7, toleration("a", 100), toleration("b", 0))
    evictor.node(8, "b", timeAdded="2026-01-01T00:00:00Z")
    assert evictor.due_s == 101


def test_a_timer_of_this_very_instant_is_set_anew(evictor):
    evictor.pod(0, toleration("a", 100), toleration("b", 30))
    evictor.node(1, "a")
    assert evictor.node(1, "a", "b") == []
    assert evictor.fire(31) != []
    assert evictor.fire(101) == []


def test_what_is_not_tolerated_any_more_replaces_the_timer(evictor):
    """The pending eviction is cancelled, with its event, before the pod goes."""
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    commands = evictor.node(5, "a", "b")
    assert commands[0] == CANCELLING
    assert is_eviction(commands[1:])
    assert evictor.fire(101) == []


def test_a_toleration_without_end_cancels(evictor):
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    assert evictor.pod(5, toleration("a")) == [CANCELLING]


def test_a_pod_that_is_gone_cancels(evictor, given):
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    assert evictor.gone(5, given.pod()) == [CANCELLING]
    assert evictor.fire(101) == []


def test_a_pod_of_the_same_name_has_its_own_time(evictor):
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    again = evictor.pod(5, toleration("a", 100), meta={"uid": "other"})
    assert again == [CANCELLING]
    assert evictor.fire(101) == []
    assert evictor.due_s == 105


def test_a_node_that_is_gone_cancels_nothing_until_it_is_back(evictor, given):
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    assert evictor.gone(5, given.node()) == []
    assert evictor.due_s == 101
    assert evictor.node(9) == [CANCELLING]


def test_a_pod_on_a_node_that_is_gone_goes_when_its_time_is_over(evictor, given):
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    evictor.gone(5, given.node())
    assert evictor.fire(101)[-1] == DeleteObject(REF, None, "taint")


# --- doing it ----------------------------------------------------------------------------------


def test_a_terminating_pod_is_evicted_again_and_reported_once(evictor, given):
    evictor.pod(0)
    delete = evictor.node(1, "a")[-1]
    evictor.controller.handle(CommandSucceeded(delete), seconds(1))
    marked = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    marked["conditions"][0] |= {"reason": DISRUPTED.reason, "message": DISRUPTED.message}
    evictor.pod(2, meta={"deletionTimestamp": given.stamp(30)}, status=marked)
    again = evictor.node(3, "a", "b")
    assert [type(command) for command in again] == [RecordEvent, DeleteObject]
    evictor.controller.handle(CommandSucceeded(again[-1]), seconds(3))
    evicted = [record for record in evictor.records if isinstance(record, PodEvicted)]
    assert evicted == [PodEvicted(REF, "n1", "taint a:NoExecute", seconds(1))]


def test_what_timed_an_eviction_is_reported(evictor):
    evictor.pod(0, toleration("a", 30), toleration("b"))
    evictor.node(1, "a", "b", value="v")
    assert evictor.records == [
        EvictionTimed(REF, "n1", ("a=v:NoExecute", "b=v:NoExecute"), 30, seconds(31), seconds(1))
    ]


def test_a_refusal_is_tried_again_five_times_in_all(evictor):
    evictor.pod(0)
    delete, now = evictor.node(1, "a")[-1], seconds(1)
    for _ in range(4):
        evictor.controller.handle(CommandFailed(delete, FailureReason.INTERNAL_ERROR, ""), now)
        now += seconds(0.01)
        assert evictor.controller.next_deadline() == now
        assert evictor.controller.handle_deadline(now) == [delete]
    evictor.controller.handle(CommandFailed(delete, FailureReason.INTERNAL_ERROR, ""), now)
    assert evictor.due_s is None
    assert evictor.records == []


@pytest.mark.parametrize("reason", [FailureReason.NOT_FOUND, FailureReason.CONFLICT])
def test_a_pod_that_is_gone_need_not_be_deleted(evictor, reason):
    evictor.pod(0)
    delete = evictor.node(1, "a")[-1]
    evictor.controller.handle(CommandFailed(delete, reason, ""), seconds(1))
    assert evictor.due_s is None


def test_a_refused_deletion_of_a_pod_that_goes_meanwhile_is_not_retried(evictor, given):
    evictor.pod(0)
    delete = evictor.node(1, "a")[-1]
    evictor.controller.handle(CommandFailed(delete, FailureReason.INTERNAL_ERROR, ""), seconds(1))
    evictor.controller.handle(CommandSucceeded(delete), seconds(1))
    evictor.gone(1, given.pod())
    assert evictor.fire(2) == []
    assert evictor.due_s is None


def test_deletions_and_outcomes_of_other_objects_change_nothing(evictor, given):
    """A timer goes on."""
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    assert evictor.gone(2, given.lease()) == []
    bind = CommandSucceeded(PatchStatus(REF, {"phase": "Failed"}))
    assert evictor.controller.handle(bind, seconds(3)) == []
    assert evictor.due_s == 101


def test_deletions_of_others_are_theirs(evictor):
    evictor.pod(0)
    evictor.node(1, "a")
    evictor.controller.handle(CommandSucceeded(DeleteObject(REF, 0, "other")), seconds(1))
    assert evictor.records == []


@pytest.mark.parametrize("is_evicted", [True, False])
def test_a_failed_deletion_by_another_controller_is_not_retried(evictor, is_evicted):
    evictor.pod(0)
    if is_evicted:
        evictor.node(1, "a")
    failed = CommandFailed(DeleteObject(REF, 0, "other"), FailureReason.INTERNAL_ERROR, "")
    assert evictor.controller.handle(failed, seconds(1)) == []
    assert evictor.due_s is None


# --- the way of 1.16 ---------------------------------------------------------------------------


@pytest.fixture
def old(given):
    return Evictor(given, V1_16)


def test_1_16_sets_no_condition_and_goes_by_another_name(old):
    old.pod(0)
    event, delete = old.node(1, "a")
    assert event.reporting_controller == "taint-controller"
    assert isinstance(delete, DeleteObject)


def test_1_16_lets_a_timer_run_though_the_pod_would_stay_for_ever(old):
    old.pod(0, toleration("a", 100))
    old.node(1, "a")
    assert old.pod(5, toleration("a")) == []
    assert old.due_s == 101


def test_1_16_times_no_second_eviction(old):
    old.pod(0, toleration("a", 10), toleration("b", 10))
    old.node(1, "a")
    old.fire(11)
    old.node(12, "b")
    assert old.due_s is None
    old.node(13)  # forgets it, because no taint is left
    old.node(14, "b")
    assert old.due_s == 24


def test_tolerations_compare_by_value():
    """Views are decoded anew each time; equal ones are no change."""
    assert Toleration(key="a", toleration_seconds=1) == Toleration(key="a", toleration_seconds=1)
