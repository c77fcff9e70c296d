"""Victims found by sums equal those of trials, also with Filters that depend on other nodes."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs
from msgspec.structs import replace

from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.bench.templates import claimed_volumes, csi_nodes
from fairlead.engine.core.status import Code
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.preemption.removal_effect import NO_EFFECT
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.evaluation import evaluate
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.preemption.dry_run import dry_run
from fairlead.engine.scheduling.preemption.dry_run.cluster_verdicts import (
    ClusterVerdicts,
    cluster_verdicts,
)
from fairlead.engine.scheduling.preemption.dry_run.victims import NO_VICTIMS, select_victims_on_node
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene
from fairlead.testing.random_cluster import Chance

NODES = [f"node-{number:05}" for number in range(40)]
CLAIMS = 60


def terms(kind, key, app="a"):
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(key, skew=1):
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }


def using(claim):
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


def disk(read_only):
    """A disk that several pods can only mount read-only."""
    volume = {"pdName": "shared", "readOnly": read_only}
    return {"volumes": [{"name": "d", "gcePersistentDisk": volume}]}


PREEMPTORS = {
    "spread": {"topologySpreadConstraints": [spread(ZONE)]},
    "spread twice": {"topologySpreadConstraints": [spread(ZONE, 2), spread(HOSTNAME)]},
    "apart by host": terms("podAntiAffinity", HOSTNAME),
    "apart by zone": terms("podAntiAffinity", ZONE),
    "together": terms("podAffinity", ZONE),
    "together by host": terms("podAffinity", HOSTNAME),
    "with those of app c, apart by host": {
        "affinity": {
            **terms("podAffinity", ZONE, "c")["affinity"],
            **terms("podAntiAffinity", HOSTNAME, "b")["affinity"],
        }
    },
    "volume": using("pod-00000"),
    "disk": disk(read_only=False),
    "plain": {},
}


class Room:
    """A full cluster with random additions and deletions of pods."""

    def __init__(self, seed):
        self.chance, self.cluster, self.nominator = Chance(seed), Cluster(), Nominator()
        self.placed = {}
        for number, name in enumerate(NODES):
            zone = {ZONE: f"z{number % 3}"} if number < 38 else {}
            labels = {HOSTNAME: name, **zone}
            self.change(make_node(name, labels=labels, cpu=4, memory="8Gi", pods=7))
            self.change(make_pod(f"s-{name}", node=name, priority=2, requests={"cpu": "1"}))
        for one in (*csi_nodes(len(NODES), 3), *claimed_volumes("pod", CLAIMS, "default")):
            self.change(one)
        handle = PluginHandle(self.cluster, self.nominator, WaitingPods())
        self.profile = build_profile(Profile(), handle, TieBreak(0))
        self.measured = build_profile(Profile(), handle, TieBreak(0), meter=Meter(lambda: 0))

    def change(self, one):
        self.cluster.apply(ObjectChanged(one))

    def place(self, name):
        """Add a pod of one of three apps; some have constraints, and some are terminating."""
        chance = self.chance
        specs = [
            {},
            {},
            {},
            terms("podAntiAffinity", HOSTNAME),
            terms("podAntiAffinity", ZONE, "c"),
        ]
        specs += [using(f"pod-{chance.below(CLAIMS):05}"), disk(read_only=True)]
        pod = make_pod(
            name,
            node=chance.of(NODES),
            priority=chance.of([1, 1, 2, 3, 10]),
            labels={"app": chance.of("abbbbc")},
            requests={"cpu": chance.of(["300m", "700m", "1100m"])},
            spec=chance.of(specs),
        )
        if not chance.below(12):
            meta = structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            pod = structs.replace(pod, metadata=meta)
        self.placed[name] = pod
        self.change(pod)

    def nominate(self, name, spec):
        """Nominate a small pod of app a to some node."""
        labels, requests = {"app": "a"}, {"cpu": "100m"}
        rival = make_pod(name, priority=9, labels=labels, requests=requests, spec=spec)
        shape = self.cluster.shapes.shape_of(rival)
        self.nominator.nominate(PodInfo(rival, shape), self.chance.of(NODES))

    def pass_time(self, step):
        for _ in range(12):
            gone = self.chance.of(sorted(self.placed))
            self.cluster.apply(ObjectDeleted(self.placed.pop(gone)))
            self.place(f"q{step}-{gone}")

    def needs_room(self, pod):
        return evaluate(self.profile, pod).preemption is not None

    def by_trials(self, pod):
        framework, found = self.profile.framework, find_nodes_that_fit(self.profile.plans, pod)
        table, budgets = framework.cluster.table, framework.cluster.budgets()
        potential = evaluate(self.profile, pod).preemption.potential_nodes
        return {
            name: select_victims_on_node(framework, found.state, pod, table.find(name), budgets)
            for name in potential
        }

    def by_search(self, pod, profile=None):
        search = evaluate(profile or self.profile, pod).preemption
        return {**search.candidates, **search.rejected}

    def settled(self, pod, profile=None):
        """Return how many nodes need no trial."""
        profile = profile or self.profile
        found = find_nodes_that_fit(profile.plans, pod)
        rows = found.diagnosis().rows_with(Code.UNSCHEDULABLE)
        verdicts = cluster_verdicts(profile.framework, found)
        return 0 if verdicts is None else len(rows) - verdicts.judge(pod, found, rows)[1].sum()


@pytest.mark.parametrize("spec", PREEMPTORS.values(), ids=PREEMPTORS)
@pytest.mark.parametrize("seed", range(2))
def test_victims_found_by_sums_equal_those_of_trials(spec, seed):
    """Also after pods and nominations have changed, for new shapes, and with measured plugins."""
    room = Room(seed)
    for number in range(240):
        room.place(f"p{number}")
    settled, pods = 0, []
    for step in range(8):
        cpu, priority = room.chance.of(["1300m", "3100m", "4"]), room.chance.of([3, 9])
        waiting = make_pod(
            f"new-{step}",
            priority=priority,
            labels={"app": "a"},
            requests={"cpu": cpu},
            spec=spec,
        )
        pod = PodInfo(waiting, room.cluster.shapes.shape_of(waiting))
        pods.append(pod)
        for one in filter(room.needs_room, (pod, room.chance.of(pods))):
            by_trials = room.by_trials(one)
            assert room.by_search(one) == by_trials
            assert room.by_search(one, room.measured) == by_trials
        settled += room.settled(pod)
        assert room.settled(pod) == room.settled(pod, room.measured)
        room.nominator.nominate(pod, room.chance.of(NODES))
        for number in range(4):
            room.nominate(f"rival-{step}-{number}", spec)
        room.pass_time(step)
    assert settled


def test_a_plugin_that_states_no_effect_needs_trials():
    """Its status may depend on any pod of the node."""
    room = Room(0)
    waiting = make_pod("new", priority=9, requests={"cpu": "3"}, spec=using("pod-00001"))
    pod = PodInfo(waiting, room.cluster.shapes.shape_of(waiting))
    found = find_nodes_that_fit(room.profile.plans, pod)
    assert isinstance(cluster_verdicts(room.profile.framework, found), ClusterVerdicts)
    split = found.plan.split
    split.cluster_filters = [replace(one, plugin=object()) for one in split.cluster_filters]
    assert cluster_verdicts(room.profile.framework, found) is None


def lodger(name, number, priority, app):
    """Return a pod of app `app` that uses one of a node's four cores."""
    size, labels = {"cpu": 1}, {"app": app}
    return make_pod(name, node=NODES[number], priority=priority, labels=labels, requests=size)


def test_only_victims_that_a_filter_counts_need_a_trial():
    """Nodes 0 and 1 have one pod of app a too many; only that of node 0 may be a victim."""
    scene = PluginScene()
    for number in range(4):
        scene.add(make_node(NODES[number], cpu=4, labels={ZONE: f"z{number}"}))
    scene.add(*csi_nodes(len(NODES), 3), *claimed_volumes("pod", 1, "default"))
    scene.add(lodger("a0", 0, 1, "a"), lodger("equal-a0", 0, 9, "a"), lodger("b0", 0, 1, "b"))
    scene.add(lodger("a1", 1, 9, "a"), lodger("equal-a1", 1, 9, "a"), lodger("b1", 1, 1, "b"))
    scene.add(lodger("b2", 2, 1, "b"), lodger("c2", 2, 1, "c"))
    scene.add(lodger("a3", 3, 1, "a"), lodger("b3", 3, 1, "b"))
    spec = {"topologySpreadConstraints": [spread(ZONE, 2)]} | using("pod-00000")
    waiting = make_pod("new", priority=9, labels={"app": "a"}, requests={"cpu": 3}, spec=spec)
    pod = scene.info(waiting)
    found = find_nodes_that_fit(scene.profile.plans, pod)
    rows = [scene.cluster.table.find(name).row for name in NODES[:4]]
    verdicts = cluster_verdicts(scene.profile.framework, found)
    assert NO_EFFECT in verdicts.effects  # the effect of a volume plugin
    codes, needs_trial = verdicts.judge(pod, found, np.array(rows))
    assert [bool(code) for code in codes] == [True, True, False, False]
    assert needs_trial.tolist() == [True, False, False, False]


def test_no_pod_is_read_if_those_that_count_have_the_priority_of_the_preemptor(monkeypatch):
    """Pods of one workload that exclude each other cannot make room for each other."""
    scene = PluginScene()
    for number in range(3):
        scene.add(make_node(NODES[number], cpu=4, labels={HOSTNAME: NODES[number]}))
        scene.add(lodger(f"a{number}", number, 9, "a"), lodger(f"b{number}", number, 1, "b"))
    spec = terms("podAntiAffinity", HOSTNAME)
    waiting = make_pod("new", priority=9, labels={"app": "a"}, requests={"cpu": 3}, spec=spec)
    pod = scene.info(waiting)
    found = find_nodes_that_fit(scene.profile.plans, pod)
    rows = np.array([scene.cluster.table.find(name).row for name in NODES[:3]])
    verdicts = cluster_verdicts(scene.profile.framework, found)
    with monkeypatch.context() as patch:
        patch.delattr(ClusterVerdicts, "_have_concerned_victims")
        codes, needs_trial = verdicts.judge(pod, found, rows)
    assert all(codes)
    assert not needs_trial.any()
    scene.add(make_pod("a3", node=NODES[1], priority=8, labels={"app": "a"}))
    found = find_nodes_that_fit(scene.profile.plans, pod)
    verdicts = cluster_verdicts(scene.profile.framework, found)
    assert verdicts.judge(pod, found, rows)[1].tolist() == [False, True, False]


@pytest.mark.parametrize("spec", PREEMPTORS.values(), ids=PREEMPTORS)
@pytest.mark.parametrize("seed", range(2))
def test_loaded_pods_are_evaluated_like_added_pods(spec, seed):
    """Also after some were deleted; no PodInfo is created for them.

    VolumeRestrictions reads every pod.
    """
    chance = Chance(seed)
    nodes = [
        make_node(name, labels={HOSTNAME: name, ZONE: f"z{number % 3}"}, cpu=4)
        for number, name in enumerate(NODES)
    ]
    workloads = [
        [
            make_pod(
                f"{app}{at}-{number}",
                node=chance.of(NODES),
                priority=priority,
                labels={"app": app},
                requests={"cpu": "500m"},
                spec=own,
            )
            for number in range(20)
        ]
        for at, (app, priority, own) in enumerate(
            (app, priority, own)
            for app in "abc"
            for priority in (1, 9)
            for own in ({}, disk(read_only=True), terms("podAntiAffinity", HOSTNAME))
        )
    ]
    pods = [pod for workload in workloads for pod in workload]
    objects = [*nodes, *csi_nodes(len(NODES), 3), *claimed_volumes("pod", CLAIMS, "default")]
    waiting = make_pod("new", priority=5, labels={"app": "a"}, requests={"cpu": 4}, spec=spec)
    gone = [chance.of(pods) for _ in range(8)]
    judged = []
    for is_loaded in (False, True):
        cluster = Cluster()
        cluster.apply(ObjectsLoaded([*objects, *(pods if is_loaded else ())]))
        for change in (*(() if is_loaded else map(ObjectChanged, pods)), *map(ObjectDeleted, gone)):
            cluster.apply(change)
        handle = PluginHandle(cluster, Nominator(), WaitingPods())
        served = build_profile(Profile(), handle, TieBreak(0))
        pod = PodInfo(waiting, cluster.shapes.shape_of(waiting))
        found = find_nodes_that_fit(served.plans, pod)
        verdicts = cluster_verdicts(served.framework, found)
        rows = np.array([cluster.table.find(name).row for name in NODES])
        late = cluster.pods.group_sizes().total()
        if verdicts is not None:
            codes, needs_trial = verdicts.judge(pod, found, rows)
            judged.append(([found.plan.statuses[code] for code in codes], needs_trial.tolist()))
            assert late == cluster.pods.group_sizes().total() or spec == PREEMPTORS["disk"]
    assert judged[:1] == judged[1:]
    assert late


def test_all_nodes_need_a_trial_if_another_filter_depends_on_their_pods():
    """A host port may be that of any victim."""
    scene = PluginScene(nodes=[make_node("n", labels={ZONE: "z"})])
    scene.add(make_pod("lesser", node="n", priority=1, requests={"cpu": 4}))
    spec = {"topologySpreadConstraints": [spread(ZONE)]}
    for ports, is_possible in (([], True), ([80], False)):
        waiting = make_pod("new", priority=9, requests={"cpu": 3}, host_ports=ports, spec=spec)
        found = find_nodes_that_fit(scene.profile.plans, scene.info(waiting))
        verdicts = cluster_verdicts(scene.profile.framework, found)
        assert isinstance(verdicts, ClusterVerdicts) is is_possible
        assert scene.make_room(waiting).nominated_node == "n"


def test_a_nominated_pod_counts_only_for_its_own_node():
    """It keeps the preemptor from node 0, but not from zone z1."""
    scene = PluginScene()
    for number in range(2):
        scene.add(make_node(NODES[number], cpu=4, labels={ZONE: "z1", HOSTNAME: NODES[number]}))
        scene.add(*[lodger(f"x{number}-{one}", number, 1, "x") for one in range(4)])
    for number, app in enumerate("ab"):
        rival = make_pod(f"rival-{app}", priority=9, labels={"app": app})
        scene.nominate(rival, NODES[number])
    spec = terms("podAntiAffinity", ZONE)
    waiting = make_pod("new", priority=9, requests={"cpu": 3}, spec=spec)
    search = scene.evaluate(waiting).preemption
    assert list(search.candidates) == [NODES[1]]
    assert list(search.rejected) == [NODES[0]]


def test_victims_of_the_column_path_equal_those_of_trials(monkeypatch):
    """Few nodes are evaluated one by one, so the limit is lowered."""
    monkeypatch.setattr(dry_run, "_COLUMNS_FROM", 2)
    test_victims_found_by_sums_equal_those_of_trials(PREEMPTORS["spread"], 3)


def test_a_few_nodes_without_pods_of_lower_priority_have_no_victims():
    """This is the reason, whatever Filters that depend on other nodes return."""
    scene = PluginScene(nodes=[make_node(name, labels={ZONE: name}, cpu=1) for name in "ab"])
    app = {"app": "a"}
    scene.add(make_pod("lasting", node="a", priority=9, labels=app))
    scene.add(make_pod("passing", node="b", priority=1, requests={"cpu": 1}))
    constraint = {"topologySpreadConstraints": [spread(ZONE)]}
    pod = make_pod("new", priority=5, labels=app, requests={"cpu": 1}, spec=constraint)
    search = scene.evaluate(pod).preemption
    assert search.rejected == {"a": NO_VICTIMS}
    assert search.nominated == ["b"]
