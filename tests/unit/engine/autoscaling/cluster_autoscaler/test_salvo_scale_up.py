"""Several scale-ups in one loop (--salvo-scale-up), and skipped groups that would fit pods."""

from __future__ import annotations

from fairlead.conformance.autoscaler.case import decide_autoscaler

CREATED = "2025-12-31T23:00:00Z"


def node(name, pool, provider_id=""):
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "20"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": CREATED}
    return {
        "metadata": {"name": name, "labels": {"pool": pool}, "creationTimestamp": CREATED},
        "spec": {"providerID": provider_id},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
    }


def group(name, least=0, most=9):
    return {"id": name, "min": least, "max": most, "template": node("t", name)}


def pod(name, pool, cpu):
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "metadata": {"name": name, "namespace": "d", "creationTimestamp": CREATED},
        "spec": {**spec, "nodeSelector": {"pool": pool}, "schedulerName": "default-scheduler"},
        "status": {"phase": "Pending", "conditions": [unschedulable]},
    }


def loop(pods, groups, nodes=(), **options):
    case = {"name": "c", "nodes": nodes, "pods": pods, "nodeGroups": groups, "options": options}
    return decide_autoscaler(case)["loops"][0]


def growths(found):
    return [
        {one["group"]: one["to"] for one in status.get("increases", ())}
        for status in found["scaleUp"]
    ]


def test_a_salvo_ends_when_limits_leave_no_node_for_a_helped_pod():
    # upstream: static_autoscaler.go: addLatestScaleUpResultsToClusterSnapshot
    pods = [pod("p", "a", "4"), pod("q", "a", "4"), pod("r", "b", "4")]
    options = {"salvo-scale-up": True, "scale-down-enabled": False}
    found = loop(pods, [group("a"), group("b")], **options, **{"cores-total": "0:4"})
    assert growths(found) == [{"a": 1}]


def test_a_salvo_places_helped_pods_in_the_order_of_the_estimation():
    sizes = {"p": "1", "q": "1", "r": "2", "s": "4"}
    pods = [*(pod(name, "a", cpu) for name, cpu in sizes.items()), pod("t", "b", "1")]
    found = loop(
        pods, [group("a"), group("b")], **{"salvo-scale-up": True, "scale-down-enabled": False}
    )
    assert growths(found) == [{"a": 2}, {"b": 1}]


def test_the_last_scale_up_of_a_salvo_adds_no_nodes_to_the_snapshot():
    options = {
        "salvo-scale-up": True,
        "scale-down-delay-after-add": "0s",
        "scale-down-unneeded-time": "0s",
        "cores-total": "4:100",
    }
    nodes = [node("old-0", "old", "fleet://old/old-0")]
    found = loop([pod("p", "a", "1")], [group("old"), group("a")], nodes, **options)
    assert growths(found) == [{"a": 1}]
    reason = {"reason": "MinimalResourceLimitExceeded"}
    assert found["scaleDown"]["unremovable"] == {"old-0": reason}


def test_nodes_of_a_salvo_do_not_count_when_groups_grow_to_their_minimum():
    # Upstream counts the nodes that it listed before scale-up.
    options = {
        "salvo-scale-up": True,
        "scale-down-enabled": False,
        "enforce-node-group-min-size": True,
        "cores-total": "0:8",
    }
    pods = [pod("p", "a", "1"), pod("q", "b", "1")]
    found = loop(pods, [group("a"), group("b"), group("c", least=1)], **options)
    assert growths(found) == [{"a": 1}, {"b": 1}, {"c": 1}]


def test_pods_that_fit_only_a_skipped_group_await_evaluation_after_its_simulation():
    # upstream: orchestrator.go: GetRemainingPods, then GetPodsAwaitingEvaluation
    pods = [pod("p", "a", "1"), pod("q", "b", "1"), pod("r", "c", "1")]
    groups = [group("a"), group("b", most=0)]
    options = {
        "scale-down-enabled": False,
        "scaleup-simulation-for-skipped-node-groups-enabled": True,
    }
    (status,) = loop(pods, groups, **options)["scaleUp"]
    assert status["triggered"] == ["d/p"]
    assert [one["pod"] for one in status["remain"]] == ["d/q", "d/r"]
    assert status["awaitEvaluation"] == ["d/q"]
