"""Why a PodGroup does not run, and what would let it start."""

from __future__ import annotations

import pytest

from fairlead.engine.batch.defect import FIXED, Defect
from fairlead.engine.batch.explanation.explanation import Obstacle, batch_overview, explain_group
from fairlead.engine.batch.explanation.next_session import with_next_session
from fairlead.engine.core.instant import seconds
from fairlead.testing.batch_builders import (
    make_gang,
    make_group,
    make_priority_class,
    make_queue,
    make_task,
)
from fairlead.testing.builders import make_node

FOUR = "at least 4 cpu, now 3"
ROOM = "room for 1 more member like default/g-0"


def explain(harness, group="g", now_s=0.0):
    before = harness.dump()
    found = explain_group(harness.composition, harness.cluster, f"default/{group}", seconds(now_s))
    after = harness.dump()
    assert (before["tasks"], before["requested"]) == (after["tasks"], after["requested"])
    return found


def test_a_missing_group_is_explained(harness):
    assert explain(harness).obstacle is Obstacle.NO_GROUP
    harness.put(make_task("p", "g"))
    found = explain(harness)
    assert (found.obstacle, found.title, found.members) == (Obstacle.NO_GROUP, "default/g", 1)
    assert found.remedies == ("create PodGroup default/g",)


def test_a_running_group_has_no_obstacle(harness):
    found = explain(harness.put(make_node("n1"), make_gang("g", 2, node="n1")))
    assert (found.obstacle, found.ready, found.members) == (Obstacle.NOTHING, 2, 2)


def test_a_pod_without_a_group_is_named_by_its_workload(harness):
    harness.put(make_task("p"))
    found = explain_group(harness.composition, harness.cluster, "uid-p", 0)
    assert (found.group, found.title) == ("uid-p", "Pod/default/p")


def test_a_group_that_is_not_enqueued(make_harness):
    """The capability of the queue is below the minResources of the group."""
    text = """\
actions: "enqueue, allocate"
rules: fairlead
tiers:
- plugins: [{name: gang}, {name: proportion}, {name: predicates}]
"""
    harness = make_harness(text).put(make_queue("small", capability={"cpu": "2"}), make_node("n1"))
    needs = {"minResources": {"cpu": "3"}, "status": {"phase": "Pending"}}
    harness.put(make_group("g", 1, "small", **needs), make_task("p", "g", cpu=3))
    found = explain(harness)
    assert found.obstacle is Obstacle.NOT_LET_IN
    assert found.summary == "queue small would exceed its capability"
    assert found.remedies == ("a higher capability of queue small (at least 3 cpu, now 2)",)
    harness.put(make_queue("small", capability={"cpu": "4"}))
    assert explain(harness).obstacle is Obstacle.NEXT_SESSION


def test_what_admitted_groups_will_need_counts_for_the_capability(make_harness):
    """Group a, without pods yet, is admitted, and needs 2 of the 4 CPUs of the queue."""
    harness = make_harness(VOLCANO.format(more="").replace("allocate", "enqueue, allocate"))
    harness.put(make_queue("q", capability={"cpu": "4"}), make_node("n1", cpu="64"))
    for name, cpu, phase in (("a", "2", "Inqueue"), ("g", "3", "Pending")):
        more = {"minResources": {"cpu": cpu}, "status": {"phase": phase}}
        harness.put(make_group(name, 1, "q", **more))
    found = explain(harness)
    assert found.obstacle is Obstacle.NOT_LET_IN
    assert found.remedies == ("a higher capability of queue q (at least 5 cpu, now 4)",)


def test_the_share_of_a_queue_does_not_keep_a_group_from_being_admitted(make_harness):
    """The queue deserves nothing yet; the plugin overcommit refuses the group."""
    text = VOLCANO.format(more="").replace("allocate", "enqueue, allocate")
    text = text.replace("{name: priority}", "{name: overcommit}")
    harness = make_harness(text, defects=FIXED.without((Defect.OVERSHOOT,)))
    needs = {"minResources": {"cpu": "9"}, "status": {"phase": "Pending"}}
    harness.put(make_queue("q"), make_node("n1"), make_group("g", 1, "q", **needs))
    found = explain(harness)
    assert (found.obstacle, found.summary, found.remedies) == (Obstacle.NOT_LET_IN, "", ())


def test_a_group_that_fits_starts_with_the_next_session(harness):
    found = explain(harness.put(make_node("n1"), make_gang("g", 2)))
    assert (found.obstacle, found.placeable, found.remedies) == (Obstacle.NEXT_SESSION, 2, ())


def test_a_missing_queue_is_explained(harness):
    found = explain(harness.put(make_gang("g", 1, queue="gpu")))
    assert (found.obstacle, found.remedies) == (Obstacle.NO_QUEUE, ("create queue gpu",))


def test_a_closed_queue_is_explained(harness):
    harness.put(make_queue("gpu", state="Closed"), make_gang("g", 1, queue="gpu"))
    assert explain(harness).obstacle is Obstacle.CLOSED_QUEUE


def test_a_group_with_too_few_members_is_explained(harness):
    found = explain(harness.put(make_group("g", 3), make_task("p", "g")))
    assert (found.obstacle, found.remedies) == (Obstacle.TOO_FEW_MEMBERS, ("2 more members",))


def test_insufficient_resources_for_two_members_are_explained(harness):
    harness.put(make_node("n1"), make_node("n2", cpu="1"), make_node("n3", taints=["a:NoSchedule"]))
    harness.put(make_task("other", node="n1", cpu=1), make_gang("g", 4, cpu="1500m"))
    found = explain(harness)
    assert found.obstacle is Obstacle.NO_NODE
    assert (found.min_member, found.ready, found.placeable) == (4, 0, 2)
    assert not found.has_minimum
    assert found.member == "default/g-2"
    assert found.summary == (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu."
    )
    assert [(fact.node, dict(fact.lacking), fact.members) for fact in found.nodes] == [
        ("n2", {"cpu": 500}, 0),
        ("n1", {"cpu": 1500}, 2),
        ("n3", {}, 0),
    ]
    assert found.remedies == ("room for 2 more members like default/g-2",)


def test_insufficient_resources_for_the_last_member_are_explained(harness):
    found = explain(harness.put(make_node("n1"), make_gang("g", 3, cpu="1500m")))
    assert found.remedies == (
        "room for 1 more member like default/g-2",
        "500m cpu more on node n1",
    )


@pytest.mark.parametrize("node", ["n1", ""], ids=["runs", "starts"])
def test_a_group_with_its_minimum_but_not_all_members(harness, node):
    """The pending member may be the one that the user asks about."""
    harness.put(make_node("n1"), make_group("g", 1), make_task("a", "g", node=node, cpu=3))
    found = explain(harness.put(make_task("b", "g", cpu=3), make_task("c", "g", cpu=3)))
    assert (found.obstacle, found.has_minimum) == (Obstacle.NO_NODE, True)
    assert found.member == "default/b"
    assert found.summary == "0/1 nodes are available: 1 Insufficient cpu."
    assert found.remedies == (
        "room for 2 more members like default/b",
        "2 cpu more on node n1",
    )


@pytest.mark.parametrize(("minimum", "has_minimum"), [(2, True), (3, False)])
def test_a_member_that_fits_nowhere_does_not_block_smaller_members(harness, minimum, has_minimum):
    """The action allocate skips it, too."""
    harness.put(make_node("n1"), make_group("g", minimum), make_task("a", "g", cpu=5))
    found = explain(harness.put(make_task("b", "g", cpu=2), make_task("c", "g", cpu=2)))
    assert (found.has_minimum, found.placeable, found.member) == (has_minimum, 2, "default/a")
    assert len(harness.run().bound) == (2 if has_minimum else 0)


def test_resources_of_a_terminating_pod_are_the_obstacle(harness):
    harness.put(make_node("n1"), make_task("old", node="n1", cpu=4, terminating=True))
    assert explain(harness.put(make_gang("g", 2))).obstacle is Obstacle.LEAVING


def test_the_explanation_gives_the_estimated_start(harness):
    ends = {"fairlead.dev/run-duration": "20m"}
    started = {"startTime": "1970-01-01T00:00:00Z"}
    harness.put(
        make_node("n1"), make_task("old", node="n1", cpu=4, annotations=ends, status=started)
    )
    assert explain(harness.put(make_gang("g", 2))).starts_at == seconds(1200)


def next_session(harness, group="g"):
    cluster, composition = harness.cluster, harness.composition
    return with_next_session(explain(harness, group), composition, cluster, 0)


def test_pods_that_the_next_session_evicts_for_the_group_are_named(harness):
    harness.put(make_node("n1", memory="4Gi"), make_queue("a"), make_queue("b"))
    harness.put(make_group("old", 1, "a"), [make_task(f"o{i}", "old", node="n1") for i in range(4)])
    harness.put(make_gang("g", 2, queue="b"))
    found = next_session(harness)
    assert (found.obstacle, found.rule, len(found.victims)) == (Obstacle.VICTIMS, "reclaim", 2)
    assert (found.remedies, found.has_minimum) == ((), False)


VOLCANO = """\
actions: "allocate, backfill{more}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: predicates}}, {{name: proportion}}]
"""
RECLAIM = "The action reclaim evicts no pods of other queues for it: "
PREEMPT = "The action preempt evicts no pods of its queue for it: "
ABSENT = "the configuration does not have this action."


@pytest.mark.parametrize(
    ("more", "put", "why"),
    [
        pytest.param("", {}, (RECLAIM + ABSENT,), id="no reclaim"),
        pytest.param(
            ", reclaim",
            {},
            (RECLAIM + "their gangs would fall below their minimum (plugin gang).",),
            id="gangs",
        ),
        pytest.param(
            ", reclaim",
            {"reclaimable": False},
            (RECLAIM + "the other queues are not reclaimable.",),
            id="not reclaimable",
        ),
        pytest.param(
            ", reclaim",
            {"weight": 9, "own": 0},
            (RECLAIM + "its queue is not below its share of all resources that its pods request.",),
            id="share",
        ),
        pytest.param("", {"own": 2}, (RECLAIM + ABSENT, PREEMPT + ABSENT), id="no preempt"),
        pytest.param(
            ", preempt",
            {"own": 0},
            (
                RECLAIM + ABSENT,
                PREEMPT + "no job in its queue has a lower priority (plugin priority).",
            ),
            id="priority",
        ),
    ],
)
def test_an_explanation_says_why_no_pods_are_evicted(make_harness, more, put, why):
    """Group g of queue b waits; queue a has more than its share, in a gang of four."""
    harness = make_harness(VOLCANO.format(more=more))
    queue = make_queue("a", put.get("weight", 1), reclaimable=put.get("reclaimable", True))
    harness.put(make_node("n1", cpu="5"), queue, make_queue("b"))
    harness.put(make_priority_class("p", put.get("own", 0)))
    own = make_gang("own", 1, node="n1", queue="b") if "own" in put else ()
    harness.put(make_gang("old", 4, node="n1", queue="a"), own)
    harness.put(make_gang("g", 2, queue="b", priority_class="p"))
    found = next_session(harness)
    assert (found.obstacle, found.no_evictions) == (Obstacle.NO_NODE, why)


NO_GANG = (
    "a gang is evicted as a whole or not at all, "
    "and every other queue would fall below its share if it lost a whole gang (plugin proportion)."
)
TOO_LITTLE = "those that it may evict do not make enough room for the whole group."


@pytest.mark.parametrize(("minimum", "why"), [(4, NO_GANG), (3, TOO_LITTLE)])
def test_a_gang_that_is_too_large_to_be_reclaimed_is_the_reason(harness, minimum, why):
    """Queue a has one cpu more than its share, in a gang of four."""
    harness.put(make_node("n1", cpu="5"), make_queue("a"), make_queue("b"))
    harness.put(make_gang("old", 4, min_member=minimum, node="n1", queue="a"))
    harness.put(make_gang("g", 1, cpu=3, queue="b"))
    assert next_session(harness).no_evictions == (RECLAIM + why,)


def test_a_gang_without_pods_would_have_a_smaller_dominant_share(make_harness):
    """With the plugin drf, gangs that cannot spare members are never preempted."""
    text = VOLCANO.format(more=", preempt").replace("{name: priority}", "{name: drf}")
    harness = make_harness(text + "rules: fairlead\nvictims: gangs\n").put(make_queue("q"))
    harness.put(make_node("n1"), make_gang("old", 4, node="n1", queue="q"))
    harness.put(make_gang("g", 1, cpu=1, queue="q"))
    assert next_session(harness).no_evictions == (
        PREEMPT + "a gang is evicted as a whole or not at all, and each of these gangs would then "
        "have a smaller dominant share than the group (plugin drf).",
    )


def test_the_smallest_shortage_comes_first_whatever_the_size_of_the_node(harness):
    """A full node of 6 CPU lacks more than an empty node of 1; an eleventh is only counted."""
    harness.put(make_node("big", cpu="6"), make_task("other", node="big", cpu=6))
    harness.put(*(make_node(f"small-{number}", cpu="1") for number in range(10)))
    found = explain(harness.put(make_gang("g", 1, cpu=8)))
    assert [fact.node for fact in found.nodes] == [f"small-{number}" for number in range(10)]
    assert found.nodes_left_out == 1


@pytest.mark.parametrize(
    ("group", "obstacle"), [("f", Obstacle.NEXT_SESSION), ("g", Obstacle.OTHERS_FIRST)]
)
def test_two_groups_with_room_for_one_do_not_both_start(harness, group, obstacle):
    found = next_session(harness.put(make_node("n1"), make_gang("f", 3), make_gang("g", 3)), group)
    assert (found.obstacle, found.has_minimum) == (obstacle, group == "f")


def test_groups_that_the_next_session_starts_instead_are_named(harness):
    """One cpu more lets g start only before the next session gives three to f."""
    harness.put(make_node("n1"), make_gang("f", 3), make_gang("g", 5))
    found = next_session(harness)
    assert (found.obstacle, found.starting) == (Obstacle.NO_NODE, ("default/f",))
    assert found.remedies[1] == "1 cpu more on node n1"
    assert next_session(harness).starting == ()


@pytest.mark.parametrize("configuration", ["fairlead", "volcano"])
def test_lacking_amounts_are_those_of_the_request(make_harness, configuration):
    """kube-batch's rules would accept 10m of cpu and 10Mi of memory less."""
    harness = make_harness(configuration).put(make_node("n1", cpu="4", memory="4Gi"))
    harness.put(make_queue("default"), make_gang("g", 1, cpu=6, memory="6Gi"))
    found = explain(harness)
    assert found.nodes[0].lacking == {"cpu": 2000, "memory": 2 << 30}


def test_resources_reserved_for_another_group_are_the_obstacle(harness):
    harness.put(make_node("n1"), make_task("old", node="n1", cpu=2), make_gang("large", 2, cpu=2))
    harness.run(0)
    harness.put(make_gang("g", 1))
    harness.run(600)
    assert explain(harness, now_s=600).obstacle is Obstacle.RESERVED


def test_a_queue_that_uses_its_deserved_share_is_explained(harness):
    harness.put(make_node("n1", memory="4Gi"), make_queue("a"), make_queue("b"))
    harness.put(make_gang("a", 2, node="n1", queue="a"), make_gang("b", 4, queue="b"))
    found = explain(harness.put(make_gang("g", 1, queue="a")))
    assert found.obstacle is Obstacle.QUEUE_HAS_ITS_SHARE
    assert (found.queue.name, found.queue.is_overused) == ("a", True)
    assert (found.queue.deserved["cpu"], found.queue.allocated["cpu"]) == (2000, 2000)
    assert found.remedies[0] == "more weight for queue a, now 1"


@pytest.mark.parametrize(
    ("cpu", "limits", "remedy"),
    [
        ("4", {}, "room for 1 more member"),
        (
            "8",
            {"capability": {"cpu": "4"}},
            f"{ROOM} and a higher capability of queue a (at least 5 cpu, now 4)",
        ),
    ],
)
def test_more_weight_is_no_remedy_for_the_only_queue(harness, cpu, limits, remedy):
    harness.put(make_node("n1", cpu=cpu, memory="4Gi"), make_queue("a", **limits))
    harness.put(make_gang("a", 4, node="n1", queue="a"))
    found = explain(harness.put(make_gang("g", 1, queue="a")))
    assert (found.obstacle, found.remedies) == (Obstacle.QUEUE_HAS_ITS_SHARE, (remedy,))


@pytest.mark.parametrize("minimum", [1, 2])
def test_a_queue_at_its_capability_waits_for_its_own_tasks(harness, minimum):
    """The node has room for the whole group."""
    ends = {"fairlead.dev/run-duration": "20m"}
    old = make_task("old", "a", node="n1", cpu=3, annotations=ends)
    harness.put(make_node("n1", cpu="8"), make_queue("q", capability={"cpu": "4"}))
    harness.put(make_group("a", 1, "q"), old, make_gang("g", minimum, cpu=2, queue="q"))
    found = explain(harness)
    (group,) = batch_overview(harness.composition, harness.cluster, 0, 10).waiting
    assert found.obstacle is group.obstacle is Obstacle.QUEUE_IS_FULL
    assert found.starts_at == group.starts_at == seconds(1200)


@pytest.mark.parametrize(("cpu", "is_too_large"), [("4", False), ("5", True)])
def test_a_group_that_fits_on_no_empty_node_is_too_large(harness, cpu, is_too_large):
    harness.put(make_node("n1"), make_task("old", node="n1", cpu=2), make_gang("g", 1, cpu=cpu))
    assert explain(harness).is_too_large is is_too_large


def test_a_group_of_unlike_members_is_not_called_too_large(harness):
    """Other members may fit although the first ones do not."""
    harness.put(make_node("n1"), make_group("g", 2))
    harness.put(make_task("a", "g", cpu=5), make_task("b", "g", cpu=6), make_task("c", "g"))
    assert not explain(harness).is_too_large


def test_a_group_whose_queue_has_its_share_does_not_start_on_idle_nodes(harness):
    harness.put(make_node("n1"), make_queue("a", weight=0), make_queue("b"))
    found = explain(harness.put(make_gang("g", 1, queue="a"), make_gang("other", 1, queue="b")))
    assert (found.obstacle, found.starts_at) == (Obstacle.QUEUE_HAS_ITS_SHARE, None)


def test_a_queue_at_its_capability_is_explained(harness):
    harness.put(make_node("n1"), make_queue("a", capability={"cpu": "3"}))
    found = explain(harness.put(make_gang("g", 2, cpu=2, queue="a")))
    assert found.obstacle is Obstacle.QUEUE_IS_FULL
    assert found.summary == "queue a would exceed its capability"
    assert found.remedies == ("a higher capability of queue a (at least 4 cpu, now 3)",)


def test_the_capability_must_suffice_for_all_members_that_the_group_lacks(harness):
    """The queue has room for one of four members; the second one is the next member."""
    harness.put(make_node("n1", cpu="32"), make_queue("a", capability={"cpu": "6"}))
    found = explain(harness.put(make_gang("g", 4, cpu=4, queue="a")))
    assert found.placeable == 1
    assert found.remedies == ("a higher capability of queue a (at least 16 cpu, now 6)",)


def test_a_higher_capability_alone_does_not_start_a_group_without_room_on_nodes(harness):
    """The queue has room for one of three members, the node for two."""
    harness.put(make_node("n1", cpu="8"), make_queue("a", capability={"cpu": "6"}))
    harness.put(make_gang("old", 2, cpu=2, node="n1", queue="a"))
    needs = "at least 10 cpu, now 6"
    harness.put(make_gang("g", 3, cpu=2, queue="a"))
    found = explain(harness)
    assert (found.obstacle, found.placeable) == (Obstacle.QUEUE_IS_FULL, 1)
    room = "room for 1 more member like default/g-2"
    assert found.remedies == (f"{room} and a higher capability of queue a ({needs})",)
    harness.put(make_node("n2", cpu="2"))
    assert explain(harness).remedies == (f"a higher capability of queue a ({needs})",)


def test_a_group_that_is_not_admitted_also_needs_room_on_nodes(make_harness):
    harness = make_harness(VOLCANO.format(more="").replace("allocate", "enqueue, allocate"))
    harness.put(make_queue("q", capability={"cpu": "2"}), make_node("n1", cpu="2"))
    more = {"minResources": {"cpu": "3"}, "status": {"phase": "Pending"}}
    harness.put(make_group("g", 1, "q", **more), make_task("g-0", "g", cpu=3))
    found = explain(harness)
    assert found.obstacle is Obstacle.NOT_LET_IN
    needs = "at least 3 cpu, now 2"
    assert found.remedies == (f"{ROOM} and a higher capability of queue q ({needs})",)


def test_a_queue_that_leaves_the_guarantee_of_another_queue_is_explained(harness):
    harness.put(make_node("n1"), make_queue("b", guarantee={"resource": {"cpu": "3"}}))
    found = explain(harness.put(make_queue("a"), make_gang("g", 2, queue="a")))
    assert found.obstacle is Obstacle.QUEUE_IS_FULL
    assert found.summary == "queue a would use the guarantees of other queues"
    assert found.remedies == ("lower guarantees of other queues",)


def test_without_overshoot_a_queue_that_deserves_too_little_is_explained(make_harness):
    harness = make_harness("fairlead", defects=FIXED.without([Defect.OVERSHOOT]))
    harness.put(make_node("n1"), make_queue("a"), make_queue("b"), make_gang("b", 4, queue="b"))
    found = explain(harness.put(make_gang("g", 1, queue="a", cpu=3)))
    assert found.obstacle is Obstacle.QUEUE_IS_FULL
    assert found.summary == "queue a would exceed the share that it deserves"
    assert found.remedies == ("more weight for queue a, now 1", "lower requests of other queues")


@pytest.mark.parametrize(
    ("needed", "running", "remedies"),
    [
        (4, 0, ("lower requests of other queues",)),
        (
            3,
            2,
            (
                "room for 1 more member like default/g-2 and more weight for queue a, now 1",
                "room for 1 more member like default/g-2 and lower requests of other queues",
            ),
        ),
    ],
    ids=["the whole cluster", "no room"],
)
def test_a_higher_weight_does_not_help_against_everything(make_harness, needed, running, remedies):
    """Queue b always deserves a part of the cluster, and weight does not free nodes."""
    harness = make_harness("fairlead", defects=FIXED.without([Defect.OVERSHOOT]))
    harness.put(make_node("n1"), make_queue("a"), make_queue("b"), make_gang("b", 4, queue="b"))
    if running:
        harness.put(make_gang("now", running, node="n1", queue="b"))
    found = explain(harness.put(make_gang("g", needed, queue="a")))
    assert found.obstacle is Obstacle.QUEUE_IS_FULL
    assert found.remedies == remedies


@pytest.mark.parametrize(
    ("own", "parents", "remedy"),
    [
        ("8", "3", "a higher capability of queue team (at least 4 cpu, now 3)"),
        (
            "3",
            "3",
            f"a higher capability of queue a ({FOUR}) and of queue team ({FOUR})",
        ),
        ("3", "8", "a higher capability of queue a (at least 4 cpu, now 3)"),
    ],
)
@pytest.mark.parametrize("node_cpu", ["1", "4"])
def test_the_remedy_names_the_queues_whose_capabilities_are_exceeded(
    harness, own, parents, remedy, node_cpu
):
    harness.put(make_node("n1", cpu=node_cpu), make_queue("team", capability={"cpu": parents}))
    harness.put(make_queue("a", capability={"cpu": own}, parent="team"))
    found = explain(harness.put(make_gang("g", 2, cpu=2, queue="a")))
    assert found.remedies[-1].endswith(remedy)


def test_a_limit_that_is_held_for_a_starving_gang_is_explained(make_harness):
    """Node n2 has room, and the queue too, but both are reserved for the gang `g`."""
    harness = make_harness("fairlead").put(make_node("n1"), make_node("n2"), make_queue("default"))
    harness.put(make_queue("q", capability={"cpu": "4"}), make_group("old", 1, "q"))
    ends = {"fairlead.dev/run-duration": "20m"}
    started = {"startTime": "1970-01-01T00:00:00Z"}
    harness.put(make_task("old", "old", node="n1", cpu=1, annotations=ends, status=started))
    harness.put(make_gang("g", 2, cpu=2, queue="q"))
    harness.run(0)
    harness.put(make_gang("next", 1, queue="q"))
    found = explain_group(harness.composition, harness.cluster, "default/next", seconds(700))
    assert found.obstacle is Obstacle.RESERVED
    assert found.summary == "the capability of queue q is reserved"
    assert (found.nodes, found.starts_at) == ((), None)
    assert found.remedies == ("a higher capability of queue q (at least 6 cpu, now 4)",)


def test_the_share_of_a_queue_may_be_limited_by_the_capability_of_its_parent(harness):
    harness.put(make_node("n1", cpu="8"), make_queue("team", capability={"cpu": "4"}))
    harness.put(make_queue("a", parent="team"), make_gang("a", 4, node="n1", queue="a"))
    found = explain(harness.put(make_gang("g", 1, queue="a")))
    assert found.obstacle in {Obstacle.QUEUE_HAS_ITS_SHARE, Obstacle.QUEUE_IS_FULL}
    assert found.remedies == ("a higher capability of queue team (at least 5 cpu, now 4)",)


def test_room_alone_does_not_start_a_group_above_the_capability_of_its_queue(harness):
    """The node has room for no member, the queue for one of the two members."""
    harness.put(make_node("n1", cpu="1"), make_queue("a", capability={"cpu": "3"}))
    found = explain(harness.put(make_gang("g", 2, cpu=2, queue="a")))
    assert found.obstacle is Obstacle.NO_NODE
    assert found.remedies == (
        f"room for 2 more members like default/g-0 and a higher capability of queue a ({FOUR})",
    )


def test_the_overview_lists_weight_deserved_and_allocated_of_each_queue(harness):
    harness.put(make_node("n1"), make_queue("a", 3), make_queue("b", 1))
    harness.put(make_gang("a", 4, queue="a", node="n1"), make_gang("b", 4, queue="b"))
    standings = batch_overview(harness.composition, harness.cluster, 0, 10).queues
    assert [(q.name, q.weight, q.deserved["cpu"], q.allocated["cpu"]) for q in standings] == [
        ("a", 3, 3000, 4000),
        ("b", 1, 1000, 0),
    ]


@pytest.mark.parametrize("config", ['actions: "allocate"\ntiers: [{plugins: [{name: gang}]}]'])
def test_the_overview_lists_no_queues_without_the_plugin_proportion(config, make_harness):
    harness = make_harness(config).put(make_node("n1"), make_gang("g", 1))
    assert batch_overview(harness.composition, harness.cluster, 0, 10).queues == ()


def test_groups_with_running_members_are_explained_first(harness):
    harness.put(make_node("n1", cpu="2"), make_gang("a", 3), make_gang("c", 4))
    harness.put(make_gang("b", 2, node=["n1", ""], cpu=2))
    found = batch_overview(harness.composition, harness.cluster, 0, 1)
    assert ([one.title for one in found.waiting], found.waiting_count) == (["default/b"], 3)
