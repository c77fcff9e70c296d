"""Cached statuses of nodes with nominated pods equal those of a new evaluation of each node."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.engine.core.status import SUCCESS
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.feasibility import filter_nodes
from fairlead.engine.framework.plan.plan_cache import looks_beyond_the_node
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.nominated_pods import fitting_nominated_node
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene
from fairlead.testing.random_cluster import NODE_NAMES, POD_NAMES, Chance, any_node, any_pod


def verdicts(scene, pod):
    """Yield (cached, new verdict) of each node; no competing pods are nominated to most nodes."""
    framework = scene.profile.framework
    alone = filter_nodes(scene.profile.plans, pod)
    found = find_nodes_that_fit(scene.profile.plans, pod)
    for node in scene.cluster.table.nodes() if found.rejected is None else ():
        at = found.plan.position(node.row)
        if at is None or alone.codes[at] < 0:
            continue
        if framework.nominator.competing_pods_on(node.name, pod):
            status = framework.run_filters_with_nominated(alone.state, pod, node)
            yield found.statuses[found.codes[at]], status or SUCCESS
        else:
            yield found.statuses[found.codes[at]], alone.statuses[alone.codes[at]]


def measured(scene):
    """The profile of `scene` with measured plugins."""
    handle = PluginHandle(scene.cluster, scene.nominator)
    return build_profile(Profile(), handle, TieBreak(0), meter=Meter(lambda: 0))


def change(scene, chance, number):
    """Change a node, a pod or a nomination."""
    match chance.below(6):
        case 0:
            scene.add(any_node(chance, chance.of(NODE_NAMES)))
        case 1 | 2:
            scene.add(any_pod(chance, chance.of(POD_NAMES), chance.of(NODE_NAMES)))
        case 3:
            placed = sorted(scene.cluster.pods)
            if placed:
                scene.remove(scene.cluster.pods[chance.of(placed)].pod)
        case _:
            scene.nominate(any_pod(chance, f"nominated-{number % 9}"), chance.of(NODE_NAMES))


@pytest.mark.parametrize("seed", range(6))
def test_statuses_equal_those_of_a_new_evaluation(seed):
    """Given random changes, when several pods are tried, then every status is up to date."""
    chance = Chance(seed)
    scene = PluginScene(nodes=[any_node(chance, name) for name in NODE_NAMES])
    other = measured(scene)
    waiting = [any_pod(chance, f"waiting-{number}") for number in range(24)]
    compared = beyond = 0
    for number in range(60):
        change(scene, chance, number)
        for one in waiting[number % 4 :: 4]:
            pod = scene.info(one)
            if chance.below(5) == 0:
                scene.nominator.nominate(pod, chance.of(NODE_NAMES))
            for cached, new in verdicts(scene, pod):
                assert cached == new
                compared += 1
                found = filter_nodes(scene.profile.plans, pod)
                beyond += looks_beyond_the_node(found.plan, found.state)
            assert statuses(scene.profile, pod) == statuses(other, pod)
    assert compared > 200
    assert beyond > 50


def statuses(profile, pod):
    """The verdicts on all nodes."""
    found = find_nodes_that_fit(profile.plans, pod)
    if found.rejected is not None:
        return found.rejected
    return [None if code < 0 else found.statuses[code] for code in found.codes.tolist()]


def nominated_to(pod, node):
    """Return `pod` with `node` as the nominated node in its status."""
    status = msgspec.structs.replace(pod.status, nominated_node_name=node)
    return msgspec.structs.replace(pod, status=status)


@pytest.mark.parametrize("seed", range(6))
def test_a_nominated_node_that_fits_alone_also_fits_in_a_full_evaluation(seed):
    """Given random changes, then the status does not depend on other nodes or a new plan."""
    chance = Chance(seed)
    scene = PluginScene(nodes=[any_node(chance, name) for name in NODE_NAMES])
    plans = scene.profile.plans
    waiting = [any_pod(chance, f"waiting-{number}") for number in range(24)]
    fitting = refused = 0
    for number in range(60):
        change(scene, chance, number)
        for one in waiting[number % 4 :: 4]:
            name = chance.of(NODE_NAMES)
            pod = scene.info(nominated_to(one, name))
            if not chance.one_in(3):
                scene.nominator.nominate(pod, name)
            alone = fitting_nominated_node(plans, pod)
            found = find_nodes_that_fit(plans, pod)
            node = scene.cluster.table.find(name)
            if alone is None:
                refused += 1
                continue
            assert alone[0] is node
            assert found.is_feasible(node)
            assert alone[1].skipped_filters == found.state.skipped_filters
            fitting += 1
    assert fitting > 3
    assert refused > 30


@pytest.mark.parametrize("is_measured", [False, True])
def test_a_feasible_nominated_node_is_evaluated_alone(is_measured):
    """With plugins that are all in-tree, once another pod of the shape has been evaluated."""
    scene = PluginScene(nodes=[make_node("a", cpu="1"), make_node("b", cpu="1")])
    if is_measured:
        scene.profile = measured(scene)
    assert scene.profile.is_stateless
    pod = scene.info(nominated_to(make_pod("p", requests={"cpu": "1"}), "b"))
    plans = scene.profile.plans
    assert fitting_nominated_node(plans, pod) is None
    find_nodes_that_fit(plans, pod)
    assert fitting_nominated_node(plans, pod)[0].name == "b"
    rival = make_pod("rival", requests={"cpu": "1"})
    scene.nominate(rival, "b")
    assert fitting_nominated_node(plans, pod) is None
    scene.nominate(rival, "a")
    assert fitting_nominated_node(plans, pod)[0].name == "b"
    scene.add(make_node("b", cpu="1", taints=["k:NoSchedule"]))
    assert fitting_nominated_node(plans, pod) is None
    find_nodes_that_fit(plans, pod)
    assert fitting_nominated_node(plans, pod) is None
