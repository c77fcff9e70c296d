"""Dry runs: which nodes are evaluated how, and which of the results can be used again."""

from __future__ import annotations

import pytest

from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.compose import PluginHandle, serve
from fairlead.engine.scheduling.evaluation import evaluate
from fairlead.engine.scheduling.preemption import dry_run
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene
from fairlead.testing.random_cluster import Chance

NODES = [f"n{number}" for number in range(7)]


def apart(key):
    """A pod that keeps away from pods of app a, per domain of `key`."""
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": key}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {"affinity": affinity}


def serve_over(cluster, nominator):
    return serve(Profile(), PluginHandle(cluster, nominator, WaitingPods()), TieBreak(0))


def rooms(served, pod):
    """The nodes where preemption helps, with the victims, and why it does not help elsewhere."""
    found = evaluate(served, pod).preemption
    if found is None:
        return None
    victims = {name: [one.key for one in to.victims] for name, to in found.candidates.items()}
    return victims, found.rejected


@pytest.mark.parametrize("own", [HOSTNAME, ZONE, None])
@pytest.mark.parametrize("seed", range(2))
def test_cached_results_are_those_of_a_new_evaluation(own, seed):
    chance, cluster, nominator = Chance(seed), Cluster(), Nominator()
    for number, name in enumerate(NODES):
        zone = {ZONE: f"z{number % 3}"} if number < 6 else {}
        node = make_node(name, labels={HOSTNAME: name, **zone}, cpu=4)
        cluster.apply(ObjectChanged(node))
        lesser = make_pod(f"lesser-{name}", node=name, priority=1, requests={"cpu": 2})
        cluster.apply(ObjectChanged(lesser))
    waiting = make_pod(
        "new", priority=9, labels={"app": "a"}, requests={"cpu": 3}, spec=apart(own) if own else {}
    )
    pod = PodInfo(waiting, cluster.shapes.shape_of(waiting))
    served, placed, seen = serve_over(cluster, nominator), {}, set()
    for step in range(30):
        if placed and chance.below(9) < 4:
            gone = placed.pop(chance.of(sorted(placed)))
            cluster.apply(ObjectDeleted(gone))
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
        seen.add(str(found))
    assert len(seen) > 4


class Diary:
    """The nodes that are evaluated by a trial, and those that are evaluated alone by sums."""

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
        """What was written since the last time: the nodes of trials and those of sums."""
        found = set(self.trials), set(self.sums)
        self.trials.clear()
        self.sums.clear()
        return found


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


def full_nodes(names, best):
    """Nodes full of pods of lower priority; that on node `best` is the least important one."""
    scene = PluginScene()
    for number, name in enumerate(names):
        scene.add(make_node(name, cpu=4, labels={ZONE: f"z{number % 2}", HOSTNAME: name}))
        priority = 1 if name == best else 2
        scene.add(make_pod(f"p-{name}", node=name, priority=priority, requests={"cpu": 4}))
    return scene


def chosen(scene, pod):
    return scene.make_room(pod).nominated_node


@pytest.mark.parametrize("spec", [{}, SPREAD, apart(HOSTNAME)], ids=["plain", "spread", "apart"])
@pytest.mark.parametrize("nodes", [dry_run._COLUMNS_FROM - 1, dry_run._COLUMNS_FROM])
def test_nodes_are_evaluated_by_sums_and_again_only_after_a_change(spec, nodes, monkeypatch):
    """Many nodes are evaluated together, and then the victims on the chosen node are found."""
    diary, names = Diary(monkeypatch), [f"n{number:02}" for number in range(nodes)]
    scene = full_nodes(names, "n05")
    pod = make_pod("new", priority=9, labels={"app": "a"}, requests={"cpu": 3}, spec=spec)
    assert chosen(scene, pod) == "n05"
    assert diary.read() == (set(), {"n05"} if nodes == dry_run._COLUMNS_FROM else {*names})
    assert chosen(scene, pod) == "n05"
    assert diary.read() == (set(), set())
    scene.add(make_pod("more", node="n07", priority=2))
    assert chosen(scene, pod) == "n05"
    trials, sums = diary.read()
    assert not trials
    assert sums - {"n05"} == {"n07"}


def test_a_nominated_pod_concerns_only_its_node(monkeypatch):
    """The next pod of the shape must leave room for it there; it takes that room itself."""
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
