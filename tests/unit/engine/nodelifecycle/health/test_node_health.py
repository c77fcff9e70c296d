"""The last heartbeat of a node, and the conditions that follow from it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.lease import Renewals
from fairlead.engine.core.command import Condition
from fairlead.engine.core.instant import seconds
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.health.node_health import (
    NodeHealth,
    caught_up,
    examine,
    next_examination,
)
from fairlead.engine.nodelifecycle.period import Period

CONFIG = NodeLifecycleConfig()
STOPPED = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
NEVER = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")


@pytest.fixture
def at(given):
    return given.at


@pytest.fixture
def passes(at):
    return Period(at(0), seconds(5))


@pytest.fixture
def known(given, at):
    """Return a node that was ready in the pass at 0, and its health."""
    node = given.node()
    return node, examine(None, node, None, at(0), CONFIG).health


# --- heartbeats --------------------------------------------------------------------------------


def test_the_first_pass_counts_as_a_heartbeat_of_every_node(given, at):
    found = examine(None, given.node(heartbeat_s=-10_000), None, at(5), CONFIG)
    assert (found.health.probe, found.observed, found.unknown_conditions) == (at(5), "True", ())


def test_the_probe_time_is_the_pass_that_found_the_heartbeat(given, at, known):
    _, health = known
    found = examine(health, given.node(heartbeat_s=1), None, at(5), CONFIG)
    assert found.health.probe == at(5)


def test_an_unchanged_heartbeat_does_not_change_the_probe_time(at, known):
    node, health = known
    assert examine(health, node, None, at(5), CONFIG).health == health


def test_only_a_later_lease_renewal_changes_the_probe_time(at, known):
    node, health = known
    health = replace(health, lease=at(-3))
    assert examine(health, node, Renewals(at(2)), at(5), CONFIG).health.probe == at(5)
    assert examine(health, node, Renewals(at(-3)), at(5), CONFIG).health.probe == at(0)


def test_after_a_changed_heartbeat_an_old_renewal_counts_once_more(given, at, known):
    """Upstream drops the lease together with the condition that it replaces."""
    _, health = known
    node, renewals = given.node(heartbeat_s=1), Renewals(at(-3))
    once = examine(replace(health, lease=at(-3)), node, renewals, at(5), CONFIG).health
    assert (once.probe, once.lease) == (at(5), None)
    twice = examine(once, node, renewals, at(10), CONFIG).health
    assert (twice.probe, twice.lease) == (at(10), at(-3))


def test_a_transition_counts_from_the_pass_that_found_it(given, at, known):
    """While the kubelet posts the same status, ready_since is unchanged."""
    _, health = known
    steady = examine(health, given.node(heartbeat_s=1), None, at(5), CONFIG).health
    assert (steady.probe, steady.ready_since) == (at(5), at(0))
    changed = given.node(ready="False", heartbeat_s=6, moved_s=6)
    assert examine(steady, changed, None, at(10), CONFIG).health.ready_since == at(10)


# --- silence -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("after_s", "is_silent"), [(45, False), (50, False), (50.000001, True)])
def test_a_node_is_unknown_only_after_the_end_of_the_grace_period(at, known, after_s, is_silent):
    node, health = known
    found = examine(health, node, None, at(after_s), CONFIG)
    assert (found.current, bool(found.unknown_conditions)) == (
        ("Unknown", True) if is_silent else ("True", False)
    )


def test_ready_and_all_pressure_conditions_become_unknown_or_are_added(given, at, known):
    node, health = known
    found = examine(health, node, None, at(60), CONFIG)
    created = node.metadata.creation_timestamp
    assert found.unknown_conditions == (
        Condition("Ready", "Unknown", *STOPPED),
        Condition("MemoryPressure", "Unknown", *STOPPED),
        Condition("DiskPressure", "Unknown", *NEVER, created),
        Condition("PIDPressure", "Unknown", *NEVER, created),
    )
    after = found.health_if_unknown
    assert after is not None
    assert (after.ready, after.probe, after.ready_since) == ("Unknown", at(0), at(60))
    assert found.health == health


def test_conditions_of_an_unknown_node_are_not_changed_again(given, at, known):
    _, health = known
    found = examine(health, given.node(ready="Unknown"), None, at(60), CONFIG)
    assert (found.current, found.unknown_conditions, found.health_if_unknown) == (
        "Unknown",
        (),
        None,
    )


def test_the_startup_grace_period_of_a_node_begins_at_its_creation(given, at):
    node = given.node(ready=None)
    found = examine(None, node, None, at(-3_600 + 60), CONFIG)
    assert (found.observed, found.current) == (None, None)
    found = examine(None, node, None, at(-3_600 + 61), CONFIG)
    assert (found.observed, found.current) == (None, "Unknown")
    assert {one.reason for one in found.unknown_conditions} == {NEVER[0]}
    assert found.health_if_unknown is not None
    assert found.health_if_unknown.heartbeat == node.metadata.creation_timestamp


def test_lease_renewals_suffice_without_conditions(given, at):
    renewals = Renewals(at(0), seconds(10))
    found = examine(NodeHealth(at(0), at(0)), given.node(ready=None), renewals, at(500), CONFIG)
    assert found.current is None


def test_a_node_recreated_without_conditions_keeps_its_probe_time(given, at, known):
    _, health = known
    found = examine(health, given.node(ready=None), None, at(65), CONFIG)
    assert (found.health.probe, found.health.ready) == (at(0), "")
    assert found.current == "Unknown"


# --- passes that are left out ------------------------------------------------------------------


def test_regular_renewals_are_credited_to_the_skipped_passes_after_them(at, passes):
    health = NodeHealth(at(0), at(0), "True", lease=at(-3))
    found = caught_up(health, Renewals(at(-3), seconds(10)), at(30), passes)
    assert (found.lease, found.probe) == (at(27), at(30))
    found = caught_up(health, Renewals(at(-3), seconds(10)), at(35), passes)
    assert (found.lease, found.probe) == (at(27), at(30))


@pytest.mark.parametrize("health", [None, NodeHealth(5, 5)], ids=["unseen", "without a lease"])
def test_health_without_a_lease_is_not_caught_up(health, at, passes):
    assert caught_up(health, Renewals(at(-3), seconds(10)), at(30), passes) is health


def test_a_silent_node_is_examined_after_its_grace_period(at, passes, known):
    node, health = known
    assert next_examination(health, node, None, passes, CONFIG) == at(55)
    config = NodeLifecycleConfig(node_monitor_grace_period=seconds(47))
    assert next_examination(health, node, Renewals(at(-3)), passes, config) == at(50)


def test_a_node_that_renews_its_lease_in_time_is_not_examined(at, passes, known):
    node, health = known
    regular = Renewals(at(-3), seconds(10))
    assert next_examination(health, node, regular, passes, CONFIG) is None
    seldom = Renewals(at(-3), seconds(46))
    assert next_examination(health, node, seldom, passes, CONFIG) == at(55)
    later = Renewals(at(3_000), seconds(10))
    assert next_examination(health, node, later, passes, CONFIG) == at(55)


def test_an_unknown_node_is_not_examined(given, passes, known):
    _, health = known
    assert next_examination(health, given.node(ready="Unknown"), None, passes, CONFIG) is None
