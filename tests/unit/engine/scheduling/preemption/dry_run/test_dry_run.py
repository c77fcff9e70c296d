"""Dry runs: how nodes are evaluated, and which results can be reused."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.evaluation import evaluate
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.preemption.dry_run import dry_run
from fairlead.engine.scheduling.preemption.dry_run.cluster_verdicts import ClusterVerdicts
from fairlead.engine.scheduling.preemption.dry_run.dry_run import DryRuns
from fairlead.engine.scheduling.preemption.dry_run.victims import select_victims_on_node
from fairlead.engine.scheduling.preemption.policy import PreemptionPolicy
from fairlead.engine.state import change_log
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene
from fairlead.testing.random_cluster import Chance

NODES = [f"n{number}" for number in range(7)]


def apart(key):
    """Return a pod with anti-affinity to app a, per domain of `key`."""
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": key}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {"affinity": affinity}


SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}},
        }
    ]
}


def serve_over(cluster, nominator, meter=None):
    handle = PluginHandle(cluster, nominator, WaitingPods())
    return build_profile(Profile(), handle, TieBreak(0), meter=meter)


def rooms(served, pod):
    """Return the nodes where preemption helps, with victims, and the reasons of the other nodes."""
    found = evaluate(served, pod).preemption
    if found is None:
        return None
    victims = {name: [one.key for one in to.victims] for name, to in found.candidates.items()}
    return victims, found.rejected


@pytest.mark.parametrize("own", [apart(HOSTNAME), apart(ZONE), SPREAD, {}])
@pytest.mark.parametrize("seed", range(2))
def test_cached_results_equal_those_of_a_new_evaluation(own, seed):
    """Also after changes of pods, and after a node was replaced, relabelled or tainted."""
    chance, cluster, nominator = Chance(seed), Cluster(), Nominator()
    for number, name in enumerate(NODES):
        zone = {ZONE: f"z{number % 3}"} if number < 6 else {}
        node = make_node(name, labels={HOSTNAME: name, **zone}, cpu=4)
        cluster.apply(ObjectChanged(node))
        lesser = make_pod(f"lesser-{name}", node=name, priority=1, requests={"cpu": 2})
        cluster.apply(ObjectChanged(lesser))
    waiting = make_pod("new", priority=9, labels={"app": "a"}, requests={"cpu": 3}, spec=own)
    pod = PodInfo(waiting, cluster.shapes.shape_of(waiting))
    served, placed, seen = serve_over(cluster, nominator), {}, set()
    measured = serve_over(cluster, nominator, Meter(lambda: 0))
    for step in range(30):
        if placed and chance.below(9) < 4:
            gone = placed.pop(chance.of(sorted(placed)))
            cluster.apply(ObjectDeleted(gone))
        elif chance.one_in(6):
            name = chance.of(NODES)
            node = cluster.table.find(name).node
            before = node.metadata.labels
            labels = chance.of([before, {HOSTNAME: name, ZONE: f"z{chance.below(3)}"}])
            if chance.one_in(3):
                cluster.apply(ObjectDeleted(node))
            taints = chance.of([(), ("a:NoSchedule",), ("a:PreferNoSchedule",)])
            cluster.apply(ObjectChanged(make_node(name, labels=labels, taints=taints, cpu=4)))
        else:
            one = make_pod(
                f"p{step}",
                node=chance.of(NODES),
                priority=chance.of([1, 1, 1, 10]),
                labels={"app": chance.of("abc")},
                requests={"cpu": "500m"},
                spec=chance.of([{}, {}, apart(HOSTNAME), apart(ZONE)]),
            )
            placed[one.key] = one
            cluster.apply(ObjectChanged(one))
        found = rooms(served, pod)
        assert found == rooms(serve_over(cluster, nominator), pod)
        assert found == rooms(measured, pod)
        seen.add(str(found))
    assert len(seen) > 4


class Diary:
    """Records the nodes that are evaluated by a trial, and those that are evaluated by sums."""

    def __init__(self, monkeypatch):
        self.trials, self.sums = [], []
        by_trial, by_sums = dry_run.select_victims_on_node, dry_run.select_victims_by_resources

        def tried(framework, state, pod, node, *more):
            self.trials.append(node.name)
            return by_trial(framework, state, pod, node, *more)

        def summed(fit, pod, node, *more):
            self.sums.append(node.name)
            return by_sums(fit, pod, node, *more)

        monkeypatch.setattr(dry_run, "select_victims_on_node", tried)
        monkeypatch.setattr(dry_run, "select_victims_by_resources", summed)

    def read(self):
        """Return the nodes recorded since the last call: (by trials, by sums)."""
        found = set(self.trials), set(self.sums)
        self.trials.clear()
        self.sums.clear()
        return found


def full_nodes(names, best):
    """Return full nodes with pods of lower priority; the least important pod is on `best`."""
    scene = PluginScene()
    for number, name in enumerate(names):
        scene.add(make_node(name, cpu=4, labels={ZONE: f"z{number % 2}", HOSTNAME: name}))
        priority = 1 if name == best else 2
        scene.add(make_pod(f"p-{name}", node=name, priority=priority, requests={"cpu": 4}))
    return scene


def chosen(scene, pod):
    """Return the nominated node, None if preemption does not help."""
    room = scene.make_room(pod)
    return room and room.nominated_node


@pytest.mark.parametrize("spec", [{}, SPREAD, apart(HOSTNAME)], ids=["plain", "spread", "apart"])
@pytest.mark.parametrize("is_many", [False, True])
@pytest.mark.parametrize("is_measured", [False, True])
def test_nodes_are_evaluated_by_sums_and_again_only_after_a_change(
    spec, is_many, is_measured, monkeypatch
):
    """Many nodes are evaluated together, and then the victims on the chosen node are found."""
    nodes = dry_run._COLUMNS_FROM if is_many else dry_run._COLUMNS_FROM - 1
    diary, names = Diary(monkeypatch), [f"n{number:02}" for number in range(nodes)]
    scene = full_nodes(names, "n05")
    if is_measured:
        scene.profile = serve_over(scene.cluster, scene.nominator, Meter(lambda: 0))
    scene.add(make_pod("p-n03", node="n03", priority=2, requests={"cpu": 1}))
    scene.add(make_pod("in-the-way", node="n03", priority=10, requests={"cpu": 3}))
    pod = make_pod("new", priority=9, labels={"app": "a"}, requests={"cpu": 3}, spec=spec)
    assert chosen(scene, pod) == "n05"
    assert diary.read() == (set(), {"n05"} if is_many else {*names})
    assert chosen(scene, pod) == "n05"
    assert diary.read() == (set(), set())
    scene.add(make_pod("more", node="n07", priority=2))
    assert chosen(scene, pod) == "n05"
    trials, sums = diary.read()
    assert not trials
    assert sums - {"n05"} == {"n07"}
    scene.add(make_node("n09", cpu=4, labels={ZONE: "z1", HOSTNAME: "n09", "more": ""}))
    assert chosen(scene, pod) == "n05"
    trials, sums = diary.read()
    assert not trials
    assert sums - {"n05"} == {"n09"}


@pytest.mark.parametrize(
    ("spec", "again"),
    [(apart(HOSTNAME), {3}), (apart(ZONE), {1, 3, 5}), (SPREAD, {0, 1, 2, 3, 4, 5})],
    ids=["hostname", "zone", "spread"],
)
def test_a_changed_taint_affects_the_nodes_of_the_same_domains(spec, again, monkeypatch):
    """Topology spread may count the tainted node, so it affects all nodes."""
    judged, judge = [], ClusterVerdicts.judge

    def noted(verdicts, pod, found, rows):
        judged.extend(rows.tolist())
        return judge(verdicts, pod, found, rows)

    monkeypatch.setattr(ClusterVerdicts, "judge", noted)
    scene = full_nodes([f"n{number}" for number in range(6)], "n5")
    pod = make_pod("new", priority=9, labels={"app": "a"}, requests={"cpu": 3}, spec=spec)
    assert chosen(scene, pod) == "n5"
    assert {*judged} == {0, 1, 2, 3, 4, 5}
    judged.clear()
    labels, taints = {ZONE: "z1", HOSTNAME: "n3"}, ("a:PreferNoSchedule",)
    scene.add(make_node("n3", cpu=4, labels=labels, taints=taints))
    assert chosen(scene, pod) == "n5"
    assert {*judged} == again


def test_a_nominated_pod_affects_only_its_own_node(monkeypatch):
    """The next pod of the shape leaves these resources to the nominated pod."""
    diary, scene = Diary(monkeypatch), full_nodes(NODES, "n2")
    first, second = (make_pod(name, priority=9, requests={"cpu": 3}) for name in ("one", "two"))
    assert chosen(scene, first) == "n2"
    scene.nominate(first, "n2")
    diary.read()
    assert chosen(scene, second) != "n2"
    assert diary.read() == (set(), {"n2"})
    assert chosen(scene, first) == "n2"
    assert diary.read() == (set(), {"n2"})
    assert chosen(scene, second) != "n2"


@pytest.mark.parametrize("spec", [{}, SPREAD, apart(HOSTNAME)], ids=["plain", "spread", "apart"])
def test_nominated_resources_are_available_only_to_the_nominated_pod(spec):
    """Cached results of another pod of the shape count the nominated pod."""
    scene, more = full_nodes(NODES, "n2"), {"requests": {"cpu": 3}, "labels": {"app": "a"}}
    first, second = (make_pod(name, priority=9, spec=spec, **more) for name in ("one", "two"))
    scene.nominate(first, "n2")
    for _ in range(2):
        assert chosen(scene, second) not in ("n2", None)
        assert chosen(scene, first) == "n2"


def test_filter_statuses_and_sums_are_combined_as_in_a_trial(monkeypatch):
    """With and without enough resources, in zones that accept or reject the pod.

    An accepted node with room is evaluated if something else, such as an extender, rejected it.
    """
    scene, cpu, rows = PluginScene(), {"short": 4, "room": 1, "awaited": 1, "none": 1}, {}
    for kind, lesser in cpu.items():
        for zone in ("accepts", "rejects", "unnamed"):
            name = f"{zone}-{kind}"
            labels = {} if zone == "unnamed" else {ZONE: zone}
            scene.add(make_node(name, cpu=5, memory="9Gi", labels=labels))
            scene.add(make_pod(f"p-{name}", node=name, priority=1, requests={"cpu": lesser}))
            if kind == "awaited":
                scene.nominate(make_pod(f"to-{name}", priority=9, requests={"cpu": 1}), name)
            if kind == "none":
                taken = {"memory": "2Gi"} if zone == "accepts" else {"cpu": 3}
                scene.add(make_pod(f"q-{name}", node=name, priority=10, requests=taken))
            rows[name] = scene.cluster.table.find(name).row
    scene.add(make_pod("a", node="rejects-room", priority=10, labels={"app": "a"}))
    wanted = {"cpu": 3, "memory": "8Gi"}
    waiting = make_pod("new", priority=9, labels={"app": "a"}, requests=wanted, spec=SPREAD)
    pod, framework = scene.info(waiting), scene.profile.framework
    found = find_nodes_that_fit(scene.profile.plans, pod)
    expected = {
        name: select_victims_on_node(framework, found.state, pod, scene.cluster.table.at(row), ())
        for name, row in rows.items()
    }
    diary = Diary(monkeypatch)
    run = DryRuns(scene.profile.plans, PreemptionPolicy())
    result = run.dry_run_preemption(pod, found, np.array(sorted(rows.values()))).columns
    trials, _ = diary.read()
    assert {name: result.result(row) for name, row in rows.items()} == expected
    assert trials == {"accepts-room"}
    assert isinstance(expected["accepts-short"], Candidate)
    assert len({str(one) for one in expected.values()}) == 7


@pytest.mark.parametrize("changed", ["nodes", "pods"])
def test_everything_is_read_again_after_an_overflow_of_the_change_log(changed, monkeypatch):
    """The node of the least important pod changes, or the priority of that pod."""
    monkeypatch.setattr(change_log, "_LENGTH_MAX", 4)
    scene = full_nodes(NODES, "n2")
    pod = make_pod("new", priority=9, requests={"cpu": 3})
    assert chosen(scene, pod) == "n2"
    for number in range(9):
        if changed == "nodes":
            scene.add(make_node("n0", cpu=4, labels={"number": str(number)}))
        else:
            scene.add(make_pod("p-n2", node="n2", priority=9 + number, requests={"cpu": 4}))
    assert chosen(scene, pod) in ({"n2"} if changed == "nodes" else set(NODES) - {"n2"})


class Moody:
    """A plugin that accepts no victims until it is changed."""

    name = "Moody"
    spares = True

    def is_eligible_victim(self, _pod, _victim):
        return not Moody.spares


@pytest.mark.parametrize("spec", [{}, SPREAD], ids=["plain", "spread"])
def test_a_plugin_that_selects_victims_is_called_each_time(spec, monkeypatch):
    scene = PluginScene(Moody, nodes=[make_node("n", cpu=4, labels={ZONE: "z"})])
    scene.add(make_pod("p", node="n", requests={"cpu": 4}))
    pod = make_pod("new", priority=9, labels={"app": "a"}, requests={"cpu": 3}, spec=spec)
    assert chosen(scene, pod) is None
    monkeypatch.setattr(Moody, "spares", False)
    assert chosen(scene, pod) == "n"
    monkeypatch.setattr(Moody, "spares", True)
    assert chosen(scene, pod) is None


@pytest.mark.parametrize("spec", [{}, SPREAD], ids=["plain", "spread"])
def test_a_pod_restricted_to_nodes_is_evaluated_only_on_these_nodes(spec):
    """The statuses are stored in the order of these nodes, not by row."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n4", "n6")]
    required = {"nodeSelectorTerms": [{"matchFields": [field]} for field in fields]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pod = make_pod("new", priority=9, requests={"cpu": 3}, spec=spec | {"affinity": affinity})
    for best in ("n4", "n6"):
        assert chosen(full_nodes(NODES, best), pod) == best
