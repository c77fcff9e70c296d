"""How certain an answer is: over seeds, and in another order of arrival."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.certainty import SeedOutcome, certainty, order_matters
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import encode_result, whatif_result


def outcome(kind=OutcomeKind.DISPLACED, recovered=None, **pending):
    counts = {(name, "pending"): count for name, count in pending.items()}
    return SeedOutcome(kind, counts, recovered)


def test_an_outcome_is_certain_if_it_is_the_same_in_every_seed():
    outcomes = [outcome(web=4, api=n) if n else outcome(web=4) for n in (0, 1, 2, 3)]
    rows = {(row.subject, row.what): row for row in certainty(outcomes)}
    web, api = rows["web", "pending"], rows["api", "pending"]
    assert (web.words, web.seeds, web.total, web.median) == ("certain", 4, 4, 4)
    assert (api.words, api.seeds) == ("depends on the seed", 3)
    assert (api.least, api.median, api.p90, api.most) == (1, 2, 3, 3)
    varying = certainty([outcome(web=n) for n in (1, 2)])
    assert varying[-1].words == "always, the amount varies"


def test_another_order_of_arrival_can_make_pods_wait():
    first = SeedOutcome(OutcomeKind.DISPLACED, {("web", "waited"): 2}, None)
    other = SeedOutcome(OutcomeKind.DISPLACED, {("web", "waited"): 1}, None)
    assert order_matters(first, other) == "1 pod waits for a node instead of 2"
    other = SeedOutcome(OutcomeKind.DISPLACED, {("api", "waited"): 2}, None)
    assert order_matters(first, other) == "pods of other workloads wait for a node"


def test_moved_pods_are_counted_after_all_other_outcomes():
    """Another order of arrival often moves other pods, which harms none, so it is not reported."""
    counts = [{("web", "moved"): 9, ("web", "pending"): 1}, {("web", "moved"): 7}]
    first, other = (SeedOutcome(OutcomeKind.DISPLACED, one, None) for one in counts)
    rows = [(row.what, row.seeds, row.least, row.most) for row in certainty([first, other])]
    assert rows[1:] == [("pending", 1, 1, 1), ("moved", 2, 7, 9)]
    assert order_matters(first, other) == "0 pods are pending instead of 1"


def test_the_moved_pods_of_a_workload_are_counted_for_each_seed(snapshot, make):
    pod = make.pod("p", node_name="a", owner="web")
    web = make.workload("ReplicaSet", replicas=1)
    web["metadata"]["uid"] = "web"
    cluster = snapshot(make.node("a"), make.node("b"), web, pod)
    rows = what_if(cluster, ClusterChange(drain=("a",)), Conditions(seeds=2)).certainty
    assert [(row.seeds, row.most) for row in rows if row.what == "moved"] == [(2, 1)]


def test_verdicts_are_listed_before_times():
    kinds = [OutcomeKind.PENDING, OutcomeKind.DISPLACED, OutcomeKind.DISPLACED]
    times = [None, seconds(2), seconds(9)]
    found = certainty([outcome(kind, time) for kind, time in zip(kinds, times, strict=True)])
    assert [(row.what, row.seeds) for row in found] == [
        ("pending", 1), ("displaced", 2), ("all affected run after", 2),
    ]  # fmt: skip
    assert (found[-1].least, found[-1].most) == (2, 9)


def test_the_answer_of_the_first_seed_does_not_depend_on_other_seeds(snapshot, make):
    """A pod that fits one of two nodes is hit by a random failure in some seeds only."""
    nodes = [make.node("a"), make.node("b")]
    cluster = snapshot(*nodes, make.pod("p", cpu="1", node_name="a"))
    change = ClusterChange(failures=Failures(fail_fraction=("0.5",)))
    one, many = what_if(cluster, change), what_if(cluster, change, Conditions(seeds=8))
    assert one.certainty == ()
    assert {row.words for row in many.certainty} == {"depends on the seed"}
    found = whatif_result(many)
    assert {**found, "certainty": []} == whatif_result(one)
    again = what_if(cluster, change, Conditions(seeds=8))
    assert encode_result(whatif_result(again)) == encode_result(found)
    with pytest.raises(InputError, match="--seeds: 0 is not from 1 to 1000"):
        what_if(cluster, change, Conditions(seeds=0))


def test_the_answer_says_if_the_order_of_arrival_changes_the_outcome(snapshot, make, write):
    """Two workloads with pods of one and of three cores compete for three cores."""
    small = make.workload("ReplicaSet", "small", replicas=3)
    large = make.workload("ReplicaSet", "large", replicas=1, cpu="3")
    cluster = snapshot(make.node("a", cpu="3"))
    answer = what_if(cluster, ClusterChange(apply=(write("new.json", small, large),)))
    assert len(answer.difference.pending) == 1
    [note] = [one for one in answer.changed.notes if "arrive at one instant" in one]
    assert note == (
        "2 objects arrive at one instant, and the outcome depends on their order: in reverse "
        "order, 3 pods are pending instead of 1. --seeds 20 tries other orders."
    )
    alone = what_if(cluster, ClusterChange(apply=(write("one.json", small),)))
    assert not any("arrive at one instant" in one for one in alone.changed.notes)
    scaled = ClusterChange(apply=(write("one.json", small),), scale=("rs/small=9",))
    assert not any("at one instant" in one for one in what_if(cluster, scaled).changed.notes)
    change = ClusterChange(apply=(write("new.json", small, large),))
    rows = what_if(cluster, change, Conditions(seeds=6)).certainty
    assert {row.subject for row in rows if row.words == "depends on the seed"} == {
        "rs/default/small", "rs/default/large",
    }  # fmt: skip


def test_pods_that_a_quota_refuses_are_an_outcome_that_the_order_can_change(snapshot, make):
    """Two workloads are scaled to five pods each, and a quota admits six. Either may lack pods."""
    meta = {"name": "q", "namespace": "default"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta}
    quota |= {"spec": {"hard": {"pods": "6"}}}
    workloads = [make.workload("ReplicaSet", name, replicas=0) for name in ("api", "web")]
    cluster = snapshot(make.node("a"), quota, *workloads)
    change = ClusterChange(scale=("rs/api=5", "rs/web=5"))
    answer = what_if(cluster, change, Conditions(seeds=6))
    [note] = [one for one in answer.changed.notes if "at one instant" in one]
    assert "in reverse order, pods of other workloads are not created" in note
    found = whatif_result(answer)["workloads"]
    missing = {one["workload"]: one["missing"] for one in found if one["missing"]}
    rows = {row.subject: row for row in answer.certainty if row.what == "not created"}
    assert sum(missing.values()) == 4
    for name, pods in missing.items():
        row = rows[name]
        assert row.least <= pods <= row.most
    assert any(row.words != "certain" for row in rows.values())


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [(1, 2, "2 pods have failed instead of 1"), (2, 1, "1 pod has failed instead of 2")],
)
def test_failed_pods_of_another_order_are_counted(before, after, words):
    first, other = (
        SeedOutcome(OutcomeKind.ERROR, {("job/default/j", "failed"): count}, None)
        for count in (before, after)
    )
    assert order_matters(first, other) == words
