"""A cluster whose nodes stop sending heartbeats, until they recover.

Passes run at 0, 5, 10, ... s and take no time unless a test says otherwise. Queues are read 50 ms
later and then every 100 ms. The grace period is 40 s. So a node with its last heartbeat at 3 s,
which the pass at 5 s sees, is Unknown in the pass at 50 s.
"""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import NODE, POD
from fairlead.engine.core.command import PatchObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import (
    EvictionTimed,
    NodeMarkedUnknown,
    NodeTainted,
    PodEvicted,
    ZoneAssessed,
)
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, FailureReason
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.profile import V1_16, V1_36
from fairlead.engine.nodelifecycle.zones.zone_state import ZoneState
from fairlead.engine.nodelifecycle.zones.zone_states import EXCLUDE_DISRUPTION

GRACE = seconds(40)


@pytest.fixture
def cluster(given):
    """Builds clusters of `names`; the first letter of a name is the zone. Leases are renewed."""

    def build(*names, pods=(), **options):
        nodes = [given.node_json(name, zone=name[0]) for name in names]
        leases = [given.lease_json(name, every="10s") for name in names]
        options = {"node_monitor_grace_period": GRACE} | options
        return given.Simulation([*nodes, *leases, *pods], **options)

    return build


# --- one node ----------------------------------------------------------------------------------


def test_a_silent_node_becomes_unknown_and_tainted_and_its_pods_not_ready(cluster, given):
    simulation = cluster("a1", "a2", pods=[given.pod_json(node="a1", tolerations=given.tolerate())])
    simulation.at(3, given.stop, "a1")
    simulation.run(49)
    assert (simulation.ready("a1"), simulation.taints("a1")) == ("True", [])
    simulation.run(50)
    assert simulation.ready("a1") == "Unknown"
    assert simulation.condition("Ready", "a1")["reason"] == "NodeStatusUnknown"
    assert simulation.condition("DiskPressure", "a1")["reason"] == "NodeStatusNeverUpdated"
    assert simulation.taints("a1", "NoSchedule") == ["unreachable"]
    assert simulation.taints("a1") == []
    assert simulation.events("NodeNotReady") == [
        (50, "a1", "Node a1 status is now: NodeNotReady"),
        (50, "p1", "Node is not ready"),
    ]
    assert simulation.pod()["status"]["conditions"][0]["status"] == "False"
    simulation.run(50.05)
    assert simulation.taints("a1") == ["unreachable"]
    assert simulation.ready("a2") == "True"


def test_the_next_pass_removes_the_taints_of_a_recovered_node(cluster, given):
    simulation = cluster("a1", "a2")
    simulation.at(3, given.stop, "a1")
    simulation.at(61, given.post, "a1")
    simulation.at(61, given.renew, "a1")
    simulation.run(61)
    assert (simulation.taints("a1"), simulation.taints("a1", "NoSchedule")) == (["unreachable"], [])
    simulation.run(65)
    assert simulation.taints("a1") == []
    simulation.run(3_600)
    assert simulation.ready("a1") == "True"


def test_a_node_that_reports_not_ready_is_tainted_without_an_event(cluster, given):
    simulation = cluster("a1", "a2", pods=[given.pod_json(node="a1", tolerations=given.tolerate())])
    simulation.at(3, given.post, "a1", "False")
    simulation.run(5.05)
    assert simulation.taints("a1") == ["not-ready"]
    assert simulation.taints("a1", "NoSchedule") == ["not-ready"]
    assert simulation.events("NodeNotReady") == []
    assert simulation.pod()["status"]["conditions"][0]["status"] == "True"


def test_the_not_ready_taint_is_replaced_by_unreachable_at_once(cluster, given):
    """The second taint needs no token, and the first one is removed in the same write."""
    simulation = cluster("a1", "a2")
    simulation.at(3, given.post, "a1", "False")
    simulation.at(6, given.stop, "a1")
    simulation.run(54)
    assert simulation.taints("a1") == ["not-ready"]
    simulation.run(55)
    assert simulation.taints("a1") == ["unreachable"]
    assert [record.is_rate_limited for record in simulation.reported(NodeTainted)] == [True, False]


def test_labels_and_no_schedule_taints_are_corrected_at_once(cluster, given):
    simulation = cluster("a1")
    cordoned = given.node_json("a1", spec={"unschedulable": True}, labels={"kubernetes.io/os": "x"})
    simulation.at(3, given.put, cordoned)
    simulation.run(3)
    assert simulation.taints("a1", "NoSchedule") == ["unschedulable"]
    assert simulation.node("a1")["metadata"]["labels"]["beta.kubernetes.io/os"] == "x"
    simulation.at(4, given.put, given.node_json("a1"))
    simulation.run(4)
    assert simulation.taints("a1", "NoSchedule") == []


def test_passes_register_new_nodes_and_remove_deleted_nodes(cluster, given):
    simulation = cluster("a1")
    simulation.at(3, given.put, given.node_json("a2"))
    simulation.at(7, given.delete, NODE, "a2")
    simulation.run(100)
    assert simulation.events("RegisteredNode") == [
        (0, "a1", "Node a1 event: Registered Node a1 in Controller"),
        (5, "a2", "Node a2 event: Registered Node a2 in Controller"),
    ]
    assert simulation.events("RemovingNode") == [
        (10, "a2", "Node a2 event: Removing Node a2 from Controller")
    ]


def test_a_pod_bound_to_a_silent_node_is_marked_not_ready_at_once(cluster, given):
    simulation = cluster("a1", "a2")
    simulation.at(3, given.stop, "a1")
    simulation.at(52, given.put, given.pod_json(node="a1", tolerations=given.tolerate()))
    simulation.run(52)
    assert simulation.pod()["status"]["conditions"][0]["status"] == "False"
    assert (52, "p1", "Node is not ready") in simulation.events()


def test_a_pod_of_a_missing_node_is_marked_after_the_node_is_created(cluster, given):
    """The node is marked Unknown, deleted and created again; the backoff doubles from 5 ms."""
    simulation = cluster("a1", "a2")
    simulation.at(3, given.stop, "a1")
    simulation.at(60, given.delete, NODE, "a1")
    pod = given.pod_json(node="a1", tolerations=given.tolerate())
    simulation.at(61, given.put, pod)
    simulation.at(62, given.put, given.node_json("a1", ready="Unknown"))
    simulation.run(62)
    assert simulation.pod()["status"]["conditions"][0]["status"] == "True"
    simulation.run(61 + 0.005 * 255)
    assert simulation.pod()["status"]["conditions"][0]["status"] == "False"


def test_a_pod_deleted_before_its_node_is_created_is_not_marked(cluster, given):
    """A later pod of that name is marked as soon as it is created."""
    simulation = cluster("a1", "a2")
    simulation.at(3, given.stop, "a1")
    simulation.at(60, given.delete, NODE, "a1")
    pod = given.pod_json(node="a1", tolerations=given.tolerate())
    simulation.at(61, given.put, pod)
    simulation.at(61.1, given.delete, POD, "p1", 0)
    simulation.at(62, given.put, given.node_json("a1", ready="Unknown"))
    simulation.run(70)
    assert simulation.pod() is None
    assert [note for _, name, note in simulation.events() if name == "p1"] == []
    simulation.at(71, given.put, pod)
    simulation.run(71)
    assert simulation.pod()["status"]["conditions"][0]["status"] == "False"


# --- zones ---------------------------------------------------------------------------------------


def dark(cluster, given, *names, quiet=(), **options):
    simulation = cluster(*names, **options)
    for name in quiet:
        simulation.at(3, given.stop, name)
    return simulation


def tainted_at(simulation, start):
    return {
        record.node: (record.at - start) / seconds(1) for record in simulation.reported(NodeTainted)
    }


def test_a_single_failed_zone_is_evicted_at_the_normal_rate(cluster, given):
    zone = [f"a{i}" for i in range(5)]
    simulation = dark(cluster, given, *zone, "b1", quiet=zone)
    simulation.run(3_600)
    assert tainted_at(simulation, given.START) == {
        "a0": 50.05,
        "a1": 60.05,
        "a2": 70.05,
        "a3": 80.05,
        "a4": 90.05,
    }
    assert simulation.controllers[0].zone_states == {
        ":\x00:a": ZoneState.FULL_DISRUPTION,
        ":\x00:b": ZoneState.NORMAL,
    }


def test_a_small_partially_failed_zone_is_not_evicted(cluster, given):
    zone = [f"a{i}" for i in range(5)]
    simulation = dark(cluster, given, *zone, quiet=zone[:4])
    simulation.run(3_600)
    assert tainted_at(simulation, given.START) == {}
    assert simulation.taints("a0", "NoSchedule") == ["unreachable"]


def test_with_all_zones_disrupted_no_pod_is_evicted_and_taints_are_removed(cluster, given):
    simulation = dark(cluster, given, "a1", "b1", quiet=["a1"])
    simulation.at(60, given.stop, "b1")
    simulation.run(60)
    assert simulation.taints("a1") == ["unreachable"]
    simulation.run(105)
    assert (simulation.ready("b1"), simulation.taints("a1"), simulation.taints("b1")) == (
        "Unknown",
        [],
        [],
    )
    simulation.run(3_600)
    assert (simulation.taints("a1"), simulation.taints("b1")) == ([], [])


def test_after_full_disruption_grace_periods_and_token_buckets_start_again(cluster, given):
    simulation = dark(cluster, given, "a1", "b1", "b2", quiet=["a1", "b1", "b2"])
    simulation.at(203, given.post, "b1")
    simulation.run(203)
    assert simulation.reported(NodeTainted) == []
    simulation.run(3_600)
    # The pass at 205 s starts with empty buckets; the one at 210 s takes b1's old lease as new.
    assert tainted_at(simulation, given.START)["a1"] == 215.05
    assert simulation.reported(NodeMarkedUnknown)[-1].at == given.at(255)


def test_each_change_of_a_zone_is_reported_once(cluster, given):
    simulation = dark(cluster, given, "a1", "a2", quiet=["a1"])
    simulation.at(100, given.delete, NODE, "a1")
    simulation.at(100, given.delete, NODE, "a2")
    simulation.run(3_600)
    reported = [
        ((r.at - given.START) / seconds(1), r.state, r.size, r.unready, r.eviction_rate)
        for r in simulation.reported(ZoneAssessed)
    ]
    assert reported == [
        (0, "Normal", 2, 0, 0.1),
        (50, "Normal", 2, 1, 0.1),
        (100, "", 0, 0, 0.0),
    ]


def test_only_changed_zones_are_reported(cluster, given):
    simulation = dark(cluster, given, "a1", "b1", "b2", quiet=["b1"])
    simulation.run(60)
    reported = [(r.zone, r.unready) for r in simulation.reported(ZoneAssessed)]
    assert reported == [(":\x00:a", 0), (":\x00:b", 0), (":\x00:b", 1)]


def test_a_node_whose_ready_condition_is_removed_keeps_its_queue_position(given):
    """The node precedes requeued nodes, and spends tokens until it is Unknown."""
    nodes = [given.node_json(f"a{i}", ready="False") for i in range(3)]
    nodes += [given.node_json(f"b{i}") for i in range(3)]
    leases = [given.lease_json(name, every="10s") for name in ("a0", "a1", "b0", "b1", "b2")]
    simulation = given.Simulation([*nodes, *leases])
    simulation.at(3, given.put, given.node_json("a2", ready=None))
    simulation.run(90)
    assert tainted_at(simulation, given.START) == {"a0": 0.05, "a1": 70.05, "a2": 80.05}


def excluded(given, *statuses):
    """Return a zone of nodes excluded from disruption, and a zone with one other node."""
    label = {EXCLUDE_DISRUPTION: ""}
    nodes = [
        given.node_json(f"x{i}", zone="x", ready=status, labels=label)
        for i, status in enumerate(statuses)
    ]
    names = [node["metadata"]["name"] for node in nodes] + ["a1"]
    leases = [given.lease_json(name, every="10s") for name in names]
    return given.Simulation([*nodes, given.node_json("a1"), *leases])


def test_a_zone_of_excluded_nodes_gets_a_new_queue_in_each_pass(given):
    """With a token and all nodes that are not ready, including tainted ones."""
    simulation = excluded(given, "False", "False")
    simulation.at(7, given.post, "x0")
    simulation.run(11)
    tainted = [(one.node, one.at) for one in simulation.reported(NodeTainted)]
    assert tainted == [("x0", given.at(0.05)), ("x0", given.at(5.05)), ("x1", given.at(10.05))]


def test_ready_excluded_nodes_need_no_passes(given):
    simulation = excluded(given, "True", "True")
    counting = Counting(simulation)
    simulation.run(3_600)
    assert counting.passes <= 2


def test_a_node_that_is_marked_unknown_is_reported(cluster, given):
    simulation = dark(cluster, given, "a1", "a2", quiet=["a1"])
    simulation.run(60)
    assert simulation.reported(NodeMarkedUnknown) == [
        NodeMarkedUnknown("a1", ":\x00:a", "True", given.at(5), given.at(50))
    ]


def test_a_node_that_was_not_ready_becomes_unknown_without_an_event(cluster, given):
    pods = [given.pod_json(node="a1", tolerations=given.tolerate())]
    simulation = cluster("a1", "a2", pods=pods)
    simulation.at(2, given.post, "a1", "False")
    simulation.at(3, given.stop, "a1")
    simulation.run(60)
    assert simulation.ready("a1") == "Unknown"
    assert simulation.events("NodeNotReady") == []


# --- passes --------------------------------------------------------------------------------------


def test_passes_that_take_time_detect_silence_earlier(cluster, given):
    """It is detected after 45 s. If passes take no time, it is detected at 50 s."""
    simulation = dark(cluster, given, "a1", "a2", quiet=["a1"], pass_cost=1_000)
    simulation.run(46)
    assert simulation.ready("a1") == "Unknown"
    assert simulation.reported(NodeMarkedUnknown)[0].at == given.at(45) + 10_000


class Counting:
    """The engine's list of controllers, which counts the work of one of them."""

    def __init__(self, simulation):
        lifecycle = simulation.controllers[0]
        self.passes, monitor = 0, lifecycle.monitor_node_health

        def counted(now):
            self.passes += 1
            return monitor(now)

        lifecycle.monitor_node_health = counted


def test_a_day_without_changes_needs_no_passes(cluster):
    simulation = cluster("a1", "a2", "b1")
    counting = Counting(simulation)
    simulation.run(24 * 3_600)
    assert counting.passes <= 2
    assert simulation.controllers[0].next_deadline() is None


def test_a_node_with_too_rare_lease_renewals_becomes_unknown(cluster, given):
    """A renewal each minute is too rare for a grace of 40 s: the node flaps, as upstream."""
    nodes = [given.node_json("a1"), given.node_json("a2")]
    leases = [given.lease_json("a1", every="60s"), given.lease_json("a2", every="10s")]
    simulation = given.Simulation([*nodes, *leases], node_monitor_grace_period=GRACE)
    simulation.run(44)
    assert simulation.ready("a1") == "True"
    simulation.run(45)
    assert simulation.ready("a1") == "Unknown"


def test_an_unreadable_lease_is_not_a_heartbeat(cluster, given):
    simulation = cluster("a1", "a2")
    odd = given.lease_json("a1", every="often")
    simulation.at(3, given.put, odd)
    simulation.run(60)
    assert simulation.ready("a1") == "True"  # the earlier status still holds


def test_a_lease_of_another_namespace_is_no_heartbeat(cluster, given):
    """Other components have leases, too."""
    simulation = cluster("a1", "a2")
    simulation.at(3, given.stop, "a1")
    lease = given.lease_json("a1", renewed_s=40, every="10s")
    lease["metadata"]["namespace"] = "default"
    simulation.at(40, given.put, lease)
    simulation.run(60)
    assert (simulation.ready("a1"), simulation.ready("a2")) == ("Unknown", "True")


# --- beginnings ----------------------------------------------------------------------------------


TAINTS = [
    {"key": "node.kubernetes.io/unreachable", "effect": effect}
    for effect in ("NoSchedule", "NoExecute")
]


def silent(given, **options):
    """Return a cluster with a node that has been unreachable and tainted for a long time."""
    nodes = [given.node_json("a1", ready="Unknown", taints=TAINTS), given.node_json("a2")]
    leases = [given.lease_json("a2", every="10s")]
    return given.Simulation([*nodes, *leases], **options)


def test_a_restarted_controller_replaces_no_execute_taints(given):
    simulation = silent(given)
    simulation.run(0)
    assert simulation.taints("a1") == []
    simulation.run(0.05)
    assert simulation.taints("a1") == ["unreachable"]
    assert len(simulation.events("RegisteredNode")) == 2


def test_a_controller_that_takes_over_changes_nothing(given):
    simulation = silent(given, is_taking_over=True)
    simulation.run(3_600)
    assert simulation.node("a1")["spec"]["taints"] == TAINTS
    assert simulation.events() == [] == simulation.reported(NodeTainted)


def test_a_controller_that_takes_over_adds_a_missing_taint(given):
    nodes = [given.node_json("a1", ready="Unknown"), given.node_json("a2")]
    leases = [given.lease_json("a2", every="10s")]
    simulation = given.Simulation([*nodes, *leases], is_taking_over=True)
    simulation.run(0.05)
    assert simulation.taints("a1") == ["unreachable"]


def test_a_1_16_controller_that_takes_over_adds_a_missing_taint(given):
    """1.16 does not queue a node again that it has already handled."""
    nodes = [given.node_json("a1", ready="Unknown"), given.node_json("a2")]
    leases = [given.lease_json("a2", every="10s")]
    simulation = given.Simulation([*nodes, *leases], is_taking_over=True, profile=V1_16)
    simulation.run(10)
    assert simulation.taints("a1") == ["unreachable"]


@pytest.mark.parametrize(
    ("is_taking_over", "evicted"),
    [
        (True, {"old": 200, "young": 250, "late": 0}),
        (False, {"old": 300, "young": 300, "late": 60}),
    ],
)
def test_timers_continue_when_a_controller_takes_over(given, is_taking_over, evicted):
    """They start when the taint was added or the pod created; terminating pods were evicted."""
    taints = [taint | {"timeAdded": given.stamp(-100)} for taint in TAINTS]
    nodes = [given.node_json("a1", ready="Unknown", taints=taints), given.node_json("a2")]
    leases = [given.lease_json("a2", every="10s")]

    def pod(name, limit_s, created_s, **meta):
        meta |= {"name": name, "uid": name, "creationTimestamp": given.stamp(created_s)}
        return given.pod_json(name, node="a1", tolerations=given.tolerate(limit_s), meta=meta)

    gone = {"deletionTimestamp": given.stamp(30), "deletionGracePeriodSeconds": 30}
    pods = [
        pod("old", 300, -1_000),
        pod("young", 300, -50),
        pod("late", 60, -1_000),
        pod("leaving", 300, -1_000, **gone),
    ]
    simulation = given.Simulation([*nodes, *leases, *pods], is_taking_over=is_taking_over)
    simulation.run(1_000)
    found = {
        record.pod.name: round((record.at - given.START) / 1e9)
        for record in simulation.reported(PodEvicted)
        if record.pod.name in evicted
    }
    assert found == evicted
    assert ("leaving" in {record.pod.name for record in simulation.reported(EvictionTimed)}) is (
        not is_taking_over
    )


def test_a_taint_without_time_added_counts_from_now(given):
    """So does a taint whose timeAdded is invalid."""
    for stamp in ({}, {"timeAdded": "yesterday"}):
        taints = [taint | stamp for taint in TAINTS]
        nodes = [given.node_json("a1", ready="Unknown", taints=taints), given.node_json("a2")]
        pods = [given.pod_json("p1", node="a1", tolerations=given.tolerate(300))]
        leases = [given.lease_json("a2", every="10s")]
        simulation = given.Simulation([*nodes, *leases, *pods], is_taking_over=True)
        (timed,) = simulation.run(1).reported(EvictionTimed)
        assert timed.due == given.at(300)


# --- refusals ------------------------------------------------------------------------------------


def refuse(simulation, kind, reason):
    """Refuse the next command about that kind."""
    lifecycle = simulation.controllers[0]
    refused = []
    handle = lifecycle.handle

    def turned_down(stimulus, now):
        match stimulus:
            case CommandSucceeded(command) if isinstance(command, kind) and not refused:
                refused.append(command)
                return handle(CommandFailed(command, reason, "no"), now)
        return handle(stimulus, now)

    lifecycle.handle = turned_down
    return refused


def test_a_node_is_examined_again_after_a_refused_condition_write(cluster, given):
    simulation = dark(cluster, given, "a1", "a2", quiet=["a1"])
    refused = refuse(simulation, PatchStatus, FailureReason.INTERNAL_ERROR)
    simulation.run(60)
    assert len(refused) == 1
    assert simulation.events("NodeNotReady") == []  # another controller marked the node


def test_a_pass_skips_a_node_during_its_condition_write(cluster, given):
    simulation = dark(cluster, given, "a1", "a2", quiet=["a1"])
    lifecycle, late = simulation.controllers[0], []
    handle = lifecycle.handle

    def withheld(stimulus, now):
        match stimulus:
            case CommandSucceeded(PatchStatus()) if not late:
                late.append(stimulus)
                return []
        first = handle(late[0], now) if now == given.at(61) else []
        return first + handle(stimulus, now)

    lifecycle.handle = withheld
    simulation.at(61, given.label, "a2")
    simulation.run(60.9)
    assert (simulation.ready("a1"), simulation.taints("a1")) == ("Unknown", [])
    simulation.run(66)
    assert simulation.taints("a1") == ["unreachable"]
    assert [at for at, _, _ in simulation.events("NodeNotReady")] == [61]


def test_a_node_is_queued_again_after_a_refused_taint_write(cluster, given):
    simulation = dark(cluster, given, "a1", "a2", quiet=["a1"])
    simulation.run(50.02)
    refused = refuse(simulation, PatchObject, FailureReason.INTERNAL_ERROR)
    simulation.run(61)
    assert len(refused) == 1
    assert [record.is_rate_limited for record in simulation.reported(NodeTainted)] == [True]
    assert simulation.reported(NodeTainted)[0].at == given.at(60.05)


# --- other versions and modes --------------------------------------------------------------------


def old(given, *names, pods=(), **options):
    """Return a cluster whose zones are set by the labels that 1.16 reads."""
    label = "failure-domain.beta.kubernetes.io/zone"
    nodes = [given.node_json(name, labels={label: name[0]}) for name in names]
    leases = [given.lease_json(name, every="10s") for name in names]
    return given.Simulation([*nodes, *leases, *pods], profile=V1_16, **options)


def test_1_16_has_a_grace_period_of_40_s_and_taints_one_pass_later(given):
    simulation = old(given, "a1", "a2")
    simulation.at(3, given.stop, "a1")
    simulation.run(50.05)
    assert (simulation.ready("a1"), simulation.taints("a1")) == ("Unknown", [])
    simulation.run(55.05)
    assert simulation.taints("a1") == ["unreachable"]


def test_1_16_marks_pods_without_an_event_and_does_not_mark_later_pods(given):
    pods = [given.pod_json(node="a1", tolerations=given.tolerate())]
    simulation = old(given, "a1", "a2", pods=pods)
    simulation.at(3, given.stop, "a1")
    late = given.pod_json("p2", node="a1", tolerations=given.tolerate())
    simulation.at(52, given.put, late)
    simulation.run(60)
    assert simulation.pod()["status"]["conditions"][0]["status"] == "False"
    assert simulation.pod("p2")["status"]["conditions"][0]["status"] == "True"
    assert [name for _, name, _ in simulation.events("NodeNotReady")] == ["a1"]


@pytest.mark.parametrize(
    ("profile", "taints"), [(V1_36, ["unreachable"]), (V1_16, [])], ids=["1.36", "1.16"]
)
def test_only_1_36_restores_a_taint_that_an_administrator_removes(given, profile, taints):
    """1.36 taints the unreachable node again; 1.16 has removed the node from its queue."""
    label = "failure-domain.beta.kubernetes.io/zone"
    nodes = [given.node_json(name, labels={label: "a"}) for name in ("a1", "a2")]
    leases = [given.lease_json(name, every="10s") for name in ("a1", "a2")]
    simulation = given.Simulation([*nodes, *leases], profile=profile)
    simulation.at(3, given.stop, "a1")

    def untaint(store, *, now):
        store.patch_as_is(NODE, "", "a1", {"spec": {"taints": None}}, now)

    simulation.at(100, untaint)
    simulation.run(99)
    assert simulation.taints("a1") == ["unreachable"]
    simulation.run(130)
    assert simulation.taints("a1") == taints


def test_without_the_taint_manager_pods_are_deleted_after_the_timeout(cluster, given):
    """The node gets no NoExecute taint, and the tolerations of the pod do not matter."""
    pods = [given.pod_json(node="a1", tolerations=given.tolerate(60))]
    simulation = cluster("a1", "a2", pods=pods, enable_taint_manager=False)
    simulation.at(3, given.stop, "a1")
    simulation.run(300)
    assert simulation.taints("a1") == []
    assert "deletionTimestamp" not in simulation.pod()["metadata"]
    simulation.run(311)
    assert "deletionTimestamp" in simulation.pod()["metadata"]
    assert len(simulation.controllers) == 2


def test_without_the_taint_manager_taints_evict_no_pods(cluster, given):
    simulation = cluster("a1", "a2", pods=[given.pod_json(node="a1")], enable_taint_manager=False)

    def taint(store, *, now):
        taints = [{"key": "k", "effect": "NoExecute"}]
        store.patch_as_is(NODE, "", "a1", {"spec": {"taints": taints}}, now)

    simulation.at(3, taint)
    simulation.run(3_600)
    assert simulation.taints("a1") == ["k"]
    assert "deletionTimestamp" not in simulation.pod()["metadata"]


def test_pods_are_evicted_according_to_their_tolerations(cluster, given):
    pods = [
        given.pod_json("p0", node="a1", tolerations=given.tolerate(0)),
        given.pod_json("p1", node="a1", tolerations=given.tolerate(60)),
    ]
    simulation = cluster("a1", "a2", pods=pods)
    simulation.at(3, given.stop, "a1")
    simulation.run(50.05)
    assert "deletionTimestamp" in simulation.pod("p0")["metadata"]
    assert "deletionTimestamp" not in simulation.pod("p1")["metadata"]
    simulation.run(110.05)
    assert "deletionTimestamp" in simulation.pod("p1")["metadata"]


# --- the older mode ------------------------------------------------------------------------------

OWNER = {"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True, "apiVersion": "apps/v1"}


def evicting(given, *names, **options):
    pods = [
        given.pod_json("p1", node="a1", tolerations=given.tolerate()),
        given.pod_json("d1", node="a1", meta={"name": "d1", "ownerReferences": [OWNER]}),
    ]
    return old(given, *names, pods=pods, taint_based_evictions=False, **options)


def test_pods_are_deleted_five_minutes_after_the_last_heartbeat(given):
    simulation = evicting(given, "a1", "a2")
    simulation.at(3, given.stop, "a1")
    simulation.run(310)
    assert simulation.events("DeletingAllPods") == []
    simulation.run(310.05)
    assert simulation.events("DeletingAllPods") == [
        (310.05, "a1", "Node a1 event: Deleting all Pods from Node a1.")
    ]
    assert simulation.events("NodeControllerEviction") == [
        (310.05, "p1", "Marking for deletion Pod p1 from Node a1")
    ]
    assert simulation.pod("p1")["status"]["reason"] == "NodeLost"
    assert simulation.pod("d1")["status"]["message"] == (
        "Node a1 which was running pod d1 is unresponsive"
    )
    assert "deletionTimestamp" in simulation.pod("p1")["metadata"]
    assert "deletionTimestamp" not in simulation.pod("d1")["metadata"]
    assert simulation.taints("a1") == []


def test_the_timeout_of_a_not_ready_node_starts_at_its_transition(given):
    simulation = evicting(given, "a1", "a2")
    simulation.at(103, given.post, "a1", "False")
    simulation.run(409)
    assert simulation.events("DeletingAllPods") == []
    simulation.run(420)
    assert [at for at, _, _ in simulation.events("DeletingAllPods")] == [410.05]


def test_a_pass_exactly_at_the_end_of_the_timeout_deletes_no_pods(given):
    """A change starts a pass at that time; a later pass deletes the pods."""
    simulation = evicting(given, "a1", "a2")
    simulation.at(103, given.post, "a1", "False")
    simulation.at(403, given.label, "a1")
    simulation.run(420)
    assert [at for at, _, _ in simulation.events("DeletingAllPods")] == [410.05]


def test_every_node_has_a_new_timeout_when_evictions_resume(given):
    simulation = evicting(given, "a1", "a2", "b1")
    for name in ("a1", "a2", "b1"):
        simulation.at(3, given.stop, name)
    simulation.at(203, given.post, "b1")
    simulation.at(203, given.renew, "b1")
    simulation.run(3_600)
    assert [at for at, _, _ in simulation.events("DeletingAllPods")] == [510.05]


def test_a_node_that_recovers_in_time_keeps_its_pods(given):
    simulation = evicting(given, "a1", "a2", node_eviction_rate=0.001)
    simulation.at(3, given.stop, "a1")
    simulation.at(200, given.post, "a1")
    simulation.at(200, given.renew, "a1")
    simulation.run(3_600)
    assert simulation.events("DeletingAllPods") == []


def test_pods_are_deleted_from_one_node_after_the_other(given):
    simulation = evicting(given, "a1", "a2", "a3")
    more = given.pod_json("p2", node="a2", tolerations=given.tolerate())
    simulation.at(1, given.put, more)
    simulation.at(3, given.stop, "a1")
    simulation.at(3, given.stop, "a2")
    simulation.run(3_600)
    assert [(at, name) for at, name, _ in simulation.events("DeletingAllPods")] == [
        (310.05, "a1"),
        (320.05, "a2"),
    ]


def test_a_node_without_pods_spends_a_token_without_a_report(given):
    simulation = evicting(given, "a1", "a2")
    simulation.at(1, given.delete, POD, "p1", 0)
    simulation.at(1, given.delete, POD, "d1", 0)
    simulation.at(3, given.stop, "a1")
    simulation.run(3_600)
    assert simulation.events("DeletingAllPods") == []


def test_the_defaults_are_those_of_upstream():
    config = NodeLifecycleConfig()
    assert (config.node_monitor_period, config.monitor_grace) == (seconds(5), seconds(50))
    assert (config.node_eviction_rate, config.secondary_node_eviction_rate) == (0.1, 0.01)
