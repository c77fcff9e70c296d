"""Cached failures of equal pods equal those of a new cycle."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.objects import Namespace, ObjectMeta
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.cycle import schedule_one
from fairlead.engine.scheduling.decision import Failure
from fairlead.engine.scheduling.extender.consultation import run_consultation
from fairlead.testing.builders import make_budget, make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene
from fairlead.testing.random_cluster import Chance

NODES = [f"n{number}" for number in range(5)]
ALIKE = {"matchLabels": {"app": "a"}}


def apart(key, selector=ALIKE, **more):
    term = {"labelSelector": selector, "topologyKey": key, **more}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {"affinity": affinity}


def beside(key):
    """Return a pod with affinity to pods of app b in a labelled namespace, per domain of `key`."""
    term = {
        "labelSelector": {"matchLabels": {"app": "b"}},
        "namespaceSelector": {"matchLabels": {"team": "x"}},
        "topologyKey": key,
    }
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": ALIKE,
        }
    ]
}
SPECS = [{}, apart(HOSTNAME), apart(ZONE), beside(ZONE), SPREAD, {"preemptionPolicy": "Never"}]


def node(chance, name):
    zone = {} if name == "n4" else {ZONE: f"z{int(name[1]) % 2}"}
    return make_node(
        name,
        labels={HOSTNAME: name, **zone},
        cpu=chance.of([2, 3]),
        unschedulable=chance.below(4) == 0,
    )


def random_kind(chance):
    """Return the arguments with which `make_pod` makes equal pods."""
    return {
        "namespace": chance.of(["default", "other"]),
        "labels": {"app": chance.of("ab")},
        "priority": chance.of([0, 5, 9]),
        "requests": {"cpu": chance.of(["1", "2"])},
        "spec": chance.of(SPECS),
    }


class Changes:
    """Random changes of the cluster of a scene."""

    def __init__(self, scene, chance):
        self.scene, self.chance, self.placed = scene, chance, {}
        self.number = 0

    def change(self):
        chance, scene = self.chance, self.scene
        self.number += 1
        match chance.below(8):
            case 0 | 1 | 2:
                one = make_pod(f"p{self.number}", node=chance.of(NODES), **random_kind(chance))
                self.placed[one.key] = one
                scene.add(one)
            case 3 | 4 if self.placed:
                scene.remove(self.placed.pop(chance.of(sorted(self.placed))))
            case 5:
                scene.add(node(chance, chance.of(NODES)))
            case 6:
                name = chance.of(["default", "other"])
                labels = chance.of([{}, {"team": "x"}])
                scene.add(Namespace(metadata=ObjectMeta(name=name, labels=labels)))
            case _:
                if chance.below(2):
                    nominated = make_pod(f"nominated-{self.number}", **random_kind(chance))
                    scene.nominate(nominated, chance.of(NODES))
                else:
                    allowed = chance.below(2)
                    scene.add(make_budget("guard", {"app": "a"}, allowed=allowed))


@pytest.mark.parametrize("seed", range(6))
def test_cached_failures_equal_those_of_new_cycles(seed):
    """Given random changes, when several equal pods are tried, then no failure is out of date."""
    chance = Chance(seed)
    scene = PluginScene(nodes=[node(chance, name) for name in NODES])
    plain, changes, repeated = replace(scene.profile, failures=None), Changes(scene, chance), 0
    handle = PluginHandle(scene.cluster, scene.nominator)
    metered = build_profile(Profile(), handle, TieBreak(0), meter=Meter(lambda: 0))
    kinds = [random_kind(chance) for _ in range(6)]
    for step in range(60):
        changes.change()
        for number in range(12):
            pod = scene.info(make_pod(f"new-{step}-{number}", **chance.of(kinds)))
            is_repeated = scene.profile.failures.find(pod) is not None
            repeated += is_repeated
            tried = run_consultation(schedule_one(scene.profile, pod, TieBreak(0)))
            again = run_consultation(schedule_one(plain, pod, TieBreak(0)))
            assert is_repeated <= (metered.failures.find(pod) is not None)
            measured = run_consultation(schedule_one(metered, pod, TieBreak(0)))
            if not isinstance(again, Failure):
                assert tried.node.name == again.node.name == measured.node.name
            elif again.post_filter_result is None:
                assert tried == again == measured
            else:
                # The tie-break of preemption continues from cycle to cycle.
                assert tried.post_filter_result is not None
                assert tried.post_filter_result.candidates == again.post_filter_result.candidates
    assert repeated > 20


def test_an_equal_pod_gets_the_failure_of_the_first_pod():
    """Given a full node, when two equal pods are tried, then the second gets the same failure."""
    scene = PluginScene(nodes=[make_node("a", cpu=1)])
    first, second = (make_pod(name, requests={"cpu": 2}) for name in ("first", "second"))
    assert scene.decide(second) is scene.decide(first)


def test_a_nominated_pod_is_evaluated():
    """Given a known failure, when an equal pod with a nomination is tried, then it is evaluated."""
    scene = PluginScene(nodes=[make_node("a", cpu=1)])
    first, second = (make_pod(name, requests={"cpu": 2}) for name in ("first", "second"))
    scene.nominate(second, "a")
    scene.decide(first)
    assert scene.profile.failures.find(scene.info(first)) is not None
    assert scene.profile.failures.find(scene.info(second)) is None


def test_failures_of_pods_with_claims_are_not_cached():
    """Given a pod whose claim is missing, when it is tried, then its failure is not kept."""
    scene = PluginScene(nodes=[make_node("a", cpu=1)])
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "missing"}]}
    pod = make_pod("first", requests={"cpu": 2}, spec=claims)
    scene.decide(pod)
    assert scene.profile.failures.find(scene.info(pod)) is None
