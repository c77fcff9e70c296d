"""Workloads that stop during drains: the causes, and the changes that would help."""

from __future__ import annotations

import re

import pytest
from tests.unit.whatif.planner.conftest import READY, budget, deployment, least_cpu, manifests

from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.core.instant import seconds
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device_class,
    make_device_request,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)
from fairlead.testing.storage_builders import make_claim, make_claim_volumes, make_volume
from fairlead.whatif.planner.node_drain.drain_plan import plan_drains, run_plan, unsafe_because
from fairlead.whatif.planner.node_drain.workload_stop import workload_stops
from fairlead.whatif.run.progress import NoProgress

SECOND = "kubectl -n default scale deploy/web --replicas 2"
BUDGET = "kubectl -n default create pdb web --selector app=web --max-unavailable 1"


def stops_of(planner, experiment, objects, at_once=1):
    """Drain nodes a and b, which return, and return the workloads that stop."""
    made = planner(*objects)
    plan = plan_drains(made, ["a", "b"], NoProgress(), return_again=True)
    run_plan(plan, experiment(*objects), NoProgress(), max_unavailable=at_once, away=seconds(300))
    return workload_stops(made, plan)


def nodes(make):
    return [make.node(name) for name in "abc"]


@pytest.mark.parametrize(
    ("on", "at_once", "why"),
    [
        (["a", "a"], 1, "all its pods are on a"),
        (["a", "b"], 2, "its pods are on nodes that are drained together (2 at a time)"),
    ],
)
def test_a_budget_keeps_one_of_several_replicas(planner, experiment, make, on, at_once, why):
    """With the budget that the change creates, the workload does not stop."""
    objects = [*nodes(make), *deployment(make, "web", on)]
    [stop] = stops_of(planner, experiment, objects, at_once)
    assert (str(stop.workload), stop.wanted, stop.why) == ("deploy/default/web", 2, why)
    assert (list(stop.nodes), stop.edit) == (sorted(set(on)), BUDGET)
    guarded = [*objects, budget("web", maxUnavailable=1)]
    assert stops_of(planner, experiment, guarded, at_once) == []


def test_a_budget_that_allows_several_evictions_is_changed(planner, experiment, make):
    objects = [*nodes(make), *deployment(make, "web", ["a", "a"])]
    [stop] = stops_of(planner, experiment, [*objects, budget("web", maxUnavailable=2)])
    patch = '{"spec":{"minAvailable":null,"maxUnavailable":1}}'
    assert stop.edit == f"kubectl -n default patch pdb web --type merge -p '{patch}'"


@pytest.mark.parametrize(("pods", "first"), [("1", "first raise quota default/q; "), ("2", "")])
def test_a_quota_may_have_to_admit_the_second_replica(planner, experiment, make, pods, first):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": pods}},
    }
    objects = [*nodes(make), *deployment(make, "web", ["a"]), quota]
    [stop] = stops_of(planner, experiment, objects)
    assert stop.edit == f"{first}{SECOND}; {BUDGET}"


def test_admission_may_have_to_admit_the_second_replica(planner, make):
    """The budget needs one ready pod, and a LimitRange is newer than the pod."""
    pods = deployment(make, "web", ["a"], cpu="100m")
    made = planner(*nodes(make), *pods, budget("web", minAvailable=1), least_cpu("200m"))
    [blocker] = made.refusals("a")
    why = "minimum cpu usage per Container is 200m, but request is 100m"
    assert blocker.edit == f"first let the API server admit a second pod ({why}); {SECOND}"


@pytest.mark.parametrize("on", [["a"], ["a", "b"]])
@pytest.mark.parametrize("labels", [{}, {"disk": "ssd"}], ids=["fit every node", "fit their node"])
def test_a_workload_whose_pods_are_refused_is_not_helped_by_a_budget(
    planner, experiment, make, on, labels
):
    """The quota was lowered after the pods were created, so no pod is created again."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "0"}},
    }
    made = [make.node(name, **(labels if name in on else {})) for name in "abc"]
    objects = [*made, *deployment(make, "web", on, nodeSelector=labels), quota]
    [stop] = stops_of(planner, experiment, objects)
    assert stop.stopped_for is None
    assert stop.why.startswith("its pods are not created again: exceeded quota: q, requested: ")
    assert stop.edit == "raise quota default/q"


def test_a_workload_that_stops_for_a_time_may_lack_refused_pods_afterwards(
    planner, experiment, make
):
    """A budget would keep the drains from ending, because only one pod is created again."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }
    objects = [*nodes(make), *deployment(make, "web", ["a", "a"]), quota]
    [stop] = stops_of(planner, experiment, objects)
    assert stop.stopped_for is not None
    assert stop.why.startswith("its pods are not created again: exceeded quota: q, requested: ")
    assert stop.edit == "raise quota default/q"


def test_an_answer_says_that_a_workload_does_not_run_again(planner, experiment, make):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "0"}},
    }
    objects = [*nodes(make), *deployment(make, "web", ["a", "b"]), quota]
    plan = plan_drains(planner(*objects), ["a", "b"], NoProgress(), return_again=True)
    run_plan(plan, experiment(*objects), NoProgress(), max_unavailable=1, away=seconds(300))
    assert unsafe_because(plan.runs[0]).startswith(
        "deploy/default/web has no ready pod at the end, 2 pods of deploy/default/web are not "
        "created again (exceeded quota: q, "
    )


def test_a_single_replica_gets_a_second_one_and_a_budget(planner, experiment, make):
    """With both changes, the workload does not stop."""
    objects = [*nodes(make), *deployment(make, "web", ["a"])]
    [stop] = stops_of(planner, experiment, objects)
    assert (stop.why, stop.edit) == ("its only pod is evicted", f"{SECOND}; {BUDGET}")
    limited = [*objects, budget("web", maxUnavailable=1)]
    [stop] = stops_of(planner, experiment, limited)
    assert stop.edit == SECOND
    changed = [*nodes(make), *deployment(make, "web", ["a", "b"]), limited[-1]]
    assert stops_of(planner, experiment, changed) == []


@pytest.mark.parametrize(
    ("limits", "patch"),
    [
        ({"maxReplicas": 3}, '{"spec":{"minReplicas":2}}'),
        ({"maxReplicas": 1}, '{"spec":{"minReplicas":2,"maxReplicas":2}}'),
    ],
)
def test_an_autoscaler_keeps_the_second_replica(planner, experiment, make, limits, patch):
    """It would revert the number of replicas that kubectl scale sets."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "grow", "namespace": "default"},
        "spec": {"scaleTargetRef": target, **limits},
    }
    objects = [*nodes(make), *deployment(make, "web", ["a"]), autoscaler]
    [stop] = stops_of(planner, experiment, objects)
    assert stop.edit == f"kubectl -n default patch hpa grow -p '{patch}'; {BUDGET}"


def test_a_remedy_says_if_no_node_has_room_for_a_second_replica(planner, experiment, make):
    """The budget would refuse every eviction while the second pod is pending.

    Node c has room for the second pod of `api`, but not for those of both workloads.
    """
    pods = [*deployment(make, "api", ["a"], cpu="3"), *deployment(make, "web", ["b"], cpu="3")]
    api, web = stops_of(planner, experiment, [*nodes(make), *pods])
    assert str(api.workload) == "deploy/default/api"
    assert web.edit == (f"first make room for a second pod (Insufficient cpu); {SECOND}; {BUDGET}")
    assert api.edit == f"{SECOND}; {BUDGET}".replace("web", "api")


def test_a_new_budget_has_a_name_of_its_own(planner, experiment, make):
    """kubectl create fails if an object of this name exists."""
    other = budget("web", maxUnavailable=1)
    other["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    objects = [*nodes(make), *deployment(make, "web", ["a", "a"]), other]
    [stop] = stops_of(planner, experiment, objects)
    assert stop.edit == BUDGET.replace("pdb web", "pdb web-2")


def test_a_stateful_set_of_one_pod_gets_no_second_pod(planner, experiment, make):
    db = make.workload("StatefulSet", "db", replicas=1)
    pod = make.pod("db-0", node_name="a", owner="db")
    pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    pod["status"]["conditions"] = READY
    [stop] = stops_of(planner, experiment, [*nodes(make), db, pod])
    assert stop.edit == "drain a when sts/default/db may stop"


def test_a_pod_that_waits_for_its_node_needs_another_place(planner, experiment, make):
    first = make.node("a", pool="db")
    db = deployment(make, "db", ["a"], nodeSelector={"pool": "db"})
    [stop] = stops_of(planner, experiment, [first, make.node("b"), *db])
    assert stop.why.startswith("it waits for a: node(s) didn't match Pod's node affinity/selector")
    assert re.search(r"fairlead drain-plan \S*/snapshot.json --nodes a$", stop.edit)


def test_pods_that_each_wait_for_their_own_node_are_drained_in_turn(planner, experiment, make):
    """With the budget, the second node waits until the first has returned with its pod."""
    bound = {
        "nodeSelector": {"pool": "db"},
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
                ]
            }
        },
    }
    members = [make.node(name, pool="db", **{HOSTNAME: name}) for name in "ab"]
    objects = [make.node("c"), *members, *deployment(make, "web", ["a", "b"], **bound)]
    [stop] = stops_of(planner, experiment, objects, at_once=2)
    assert stop.why.startswith("it waits for b")
    assert stop.edit == BUDGET
    guarded = [*objects, budget("web", maxUnavailable=1)]
    assert stops_of(planner, experiment, guarded, at_once=2) == []


def test_pods_that_wait_for_one_node_get_no_budget(planner, experiment, make):
    """With a budget, the drain would never end: the first pod waits for the node itself."""
    members = [make.node("a", pool="db"), make.node("b"), make.node("c")]
    web = deployment(make, "web", ["a", "a"], nodeSelector={"pool": "db"})
    [stop] = stops_of(planner, experiment, [*members, *web])
    assert re.search(r"fairlead drain-plan \S*/snapshot.json --nodes a$", stop.edit)


@pytest.mark.parametrize("mode", ["ReadWriteOnce", "ReadWriteMany"])
def test_replicas_that_share_a_volume_of_one_node_get_no_budget(planner, experiment, make, mode):
    """With a budget, the drain would never end: the new pod waits for the other old pod."""
    shared = manifests(
        "v1",
        make_claim("data", modes=[mode], volume="pv", bound=True),
        make_volume("pv", modes=[mode], claim="default/data"),
    )
    web = deployment(make, "web", ["a", "a"], **make_claim_volumes("data"))
    [stop] = stops_of(planner, experiment, [*nodes(make), *web, *shared])
    can_move = mode == "ReadWriteMany"
    assert stop.edit == (BUDGET if can_move else "drain a when deploy/default/web may stop")


@pytest.mark.parametrize("on", [["a"], ["a", "a"]])
def test_replicas_that_share_devices_of_one_node_get_no_budget(planner, experiment, make, on):
    """The claim stays allocated on the node while an old pod uses it."""
    web = deployment(make, "web", on, **make_pod_resource_claims("gpu"))
    pods = [one["metadata"] for one in web if one["kind"] == "Pod"]
    for pod in pods:
        pod["uid"] = pod["name"]
    status = make_claim_status("a", "gpu-0", reserved_for=[pod["uid"] for pod in pods])
    shared = manifests(
        "resource.k8s.io/v1",
        *(make_slice(node) for node in "abc"),
        make_device_class(),
        make_resource_claim("gpu", make_device_request(), status=status),
    )
    [stop] = stops_of(planner, experiment, [*nodes(make), *web, *shared])
    assert stop.edit == "drain a when deploy/default/web may stop"
