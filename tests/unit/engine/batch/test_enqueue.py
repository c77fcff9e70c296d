"""Volcano's way: groups are let in as far as there may be room, nodes are filled up."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.engine.batch.defect import UPSTREAM
from fairlead.engine.batch.plugins.binpack import PackedScore
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.testing.batch_builders import make_gang, make_group, make_queue, make_task
from fairlead.testing.builders import make_node

# As Volcano ships it.
VOLCANO = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
PENDING, INQUEUE = {"phase": "Pending"}, {"phase": "Inqueue"}


@pytest.fixture
def yard(yards):
    """Ten cpu, so groups may request twelve in total."""
    return yards(VOLCANO).put(make_queue("default"), make_node("n1", cpu="10"))


def asking(name, cpu, status=PENDING, queue=""):
    return make_group(name, 1, queue, minResources={"cpu": str(cpu)}, status=status)


def phases(found):
    return {
        name: patch.fields["phase"]
        for (kind, name), patch in found.patches.items()
        if kind == "PodGroup" and "phase" in patch.fields
    }


def test_groups_are_let_in_until_they_need_more_than_a_multiple_of_what_there_is(yard):
    found = yard.put(asking("a", 7), asking("b", 5), asking("c", 1)).run()
    assert phases(found) == {"a": "Inqueue", "b": "Inqueue"}
    (refused,) = [event for event in found.events if event.startswith("PodGroup c")]
    assert refused.endswith("the cluster has no room for the minimum of the group")


def test_who_is_refused_is_passed_over(yard):
    assert phases(yard.put(asking("a", 13), asking("b", 12)).run()) == {"b": "Inqueue"}


def test_those_that_were_let_in_before_count(yard):
    yard.put(asking("a", 7, INQUEUE), asking("b", 6), asking("c", 5))
    assert phases(yard.run()) == {"c": "Inqueue"}


def test_so_does_what_is_used_and_what_running_groups_lack(yard):
    """Of 12, 2 are in use, and one more is kept for the group that uses them."""
    yard.put(asking("a", 3, {"phase": "Running", "running": 2}))
    yard.put(make_task("a-0", "a", node="n1"), make_task("a-1", "a", node="n1"))
    assert phases(yard.put(asking("b", 10), asking("c", 9)).run()) == {"c": "Inqueue"}


def test_pods_of_a_group_that_waits_outside_are_not_tried(yard):
    yard.put(asking("a", 20), make_task("p", "a"))
    found = yard.run()
    assert found.bound == {}
    assert found.events[0].endswith("the cluster has no room for the minimum of the group")
    yard.put(asking("a", 2))
    assert yard.run().bound == {"p": "n1"}


def test_who_says_nothing_is_let_in_at_once(yard):
    yard.put(make_gang("g", 2), make_task("single"))
    assert len(yard.run().bound) == 3


def test_a_queue_lets_in_no_more_than_its_capability(yard):
    yard.put(make_queue("small", capability={"cpu": "4"}))
    yard.put(asking("a", 3, INQUEUE, "small"), asking("b", 2, queue="small"))
    yard.put(asking("c", 1, queue="small"))
    assert phases(yard.run()) == {"c": "Inqueue"}


def test_for_kube_batch_a_queue_has_no_capability(yards):
    """The defect capability: only the room of the cluster counts."""
    yard = yards(VOLCANO, defects=UPSTREAM).put(make_queue("small", capability={"cpu": "4"}))
    yard.put(make_node("n1", cpu="10"), asking("a", 5, queue="small"))
    assert phases(yard.run()) == {"a": "Inqueue"}


@pytest.mark.parametrize(
    ("arguments", "let_in"),
    [
        ("overcommit-factor: 1.0", 10),
        ("overcommit-factor: 2", 20),
        ("overcommit-factor: 0.5", 12),
        ("overcommit-factor: many", 12),
        ("overcommit-factor.cpu: 1.5", 15),
        ("overcommit-factor.memory: 1.5", 12),
    ],
)
def test_the_factor_can_be_chosen(arguments, let_in, yards):
    text = VOLCANO.replace("overcommit\n", f"overcommit\n    arguments: {{{arguments}}}\n")
    yard = yards(text).put(make_queue("default"), make_node("n1", cpu="10"))
    yard.put(asking("more", let_in + 1), asking("most", let_in))
    assert phases(yard.run()) == {"most": "Inqueue"}


def test_without_the_action_nobody_waits_outside(yards):
    yard = yards(VOLCANO.replace("enqueue, ", "")).put(make_queue("default"), make_node("n1"))
    assert yard.put(asking("a", 99), make_task("p", "a")).run().bound == {"p": "n1"}


def test_nodes_are_filled_up(yards):
    """A pod is placed where it fits and the least is left over."""
    text = VOLCANO.replace("binpack\n", "binpack\n    arguments: {binpack.weight: 10}\n")
    yard = yards(text).put(make_queue("default"), make_node("n1"), make_node("n2"))
    yard.put(make_task("old", node="n1", cpu=2), make_gang("g", 3))
    assert sorted(yard.run().bound.values()) == ["n1", "n1", "n2"]


def test_by_the_resources_that_have_a_weight(yards):
    more = "{binpack.weight: 10, binpack.cpu: 0, binpack.memory: 0, binpack.resources: gpu}"
    text = VOLCANO.replace("binpack\n", f"binpack\n    arguments: {more}\n")
    yard = yards(text).put(make_queue("default"))
    yard.put(make_node("n1", devices={"gpu": 4}), make_node("n2", devices={"gpu": 2}))
    yard.put(make_group("g", 1), make_task("p", "g", cpu=1, spec=asks_for_gpu(1)))
    assert yard.run().bound == {"p": "n2"}


def asks_for_gpu(count):
    requests = {"cpu": "1", "gpu": count}
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


@pytest.mark.parametrize("cpu", [1, 3, 9])
def test_a_score_is_the_same_over_columns(cpu, yards):
    yard = yards("fairlead").put(
        make_node("n1"), make_node("n2", cpu="8"), make_gang("g", 1, cpu=cpu)
    )
    table = yard.cluster.table
    scorer = PackedScore(table, {"cpu": 3, "memory": 1}, 100)
    rows = np.array([node.row for node in table.nodes()], np.int64)
    pod = yard.task("g-0").info
    alone = [scorer.score(CycleState(), pod, table.at(row)) for row in rows]
    assert scorer.score_columns(CycleState(), pod, table, rows).tolist() == alone
