"""Plugins of Kubernetes 1.19: numbers computed by hand, and equal results in both forms."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Node, Pod, Service
from fairlead.engine.core.status import Code
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.plugins.release_1_19.node_prefer_avoid_pods import ANNOTATION
from fairlead.engine.plugins.release_1_19.registry import RELEASE_1_19
from fairlead.engine.scheduling.compose import PluginHandle
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod

BALANCED = "NodeResourcesBalancedAllocation"
APP = {"app": "web"}


class Scene:
    """A cluster and one of the plugins."""

    def __init__(self, name, *objects):
        self.cluster = Cluster()
        self.cluster.apply(ObjectsLoaded(list(objects)))
        self.table = self.cluster.table
        self.rows = np.array([node.row for node in self.table.nodes()], np.int64)
        self.plugin = RELEASE_1_19[name](PluginHandle(self.cluster, Nominator()), {})

    def info(self, pod):
        return PodInfo(pod, self.cluster.shapes.shape_of(pod))

    def scores(self, pod):
        """Return the scores by node, over columns."""
        found = self.plugin.score_columns(CycleState(), self.info(pod), self.table, self.rows)
        return {self.table.at(row).name: int(n) for row, n in zip(self.rows, found, strict=True)}

    def score(self, pod, node):
        return self.plugin.score(CycleState(), self.info(pod), self.table.find(node))


@pytest.mark.parametrize(
    ("requests", "score"),
    [
        ({"cpu": "2", "memory": "2Gi"}, 100),  # half of both
        ({"cpu": "3", "memory": "1Gi"}, 50),  # 75 % and 25 %
        ({"cpu": "4", "memory": "1Gi"}, 0),  # used up
        ({"cpu": "5", "memory": "1Gi"}, 0),
        ({"cpu": "2"}, 54),  # 50 % and 200 MiB of 4 GiB
    ],
)
def test_balance_is_the_difference_of_fractions(requests, score):
    scene = Scene(BALANCED, make_node("n", cpu="4", memory="4Gi"))
    pod = make_pod("p", requests=requests)
    assert scene.scores(pod) == {"n": score}
    assert scene.score(pod, "n") == score


def test_balance_counts_placed_pods():
    placed = make_pod("q", node="n", requests={"cpu": "1", "memory": "3Gi"})
    scene = Scene(BALANCED, make_node("n", cpu="4", memory="4Gi"), placed)
    pod = make_pod("p", requests={"cpu": "1", "memory": "0"})
    assert scene.scores(pod)["n"] == scene.score(pod, "n") == 75


def test_nodes_with_equal_taints_get_equal_statuses():
    """The reason names the taint."""
    taint, other = "a=b:NoSchedule", "c=d:NoSchedule"
    nodes = [make_node(f"n{i}", taints=taints) for i, taints in enumerate(
        ([taint], [other], [taint], [])
    )]  # fmt: skip
    scene = Scene("TaintToleration", *nodes)
    tolerant = {"tolerations": [{"key": "c", "operator": "Exists"}]}
    pod = scene.info(make_pod("p", spec=tolerant))
    found = scene.plugin.filter_columns(CycleState(), pod, scene.table, scene.rows)
    reason = "node(s) had taint {a: b}, that the pod didn't tolerate"
    assert [found.statuses[code].message if code else "" for code in found.codes] == [
        reason, "", reason, "",
    ]  # fmt: skip


def owned(name, kind="ReplicaSet", uid="rs", **more):
    """A pod with a controller."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": uid, "controller": True}
    metadata = {"name": name, "namespace": "default", "ownerReferences": [owner], **more}
    return decode_as(Pod, {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}})


@pytest.mark.parametrize(
    ("pod", "score"),
    [
        (owned("p"), 0),
        (owned("p", uid="other"), 100),
        (owned("p", kind="StatefulSet"), 100),
        (make_pod("p"), 100),
    ],
    ids=["named", "another", "another kind", "no controller"],
)
def test_the_annotation_prefer_avoid_pods_lowers_the_score(pod, score):
    text = (
        '{"preferAvoidPods":[{"podSignature":{"podController":{"kind":"ReplicaSet","uid":"rs"}}}]}'
    )
    shy = decode_as(Node, {"metadata": {"name": "shy", "annotations": {ANNOTATION: text}}})
    scene = Scene("NodePreferAvoidPods", shy, make_node("n"))
    assert (scene.score(pod, "shy"), scene.score(pod, "n")) == (score, 100)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"preferAvoidPods":[{"podSignature":{"podController":"ReplicaSet"}}]}',
        '{"preferAvoidPods":[{"podSignature":{}}]}',
        '{"preferAvoidPods":' + "[" * 100_000,
    ],
    ids=["no JSON", "a text as controller", "no controller", "deep"],
)
def test_a_malformed_annotation_prefer_avoid_pods_is_ignored(text):
    shy = decode_as(Node, {"metadata": {"name": "shy", "annotations": {ANNOTATION: text}}})
    assert Scene("NodePreferAvoidPods", shy).score(owned("p"), "shy") == 100


def service():
    metadata = {"name": "web", "namespace": "default"}
    return decode_as(Service, {"metadata": metadata, "spec": {"selector": APP}})


def test_pods_of_a_service_are_spread_over_nodes():
    """100 × (most - own) ÷ most; pods of other Services and terminating pods do not count."""
    pods = (
        *(make_pod(f"a{i}", node="n1", labels=APP) for i in range(4)),
        make_pod("b", node="n2", labels=APP),
        make_pod("c", node="n3", labels={"app": "db"}),
        make_pod("d", node="n3", labels=APP, terminating=True),
    )
    nodes = (make_node("n1"), make_node("n2"), make_node("n3"))
    scene = Scene("SelectorSpread", *nodes, service(), *pods)
    assert scene.scores(make_pod("p", labels=APP)) == {"n1": 0, "n2": 75, "n3": 100}
    assert scene.scores(make_pod("p")) == {"n1": 0, "n2": 0, "n3": 0}
    assert scene.plugin.scores_alike(scene.info(make_pod("p")))


def test_zones_have_two_thirds_of_the_score():
    """n1 is full in a full zone, n2 is empty in this zone, and n3 is in another zone."""
    zones = [{"topology.kubernetes.io/zone": name} for name in ("a", "a", "b")]
    nodes = [make_node(f"n{i}", labels=labels) for i, labels in enumerate(zones, 1)]
    placed = make_pod("a", node="n1", labels=APP)
    scene = Scene("SelectorSpread", *nodes, service(), placed)
    assert scene.scores(make_pod("p", labels=APP)) == {"n1": 0, "n2": 33, "n3": 100}


@pytest.mark.parametrize(("requests", "is_short"), [({"cpu": "4"}, False), ({"cpu": "5"}, True)])
def test_preemption_may_help_on_a_node_that_is_too_small(requests, is_short):
    """Before 1.34, no rejection for lack of resources was UnschedulableAndUnresolvable."""
    scene = Scene("NodeResourcesFit", make_node("n", cpu="4", memory="4Gi"))
    pod = scene.info(make_pod("p", requests=requests))
    alone = scene.plugin.filter(CycleState(), pod, scene.table.find("n"))
    found = scene.plugin.filter_columns(CycleState(), pod, scene.table, scene.rows)
    codes = [found.statuses[code].code for code in found.codes]
    assert codes == [Code.UNSCHEDULABLE if is_short else Code.SUCCESS]
    assert (alone.code if alone else Code.SUCCESS) is codes[0]
