"""The action enqueue of Volcano, and the plugins overcommit and binpack."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.engine.batch.defect import UPSTREAM
from fairlead.engine.batch.plugins.binpack import PackedScore
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.testing.batch_builders import make_gang, make_group, make_queue, make_task
from fairlead.testing.builders import make_node

# Volcano's default configuration.
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
def harness(make_harness):
    """A cluster of ten CPUs, so groups may request twelve in total."""
    return make_harness(VOLCANO).put(make_queue("default"), make_node("n1", cpu="10"))


def asking(name, cpu, status=PENDING, queue=""):
    return make_group(name, 1, queue, minResources={"cpu": str(cpu)}, status=status)


def phases(found):
    return {
        name: patch.fields["phase"]
        for (kind, name), patch in found.patches.items()
        if kind == "PodGroup" and "phase" in patch.fields
    }


def test_groups_are_enqueued_up_to_a_multiple_of_the_resources_of_the_cluster(harness):
    found = harness.put(asking("a", 7), asking("b", 5), asking("c", 1)).run()
    assert phases(found) == {"a": "Inqueue", "b": "Inqueue"}
    (refused,) = [event for event in found.events if event.startswith("PodGroup c")]
    assert refused.endswith("the cluster has no room for the minimum of the group")


def test_a_group_that_is_too_large_is_skipped(harness):
    assert phases(harness.put(asking("a", 13), asking("b", 12)).run()) == {"b": "Inqueue"}


def test_the_requests_of_enqueued_groups_count(harness):
    harness.put(asking("a", 7, INQUEUE), asking("b", 6), asking("c", 5))
    assert phases(harness.run()) == {"c": "Inqueue"}


def test_used_resources_and_missing_members_of_running_groups_count(harness):
    """Of 12, 2 are in use, and one more is kept for the group that uses them."""
    harness.put(asking("a", 3, {"phase": "Running", "running": 2}))
    harness.put(make_task("a-0", "a", node="n1"), make_task("a-1", "a", node="n1"))
    assert phases(harness.put(asking("b", 10), asking("c", 9)).run()) == {"c": "Inqueue"}


@pytest.mark.parametrize("rest", ["Succeeded", "Running"])
def test_nothing_is_kept_for_members_that_have_ended(harness, rest):
    """upstream: volcano: pkg/scheduler/plugins/overcommit/overcommit.go: OnSessionOpen."""
    status = {"phase": "Running", "running": 2}
    harness.put(make_group("a", 2, minResources={"cpu": "8"}, status=status))
    harness.put(make_task("a-0", "a", node="n1", status={"phase": "Succeeded"}))
    harness.put(make_task("a-1", "a", node="n1", status={"phase": rest}))
    done = "Completed" if rest == "Succeeded" else None
    assert phases(harness.run()).get("a") == done
    harness.put(make_group("a", 2, minResources={"cpu": "8"}, status={"phase": done or "Running"}))
    assert phases(harness.put(asking("b", 11)).run()) == {"b": "Inqueue"}


def test_pods_of_a_group_that_is_not_enqueued_are_not_scheduled(harness):
    harness.put(asking("a", 20), make_task("p", "a"))
    found = harness.run()
    assert found.bound == {}
    assert found.events[0].endswith("the cluster has no room for the minimum of the group")
    harness.put(asking("a", 2))
    assert harness.run().bound == {"p": "n1"}


def test_groups_without_min_resources_are_enqueued_at_once(harness):
    harness.put(make_gang("g", 2), make_task("single"))
    assert len(harness.run().bound) == 3


def test_a_queue_enqueues_groups_up_to_its_capability(harness):
    harness.put(make_queue("small", capability={"cpu": "4"}))
    harness.put(asking("a", 3, INQUEUE, "small"), asking("b", 2, queue="small"))
    harness.put(asking("c", 1, queue="small"))
    assert phases(harness.run()) == {"c": "Inqueue"}


def test_enqueue_ignores_the_capability_of_queues_with_the_defect_of_kube_batch(make_harness):
    """With the defect, only the resources of the cluster count."""
    harness = make_harness(VOLCANO, defects=UPSTREAM).put(
        make_queue("small", capability={"cpu": "4"})
    )
    harness.put(make_node("n1", cpu="10"), asking("a", 5, queue="small"))
    assert phases(harness.run()) == {"a": "Inqueue"}


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
def test_the_overcommit_factor_can_be_configured(arguments, let_in, make_harness):
    text = VOLCANO.replace("overcommit\n", f"overcommit\n    arguments: {{{arguments}}}\n")
    harness = make_harness(text).put(make_queue("default"), make_node("n1", cpu="10"))
    harness.put(asking("more", let_in + 1), asking("most", let_in))
    assert phases(harness.run()) == {"most": "Inqueue"}


def test_without_the_action_enqueue_all_groups_are_scheduled(make_harness):
    harness = make_harness(VOLCANO.replace("enqueue, ", "")).put(
        make_queue("default"), make_node("n1")
    )
    assert harness.put(asking("a", 99), make_task("p", "a")).run().bound == {"p": "n1"}


def test_binpack_prefers_the_node_with_the_least_resources_left(make_harness):
    """Two of three members join the earlier pod on its node."""
    text = VOLCANO.replace("binpack\n", "binpack\n    arguments: {binpack.weight: 10}\n")
    harness = make_harness(text).put(make_queue("default"), make_node("n1"), make_node("n2"))
    harness.put(make_task("old", node="n1", cpu=2), make_gang("g", 3))
    assert sorted(harness.run().bound.values()) == ["n1", "n1", "n2"]


def test_binpack_uses_only_resources_with_a_weight(make_harness):
    more = "{binpack.weight: 10, binpack.cpu: 0, binpack.memory: 0, binpack.resources: gpu}"
    text = VOLCANO.replace("binpack\n", f"binpack\n    arguments: {more}\n")
    harness = make_harness(text).put(make_queue("default"))
    harness.put(make_node("n1", devices={"gpu": 4}), make_node("n2", devices={"gpu": 2}))
    harness.put(make_group("g", 1), make_task("p", "g", cpu=1, spec=asks_for_gpu(1)))
    assert harness.run().bound == {"p": "n2"}


def asks_for_gpu(count):
    requests = {"cpu": "1", "gpu": count}
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


@pytest.mark.parametrize("cpu", [1, 3, 9])
def test_column_scores_equal_the_scores_of_single_nodes(cpu, make_harness):
    harness = make_harness("fairlead").put(
        make_node("n1"), make_node("n2", cpu="8"), make_gang("g", 1, cpu=cpu)
    )
    table = harness.cluster.table
    scorer = PackedScore(table, {"cpu": 3, "memory": 1}, 100)
    rows = np.array([node.row for node in table.nodes()], np.int64)
    pod = harness.task("g-0").info
    alone = [scorer.score(CycleState(), pod, table.at(row)) for row in rows]
    assert scorer.score_columns(CycleState(), pod, table, rows).tolist() == alone
