"""Cached dry runs under anti-affinity: a changed pod concerns the nodes of its domains."""

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
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
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
