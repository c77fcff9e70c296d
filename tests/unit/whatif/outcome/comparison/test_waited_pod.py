"""Pods that waited long for a node before they ran again, and the reason."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.outcome.assessment.fail_on import check, parse_fail_on
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def spread(make):
    """Nodes in zones 1 and 2, and two pods of a ReplicaSet, one in each zone."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = make.workload("ReplicaSet", replicas=4, topologySpreadConstraints=[constraint])
    web["metadata"]["uid"] = "web"
    pods = [
        make.pod(f"web-{n}", node_name=node, owner="web", topologySpreadConstraints=[constraint])
        for n, node in enumerate("aabb")
    ]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return [make.node("a", **{ZONE: "1"}), make.node("b", **{ZONE: "2"}), web, *pods]


def failed(snapshot, objects, lasts):
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts=lasts)
    return what_if(snapshot(*objects), change)


def test_pods_that_waited_for_a_failed_node_are_listed_with_the_reason(snapshot, spread):
    """Evicted after 5m50s, they wait until the node returns after 20 minutes."""
    answer = failed(snapshot, spread, "20m")
    rows = whatif_result(answer)["waited"]
    assert [(one["pod"], one["node"], round(one["waited_s"] / 60)) for one in rows] == [
        ("default/web-0", "a", 14),
        ("default/web-1", "a", 14),
    ]
    assert all("didn't match pod topology spread constraints" in one["reason"] for one in rows)


@pytest.mark.parametrize(
    ("condition", "evidence"),
    [
        ("waited>0", ("default/web-0", "default/web-1")),
        ("waited>2", ()),
        ("waited:name=web-1", ("default/web-1",)),
        ("waited:priority>=1000", ()),
    ],
)
def test_a_condition_can_concern_pods_that_waited(snapshot, spread, condition, evidence):
    effect = failed(snapshot, spread, "20m").effect
    assert check(parse_fail_on(condition), effect).evidence == evidence


def test_a_condition_that_holds_although_no_pod_waited_says_so(snapshot, make):
    effect = what_if(snapshot(make.node("a")), ClusterChange(cordon=("a",))).effect
    assert check(parse_fail_on("waited=0"), effect).evidence == ("the list waited is empty",)


def test_the_verdict_and_the_first_workload_say_how_long_displaced_pods_waited(
    snapshot, make, spread
):
    """Another workload loses more pods, but its pods find another node at once."""
    api = make.workload("ReplicaSet", "api", replicas=4, cpu="1m")
    api["metadata"]["uid"] = "api"
    others = [
        make.pod(f"api-{n}", node_name=node, owner="api", cpu="1m") for n, node in enumerate("aaab")
    ]
    answer = failed(snapshot, [*spread, api, *others], "20m")
    first, second = answer.effect.workloads
    assert (str(first.workload), first.waited, first.is_harmed) == ("rs/default/web", 2, True)
    assert "2 waited up to 14m10s for a node" in first.words
    assert (second.moved, second.waited, second.is_harmed) == (3, 0, False)
    assert answer.verdict.first.sentence == (
        "5 pods of 2 workloads are displaced and all run again within 20m01s; 2 of them wait up to "
        "14m10s for a node."
    )


def test_seeds_count_the_pods_that_waited(snapshot, spread):
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="20m")
    answer = what_if(snapshot(*spread), change, Conditions(seeds=2))
    rows = {(row.subject, row.what): row for row in answer.certainty}
    row = rows["rs/default/web", "waited"]
    assert (row.seeds, row.least, row.most, row.words) == (2, 2, 2, "certain")


def test_pods_that_are_not_evicted_did_not_wait(snapshot, spread):
    assert failed(snapshot, spread, "2m").effect.waited == ()


def test_pods_that_find_another_node_at_once_did_not_wait(snapshot, make, spread):
    third = make.node("c", **{ZONE: "1"})
    answer = failed(snapshot, [*spread, third], "20m")
    assert len(answer.difference.moved) == 2
    assert answer.effect.waited == ()


def test_pods_that_still_wait_are_pending(snapshot, spread):
    answer = failed(snapshot, spread, "")
    assert answer.difference.pending
    assert answer.effect.waited == ()
