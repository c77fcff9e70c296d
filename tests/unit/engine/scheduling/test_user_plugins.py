"""User plugins: per node or over columns, and the results of PreFilter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fairlead.engine.core.status import SUCCESS, Code, Status, unresolvable, unschedulable
from fairlead.engine.framework.interface import Locality, Normalization, PreFilterResult, Verdicts
from fairlead.testing.builders import make_node, make_pod

NODES = [make_node(f"n{i}", labels={"rack": f"r{i % 3}"}, cpu=str(2 + i % 2)) for i in range(6)]


def play(scene, limit=200):
    """Perform all bindings until nothing is due; return [(pod, node or reason)]."""
    story = []
    for _ in range(limit):
        if not scene.is_due():
            return story
        for command in scene.step():
            if command[0] == "bind":
                story.append(command[1:])
                pod = scene.cluster.pods[f"default/{command[1]}"].pod
                scene.put(make_pod(command[1], node=command[2], requests=requests_of(pod)))
            elif command[0] == "event":
                story.append((command[1], command[3]))
        scene.all_done()
    raise AssertionError(story)


def requests_of(pod):
    return dict(pod.spec.containers[0].resources.requests)


# --- equal schedules for all forms -------------------------------------------------------------


class ByNode:
    """A plugin: at most two pods per node of rack r0, and fuller nodes score higher."""

    name = "Racks"
    full = unschedulable("rack is full")

    def filter(self, state, pod, node):
        crowded = node.labels["rack"] == "r0" and len(node.pods) >= 2
        return self.full if crowded else None

    def score(self, state, pod, node):
        return min(10 * len(node.pods), 100)


class ByColumns:
    name = "Racks"

    def filter_columns(self, state, pod, table, rows):
        racks = table.label_column("rack")
        crowded = (racks.ids[rows] == racks.id_of("r0")) & (table.pod_count[rows] >= 2)
        return Verdicts(crowded.astype(np.int32), (SUCCESS, ByNode.full))

    def score_columns(self, state, pod, table, rows):
        return np.minimum(10 * table.pod_count[rows], 100)


@pytest.mark.parametrize("last", [False, True], ids=["asked first", "asked last"])
@pytest.mark.parametrize("locality", [Locality.CLUSTER, Locality.ROW])
@pytest.mark.parametrize("form", [ByNode, ByColumns])
def test_the_schedule_does_not_depend_on_the_form_of_a_plugin(staged, form, locality, last):
    """Per node or over columns, cached or called again, before or after all others."""
    waiting = [make_pod(f"p{i}", requests={"cpu": "500m"}) for i in range(26)]

    def story(plugin):
        return play(staged(plugin, objects=[*NODES, *waiting], last=last))

    plugin = type("Racks", (form,), {"locality": locality})()
    expected = story(ByNode())
    assert story(plugin) == expected
    assert [entry for entry in expected if entry[1].startswith("0/6")]
    assert {node for _, node in expected if node.startswith("n")} == {
        n.metadata.name for n in NODES
    }


class Cores:
    """A plugin that scores nodes by their cores; the scores depend on the node alone."""

    name = "Cores"
    locality = Locality.NODE
    normalization = Normalization.SCALED

    def score(self, state, pod, node):
        return node.allocatable[0] ** 2


class CoresAnew(Cores):
    locality = Locality.CLUSTER


def test_normalized_scores_are_equal_with_and_without_cache(staged):
    """The best node gets 100 in both cases."""
    objects = [*NODES, *(make_pod(f"p{i}") for i in range(6))]
    assert play(staged(Cores(), objects=objects)) == play(staged(CoresAnew(), objects=objects))
    assert {node for _, node in play(staged(Cores(), objects=objects))} == {"n1", "n3", "n5"}


class LargeRack:
    """A plugin that prefers racks with many nodes; the scores depend on the set of all nodes."""

    name = "LargeRack"
    locality = Locality.NODE
    normalization = Normalization.SCALED
    table = None

    def score(self, state, pod, node):
        return self.epoch()[node.labels["rack"]]

    def epoch(self):
        return Counter(node.labels["rack"] for node in self.table.nodes())


def test_normalized_scores_follow_the_epoch_of_their_plugin(staged):
    """If nodes move to another rack, the scores of the other nodes are computed again."""
    racks = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b"}
    nodes = [make_node(name, labels={"rack": rack}) for name, rack in racks.items()]
    plugin = LargeRack()
    scene = staged(plugin, objects=nodes)
    plugin.table = scene.cluster.table
    scene.put(make_pod("first"))
    assert scene.step()[0][2].startswith("a")
    scene.all_done()
    scene.put(make_node("a2", labels={"rack": "c"}), make_node("a3", labels={"rack": "d"}))
    scene.put(make_pod("second"))
    assert scene.step()[0][2].startswith("b")


# --- before filtering --------------------------------------------------------------------------


class OnlyOn:
    """A plugin that restricts every pod to some nodes."""

    name = "OnlyOn"

    def __init__(self, *names, **attributes):
        self.names = names
        self.__dict__.update(attributes)

    def pre_filter(self, state, pod):
        return PreFilterResult(self.names)

    def filter(self, state, pod, node):
        return None


@pytest.mark.parametrize("locality", [Locality.CLUSTER, Locality.NODE])
def test_a_pod_may_be_restricted_to_some_nodes(staged, locality):
    """Other nodes are excluded, and unknown nodes are ignored."""
    plugin = OnlyOn("n2", "nowhere", locality=locality)
    scene = staged(plugin, objects=[*NODES, make_pod("a"), make_pod("b", requests={"cpu": "9"})])
    assert scene.step() == [("bind", "a", "n2")]
    text = scene.step()[0][3]
    assert text.startswith(
        "0/6 nodes are available: 1 Insufficient cpu, 5 node(s) didn't satisfy plugin(s) [OnlyOn]."
    )


def test_two_restrictions_are_intersected(staged):
    """An empty intersection leaves no nodes."""
    pinned = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]}}}}  # fmt: skip
    pod = make_pod("a", spec=pinned)
    assert staged(OnlyOn("n1", "n2"), objects=[*NODES, pod]).step() == [("bind", "a", "n2")]
    assert staged(OnlyOn("n1"), objects=[*NODES, pod]).step()[0][:3] == (
        ("event", "a", "FailedScheduling")
    )


class Answering:
    """A plugin with a given result of PreFilter; its Filter rejects everything."""

    name = "Answering"

    def __init__(self, answer):
        self.answer = answer

    def pre_filter(self, state, pod):
        return self.answer

    def filter(self, state, pod, node):
        return unresolvable("refused")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "0/1 nodes are available: 1 refused."),
        (Status(Code.SUCCESS), "0/1 nodes are available: 1 refused."),
        (Status(Code.SKIP, ("none of mine",)), ""),
        (unresolvable("never"), "0/1 nodes are available: never."),
    ],
    ids=["none", "success", "skip", "rejection"],
)
def test_the_valid_results_of_pre_filter(staged, answer, text):
    """The result may be any Status with a valid code, not only a constant."""
    scene = staged(Answering(answer), objects=[make_node("n1"), make_pod("a")])
    kind, _, *more = scene.step()[0]
    assert more[-1].startswith(text) if text else kind == "bind"
