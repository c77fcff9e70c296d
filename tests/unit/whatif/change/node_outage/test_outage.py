"""Node outages end to end: what-ifs in which nodes fail, and the outcomes that they report."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from msgspec.structs import replace
from rich.console import Console

from fairlead.cli.output.summary.outage import outage_sections
from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import DEFAULT_CONDITIONS, Conditions, conditions_of
from fairlead.whatif.configuration.controller_manager import controller_manager
from fairlead.whatif.configuration.release import ReleaseChoice, read_release
from fairlead.whatif.outcome.comparison.difference import newly_lost
from fairlead.whatif.outcome.outage import LossCause, NodeState
from fairlead.whatif.outcome.rate_line import rate_lines
from fairlead.whatif.question import what_if
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

ZONE = "topology.kubernetes.io/zone"
FIVE_MINUTES = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute",
     "tolerationSeconds": 300}
    for what in ("not-ready", "unreachable")
]  # fmt: skip
FOR_EVER = [{"operator": "Exists"}]


@pytest.fixture
def zoned(make):
    """`zoned(a=2, b=2)` returns the ready nodes a0, a1, b0, b1 in the zones a and b."""

    def nodes(**zones):
        made = []
        for zone, count in zones.items():
            for number in range(count):
                one = make.node(f"{zone}{number}", **{ZONE: zone})
                one["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
                made.append(one)
        return made

    return nodes


@pytest.fixture
def ask(snapshot):
    """`ask(objects, fail_zone=("a",), lasts="20m")` returns the answer."""

    def what_if_they_fail(objects, *, lasts="", conditions=DEFAULT_CONDITIONS, **failures):
        change = ClusterChange(failures=Failures(**failures), lasts=lasts)
        return what_if(snapshot(*objects), change, conditions)

    return what_if_they_fail


def outage(answer):
    return answer.changed.outage


def after(answer, instant):
    return (instant - answer.changed.started_at) / seconds(1)


def printed(answer):
    """The lines of the answer's section about the outage, as one text."""
    console = Console(file=StringIO(), width=400)
    section = next(iter(outage_sections(answer.changed, outage(answer))))
    section.show(console, section.rows)
    return console.file.getvalue()


def flags(version="", **values):
    named = {name.replace("_", "-"): value for name, value in values.items()}
    release = read_release(ReleaseChoice(version, named.pop("feature-gates", "")))
    return Conditions(node_lifecycle=controller_manager(release, named))


def tenant(make, name, node, **spec):
    return make.pod(name, node_name=node, owner="rs", **{"tolerations": FIVE_MINUTES, **spec})


def test_pods_of_a_failed_zone_are_evicted_after_their_tolerations_and_replaced(ask, make, zoned):
    """Detected after 50 s, tainted every 10 s, evicted 300 s later, replaced immediately."""
    objects = [*zoned(a=2, b=2), tenant(make, "x", "a0"), tenant(make, "y", "a1")]
    answer = ask(objects, fail_zone=("a",), lasts="20m")
    found = outage(answer)
    assert [after(answer, taint.at) for taint in found.taints] == [50.05, 60.05]
    assert [round(after(answer, one.at)) for one in answer.changed.evicted] == [350, 360]
    assert {one.tolerated_s for one in answer.changed.evicted} == {300}
    [belief] = [one for one in found.misconceptions if one.name == "five-minutes"]
    assert belief.fact == (
        "The first pods left a0 after 5m50s. The node was marked not ready after 50s and tainted "
        "0.05s later (from a rate-limited queue). The pods tolerated the taint for 5m00s "
        "(tolerationSeconds; 300 unless the pod sets it)."
    )
    assert (found.concerned, found.evicted, found.replaced, found.lost) == (2, 2, 2, ())
    assert round(after(answer, found.last_back_at)) == 361
    assert answer.difference.recovered_after == found.last_back_at - answer.changed.started_at
    [line] = rate_lines(found)
    assert (line.count, line.allowed) == (2, 2)


def test_a_node_that_recovers_before_the_tolerations_end_keeps_its_pods(ask, make, zoned):
    objects = [*zoned(a=1, b=1), tenant(make, "x", "a0")]
    answer = ask(objects, fail_node=("a0",), lasts="4m")
    found = outage(answer)
    assert (found.concerned, found.evicted, found.back_with_node, found.lost) == (1, 0, 1, ())
    assert answer.changed.evicted == ()
    assert not answer.difference.is_empty
    assert after(answer, found.last_back_at) == 241


@pytest.mark.parametrize(
    ("how", "back_s", "waiting"), [("stopped", 360, {0, 1}), ("paused", 240, {0})]
)
def test_a_pod_is_back_when_its_containers_run_again(ask, make, zoned, how, back_s, waiting):
    """They start again only if the machine was off, and are ready after the startup time."""
    pod = tenant(make, "x", "a0")
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    slow = conditions_of(startup_time="2m")
    answer = ask([*zoned(a=1, b=1), pod], fail_node=("a0",), how=how, lasts="4m", conditions=slow)
    found = outage(answer)
    assert (found.back_with_node, found.lost) == (1, ())
    assert after(answer, found.last_back_at) == back_s
    assert answer.difference.recovered_after == seconds(back_s)
    assert {one.waiting for one in found.pod_samples} == waiting
    [readiness] = answer.changed.workloads.values()
    assert readiness.lowest_for == seconds(back_s)


def test_a_pod_that_starts_again_at_the_end_is_not_back(ask, make, zoned):
    objects = [*zoned(a=1, b=1), tenant(make, "x", "a0")]
    slow = conditions_of(startup_time="3h")
    answer = ask(objects, fail_node=("a0",), lasts="4m", conditions=slow)
    [lost] = outage(answer).lost
    assert (lost.cause, lost.why) == (LossCause.STARTING, "it is starting again on a0")


def test_a_failed_node_passes_through_its_states_in_order(ask, make, zoned):
    answer = ask([*zoned(a=1, b=1), tenant(make, "x", "a0")], fail_node=("a0",), lasts="10m")
    states = [
        next(state for state, count in sample.counts.items() if count)
        for sample in outage(answer).node_samples
        if sample.zone.endswith("a")
    ]
    assert states == [
        NodeState.READY, NodeState.UNNOTICED, NodeState.UNREADY, NodeState.TAINTED, NodeState.READY,
    ]  # fmt: skip
    [story] = outage(answer).nodes
    assert (story.node, story.pods, story.evicted) == ("a0", 1, 1)
    assert 600 <= after(answer, story.back_at) <= 605


def test_pods_without_a_replacement_have_a_reason(ask, make, zoned):
    bare = make.pod("bare", node_name="a0", tolerations=FIVE_MINUTES)
    daemon = tenant(make, "agent", "a0", tolerations=FOR_EVER)
    daemon["metadata"]["ownerReferences"][0] |= {"kind": "DaemonSet", "name": "ds", "uid": "ds"}
    big = tenant(make, "big", "a0")
    big["spec"]["nodeSelector"] = {ZONE: "a"}
    set_pod = make.pod("db-0", node_name="a0", tolerations=FIVE_MINUTES)
    stateful = make.workload("StatefulSet", "db", replicas=1)
    set_pod["metadata"]["labels"] = {"app": "db", "apps.kubernetes.io/pod-index": "0"}
    set_pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db-uid",
         "controller": True}
    ]  # fmt: skip
    stateful["metadata"]["uid"] = "db-uid"
    forever = tenant(make, "loyal", "a0", tolerations=FOR_EVER)
    objects = [*zoned(a=1, b=1), daemon, big, stateful, set_pod, forever, bare]
    answer = ask(objects, fail_zone=("a",))
    causes = {one.pod: one.cause for one in outage(answer).lost}
    assert causes["default/agent"] is LossCause.DAEMON
    assert causes["default/loyal"] is LossCause.TOLERATES
    assert causes["default/big"] is LossCause.NO_ROOM
    assert causes["default/db-0"] is LossCause.STICKY
    assert answer.difference.recovered_after is None
    reasons = {one.pod: one.why for one in outage(answer).lost}
    assert "didn't match Pod's node affinity" in reasons["default/big"]
    assert "sticky" in {one.name for one in outage(answer).misconceptions}


@pytest.fixture
def with_disk(make, zoned):
    """A pod on node a0 with a disk that is attached to one node at a time, and a second node."""
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": "disk"}}
    pod = tenant(make, "x", "a0", volumes=[volume], tolerations=FIVE_MINUTES)
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "disk",
            "namespace": "default",
            "uid": "disk",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv"},
        "status": {"phase": "Bound"},
    }
    disk = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
            "claimRef": {"namespace": "default", "name": "disk", "uid": "disk"},
        },
        "status": {"phase": "Bound"},
    }
    return [*zoned(a=1, b=2), pod, claim, disk]


def test_a_pod_waits_for_the_disk_of_its_predecessor_on_a_failed_node(ask, with_disk):
    answer = ask(with_disk, fail_node=("a0",))
    [lost] = outage(answer).lost
    [pending] = answer.difference.pending
    assert (
        lost.why
        == pending.reason
        == "Multi-Attach error: volume is already used by pod(s) default/x on a0"
    )
    assert lost.cause is LossCause.ATTACHED
    steps = [step.code for step in answer.next_steps]
    assert any("out-of-service" in code for code in steps)
    assert not any("--add-nodes" in code for code in steps)  # the disk stays on node a0
    answer = ask(with_disk, fail_node=("a0",), lasts="20m")
    [moved] = answer.difference.moved
    assert moved.target.startswith("b")
    assert 1200 <= after(answer, moved.pod.started_at) <= 1210


@pytest.mark.parametrize(
    ("change", "starts_s"),
    [
        pytest.param(ClusterChange(drain=("a0",)), 31, id="drained: when the old pod has stopped"),
        pytest.param(ClusterChange(delete=("node/a0",)), 401, id="deleted: 6 minutes after the GC"),
    ],
)
def test_a_pod_waits_until_its_disk_is_detached(snapshot, with_disk, change, starts_s):
    answer = what_if(snapshot(*with_disk), change)
    [moved] = answer.difference.moved
    assert after(answer, moved.pod.started_at) == pytest.approx(starts_s, abs=20)


def test_no_pod_is_evicted_if_all_zones_fail(ask, make, zoned):
    answer = ask([*zoned(a=1, b=1), tenant(make, "x", "a0")], fail_zone=("a", "b"), lasts="30m")
    found = outage(answer)
    assert answer.changed.evicted == ()
    assert found.taints == ()
    [fact] = [one.fact for one in found.misconceptions if one.name == "all-dark"]
    assert "no zone had a ready node any more. In this case, the controller assumes" in fact


def test_no_pod_of_a_small_partially_failed_zone_is_evicted(ask, make, zoned):
    objects = [*zoned(a=5, b=2), *(tenant(make, f"x{n}", f"a{n}") for n in range(5))]
    answer = ask(objects, fail_fraction=("0.6@a",))
    found = outage(answer)
    assert len(found.nodes) == 3
    assert answer.changed.evicted == ()
    assert {one.cause for one in found.lost} == {LossCause.STOPPED_ZONE}
    [belief] = found.misconceptions
    assert belief.name == "partly-dark"
    assert "or more. In a zone of at most 50 nodes, evictions then stop. If all" in belief.fact


@pytest.mark.parametrize(
    ("failing", "options", "why"),
    [
        pytest.param(
            ("0.6@a", {"a": 5, "b": 2}), {},
            "evictions are stopped in zone a: 3 of its 5 nodes are not ready, and it has at most "
            "50 nodes (--large-cluster-size-threshold)",
            id="small zone",
        ),
        pytest.param(
            ("0.6@a", {"a": 5, "b": 2}),
            {"large_cluster_size_threshold": "4", "secondary_node_eviction_rate": "0"},
            "evictions are stopped in zone a: 3 of its 5 nodes are not ready, and "
            "--secondary-node-eviction-rate is 0",
            id="large zone",
        ),
        pytest.param(
            ("1@a", {"a": 5, "b": 2}), {"node_eviction_rate": "0"},
            "evictions are stopped in zone a: --node-eviction-rate is 0",
            id="no rate",
        ),
        pytest.param(
            ("1@a", {"a": 5}), {"node_eviction_rate": "0"},
            "evictions are stopped: no zone has a ready node",
            id="no ready node",
        ),
    ],
)  # fmt: skip
def test_a_pod_that_is_not_evicted_says_why_evictions_are_stopped(
    ask, make, zoned, failing, options, why
):
    share, zones = failing
    objects = [*zoned(**zones), *(tenant(make, f"x{n}", f"a{n}") for n in range(5))]
    answer = ask(objects, fail_fraction=(share,), conditions=flags(**options))
    assert {one.why for one in outage(answer).lost} == {why}


def test_a_note_names_the_flags_with_other_values_than_the_defaults(ask, zoned):
    options = {"node_eviction_rate": "0.5", "node_monitor_grace_period": "90s"}
    answer = ask(zoned(a=1), fail_node=("a0",), conditions=flags(**options))
    note = (
        "The node controllers run with --node-monitor-grace-period 1m30s (default: 50s), "
        "--node-eviction-rate 0.5 (default: 0.1)."
    )
    assert note in answer.changed.notes
    for conditions in (flags(), flags("1.16"), flags(node_eviction_rate="0.1")):
        answer = ask(zoned(a=1), fail_node=("a0",), conditions=conditions)
        assert not any("node controllers run" in one for one in answer.changed.notes)
    old = flags("1.16", enable_taint_manager="false", pod_eviction_timeout="1m")
    assert (
        "The node controllers run with --pod-eviction-timeout 1m00s (default: 5m00s), "
        "--enable-taint-manager false (default: true)."
    ) in ask(zoned(a=1), fail_node=("a0",), conditions=old).changed.notes


def test_a_reduced_rate_of_taints_is_explained(ask, make, zoned):
    """Two nodes of a zone fail at the normal rate, three at the rate of a disrupted zone."""
    lines = []
    for share in ("0.4@a", "0.6@a"):
        answer = ask(zoned(a=5, b=2), fail_fraction=(share,),
                     conditions=flags(large_cluster_size_threshold="4"))  # fmt: skip
        lines.append(printed(answer))
    assert "The rate is" not in lines[0]
    assert (
        "The rate is 0.01 nodes/s, because 3 of the 5 nodes of the zone are not ready "
        "(PartialDisruption)."
    ) in lines[1]


def test_the_seed_determines_which_nodes_fail(ask, make, zoned):
    first = outage(ask(zoned(a=9, b=1), fail_fraction=("30%@a",), conditions=Conditions(seed=1)))
    again = outage(ask(zoned(a=9, b=1), fail_fraction=("30%@a",), conditions=Conditions(seed=1)))
    other = outage(ask(zoned(a=9, b=1), fail_fraction=("30%@a",), conditions=Conditions(seed=5)))
    assert first == again
    assert len(first.nodes) == len(other.nodes) == 3
    assert [one.node for one in first.nodes] != [one.node for one in other.nodes]


def test_taint_evictions_ignore_budgets_and_a_note_says_so(ask, make, zoned):
    pdb = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    }  # fmt: skip
    pod = tenant(make, "x", "a0")
    pod["metadata"]["labels"] = {"app": "x"}
    answer = ask([*zoned(a=1, b=1), pdb, pod], fail_zone=("a",))
    [breach] = answer.changed.pdb_breaches
    assert breach.by == "taint node.kubernetes.io/unreachable:NoExecute"
    [belief] = [one for one in outage(answer).misconceptions if one.name == "budgets"]
    assert "default/x (1)" in belief.fact


def test_the_run_does_not_end_before_a_long_toleration_ends(ask, make, zoned):
    """Nothing changes for half an hour; then the pod is evicted."""
    patient = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1800}]
    objects = [*zoned(a=1, b=1), tenant(make, "x", "a0", tolerations=patient)]
    answer = ask(objects, fail_node=("a0",))
    [evicted] = answer.changed.evicted
    assert round(after(answer, evicted.at)) == 1850


def test_the_run_does_not_end_between_evictions_at_a_slow_rate(ask, make, zoned):
    """A quarter of an hour passes between the evictions from two nodes."""
    slow = flags(node_eviction_rate="0.001")
    answer = ask(zoned(a=2, b=1), fail_zone=("a",), conditions=slow)
    assert [after(answer, taint.at) for taint in outage(answer).taints] == [50.05, 1050.05]


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param({"feature_gates": "TaintBasedEvictions=false"}, id="without the feature gate"),
        pytest.param({"enable_taint_manager": "false"}, id="without the taint manager"),
    ],
)
def test_the_run_does_not_end_before_the_pod_eviction_timeout(ask, make, zoned, mode):
    """The run ends soon after the eviction: no node waits for a taint."""
    old = flags("1.16", **mode, pod_eviction_timeout="20m")
    objects = [*zoned(a=1, b=1), tenant(make, "x", "a0")]
    answer = ask(objects, fail_node=("a0",), conditions=old)
    [evicted] = answer.changed.evicted
    assert evicted.why == "node lost"
    assert after(answer, answer.changed.ended_at) < 22 * 60


def test_without_the_taint_manager_the_eviction_queue_of_a_node_evicts_its_pods(ask, make, zoned):
    slow = flags("1.16", enable_taint_manager="false", node_eviction_rate="0.0001")
    objects = [*zoned(a=2, b=1), tenant(make, "x", "a0"), tenant(make, "y", "a1")]
    [lost] = outage(ask(objects, fail_zone=("a",), conditions=slow)).lost
    assert lost.why == "its node is still queued to be emptied (rate limit)"


def test_controller_manager_flags_take_effect_in_the_run(ask, make, zoned):
    objects = [*zoned(a=1, b=1), tenant(make, "x", "a0")]
    quick = flags(node_monitor_grace_period="20s")
    answer = ask(objects, fail_node=("a0",), conditions=quick)
    assert [after(answer, taint.at) for taint in outage(answer).taints] == [20.05]


def test_the_mode_without_taint_based_evictions_deletes_pods(ask, make, zoned):
    old = flags("1.16", feature_gates="TaintBasedEvictions=false", pod_eviction_timeout="2m")
    objects = [*zoned(a=1, b=1), tenant(make, "x", "a0")]
    answer = ask(objects, fail_node=("a0",), lasts="30m", conditions=old)
    [evicted] = answer.changed.evicted  # two minutes after the pass with its last heartbeat
    assert 120 <= after(answer, evicted.at) <= 126
    assert outage(answer).taints == ()


def test_nodes_flap_until_the_end_of_the_flapping_period(ask, make, zoned):
    answer = ask([*zoned(a=1, b=1), tenant(make, "x", "a0")], flap=("a0@2m/2m",), lasts="12m")
    unready = [
        sample.at
        for sample in outage(answer).node_samples
        if sample.counts[NodeState.UNREADY] and sample.zone.endswith("a")
    ]
    assert len(unready) >= 2


def test_a_budget_that_blocks_a_rolling_drain_is_named(snapshot, make, zoned):
    """The first node never becomes empty, so the second node is not drained."""
    pdb = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "x"}}},
    }  # fmt: skip
    pod = tenant(make, "x", "a0")
    pod["metadata"]["labels"] = {"app": "x"}
    change = ClusterChange(drain=(f"{ZONE}=a",), max_unavailable=1)
    answer = what_if(snapshot(*zoned(a=2, b=1), pdb, pod), change)
    first, second = answer.changed.drains
    assert (first.node, first.begun_at, first.empty_at) == ("a0", answer.changed.started_at, None)
    [why] = first.held_up_by
    assert why.startswith("default/x: Cannot evict pod as it would violate")
    assert "guard" in why
    assert (second.node, second.begun_at) == ("a1", None)


def test_pods_of_a_recovered_node_are_no_longer_affected_by_the_outage(write, make):
    """A drain after the outage displaces the pod once more, for another reason."""
    owned = tenant(make, "x", "node-0")
    scenario = {
        "cluster": {"generated": {"nodes": 3, "zones": ["a", "b", "c"]}},
        "objects": [owned],
        "events": [
            {"at": "1m", "fail-zone": "a", "for": "3m"},
            {"at": "10m", "drain": "node-0"},
        ],
        "duration": "12m",
    }
    path = write("s.yaml", json.dumps(scenario))
    outcome = run_experiment(experiment_of(path, read_scenario(path)), "", NoProgress()).outcome
    [story] = outcome.outage.nodes
    assert story.back_at - outcome.started_at <= seconds(245)
    assert outcome.outage.back_with_node == 1
    assert outcome.outage.last_back_at - outcome.started_at <= seconds(245)
    assert [one.why for one in outcome.evicted] == ["drain"]


def test_a_second_failure_of_a_node_affects_its_pods_again(write, make):
    owned = tenant(make, "x", "node-0")
    scenario = {
        "cluster": {"generated": {"nodes": 3, "zones": ["a", "b", "c"]}},
        "objects": [owned],
        "events": [
            {"at": "1m", "fail-node": "node-0", "for": "2m"},
            {"at": "5m", "fail-node": "node-0"},
        ],
        "duration": "8m",
    }
    path = write("s.yaml", json.dumps(scenario))
    outcome = run_experiment(experiment_of(path, read_scenario(path)), "", NoProgress()).outcome
    [lost] = outcome.outage.lost
    assert lost.cause is LossCause.NOT_YET
    assert "tolerates the taint for 5m00s, until 10m50s after the start" in lost.why
    [story] = outcome.outage.nodes
    assert story.back_at is None


def test_a_zone_whose_tainting_stopped_is_not_called_slow(write):
    """One node is tainted; then four more fail, which stops evictions in the small zone."""
    late = [{"at": "110s", "fail-node": f"node-{number}", "for": "20m"} for number in range(1, 5)]
    scenario = {
        "cluster": {"generated": {"nodes": 6, "zones": ["z"]}},
        "events": [{"at": "1m", "fail-node": "node-0", "for": "20m"}, *late],
        "duration": "50m",
    }
    path = write("s.yaml", json.dumps(scenario))
    outcome = run_experiment(experiment_of(path, read_scenario(path)), "", NoProgress()).outcome
    assert len(outcome.outage.taints) < len(outcome.outage.nodes)
    names = {one.name for one in outcome.outage.misconceptions}
    assert "partly-dark" in names
    assert "slow" not in names


@pytest.mark.parametrize("unavailable", [1, "50%"])
def test_a_rolling_drain_drains_the_nodes_of_an_earlier_drain_one_by_one(write, unavailable):
    scenario = {
        "cluster": {"generated": {"nodes": 2, "labels": {"pool": "x"}}},
        "events": [
            {"at": "1m", "drain": "pool=x"},
            {"at": "10m", "drain": "pool=x", "max-unavailable": unavailable, "for": "5m"},
        ],
        "duration": "1h",
    }
    path = write("s.yaml", json.dumps(scenario))
    outcome = run_experiment(experiment_of(path, read_scenario(path)), "", NoProgress()).outcome
    first, second = outcome.drains
    assert first.begun_at - outcome.started_at == seconds(600)
    assert first.back_at - first.begun_at == seconds(300)
    assert second.begun_at == first.back_at
    assert second.back_at - second.begun_at == seconds(300)


def test_an_outage_that_exists_without_the_change_is_no_difference(snapshot, zoned):
    """A node without heartbeats in the dump is unreachable in both runs."""
    dark, *others = zoned(a=1, b=2)
    dark["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    dark["metadata"]["annotations"] = {"fairlead.dev/kubelet": "stopped"}
    answer = what_if(snapshot(dark, *others), ClusterChange(cordon=("b1",)))
    assert answer.without.outage is not None
    assert answer.outage is None


def test_an_outage_excludes_nodes_that_are_already_out_of_service(snapshot, zoned, make):
    """Pods of the unreachable node move before the change; they do not count as evicted by it."""
    silent, *others = zoned(a=1, b=2)
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    pods = [make.pod(f"web-{node}", node_name=node, owner="web") for node in ("a0", "b0")]
    change = ClusterChange(failures=Failures(fail_node=("b0",)))
    answer = what_if(snapshot(silent, *others, *pods), change)
    found = answer.outage
    assert [(one.node, one.pods, one.evicted) for one in found.nodes] == [("b0", 1, 1)]
    assert (found.concerned, found.evicted, found.replaced) == (1, 1, 1)
    assert found.pod_samples[-1].evicted == found.pod_samples[-1].back == 1
    assert found.first_eviction_at > answer.changed.started_at
    assert answer.difference.pods_on_failed_nodes == 1


def test_a_pod_counts_as_evicted_if_the_change_both_taints_and_fails_its_node(
    snapshot, zoned, make
):
    """The taint of the same change evicts the pod just before its node fails."""
    pod = make.pod("web", node_name="a0", owner="web")
    taints = "[{key: node.kubernetes.io/out-of-service, effect: NoExecute}]"
    change = ClusterChange(
        set=(f"node/a0:spec.taints={taints}",), failures=Failures(fail_node=("a0",))
    )
    found = what_if(snapshot(*zoned(a=2), pod), change).outage
    assert (found.concerned, found.evicted) == (1, 1)
    assert [one.evicted for one in found.nodes] == [1]


def test_an_answer_without_an_outage_does_not_mention_outages(ask, zoned):
    assert outage(ask(zoned(a=1))) is None


def test_a_completed_pod_on_a_failed_node_is_not_counted_as_evicted(ask, zoned, make):
    """Its object is deleted because of the taint, but it had finished its work."""
    done = make.pod("done", node_name="a0", owner="rs")
    done["status"] = {"phase": "Succeeded"}
    running = make.pod("running", node_name="a0", owner="rs2")
    answer = ask([*zoned(a=2, b=2), done, running], fail_node=("a0",))
    found = answer.difference
    assert [one.pod.key for one in found.evicted] == ["default/running"]
    assert outage(answer).evicted == len(found.evicted)
    assert not found.gone
    assert found.recovered_after is not None


def test_a_daemons_pod_is_removed_with_its_failed_node(write, make):
    """An autoscaler or a user removes the node; the DaemonSet needs no pod for it any more."""
    daemon = tenant(make, "agent", "node-0", tolerations=FOR_EVER)
    daemon["metadata"]["ownerReferences"][0] |= {"kind": "DaemonSet", "name": "ds", "uid": "ds"}
    scenario = {
        "cluster": {"generated": {"nodes": 3, "zones": ["a", "b", "c"]}},
        "objects": [daemon],
        "events": [{"at": "1m", "fail-node": "node-0"}, {"at": "5m", "delete": "node/node-0"}],
        "duration": "8m",
    }
    path = write("s.yaml", json.dumps(scenario))
    outcome = run_experiment(experiment_of(path, read_scenario(path)), "", NoProgress()).outcome
    [lost] = outcome.outage.lost
    assert lost.cause is LossCause.NODE_REMOVED
    assert newly_lost(replace(outcome, outage=None, touched=None), outcome, set()) == ()


@pytest.mark.parametrize(
    "change",
    [
        ClusterChange(set_resources=("deploy/default/web=cpu=2",)),
        ClusterChange(scale=("deploy/default/web=1",)),
    ],
    ids=["a rollout", "fewer replicas"],
)
def test_a_pod_that_its_workload_no_longer_needs_is_not_lost(snapshot, make, zoned, change):
    """The controllers replace or remove the pods while their nodes are down."""
    objects = [*zoned(a=2, b=2), make.workload("Deployment", "web", replicas=4)]
    failures = Failures(fail_zone=("a",))
    answer = what_if(snapshot(*objects), replace(change, failures=failures, lasts="20m"))
    assert {one.cause for one in outage(answer).lost} == {LossCause.NOT_NEEDED}
    assert outage(answer).not_back == []
    assert answer.effect.lost == ()
    assert answer.difference.recovered_after is not None


def test_a_workload_with_pending_pods_may_no_longer_need_a_pod(snapshot, make, zoned):
    """Three of four replicas are wanted; of these, two are pending, because node b0 is full."""
    web = make.workload("ReplicaSet", "web", replicas=4, cpu="1")
    web["metadata"]["uid"] = "web"
    pods = [make.pod(f"web-{n}", node_name="a0", owner="web") for n in range(3)]
    pods.append(make.pod("web-3", node_name="b0", owner="web"))
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    full = make.pod("full", node_name="b0", cpu="3")
    change = ClusterChange(scale=("rs/web=3",), failures=Failures(fail_zone=("a",)))
    answer = what_if(snapshot(*zoned(a=1, b=1), web, *pods, full), change)
    assert len(answer.difference.pending) == 2
    [surplus] = [one for one in outage(answer).lost if one.cause is LossCause.NOT_NEEDED]
    assert surplus.why == "rs/default/web wants 3 pods and does not need this one"


@pytest.mark.parametrize("lasts", ["", "20m"], ids=["for good", "for 20 minutes"])
@pytest.mark.parametrize("mode", ["Indexed", "NonIndexed"])
def test_a_job_with_a_lower_parallelism_does_not_need_the_pods_of_failed_nodes(
    snapshot, make, zoned, mode, lasts
):
    """At once, the Job deletes one of its three pods; another one is evicted from node b0."""
    version, identity = {"apiVersion": "batch/v1", "kind": "Job"}, {"name": "sum", "uid": "u-sum"}
    pods = [
        make.pod(f"sum-{n}", node_name=f"{z}0", restartPolicy="Never") for n, z in enumerate("aab")
    ]
    template = {"spec": {"restartPolicy": "Never", "containers": pods[0]["spec"]["containers"]}}
    spec = {"completionMode": mode, "completions": 3, "parallelism": 3, "template": template}
    job = {**version, "metadata": {**identity, "namespace": "default"}, "spec": spec}
    for index, pod in enumerate(pods):
        pod["metadata"]["ownerReferences"] = [{**version, **identity, "controller": True}]
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        if mode == "Indexed":
            pod["metadata"]["annotations"] = {
                "batch.kubernetes.io/job-completion-index": str(index)
            }
    for zone in "ab":
        change = ClusterChange(
            set=("job/sum:spec.parallelism=2",),
            failures=Failures(fail_zone=(zone,)),
            lasts=lasts,
        )
        answer = what_if(snapshot(*zoned(a=1, b=1), job, *pods), change)
        assert not outage(answer).not_back
        assert not answer.difference.gone


def test_an_evicted_pod_whose_job_gives_up_its_index_is_lost(snapshot, make, zoned):
    """The Job has all pods that it still wants, because it no longer tries the index."""
    version, identity = {"apiVersion": "batch/v1", "kind": "Job"}, {"name": "sum", "uid": "u-sum"}
    pods = [make.pod(f"sum-{zone}", node_name=f"{zone}0", restartPolicy="Never") for zone in "ab"]
    job = {
        **version,
        "metadata": {**identity, "namespace": "default"},
        "spec": {
            "completionMode": "Indexed", "completions": 2, "parallelism": 2,
            "backoffLimitPerIndex": 0,
            "template": {
                "spec": {"restartPolicy": "Never", "containers": pods[0]["spec"]["containers"]}
            },
        },
    }  # fmt: skip
    for index, pod in enumerate(pods):
        pod["metadata"] |= {
            "ownerReferences": [{**version, **identity, "controller": True}],
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
        }
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    change = ClusterChange(failures=Failures(fail_zone=("a",)), lasts="20m")
    answer = what_if(snapshot(*zoned(a=1, b=1), job, *pods), change)
    [lost] = outage(answer).not_back
    assert (lost.cause, lost.why) == (
        LossCause.NOT_REPLACED,
        "Job sum creates no replacement",
    )
    assert [one.sentence for one in answer.verdict.findings] == [
        "Job default/sum can only fail: index 0 has failed (backoffLimitPerIndex).",
        "1 pod is gone for good: nothing replaces default/sum-a.",
    ]


def test_an_evicted_pod_of_a_work_queue_that_is_done_is_not_lost(snapshot, make, zoned):
    """After the success of a pod, a Job without completions creates no more pods."""
    version, identity = {"apiVersion": "batch/v1", "kind": "Job"}, {"name": "sum", "uid": "u-sum"}
    pods = [make.pod(f"sum-{zone}", node_name=f"{zone}0", restartPolicy="Never") for zone in "ab"]
    template = {"spec": {"restartPolicy": "Never", "containers": pods[0]["spec"]["containers"]}}
    job = {
        **version,
        "metadata": {**identity, "namespace": "default"},
        "spec": {"parallelism": 3, "template": template},
        "status": {"active": 2, "succeeded": 1},
    }
    for pod in pods:
        pod["metadata"]["ownerReferences"] = [{**version, **identity, "controller": True}]
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    change = ClusterChange(failures=Failures(fail_zone=("a",)), lasts="20m")
    answer = what_if(snapshot(*zoned(a=1, b=1), job, *pods), change)
    assert {one.cause for one in outage(answer).lost} == {LossCause.NOT_NEEDED}
    assert outage(answer).not_back == []


@pytest.mark.parametrize(
    ("policy", "limit", "is_back"),
    [("OnFailure", 6, True), ("OnFailure", 1, False), ("Never", 0, False)],
)
def test_a_pod_whose_restart_fails_its_job_is_not_back(
    snapshot, make, zoned, *, policy, limit, is_back
):
    """The restart of its container reaches the backoffLimit, so that the Job deletes the pod."""
    pod = make.pod("sum-a", node_name="a0", restartPolicy=policy)
    template = {"spec": {"restartPolicy": policy, "containers": pod["spec"]["containers"]}}
    version, identity = {"apiVersion": "batch/v1", "kind": "Job"}, {"name": "sum", "uid": "u-sum"}
    job = {
        **version,
        "metadata": {**identity, "namespace": "default"},
        "spec": {"backoffLimit": limit, "completions": 1, "parallelism": 1, "template": template},
    }
    pod["metadata"]["ownerReferences"] = [{**version, **identity, "controller": True}]
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    failures = Failures(fail_zone=("a",))
    change = ClusterChange(failures=failures, lasts="3m")
    answer = what_if(snapshot(*zoned(a=1, b=1), job, pod), change)
    found = outage(answer)
    assert found.back_with_node == is_back
    said = " ".join(one.sentence for one in answer.verdict.findings)
    assert ("comes back" in said) is is_back
    assert ("removed, because its Job fails" in said) is (policy == "OnFailure" and not is_back)
    if not is_back:
        [lost] = found.lost
        assert (lost.cause, lost.why) == (
            LossCause.NOT_NEEDED,
            "job/default/sum has ended and needs no pods",
        )


def test_a_flapping_node_counts_each_of_its_evicted_pods_once(ask, make, zoned):
    """The pod of the StatefulSet is created again on its node, and evicted in each failure."""
    stateful = make.workload("StatefulSet", "db", replicas=1)
    stateful["metadata"]["uid"] = "db-uid"
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db-uid",
             "controller": True}  # fmt: skip
    on_a0 = {"nodeSelector": {ZONE: "a"}, "tolerations": FIVE_MINUTES}
    stateful["spec"]["template"]["spec"] |= on_a0
    member = make.pod("db-0", node_name="a0", **on_a0)
    member["metadata"] |= {"ownerReferences": [owner], "labels": {"app": "db"}}
    answer = ask([*zoned(a=1, b=1), stateful, member], flap=("a0@6m/2m",), lasts="25m")
    assert len(answer.changed.evicted) == 3
    [story] = outage(answer).nodes
    assert (story.pods, story.evicted) == (1, 1)
    assert "pods-a-second" not in {one.name for one in outage(answer).misconceptions}


def test_an_out_of_service_taint_is_not_called_the_toleration_of_a_failure(write, make):
    """The user's taint evicts the pod at 2m, before its toleration of the failure expires."""
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    scenario = {
        "cluster": {"generated": {"nodes": 3, "zones": ["a", "b", "c"]}},
        "objects": [tenant(make, "x", "node-0"), tenant(make, "y", "node-0")],
        "events": [
            {"at": "0s", "fail-node": "node-0"},
            {"at": "2m",
             "patch": {"target": "node/node-0", "merge": {"spec": {"taints": [taint]}}}},
        ],
    }  # fmt: skip
    path = write("s.yaml", json.dumps(scenario))
    outcome = run_experiment(experiment_of(path, read_scenario(path)), "", NoProgress()).outcome
    assert {one.why for one in outcome.evicted} == {
        "taint node.kubernetes.io/out-of-service:NoExecute"
    }
    names = {one.name for one in outcome.outage.misconceptions}
    assert names.isdisjoint({"five-minutes", "pods-a-second"})


def test_a_drain_of_a_failed_node_does_not_wait_for_tolerations(write, make):
    scenario = {
        "cluster": {"generated": {"nodes": 3, "zones": ["a", "b", "c"]}},
        "objects": [tenant(make, "x", "node-0")],
        "events": [{"at": "0s", "fail-node": "node-0"}, {"at": "2m", "drain": "node-0"}],
    }
    path = write("s.yaml", json.dumps(scenario))
    outcome = run_experiment(experiment_of(path, read_scenario(path)), "", NoProgress()).outcome
    assert [(one.why, one.tolerated_s) for one in outcome.evicted] == [("drain", None)]


def test_the_line_about_unnoticed_failures_counts_the_nodes(ask, make, zoned):
    answer = ask([*zoned(a=2, b=1), tenant(make, "x", "a0")], flap=(f"{ZONE}=a@30s/30s",))
    assert (
        "The control plane did not notice the failures of 2 of 2 nodes. Such a node and its pods"
        in printed(answer)
    )


def test_a_job_that_ends_as_without_the_failure_is_not_affected(ask, make, zoned):
    """The runs with and without the failure have different lengths."""
    job = make.workload("Job", "etl")
    job["metadata"]["uid"] = "etl"
    task = make.pod("etl-1", node_name="b0", owner="etl", restartPolicy="Never")
    task["metadata"]["ownerReferences"][0] |= {"kind": "Job", "uid": "etl"}
    task["metadata"]["annotations"] = {"fairlead.dev/run-duration": "5m"}
    objects = [*zoned(a=1, b=1), tenant(make, "x", "a0"), job, task]
    answer = ask(objects, fail_zone=("a",), lasts="20m")
    assert answer.changed.pods["default/etl-1"].is_completed
    assert [one.workload.name for one in answer.effect.workloads] == ["rs"]


@pytest.fixture
def agents(make):
    """A DaemonSet, and its pods on the nodes a0 and b0."""
    daemon_set = make.workload("DaemonSet", "agent")
    daemon_set["metadata"]["uid"] = "agent-uid"
    del daemon_set["spec"]["replicas"]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "agent-uid",
             "controller": True}  # fmt: skip
    pods = [make.pod(f"agent-{node}", node_name=node) for node in ("a0", "b0")]
    for pod in pods:
        pod["metadata"] |= {"ownerReferences": [owner], "labels": {"app": "agent"}}
    return [daemon_set, *pods]


def test_a_quota_that_refuses_the_pod_of_a_daemon_set_is_named(snapshot, make, zoned, agents):
    """The DaemonSet wants a pod on the node, so the node's pod is lost."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota",
             "metadata": {"name": "small", "namespace": "default"},
             "spec": {"hard": {"pods": "1"}}}  # fmt: skip
    failures = Failures(fail_node=("a0",))
    change = ClusterChange(delete=("pod/default/agent-a0",), failures=failures, lasts="10m")
    answer = what_if(snapshot(*zoned(a=1, b=1), *agents, quota), change)
    [lost] = outage(answer).lost
    assert lost.cause is LossCause.NOT_REPLACED
    assert lost.why.startswith("DaemonSet agent creates no replacement: Error creating: pods ")
    assert "is forbidden: exceeded quota: small" in lost.why


def test_a_daemon_set_needs_no_pod_on_a_node_that_is_out_of_service(snapshot, make, zoned):
    """The taint out-of-service evicts the pod, and the DaemonSet does not create it again."""
    daemon_set = make.workload("DaemonSet", "agent")
    daemon_set["metadata"]["uid"] = "agent-uid"
    del daemon_set["spec"]["replicas"]
    agent = make.pod("agent-1", node_name="a0", tolerations=FIVE_MINUTES)
    agent["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "agent-uid",
         "controller": True}
    ]  # fmt: skip
    before = snapshot(*zoned(a=1, b=1), daemon_set, agent)
    taint = "{key: node.kubernetes.io/out-of-service, effect: NoExecute}"
    change = ClusterChange(
        set=(f"node/a0:spec.taints=[{taint}]",), failures=Failures(fail_node=("a0",))
    )
    answer = what_if(before, change)
    [lost] = outage(answer).lost
    assert lost.cause is LossCause.NOT_NEEDED
    assert lost.why == "ds/default/agent wants no pod on a0"
    assert [pod.key for pod in answer.difference.removed] == ["default/agent-1"]
    assert answer.difference.gone == ()


def test_an_uncordoned_node_that_has_failed_keeps_the_taints_of_its_failure(write, make, zoned):
    """The controllers remove the taint of the cordon; a new taint would restart tolerations."""
    cordoned, other = zoned(a=1, b=1)
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    cordoned["spec"] = {"unschedulable": True, "taints": [taint]}
    objects = write("objects.json", cordoned, other, tenant(make, "x", "a0"))
    scenario = {
        "cluster": {"files": [objects]},
        "events": [
            {"at": "0s", "fail-node": "a0", "for": "20m"},
            {"at": "4m", "uncordon": "a0"},
        ],
    }
    path = write("s.yaml", json.dumps(scenario))
    run = run_experiment(experiment_of(path, read_scenario(path)), "", NoProgress())
    [evicted] = run.outcome.evicted
    assert 340 <= (evicted.at - run.outcome.started_at) / seconds(1) <= 351
    nodes = {one["metadata"]["name"]: one for one in run.objects if one["kind"] == "Node"}
    node = nodes["a0"]
    assert not node["spec"].get("unschedulable")
    assert not node["spec"].get("taints")
