"""A trial: whether a pod fits after hypothetical removals and additions, which are reverted."""

from __future__ import annotations

import pytest

from fairlead import plugin as framework
from fairlead.testing import PluginScene, make_node, make_pod


class Loud(dict):
    """The number of loud pods in each zone."""

    def clone(self):
        return Loud(self)


class Quiet:
    """Rejects nodes in a zone with a pod labelled loud, as counted by PreFilter."""

    name = "Quiet"

    def __init__(self, handle):
        self.handle = handle

    def pre_filter(self, state, pod):
        loud = Loud()
        for node in self.handle.cluster.table.nodes():
            for other in node.pods.values():
                self._count(loud, other, node, 1)
        state.write(loud)

    def add_pod(self, state, pod, added, node):
        self._count(state.read(Loud), added, node, 1)

    def remove_pod(self, state, pod, removed, node):
        self._count(state.read(Loud), removed, node, -1)

    def _count(self, loud, pod, node, by):
        if "loud" in pod.labels:
            zone = node.labels["zone"]
            loud[zone] = loud.get(zone, 0) + by

    def filter(self, state, pod, node):
        loud = state.read(Loud).get(node.labels["zone"])
        return framework.unschedulable("it is loud") if loud else None


class Silent:
    """A plugin that accepts every node."""

    name = "Silent"

    def __init__(self, handle):
        pass

    def filter(self, state, pod, node):
        return None


class Forgetful(Quiet):
    name = "Forgetful"

    def remove_pod(self, state, pod, removed, node):
        raise LookupError("lost count")


class Stage:
    """A cycle for a pod in a cluster of two nodes in zone x; node a has a loud pod."""

    def __init__(self, plugin):
        self.scene = PluginScene(plugin, nodes=[make_node(n, labels={"zone": "x"}) for n in "ab"])
        self.scene.add(make_pod("drummer", node="a", labels={"loud": ""}, requests={"cpu": "3"}))
        self.pod = self.scene.info(make_pod("p", requests={"cpu": "2"}))
        self.a, self.b = self.scene.cluster.table.nodes()
        [self.drummer] = self.a.pods.values()
        self.state = framework.CycleState()
        for each in self.scene.profile.framework.pre_filters:
            self.scene.profile.framework.run_pre_filter(self.state, self.pod, each)

    def trial(self):
        return self.scene.profile.framework.trial(self.state, self.pod)


def message(status):
    return "" if status is None else status.message


def test_the_removal_of_a_pod_changes_the_status_of_another_node() -> None:
    stage = Stage(Quiet)
    with stage.trial() as trial:
        assert message(trial.verdict(stage.b)) == "it is loud"
        trial.remove(stage.drummer, stage.a)
        assert message(trial.verdict(stage.b)) == ""
        trial.add(stage.drummer, stage.b)
        assert message(trial.verdict(stage.a)) == "it is loud"
    with stage.trial() as trial:
        assert message(trial.verdict(stage.b)) == "it is loud"
    assert (list(stage.a.pods), list(stage.b.pods)) == ([stage.drummer.id], [])
    stage.scene.cluster.table.validate()


def test_a_trial_runs_all_filters() -> None:
    stage = Stage(Quiet)
    with stage.trial() as trial:
        assert trial.verdict(stage.a).plugin == "NodeResourcesFit"
        trial.remove(stage.drummer, stage.a)
        assert trial.verdict(stage.a) is None


def test_a_plugin_that_fails_in_remove_pod_ends_the_trial_and_is_named() -> None:
    stage = Stage(Forgetful)
    words = "'Forgetful' failed in remove_pod: LookupError: lost count"
    with pytest.raises(framework.PluginFault, match=words), stage.trial() as trial:
        trial.remove(stage.drummer, stage.a)
    assert list(stage.a.pods) == [stage.drummer.id]
    stage.scene.cluster.table.validate()


def test_a_plugin_cannot_start_a_trial_in_its_constructor() -> None:
    class Hasty(Quiet):
        name = "Hasty"

        def __init__(self, handle):
            with handle.trial(framework.CycleState(), None):
                pass

    with pytest.raises(ValueError, match="cannot be made: AssertionError: a trial calls plugins"):
        PluginScene(Hasty)


def test_removed_pods_are_subtracted_once_from_affinity_counts() -> None:
    """Two pods repel a third one. After the removal of either, the other still repels it."""
    term = {"labelSelector": {"matchLabels": {"loud": ""}}, "topologyKey": "zone"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    stage = Stage(Silent)
    stage.scene.add(make_pod("piper", node="b", labels={"loud": ""}))
    pod = stage.scene.info(make_pod("p", spec={"affinity": apart}))
    [piper] = stage.b.pods.values()
    fwk, state = stage.scene.profile.framework, framework.CycleState()
    for each in fwk.pre_filters:
        fwk.run_pre_filter(state, pod, each)
    for leaving, staying in ((stage.drummer, piper), (piper, stage.drummer)):
        with fwk.trial(state, pod) as trial:
            trial.remove(leaving, stage.a if leaving is stage.drummer else stage.b)
            assert "anti-affinity" in message(trial.verdict(stage.a)), staying.pod.metadata.name
    with fwk.trial(state, pod) as trial:
        trial.remove(stage.drummer, stage.a)
        trial.remove(piper, stage.b)
        assert trial.verdict(stage.a) is None
