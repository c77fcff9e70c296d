"""The autoscaler as a controller: added and removed nodes, and loops that may be skipped."""

from __future__ import annotations

from functools import partial

import pytest

from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import NODE, find_kind
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
)
from fairlead.engine.autoscaling.cluster_autoscaler.controller import ClusterAutoscaler
from fairlead.engine.autoscaling.cluster_autoscaler.history import UnhealthyPeriod
from fairlead.engine.autoscaling.cluster_autoscaler.options import parse_options
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.worlds.simulation.world import SimulatedWorld

START = parse_timestamp("2026-01-01T00:00:00Z")
BEFORE = "2025-12-01T00:00:00Z"


def node(name):
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": BEFORE}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"pool": "a"}, "creationTimestamp": BEFORE},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def deployment(replicas, annotations=None):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": annotations or {}},
                "spec": {"containers": [container]},
            },
        },
    }


def _scale(kind, size, store, now):
    store.patch(kind, "default", "web", {"spec": {"replicas": size}}, now)


class Run:
    """A cluster of two nodes with a Deployment that grows and shrinks."""

    def __init__(self, sizes, *, maximum=10, skips=True, annotations=None, taints=(), **flags):
        spec = NodeGroupSpec(
            id="a", minimum=1, maximum=maximum, labels={"pool": "a"}, template=node("t")
        )
        config = ClusterAutoscalerConfig((spec,), parse_options(flags))
        engine = build_engine(EngineConfig(start=START, autoscaler=config), SilentReporter())
        self.world = SimulatedWorld(engine, start=START, events_max=0)
        self.controller = engine.find(ClusterAutoscaler)
        self.loops = []
        run_once = self.controller.autoscaler.run_once
        self.controller.autoscaler.run_once = lambda now: self.loops.append(now) or run_once(now)
        if not skips:
            self.controller._result = lambda _record: (object(),)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        self.world.load([namespace, node("n1"), node("n2") | {"spec": {"taints": list(taints)}}])
        kind = find_kind("Deployment")
        (first, initial), *more = sizes
        web = deployment(initial, annotations)
        self.world.at(START + seconds(first), lambda store, now: store.create(web, now))
        for at, size in more:
            patch = partial(_scale, kind, size)
            self.world.at(START + seconds(at), patch)

    def until(self, end):
        self.world.run(START + seconds(end))
        return self

    @property
    def nodes(self):
        return sorted(one["metadata"]["name"] for one in self.world.store.list(NODE))

    @property
    def moves(self):
        history = self.controller.history
        return [
            (type(one).__name__, one.at, one.node)
            for one in (*history.arrivals, *history.departures)
        ]


@pytest.mark.parametrize(
    ("flags", "removed_at"),
    [
        ({}, 620),
        ({"node-deletion-candidate-ttl": "5m"}, 620),
        ({"node-deletion-candidate-ttl": "8m"}, 130),
        ({"node-deletion-candidate-ttl": "8m", "max-bulk-soft-taint-count": 0}, 130),
    ],
)
def test_a_new_process_reads_soft_taints_that_are_not_too_old(flags, removed_at):
    """The taint is eight minutes old; a removal begins after ten minutes."""
    tainted = {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}
    tainted["value"] = str(START // 10**9 - 8 * 60 + 11)
    run = Run([(1, 1)], taints=[tainted], **flags).until(900)
    [(_, at, name)] = run.moves
    assert name == "n2"
    assert 0 <= at - START - seconds(removed_at + 65) < seconds(15)


def test_the_priority_expander_reads_its_config_map_and_the_group_names():
    specs = tuple(
        NodeGroupSpec(
            id=name,
            minimum=0,
            maximum=9,
            labels={"pool": name},
            template={**node("t"), "metadata": {"name": "t", "labels": {"pool": name}}},
            provider_name=provider_name,
        )
        for name, provider_name in (("a", "eks-a-1"), ("b", "eks-b-1"), ("c", ""))
    )
    text = "10: ['-b-1$']\n20: ['^b$', '^a$']\n5: ['^c$']\n"
    config = ClusterAutoscalerConfig(specs, parse_options({"expander": "priority"}), (), text)
    engine = build_engine(EngineConfig(start=START, autoscaler=config), SilentReporter())
    world = SimulatedWorld(engine, start=START, events_max=0)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    world.load([namespace, deployment(2)])
    world.run(START + seconds(300))
    growths = engine.find(ClusterAutoscaler).history.growths
    assert [(one.group, one.new) for one in growths] == [("b", 1)]


@pytest.mark.parametrize("change", ["created", "changed", "deleted", "another"])
def test_the_priority_expander_reads_the_present_version_of_its_config_map(change):
    """Like upstream, which reads the ConfigMap for each choice between groups."""
    specs = tuple(
        NodeGroupSpec(
            id=name,
            minimum=0,
            maximum=9,
            labels={"pool": name},
            template={**node("t"), "metadata": {"name": "t", "labels": {"pool": name}}},
        )
        for name in ("a", "b")
    )
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-priority-expander", "namespace": "kube-system"},
        "data": {"priorities": "10: ['a']\n"},
    }
    prefers_b = {**config_map, "data": {"priorities": "10: ['b']\n"}}
    if change == "another":
        config_map["metadata"] = {**config_map["metadata"], "namespace": "default"}
    text = None if change == "created" else "10: ['a']\n"
    options = parse_options({"expander": "priority"})
    config = ClusterAutoscalerConfig(specs, options, (), text)
    engine = build_engine(EngineConfig(start=START, autoscaler=config), SilentReporter())
    autoscaler = engine.find(ClusterAutoscaler)
    # Without priorities, both groups are equal.
    wants_last = change != "created"
    autoscaler.autoscaler.context.pick = lambda count: count - 1 if wants_last else 0
    world = SimulatedWorld(engine, start=START, events_max=0)
    names = ("default", "kube-system")
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n}} for n in names]
    world.load([*namespaces, *([] if change == "created" else [config_map])])
    kind, where = find_kind("ConfigMap"), config_map["metadata"]["namespace"]

    def edit(store, now):
        match change:
            case "created":
                store.create(prefers_b, now)
            case "deleted":
                store.delete(kind, where, config_map["metadata"]["name"], now)
            case _:
                data = {"data": prefers_b["data"]}
                store.patch(kind, where, config_map["metadata"]["name"], data, now)

    world.at(START + seconds(5), edit)
    world.at(START + seconds(6), lambda store, now: store.create(deployment(2), now))
    world.run(START + seconds(300))
    expected = "a" if change == "another" else "b"
    assert [(one.group, one.new) for one in autoscaler.history.growths] == [(expected, 1)]


@pytest.mark.parametrize(
    ("provider", "label"),
    [
        ("aws", "k8s.amazonaws.com/accelerator"),
        ("azure", "accelerator"),
        ("clusterapi", "cluster-api/accelerator"),
        ("gce", "cloud.google.com/gke-accelerator"),
        ("", "nvidia.com/gpu.product"),
    ],
)
def test_a_node_with_the_gpu_label_of_its_cloud_provider_is_not_ready_without_a_gpu(
    provider, label
):
    """Labels of other providers, such as that of GPU feature discovery, do not matter."""
    labels = {"nvidia.com/gpu.product", "accelerator", "cloud.google.com/gke-accelerator", label}
    run = Run([(5, 0)], **{"cloud-provider": provider})
    for at, one in enumerate(sorted(labels)):
        manifest = node(f"gpu-{at}")
        manifest["metadata"]["labels"][one] = "k80"
        run.world.load([manifest])
    run.until(60)
    unready = run.controller.autoscaler.context.registry.total.unready
    assert unready == [f"gpu-{sorted(labels).index(label)}"]


def test_pending_pods_get_nodes_and_unneeded_nodes_are_deleted():
    run = Run([(5, 20), (1200, 3)]).until(1000)
    assert len(run.nodes) == 5
    run.until(7200)
    assert len(run.nodes) == 1
    sizes = {group: len(nodes) for group, nodes in run.controller.nodes_by_group().items()}
    assert sizes == {"a": 1}
    assert {kind for kind, _, _ in run.moves} == {"NodeArrival", "NodeDeparture"}


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([(5, 20), (1200, 3)], id="up and down"),
        pytest.param([(5, 8), (700, 9), (1500, 30), (2400, 1)], id="several steps"),
        pytest.param([(5, 100)], id="beyond the limit"),
    ],
)
def test_skipped_loops_would_have_changed_nothing(sizes):
    """A run with every loop gives the same commands at the same instants."""
    every, skipping = Run(sizes, skips=False).until(7200), Run(sizes).until(7200)
    assert skipping.moves == every.moves
    assert skipping.nodes == every.nodes
    assert len(every.loops) > 700
    assert len(skipping.loops) < 250


@pytest.mark.parametrize("is_local", [False, True])
def test_loops_are_not_skipped_when_a_delay_after_a_deletion_ends(is_local):
    flags = {
        "scale-down-delay-type-local": is_local,
        "scale-down-delay-after-delete": "25m",
        "max-scale-down-parallelism": 1,
    }
    every, skipping = (Run([(5, 20), (1205, 3)], skips=skips, **flags) for skips in (False, True))
    every.until(9000)
    skipping.until(3000)
    assert len([kind for kind, _, _ in skipping.moves if kind == "NodeDeparture"]) == 1
    removals = skipping.controller.removal_times(START + seconds(3000))
    assert removals or skipping.controller.is_working(START + seconds(3000))
    assert skipping.until(9000).moves == every.moves
    assert len([kind for kind, _, _ in every.moves if kind == "NodeDeparture"]) == 4


def test_pending_pods_wait_for_the_loop_after_a_backoff():
    run = Run([(5, 20)], **{"max-node-provision-time": "30s"}).until(120)
    (end,) = run.controller.autoscaler.context.registry.backoff.ends()
    run.world.run(end + seconds(5))
    assert run.controller.is_working(end + seconds(5))


def test_no_loop_is_skipped_when_the_annotated_delay_of_pods_ends():
    annotations = {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": "7m"}
    run = Run([(5, 12)], annotations=annotations)
    run.until(300)
    assert run.controller.is_working(START + seconds(300))
    run.until(1200)
    (growth,) = run.controller.history.growths
    assert growth.at == START + seconds(430)


def test_changes_that_no_loop_reads_can_be_left_out_of_the_snapshot():
    """A snapshot with them gives the same commands and reasons at the same instants."""
    sizes = [(5, 20), (700, 9), (1500, 30), (2400, 1)]
    putting, leaving_out = Run(sizes), Run(sizes)
    autoscaler = putting.controller.autoscaler
    autoscaler.put_unread = autoscaler.put
    for end in (600, 1800, 2500, 7200):
        assert leaving_out.until(end).moves == putting.until(end).moves
        assert leaving_out.controller._last == putting.controller._last
        assert leaving_out.loops == putting.loops


def test_only_one_loop_runs_at_each_scan_time():
    """Even if pods arrive at that instant, before and after the loop."""
    run = Run([(10, 20), (20, 40), (1200, 3)]).until(3600)
    assert len(run.loops) == len(set(run.loops))
    assert all((at - START) % seconds(10) == 0 for at in run.loops)


def test_a_pod_that_triggers_no_scale_up_has_a_reason():
    run = Run([(5, 100)], maximum=3).until(1200)
    assert len(run.nodes) == 3
    reasons = set(run.controller.history.without_scale_up.values())
    assert reasons == {"pod didn't trigger scale-up: 1 max node group size reached"}


@pytest.mark.parametrize(
    ("flags", "annotations", "reason"),
    [
        (
            {"expendable-pods-priority-cutoff": "1"},
            {},
            "priority 0 is below --expendable-pods-priority-cutoff (1)",
        ),
        (
            {"allowed-scheduler-names": "other"},
            {},
            "--allowed-scheduler-names does not contain default-scheduler",
        ),
        (
            {},
            {"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"},
            "pods of DaemonSets trigger no scale-up",
        ),
    ],
    ids=["expendable", "other scheduler", "DaemonSet"],
)
def test_a_pod_that_upstream_filters_out_has_a_reason(flags, annotations, reason):
    run = Run([(5, 100)], annotations=annotations, **flags).until(1200)
    assert len(run.nodes) <= 2
    assert set(run.controller.pods_without_scale_up().values()) == {reason}


def test_a_pod_without_scale_up_has_the_present_number_of_unready_nodes():
    """Both nodes were unready for a time, and now one of them is."""
    run = Run([(5, 9)], maximum=2).until(600)
    run.controller.history.unhealthy.append(UnhealthyPeriod(START, unready=2, nodes=2))
    run.controller.autoscaler.context.registry.total.unready.append("n1")
    [reason] = run.controller.pods_without_scale_up().values()
    assert reason.startswith("Cluster is unhealthy: 1 of 2 nodes are not ready")


def test_a_node_that_is_not_removed_has_a_reason():
    run = Run([(5, 8)]).until(1200)
    assert set(run.controller.history.staying.values()) == {"NotUnderutilized"}


def test_nodes_that_upstream_leaves_out_have_a_reason():
    run = Run([(5, 1)])
    other = {**node("other"), "metadata": {"name": "other", "labels": {"pool": "b"}}}
    run.world.at(START + seconds(5), lambda store, now: store.create(other, now))
    run.until(3600)
    (last,) = {*run.nodes} - {"other"}
    found = run.controller.nodes_without_scale_down()
    assert found == {last: "NodeGroupMinSizeReached", "other": "NotAutoscaled"}


def test_the_autoscaler_waits_during_the_unneeded_time_of_a_node():
    run = Run([(5, 4)]).until(300)
    [at] = run.controller.removal_times(run.world.now)
    assert START + seconds(605) < at < START + seconds(625)
    # The unneeded time has ended, but the next scan, which removes the node, is still to come.
    run.world.run(at - 1)
    assert run.controller.removal_times(run.world.now) == (at,)
    assert not [one for one in run.moves if one[0] == "NodeDeparture"]
    run.until(3600)
    assert not run.controller.is_working(run.world.now)
    assert not run.controller.removal_times(run.world.now)


@pytest.mark.parametrize(("delay", "scan"), [("10m", 610), ("1305s", 1320)])
def test_a_scan_at_the_end_of_a_scale_down_delay_removes_nodes(delay, scan):
    """A scale-up occurs at the scan after 10 s. The deletion of the empty node takes 65 s."""
    flags = {"scale-down-unneeded-time": "10s", "scale-down-delay-after-add": delay}
    run = Run([(5, 12), (200, 4)], **flags).until(300)
    assert {*run.controller.removal_times(run.world.now)} == {START + seconds(scan)}
    run.until(3600)
    gone = [at for kind, at, _ in run.moves if kind == "NodeDeparture"]
    assert min(gone) == START + seconds(scan + 65)


def test_flags_change_the_delays():
    quick = Run([(5, 1)], **{"scale-down-unneeded-time": "1m"}).until(300)
    assert len(quick.nodes) == 1
    assert len(Run([(5, 1)]).until(300).nodes) == 2
