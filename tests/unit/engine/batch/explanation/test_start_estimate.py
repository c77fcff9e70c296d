"""When waiting groups will start, if annotations state how long pods run."""

from __future__ import annotations

import pytest

from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.engine.batch.defect import FIXED, UPSTREAM, BatchDefects, Defect
from fairlead.engine.batch.explanation.explanation import (
    Obstacle,
    batch_overview,
    explain_group,
)
from fairlead.engine.core.instant import seconds, to_seconds
from fairlead.testing.batch_builders import make_gang, make_group, make_queue, make_task
from fairlead.testing.builders import make_node
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device_class,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)


def lasting(duration):
    return {"annotations": {RUN_DURATION: duration}}


def starts(harness, now_s=0.0, groups_max=10):
    """Return when the waiting groups start, in seconds, in the order of the explanation."""
    before = harness.dump()
    found = batch_overview(harness.composition, harness.cluster, seconds(now_s), groups_max)
    after = harness.dump()
    assert (before["tasks"], before["requested"]) == (after["tasks"], after["requested"])
    return {
        one.group.removeprefix("default/"): one.starts_at and to_seconds(one.starts_at)
        for one in found.waiting
    }


def test_a_group_starts_when_enough_pods_have_ended(harness):
    harness.put(make_node("n1"), make_gang("short", 2, node="n1", **lasting("10s")))
    harness.put(make_gang("long", 2, node="n1", **lasting("60s")))
    harness.put(make_gang("a", 2), make_gang("b", 3))
    assert starts(harness, 1) == {"a": 11.0, "b": None}


def test_an_earlier_group_ends_before_the_next_group_starts(harness):
    harness.put(make_node("n1"), make_gang("now", 4, node="n1", **lasting("10s")))
    for name in "abc":
        harness.put(make_gang(name, 3, **lasting("30s")))
    assert starts(harness, 1) == {"a": 11.0, "b": 41.0, "c": 71.0}


def test_a_group_that_never_fits_does_not_delay_other_groups(harness):
    harness.put(make_node("n1"), make_gang("now", 4, node="n1", **lasting("10s")))
    harness.put(make_gang("a", 9), make_gang("b", 4))
    assert starts(harness, 1) == {"b": 11.0, "a": None}


def test_pods_without_a_run_duration_never_end(harness):
    harness.put(make_node("n1"), make_gang("now", 4, node="n1"), make_gang("a", 4))
    assert starts(harness) == {"a": None}


def test_active_deadline_seconds_count_as_run_duration(harness):
    held = make_gang("now", 4, node="n1", spec={"activeDeadlineSeconds": 20})
    assert starts(harness.put(make_node("n1"), held, make_gang("a", 4)), 1) == {"a": 21.0}


def test_a_queue_with_its_share_waits_until_its_own_pods_end(harness):
    """Queue a has its half, and gets no more while queue b has pending tasks."""
    harness.put(make_node("n1"), make_queue("a"), make_queue("b"))
    harness.put(make_gang("a1", 2, node="n1", queue="a", **lasting("50s")))
    harness.put(make_gang("b1", 2, node="n1", queue="b", **lasting("10s")))
    harness.put(make_gang("a2", 2, queue="a"), make_gang("b2", 2, queue="b"))
    assert starts(harness, 1) == {"b2": 11.0, "a2": 51.0}


def test_idle_resources_of_two_nodes_do_not_fit_one_task(harness):
    """The gang starts when one of the nodes has enough."""
    for name, duration in (("n1", "10s"), ("n2", "60s")):
        harness.put(make_node(name), make_gang(f"on-{name}", 2, node=name, **lasting(duration)))
    harness.put(make_gang("a", 1, cpu=3))
    assert starts(harness, 1) == {"a": 11.0}


def test_without_shares_a_queue_uses_all_idle_resources(make_harness):
    """No plugin limits the queues."""
    text = """\
actions: allocate
rules: fairlead
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
"""
    harness = make_harness(text).put(make_node("n1"), make_queue("a"), make_queue("b"))
    harness.put(make_gang("now", 4, node="n1", queue="b", **lasting("10s")))
    harness.put(make_gang("a1", 4, queue="a", **lasting("10s")), make_gang("b1", 1, queue="b"))
    assert starts(harness, 1) == {"a1": 11.0, "b1": 21.0}


@pytest.mark.parametrize(
    ("defects", "start"), [(FIXED, 11.0), (FIXED.without([Defect.OVERSHOOT]), None)]
)
def test_a_queue_exceeds_its_share_only_with_overshoot(make_harness, defects, start):
    """Each queue deserves half of the node, and the gang of queue a needs three quarters."""
    harness = make_harness(defects=defects).put(make_node("n1"), make_queue("a"), make_queue("b"))
    harness.put(make_gang("now", 4, node="n1", queue="b", **lasting("10s")))
    harness.put(make_gang("a", 3, queue="a"), make_gang("b", 4, queue="b"))
    assert starts(harness, 1) == {"a": start, "b": None}


def test_a_queue_of_kube_batch_exceeds_its_share(make_harness):
    kept = BatchDefects(FIXED.present | {Defect.OVERSHOOT})
    harness = make_harness("kube-batch", defects=kept).put(make_node("n1"), make_queue("default"))
    harness.put(make_queue("b"), make_gang("b", 5, queue="b"))
    harness.put(make_gang("now", 1, node="n1", **lasting("10s")), make_gang("a", 4))
    assert starts(harness, 1) == {"a": 11.0, "b": None}
    assert Defect.OVERSHOOT in UPSTREAM.present


def test_the_overview_explains_at_most_groups_max_groups(harness):
    harness.put(make_node("n1"), make_gang("now", 4, node="n1", **lasting("10s")))
    for name in "abc":
        harness.put(make_gang(name, 4))
    assert list(starts(harness, 1, groups_max=2)) == ["a", "b"]


@pytest.mark.parametrize(
    ("lasts", "start"),
    [(lasting("30s"), seconds(31)), ({}, None)],
    ids=["the end is known", "the end is unknown"],
)
def test_a_group_for_which_earlier_groups_leave_no_room_waits_for_them(harness, lasts, start):
    """Each of the groups fits alone."""
    harness.put(make_node("n1"), make_gang("a", 3, **lasts), make_gang("b", 3))
    found = batch_overview(harness.composition, harness.cluster, seconds(1), 10).waiting
    assert [(one.obstacle, one.starts_at) for one in found] == [
        (Obstacle.NEXT_SESSION, seconds(1)),
        (Obstacle.OTHERS_FIRST, start),
    ]


def test_the_start_is_unknown_if_a_group_lacks_no_requested_resources(make_harness):
    """A pod of another scheduler uses the only device; the group waits for a device."""
    harness = make_harness("fairlead").put(make_node("n1"), make_queue("default"))
    status = make_claim_status("n1", "gpu-0", reserved_for=["other"])
    used, wanted = make_resource_claim("used", status=status), make_resource_claim("wanted")
    harness.put(make_device_class(), make_slice("n1"), used, wanted)
    task = make_task("a-0", "a", spec=make_pod_resource_claims("wanted"))
    harness.put(make_group("a", 1), task, make_gang("b", 1, cpu=9))
    alone = explain_group(harness.composition, harness.cluster, "default/a", 0)
    found = batch_overview(harness.composition, harness.cluster, 0, 10).waiting
    for one in (alone, next(one for one in found if one.group == "default/a")):
        assert (one.obstacle, one.starts_at) == (Obstacle.NO_NODE, None)
        assert one.lacks_other
        assert not one.is_too_large
        assert one.summary.endswith("1 cannot allocate all claims.")


def test_a_waiting_group_that_nothing_blocks_is_not_said_to_run(harness):
    harness.put(make_node("n1"), make_gang("a", 2))
    (found,) = batch_overview(harness.composition, harness.cluster, 0, 10).waiting
    assert str(found.obstacle) == "nothing blocks it: it starts with the next session"


@pytest.mark.parametrize(
    ("has_changed", "obstacle", "start"),
    [(True, Obstacle.NEXT_SESSION, 0), (False, Obstacle.OTHERS_FIRST, None)],
)
def test_a_group_that_the_last_session_has_not_started_waits_for_others(
    make_harness, has_changed, obstacle, start
):
    """With kube-batch's defects, gang a takes the room in each session but never starts."""
    harness = make_harness("kube-batch", defects=UPSTREAM).put(make_queue("default"))
    harness.put(make_node("n1"), make_gang("a", 9), make_gang("b", 4))
    assert harness.run(0).bound == {}
    found = batch_overview(
        harness.composition, harness.cluster, 0, 10, has_changed=has_changed
    ).waiting
    assert ("default/b", obstacle, start) in [
        (one.group, one.obstacle, one.starts_at) for one in found
    ]


def test_each_waiting_group_has_its_obstacle(harness):
    harness.put(make_node("n1"), make_gang("now", 3, node="n1"), make_gang("a", 2))
    (found,) = batch_overview(harness.composition, harness.cluster, 0, 10).waiting
    assert (found.obstacle, found.placeable) == (Obstacle.NO_NODE, 1)
