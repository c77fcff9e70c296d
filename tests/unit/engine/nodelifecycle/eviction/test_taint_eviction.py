"""The eviction of pods from nodes with NoExecute taints that the pods do not tolerate."""

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
    """The controller, which receives one change at a time; instants are seconds."""

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


def test_a_pod_without_toleration_is_deleted_at_once(evictor):
    """First the event, then the condition, then the deletion with the pod's grace period."""
    evictor.pod(0)
    note = "Marking for deletion Pod default/p1"
    assert evictor.node(1, "a") == [
        RecordEvent(REF, "Normal", "TaintManagerEviction", "", note, "taint-eviction-controller"),
        PatchStatus(REF, conditions=(DISRUPTED,)),
        DeleteObject(REF, None, "taint a:NoExecute"),
    ]


def test_a_pod_is_deleted_after_its_toleration_seconds(evictor):
    evictor.pod(0, toleration("a", 30))
    assert evictor.node(1, "a") == []
    assert evictor.due_s == 31
    assert is_eviction(evictor.fire(31))
    assert evictor.due_s is None


def test_a_pod_with_an_unlimited_toleration_is_not_deleted(evictor):
    evictor.pod(0, toleration("a"))
    assert evictor.node(1, "a") == []
    assert evictor.due_s is None


def test_a_pod_with_zero_toleration_seconds_is_deleted_at_once(evictor):
    evictor.pod(0, toleration("a", 0))
    assert is_eviction(evictor.node(1, "a"))


def test_taints_of_other_effects_evict_no_pods(evictor):
    evictor.pod(0)
    assert evictor.node(1, "a", effect="NoSchedule") == []


def test_a_pod_that_is_bound_to_a_tainted_node_is_checked_at_once(evictor):
    evictor.node(0, "a")
    assert evictor.pod(5, node="") == []
    assert is_eviction(evictor.pod(6))


def test_loaded_pods_and_nodes_are_checked_in_any_order(evictor, given):
    pod, node = given.pod(), given.node(taints=taints("a"))
    assert is_eviction(evictor.controller.handle(ObjectsLoaded([pod, node]), 0))


def test_a_change_of_other_fields_causes_no_check(evictor):
    evictor.node(0, "a")
    evictor.pod(1, toleration("a", 30))
    assert evictor.pod(5, toleration("a", 30), status={"phase": "Failed"}) == []
    assert evictor.node(6, "a") == []
    assert evictor.due_s == 31


# --- timers ------------------------------------------------------------------------------------


def test_removed_taints_cancel_the_eviction_with_an_event(evictor):
    evictor.pod(0, toleration("a", 30))
    evictor.node(1, "a")
    assert evictor.node(5) == [CANCELLING]
    assert evictor.fire(31) == []
    assert evictor.records[-1] == EvictionCancelled(REF, seconds(5))


def test_without_a_timer_nothing_is_cancelled(evictor):
    evictor.pod(0, toleration("a"))
    evictor.node(1, "a")
    assert evictor.node(5) == []


def test_a_timer_is_neither_shortened_nor_extended(evictor):
    evictor.pod(0, toleration("a", 100), toleration("b", 30))
    evictor.node(1, "a")
    evictor.node(5, "a", "b")
    evictor.node(6, "b")  # the taint that caused the timer is gone, but the timer stays
    evictor.pod(7, toleration("a", 100), toleration("b", 0))
    evictor.node(8, "b", timeAdded="2026-01-01T00:00:00Z")
    assert evictor.due_s == 101


def test_a_timer_that_is_due_now_is_set_again(evictor):
    evictor.pod(0, toleration("a", 100), toleration("b", 30))
    evictor.node(1, "a")
    assert evictor.node(1, "a", "b") == []
    assert evictor.fire(31) != []
    assert evictor.fire(101) == []


def test_a_taint_that_is_not_tolerated_evicts_before_the_timer(evictor):
    """The pending eviction is cancelled, with its event, before the pod goes."""
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    commands = evictor.node(5, "a", "b")
    assert commands[0] == CANCELLING
    assert is_eviction(commands[1:])
    assert evictor.fire(101) == []


def test_an_unlimited_toleration_cancels_the_eviction(evictor):
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    assert evictor.pod(5, toleration("a")) == [CANCELLING]


def test_the_deletion_of_the_pod_cancels_the_eviction(evictor, given):
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    assert evictor.gone(5, given.pod()) == [CANCELLING]
    assert evictor.fire(101) == []


def test_a_recreated_pod_has_its_own_timer(evictor):
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    again = evictor.pod(5, toleration("a", 100), meta={"uid": "other"})
    assert again == [CANCELLING]
    assert evictor.fire(101) == []
    assert evictor.due_s == 105


def test_a_deleted_node_cancels_no_eviction_until_it_is_created_again(evictor, given):
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    assert evictor.gone(5, given.node()) == []
    assert evictor.due_s == 101
    assert evictor.node(9) == [CANCELLING]


def test_the_timer_of_a_pod_continues_after_its_node_was_deleted(evictor, given):
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


def test_only_the_taints_that_cause_an_eviction_are_reported(evictor):
    """The pod tolerates b without a limit, as pods on servers of RKE2 tolerate their taint."""
    evictor.pod(0, toleration("a", 30), toleration("b"))
    evictor.node(1, "a", "b", value="v")
    assert evictor.records == [
        EvictionTimed(REF, "n1", ("a=v:NoExecute",), 30, seconds(31), seconds(1))
    ]
    assert evictor.fire(31)[-1] == DeleteObject(REF, None, "taint a=v:NoExecute")


def test_a_refused_deletion_is_tried_five_times_in_total(evictor):
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
def test_no_deletion_is_sent_for_a_deleted_pod(evictor, reason):
    evictor.pod(0)
    delete = evictor.node(1, "a")[-1]
    evictor.controller.handle(CommandFailed(delete, reason, ""), seconds(1))
    assert evictor.due_s is None


def test_a_refused_deletion_of_a_deleted_pod_is_not_retried(evictor, given):
    evictor.pod(0)
    delete = evictor.node(1, "a")[-1]
    evictor.controller.handle(CommandFailed(delete, FailureReason.INTERNAL_ERROR, ""), seconds(1))
    evictor.controller.handle(CommandSucceeded(delete), seconds(1))
    evictor.gone(1, given.pod())
    assert evictor.fire(2) == []
    assert evictor.due_s is None


def test_deletions_and_outcomes_of_other_objects_change_nothing(evictor, given):
    """The timer continues."""
    evictor.pod(0, toleration("a", 100))
    evictor.node(1, "a")
    assert evictor.gone(2, given.lease()) == []
    bind = CommandSucceeded(PatchStatus(REF, {"phase": "Failed"}))
    assert evictor.controller.handle(bind, seconds(3)) == []
    assert evictor.due_s == 101


def test_deletions_by_other_controllers_are_ignored(evictor):
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


def test_1_16_sets_no_condition_and_has_another_component_name(old):
    old.pod(0)
    event, delete = old.node(1, "a")
    assert event.reporting_controller == "taint-controller"
    assert isinstance(delete, DeleteObject)


def test_1_16_does_not_cancel_a_timer_for_an_unlimited_toleration(old):
    old.pod(0, toleration("a", 100))
    old.node(1, "a")
    assert old.pod(5, toleration("a")) == []
    assert old.due_s == 101


def test_1_16_starts_no_second_timer(old):
    old.pod(0, toleration("a", 10), toleration("b", 10))
    old.node(1, "a")
    old.fire(11)
    old.node(12, "b")
    assert old.due_s is None
    old.node(13)  # forgets the node, because no taint is left
    old.node(14, "b")
    assert old.due_s == 24


def test_tolerations_compare_by_value():
    """Equal tolerations are no change, although each decoded pod has new objects."""
    assert Toleration(key="a", toleration_seconds=1) == Toleration(key="a", toleration_seconds=1)
