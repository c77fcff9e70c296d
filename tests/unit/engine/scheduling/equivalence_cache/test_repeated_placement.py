"""Placements repeated from the cycle of an equal pod equal those of a new cycle."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.objects import (
    Namespace,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Service,
    ServiceSpec,
)
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.cycle import schedule_one
from fairlead.engine.scheduling.decision import Placement
from fairlead.engine.scheduling.extender.consultation import run_consultation
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene
from fairlead.testing.random_cluster import Chance

NODES = [f"n{number}" for number in range(8)]
ALIKE = {"matchLabels": {"app": "a"}}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity(kind, key):
    term = {"labelSelector": ALIKE, "topologyKey": key}
    return {"affinity": {kind: {REQUIRED: [term]}}}


def preferring(key):
    weighted = {"weight": 5, "podAffinityTerm": {"labelSelector": ALIKE, "topologyKey": key}}
    return {"affinity": {"podAffinity": {PREFERRED: [weighted]}}}


def spread(action):
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": action}
    return {"topologySpreadConstraints": [constraint | {"labelSelector": ALIKE}]}


CONSTRAINED = [
    affinity("podAntiAffinity", HOSTNAME),
    affinity("podAntiAffinity", ZONE),
    affinity("podAffinity", ZONE),
    preferring(HOSTNAME),
    spread("DoNotSchedule"),
    spread("ScheduleAnyway"),
]
PINNED_TERM = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
PINNED = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [PINNED_TERM]}}}}


def node(chance, name):
    zone = {} if name == "n4" else {ZONE: f"z{int(name[1]) % 2}"}
    return make_node(
        name,
        labels={HOSTNAME: name, **zone},
        cpu=chance.of([3, 4]),
        unschedulable=chance.below(5) == 0,
    )


def random_kind(chance):
    """Return the arguments with which `make_pod` makes equal pods, mostly without constraints."""
    return {
        "namespace": chance.of(["default", "other"]),
        "labels": {"app": chance.of("ab")},
        "requests": {"cpu": chance.of(["500m", "1"])},
        "spec": chance.of([{}, {}, {}, PINNED, chance.of(CONSTRAINED)]),
    }


class Changes:
    """Random changes of the cluster of a scene; most placed pods have no affinity."""

    def __init__(self, scene, chance):
        self.scene, self.chance, self.placed = scene, chance, {}
        self.number = 0

    def change(self):
        chance, scene = self.chance, self.scene
        self.number += 1
        match chance.below(15):
            case 0 | 1 | 2 | 3 | 4:
                one = make_pod(f"p{self.number}", node=chance.of(NODES), **random_kind(chance))
                self.put(one)
            case 5 | 6 | 7 | 8 if self.placed:
                scene.remove(self.placed.pop(chance.of(sorted(self.placed))))
            case 9:
                scene.add(node(chance, chance.of(NODES)))
            case 10:
                labels = chance.of([{}, {"team": "x"}])
                scene.add(Namespace(metadata=ObjectMeta(name="default", labels=labels)))
            case 11 | 12 | 13:
                pod = make_pod(f"nominated-{chance.below(4)}", priority=5, **random_kind(chance))
                if chance.below(2):
                    scene.nominate(pod, chance.of(NODES))
                else:
                    scene.nominator.withdraw(scene.info(pod).uid)
            case _:
                selector = chance.of([{"app": "a"}, {"app": "c"}])
                meta = ObjectMeta(name="web", namespace="default")
                scene.add(Service(metadata=meta, spec=ServiceSpec(selector=selector)))

    def put(self, pod):
        self.placed[pod.key] = pod
        self.scene.add(pod)


def chosen(served, pod, seed):
    """Return what a cycle for `pod` decides, and how many choices it made."""
    tie_break = TieBreak(seed)
    found = run_consultation(schedule_one(served, pod, tie_break, runs_post_filter=False))
    if not isinstance(found, Placement):
        return found, tie_break.choices
    return (found.node.name, found.via, found.feasible, found.equals), tie_break.choices


def prepares_nothing(served, placement, pod):
    """Return whether the plugins that run before the pod is bound do nothing."""
    framework, node = served.framework, placement.node.name
    answers = [plugin.reserve(placement.state, pod, node) for plugin in framework.reserve]
    answers += [plugin.pre_bind(placement.state, pod, node) for plugin in framework.pre_bind]
    return answers == [None] * len(answers) and not framework.permit


def run(seed):
    """Compare cycles with and without repetition.

    Returns how often cycles were repeated, how often while pods were nominated, and how often
    nodes were kept that repel pods.
    """
    chance = Chance(seed)
    scene = PluginScene(nodes=[node(chance, name) for name in NODES])
    plain = replace(scene.profile, placements=None, failures=None)
    handle = PluginHandle(scene.cluster, scene.nominator)
    metered = build_profile(Profile(), handle, TieBreak(0), meter=Meter(lambda: 0))
    changes, repeated, beside, masked = Changes(scene, chance), 0, 0, 0
    kinds = [random_kind(chance) for _ in range(5)]
    for step in range(60):
        changes.change()
        for number in range(6):
            kind = chance.of(kinds)
            pod = scene.info(make_pod(f"new-{step}-{number}", **kind))
            found = scene.profile.placements.find(pod, TieBreak(0))
            is_repeated = found is not None
            repeated += is_repeated
            assert not is_repeated or found.only_bind_runs
            assert not is_repeated or prepares_nothing(scene.profile, found, pod)
            beside += is_repeated and bool(scene.nominator)
            kept = scene.profile.placements._kept.values()
            masked += any(one.accepted is not None for one in kept)
            decided = chosen(scene.profile, pod, number)
            assert decided == chosen(plain, pod, number)
            assert is_repeated <= (metered.placements.find(pod, TieBreak(0)) is not None)
            assert decided == chosen(metered, pod, number)
            if decided[1] and chance.below(3) == 0:
                changes.put(make_pod(f"new-{step}-{number}", node=decided[0][0], **kind))
    return repeated, beside, masked


@pytest.mark.parametrize("seed", range(8))
def test_repeated_placements_equal_those_of_new_cycles(seed):
    """Given random changes, when equal pods are placed, then each is placed as by a new cycle."""
    run(seed)


def test_the_random_runs_repeat_many_cycles():
    """Repeated cycles occur often, also beside nominated pods and with nodes that repel pods."""
    repeated, beside, masked = map(sum, zip(*map(run, range(5)), strict=True))
    assert repeated > 200
    assert beside > 50
    assert masked > 20


def scene_of_equal_nodes(count=3):
    return PluginScene(nodes=[make_node(f"n{number}", cpu=4) for number in range(count)])


def place_two(scene, **kind):
    """Place the first two of equal pods; the cycle of the second can be repeated."""
    for name in ("one", "two"):
        scene.schedule(make_pod(name, **kind))


def repeats(scene, pod):
    """Return whether `pod` is placed without running all plugins."""
    return scene.profile.placements.find(scene.info(pod), TieBreak(0)) is not None


def test_an_equal_pod_shares_the_cycle_of_the_first_pod():
    """Given a placed pod, then an equal pod repeats it, and a pod with other labels does not."""
    scene = scene_of_equal_nodes()
    place_two(scene)
    assert repeats(scene, make_pod("second"))
    assert not repeats(scene, make_pod("third", labels={"app": "a"}))


@pytest.mark.parametrize("spec", CONSTRAINED)
def test_pods_with_constraints_are_evaluated(spec):
    """Given a placed pod with a constraint on other pods, then an equal pod is evaluated anew."""
    scene = scene_of_equal_nodes()
    labels = {"app": "a"}
    scene.add(make_node("zoned", cpu=4, labels={HOSTNAME: "zoned", ZONE: "z"}))
    place_two(scene, labels=labels, spec=spec)
    assert not repeats(scene, make_pod("second", labels=labels, spec=spec))


def test_nodes_filled_by_nominated_pods_are_left_out():
    """Given a pod that is nominated to a node and fills it, then equal pods go to other nodes."""
    scene = scene_of_equal_nodes()
    place_two(scene, requests={"cpu": 1})
    scene.nominate(make_pod("nominated", requests={"cpu": 4}), "n1")
    pods = [make_pod(f"next-{number}", requests={"cpu": 1}) for number in range(6)]
    assert repeats(scene, pods[0])
    assert {scene.schedule(pod) for pod in pods} == {"n0", "n2"}


def test_a_pod_with_a_nomination_is_evaluated():
    """Given a placed pod, when an equal pod has a nomination, then it is evaluated."""
    scene = scene_of_equal_nodes()
    place_two(scene)
    scene.nominate(make_pod("second"), "n0")
    assert not repeats(scene, make_pod("second"))


def test_nothing_is_repeated_if_no_node_fits():
    """Given placed pods that fill the only node, then an equal pod is evaluated and fails."""
    scene = scene_of_equal_nodes(1)
    place_two(scene, requests={"cpu": 2})
    pod = make_pod("third", requests={"cpu": 2})
    assert not repeats(scene, pod)
    assert not scene.schedule(pod)


def test_a_new_service_spreads_equal_pods():
    """Given a placed pod, when a Service selects it, then equal pods are scored anew."""
    scene = scene_of_equal_nodes()
    place_two(scene, labels={"app": "a"})
    meta = ObjectMeta(name="web", namespace="default")
    scene.add(Service(metadata=meta, spec=ServiceSpec(selector={"app": "a"})))
    assert not repeats(scene, make_pod("second", labels={"app": "a"}))


def test_user_plugins_get_their_own_cycle_state():
    """Given a user's Reserve plugin, then the cycles of equal pods do not share their state."""

    class Holding:
        name = "Holding"

        def reserve(self, state, pod, node):
            return None

        def unreserve(self, state, pod, node):
            pass

    scene = PluginScene(Holding, nodes=[make_node("n0", cpu=4), make_node("n1", cpu=4)])
    place_two(scene)
    second, third = (
        scene.profile.placements.find(scene.info(make_pod(name)), TieBreak(0))
        for name in ("second", "third")
    )
    assert second.state is not third.state


def test_only_users_plugins_run_before_equal_pods_are_bound():
    """Given a user's Permit plugin, then equal pods do not skip it; without one, they do."""

    class Holding:
        name = "Holding"

        def permit(self, state, pod, node):
            return None

    def second(*plugins):
        scene = PluginScene(*plugins, nodes=[make_node("n0", cpu=4), make_node("n1", cpu=4)])
        place_two(scene)
        return scene.profile.placements.find(scene.info(make_pod("second")), TieBreak(0))

    assert second().only_bind_runs
    assert not second(Holding).only_bind_runs


def test_reserve_runs_for_every_pod_with_claims():
    """Given equal pods with a volume, then Reserve runs for each of them."""
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    volume = {
        "metadata": {"name": "v"},
        "spec": {"claimRef": {"namespace": "default", "name": "data", "uid": "c"}},
        "status": {"phase": "Bound"},
    }
    bound = {"pv.kubernetes.io/bind-completed": "true"}
    meta = {"name": "data", "namespace": "default", "uid": "c", "annotations": bound}
    scene = scene_of_equal_nodes()
    scene.add(decode_as(PersistentVolume, volume))
    scene.add(decode_as(PersistentVolumeClaim, {"metadata": meta, "spec": {"volumeName": "v"}}))
    place_two(scene, spec={"volumes": [claim]})
    assert not repeats(scene, make_pod("second", spec={"volumes": [claim]}))
