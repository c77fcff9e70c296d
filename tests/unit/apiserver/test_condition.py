"""One condition per type; a transition is a change of status."""

from __future__ import annotations

from fairlead.apiserver.condition import with_conditions

READY = {"type": "Ready", "status": "True", "lastTransitionTime": "t0"}
OTHER = {"type": "Other", "status": "False", "reason": "Why", "message": "m", "probe": 1}


def test_a_changed_status_is_a_transition():
    assert with_conditions([READY, OTHER], [{"type": "Ready", "status": "False"}], "t1") == [
        {"type": "Ready", "status": "False", "lastTransitionTime": "t1"},
        OTHER,
    ]


def test_a_changed_reason_is_not_a_transition():
    change = {"type": "Ready", "status": "True", "reason": "R", "message": ""}
    assert with_conditions([READY], [change], "t1") == [{**READY, "reason": "R"}]


def test_reason_and_message_are_replaced_and_the_rest_is_kept():
    change = {"type": "Other", "status": "True"}
    assert with_conditions([OTHER], [change], "t1") == [
        {"type": "Other", "status": "True", "probe": 1, "lastTransitionTime": "t1"}
    ]


def test_new_conditions_are_appended_in_their_order():
    changes = [{"type": "B", "status": "True"}, {"type": "A", "status": "True"}]
    merged = with_conditions([READY], changes, "t1")
    assert [condition["type"] for condition in merged] == ["Ready", "B", "A"]


def test_nothing_is_mutated():
    conditions = [dict(READY)]
    with_conditions(conditions, [{"type": "Ready", "status": "False"}], "t1")
    assert conditions == [READY]
