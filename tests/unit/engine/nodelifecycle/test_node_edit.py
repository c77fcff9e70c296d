"""Writes to a node are computed from its newest version."""

from __future__ import annotations

import pytest

from fairlead.api.nodes.readiness import ready_condition
from fairlead.engine.core.command import Condition, PatchObject, PatchStatus
from fairlead.engine.nodelifecycle.health.node_health import NodeHealth
from fairlead.engine.nodelifecycle.node_edit import (
    AddNoSchedule,
    CopyLabels,
    MarkUnknown,
    RemoveNoSchedule,
    TaintNoExecute,
    UntaintNoExecute,
)

UNREACHABLE = "node.kubernetes.io/unreachable"
ADMIN = {"key": "admin", "effect": "NoExecute", "value": "v"}


def written(edit, node, now):
    command = edit.command(node, now)
    assert isinstance(command, PatchObject)
    return command.patch


@pytest.fixture
def now(given):
    return given.at(7.5)


def taint(given, after_s, effect="NoExecute", **others):
    return {"key": UNREACHABLE, "effect": effect, "timeAdded": given.stamp(after_s)} | others


def test_a_taint_is_appended_with_its_time(given, now):
    node = given.node(taints=[ADMIN])
    patch = written(TaintNoExecute(UNREACHABLE, is_rate_limited=True), node, now)
    assert patch == {"spec": {"taints": [ADMIN, taint(given, 7)]}}


def test_an_existing_taint_gets_a_new_time_at_the_same_position(given, now):
    node = given.node(taints=[taint(given, 1, value="x"), ADMIN])
    patch = written(TaintNoExecute(UNREACHABLE, is_rate_limited=True), node, now)
    assert patch == {"spec": {"taints": [taint(given, 7), ADMIN]}}


def test_a_taint_of_the_same_second_is_not_written_again(given, now):
    node = given.node(taints=[taint(given, 7)])
    assert TaintNoExecute(UNREACHABLE, is_rate_limited=True).command(node, now) is None


def test_a_taint_is_removed_by_key_and_effect(given, now):
    twin = taint(given, 1, effect="NoSchedule")
    node = given.node(taints=[taint(given, 1), twin])
    assert written(UntaintNoExecute(UNREACHABLE), node, now) == {"spec": {"taints": [twin]}}


def test_the_removal_of_the_last_taint_removes_the_list(given, now):
    node = given.node(taints=[taint(given, 1)])
    assert written(UntaintNoExecute(UNREACHABLE), node, now) == {"spec": {"taints": None}}


def test_a_missing_taint_is_not_removed(given, now):
    assert UntaintNoExecute(UNREACHABLE).command(given.node(), now) is None


def test_a_taint_write_has_the_resource_version_of_the_node(given, now):
    form = given.node_json() | {"metadata": {"name": "n1", "resourceVersion": "7"}}
    node = given.node()
    node = type(node)(
        metadata=type(node.metadata)(name="n1", resource_version="7"),
        spec=node.spec,
        status=node.status,
    )
    patch = written(TaintNoExecute(UNREACHABLE, is_rate_limited=True), node, now)
    assert patch["metadata"] == {"resourceVersion": form["metadata"]["resourceVersion"]}


def test_required_taints_are_added_and_stale_ones_removed(given, now):
    stale = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    node = given.node(ready="Unknown", taints=[stale])
    added = written(AddNoSchedule(), node, now)["spec"]["taints"]
    assert added == [stale, taint(given, 7, effect="NoSchedule")]
    assert written(RemoveNoSchedule(), node, now)["spec"]["taints"] is None


def test_a_correct_node_is_not_written(given, now):
    assert AddNoSchedule().command(given.node(), now) is None
    assert RemoveNoSchedule().command(given.node(), now) is None
    assert CopyLabels((("a", "b"),)).command(given.node(), now) is None


def test_labels_are_copied(given, now):
    node = given.node(labels={"a": "1"})
    assert written(CopyLabels((("a", "b"),)), node, now) == {"metadata": {"labels": {"b": "1"}}}


def test_conditions_become_unknown_unless_there_was_a_newer_heartbeat(given, now):
    node, health = given.node(), NodeHealth(0, 0)
    conditions = (Condition("Ready", "Unknown"),)
    edit = MarkUnknown(conditions, ready_condition(node), health)
    command = edit.command(node, now)
    assert isinstance(command, PatchStatus)
    assert command.conditions == conditions
    assert edit.command(given.node(heartbeat_s=1), now) is None
