"""Explanations of ResourceQuotas: what is left, who uses it, and which workloads wait."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object

EXCESS = (
    "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2, limited: requests.cpu=2"
)


def quota(name="q", used=None, **spec):
    found = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    return found | ({"status": {"hard": spec["hard"], "used": used}} if used else {})


def failing(make, message, replicas=4, existing=2):
    """Return a ReplicaSet that lacks pods because of `message`; each pod requests 1 CPU and 1Gi."""
    web = make.workload("ReplicaSet", "web", replicas=replicas)
    container = web["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
    condition = {"type": "ReplicaFailure", "status": "True", "message": message}
    return web | {"status": {"replicas": existing, "conditions": [condition]}}


@pytest.fixture
def explained(snapshot, make):
    def explain(target, *objects):
        cluster = snapshot(make.node("a"), *objects)
        return explain_object(cluster, target, SchedulerConfig(), NO_CHOICE)

    return explain


def rows(answer, name):
    return next(one.rows for one in answer.tables if one.name == name)


def test_a_quota_that_is_used_up_names_the_workloads_that_wait(explained, make):
    hard = {"requests.cpu": "2", "requests.memory": "3Gi", "count/secrets": "9"}
    used = {"requests.cpu": "2", "requests.memory": "2Gi", "count/secrets": "4"}
    answer = explained("quota/q", quota(hard=hard, used=used), failing(make, EXCESS))
    assert answer.verdict == (
        "quota/default/q is used up: nothing is left of requests.cpu; 1 workload lacks 2 pods "
        "because of it."
    )
    higher = "A limit of 4 requests.cpu and 4Gi requests.memory admits the missing pods."
    assert answer.findings[0] == higher
    question, step = answer.steps
    assert question.command == (
        f"fairlead whatif {answer.source} --set 'quota/default/q:spec.hard[requests.cpu]=4' "
        "--set 'quota/default/q:spec.hard[requests.memory]=4Gi'"
    )
    assert step.command == (
        "kubectl patch resourcequota -n default q "
        """-p '{"spec":{"hard":{"requests.cpu":"4","requests.memory":"4Gi"}}}'"""
    )
    [waiting] = rows(answer, "waiting")
    assert (waiting["pods"], waiting["workload"]) == (2, "rs/default/web")
    left = {row["resource"]: row["left"] for row in rows(answer, "resources")}
    assert left == {"requests.cpu": "0", "requests.memory": "1Gi", "count/secrets": "5"}


def test_the_usage_of_a_quota_without_status_is_counted(explained, make):
    pods = [make.pod(f"web-{n}", node_name="a", owner="web", cpu="500m") for n in range(2)]
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {}}
    claim["metadata"] = {"name": "data", "namespace": "default"}
    hard = {"requests.cpu": "4", "persistentvolumeclaims": "4"}
    answer = explained("resourcequota/q", quota(hard=hard), *pods, claim)
    assert answer.verdict == (
        "quota/default/q has room; its scarcest resources are persistentvolumeclaims (3 of 4 "
        "left), requests.cpu (3 of 4 left); no workload lacks pods because of it."
    )
    users = [(row["user"], row["objects"], row["uses"]) for row in rows(answer, "users")]
    assert users == [
        ("persistentvolumeclaim/default/data", 1, "1 persistentvolumeclaims"),
        ("rs/default/web", 2, "1 requests.cpu"),
    ]
    assert answer.steps == ()


def test_the_messages_of_other_quotas_are_not_those_of_this_quota(explained, make):
    objects = [quota(hard={"pods": "9"}), quota("r", hard={"pods": "8"})]
    web = failing(make, EXCESS.replace("quota: q", "quota: r"))
    answer = explained("quota/q", *objects, web)
    assert rows(answer, "waiting") == []
    other = "A new pod must also fit into the other quotas of its namespace: r."
    assert answer.findings == (other,)


def test_other_quotas_are_named_with_their_scopes_if_they_count_pods(explained):
    high = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    objects = [
        quota(hard={"pods": "9"}),
        quota("high", hard={"pods": "1"}, scopeSelector={"matchExpressions": [high]}),
        quota("secrets", hard={"secrets": "3"}),
    ]
    counted = "Other quotas of its namespace count only pods in their scopes: "
    assert explained("quota/q", *objects).findings == (f"{counted}high (PriorityClass In high).",)


def test_pods_that_do_not_state_a_limited_resource_are_refused(explained, make):
    """A higher limit does not help these pods, so none is proposed."""
    message = "failed quota: q: must specify requests.cpu for: c"
    answer = explained("quota/q", quota(hard={"requests.cpu": "9"}), failing(make, message))
    assert answer.verdict.startswith("quota/default/q has room; ")
    assert answer.verdict.endswith("; 1 workload lacks 2 pods because of it.")
    [refuses] = answer.findings
    assert refuses.startswith("It refuses pods with a container that does not specify requests.cpu")
    assert answer.steps == ()


def test_a_quota_with_scopes_counts_only_the_objects_in_them(explained, make):
    pods = [make.pod(name, node_name="a") for name in ("low", "high")]
    pods[1]["spec"]["priorityClassName"] = "high"
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    scoped = quota(hard={"pods": "3"}, scopeSelector={"matchExpressions": [scope]})
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1}
    answer = explained("quota/q", scoped, *pods, high | {"metadata": {"name": "high"}})
    assert [row["user"] for row in rows(answer, "users")] == ["pod/default/high"]
    assert answer.findings == ("It counts only objects in its scopes: PriorityClass In high.",)


def test_a_quota_without_limits_says_so(explained):
    assert explained("quota/q", quota()).verdict == "quota/default/q limits nothing."


def test_a_limit_below_the_usage_is_raised_only_for_the_pods_that_wait(explained, make):
    """A quota compares only the resources that a new pod uses; some limits were lowered later."""
    hard = {"requests.cpu": "2", "services": "0"}
    used = {"requests.cpu": "3", "services": "1"}
    one = quota(hard=hard, used=used)
    answer = explained("quota/q", one)
    assert (answer.facts["sufficient"], answer.steps) == ({}, ())
    answer = explained("quota/q", one, failing(make, EXCESS))
    assert answer.facts["sufficient"] == {"requests.cpu": "5"}


def test_a_higher_limit_does_not_admit_pods_without_requests(explained, make):
    silent = failing(make, "failed quota: q: must specify requests.cpu for: c")
    silent["metadata"]["name"] = "silent"
    one = quota(hard={"requests.cpu": "2"}, used={"requests.cpu": "2"})
    answer = explained("quota/q", one, failing(make, EXCESS), silent)
    assert answer.findings[0] == (
        "A limit of 4 requests.cpu admits the missing pods that specify what it requires."
    )


def test_equally_scarce_resources_are_counted(explained):
    """Nothing is left of three resources; the row has the amounts of the first."""
    full = {"requests.cpu": "2", "pods": "4", "requests.memory": "1Gi"}
    answer = explained("quotas", quota(hard={**full, "limits.cpu": "9"}, used=full))
    [row] = rows(answer, "quotas")
    assert (row["resource"], row["scarcest"], row["used"]) == ("pods", "pods and 2 more", "4")
    half = explained("quota/q", quota(hard={"pods": "2", "services": "4"}, used={})).verdict
    assert "its scarcest resources are pods (2 of 2 left), services (4 of 4 left);" in half
    verdict = explained("quota/q", quota(hard=full, used=full)).verdict
    assert "nothing is left of pods, requests.cpu and requests.memory" in verdict


@pytest.mark.parametrize("target", ["quota", "quotas", "resourcequotas"])
def test_all_quotas_are_compared(explained, make, target):
    used = {"requests.cpu": "2", "pods": "4"}
    first = quota(hard={"requests.cpu": "2", "pods": "9"}, used=used)
    answer = explained(target, first, quota("r", hard={"pods": "8"}), failing(make, EXCESS))
    assert answer.verdict == "2 quotas; 2 pods are not created because of them."
    found = [tuple(row.values()) for row in rows(answer, "quotas")]
    assert found == [
        ("default/q", "requests.cpu", "requests.cpu", "2", "2", "0", 2),
        ("default/r", "pods", "pods", "0", "8", "8", 0),
    ]
    assert explained(target, quota()).verdict == (
        "1 quota; no workload lacks pods because of quotas."
    )
    assert explained(target).verdict.endswith(" has no ResourceQuota.")
