"""Admission in what-ifs: effects of dumped quotas, ranges, classes and policies on objects."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.outcome.assessment.fail_on import check, parse_fail_on
from fairlead.whatif.outcome.assessment.verdict import verdict_of
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result


def namespaced(kind, name, *, api_version="v1", **fields):
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": f"{kind}-{name}"},
        **fields,
    }


LIMITS = namespaced(
    "LimitRange", "limits", spec={"limits": [{"type": "Container", "default": {"cpu": "500m"}}]}
)
HARD = {"pods": "26"}
QUOTA = namespaced(
    "ResourceQuota", "small", spec={"hard": HARD}, status={"hard": HARD, "used": {"pods": "0"}}
)
POLICY = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "pull"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                 "resources": ["pods"]}
            ]
        },
        "validations": [
            {"expression": "object.spec.containers.all(c, c.imagePullPolicy == 'IfNotPresent')",
             "message": "pull once", "reason": "Forbidden"}
        ],
    },
}  # fmt: skip
BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "pull"},
    "spec": {"policyName": "pull", "validationActions": ["Deny"]},
}


@pytest.fixture
def scale_up(make, snapshot):
    """Scales a Deployment without requests from 0 to `replicas` in a cluster with `objects`."""

    def run(replicas, *objects, nodes=2, **spec):
        web = make.workload(replicas=0, **spec)
        web["spec"]["template"]["spec"]["containers"][0]["resources"] = {}
        cluster = [*(make.node(f"n{number}") for number in range(nodes)), web, *objects]
        return what_if(snapshot(*cluster), ClusterChange(scale=(f"deploy/web={replicas}",)))

    return run


def test_a_limit_range_gives_new_pods_their_requests(scale_up):
    found = scale_up(20, LIMITS).difference
    assert (len(found.placed), len(found.pending)) == (16, 4)  # 8 cores, 500m each


def test_the_missing_pods_of_each_owner_are_counted(make, snapshot):
    names = "api", "web"
    objects = [make.workload("ReplicaSet", name, replicas=3) for name in names]
    hard = {"pods": "4"}
    status = {"hard": hard, "used": {"pods": "0"}}
    quota = namespaced("ResourceQuota", "small", spec={"hard": hard}, status=status)
    cluster = snapshot(*(make.node(name, cpu="8") for name in "ab"), quota, *objects)
    answer = what_if(cluster, ClusterChange(scale=("rs/api=5", "rs/web=5")))
    running = len(answer.changed.pods)
    assert running == 4
    assert len(answer.changed.errors) == 2
    assert sum(one.missing for one in answer.changed.errors) == 10 - running


def test_the_error_states_the_last_cause_and_counts_only_if_more_pods_lack(make, snapshot):
    """Both runs lack pods; the change raises one limit until another one is reached."""
    hard = {"pods": "9", "requests.cpu": "2"}
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    quota = namespaced("ResourceQuota", "small", spec={"hard": hard}, status=status)
    cluster = snapshot(
        make.node("a", cpu="9"), quota, make.workload("ReplicaSet", "web", replicas=5)
    )
    edits = "quota/small:spec.hard[requests.cpu]=9", "quota/small:spec.hard.pods=3"
    answer = what_if(cluster, ClusterChange(set=edits))
    [error], [before] = answer.changed.errors, answer.without.errors
    assert (before.missing, error.missing) == (3, 2)
    assert "requests.cpu=1" in before.message
    assert "requested: pods=1, used: pods=3, limited: pods=3" in error.message
    assert not answer.effect.errors
    assert what_if(cluster, ClusterChange(scale=("rs/web=6",))).effect.errors


def test_a_quota_refuses_pods_and_the_answer_names_their_owner(scale_up):
    answer = scale_up(30, QUOTA)
    assert len(answer.difference.placed) == 26
    [error] = answer.changed.errors
    assert error.subject.startswith("ReplicaSet default/web-")
    assert "exceeded quota: small, requested: pods=1, used: pods=26" in error.message
    assert error.missing == 4
    [row] = answer.effect.workloads
    assert (row.readiness.wanted, row.readiness.at_end) == (30, 26)
    assert row.short_words == "4 not created, 26 new"
    [first, _] = verdict_of(answer.effect).findings
    assert first.sentence.startswith("4 pods of deploy/default/web are not created: Error creat")


@pytest.mark.parametrize(
    ("condition", "evidence"),
    [
        (
            "not-created>1",
            (
                "deploy/default/web (missing pod 1 of 2)",
                "deploy/default/web (missing pod 2 of 2)",
            ),
        ),
        ("not-created>2", ()),
        ("pending>0", ()),
    ],
)
def test_a_condition_counts_the_pods_that_a_quota_refuses(scale_up, condition, evidence):
    answer = scale_up(28, QUOTA)
    assert check(parse_fail_on(condition), answer.effect).evidence == evidence
    [row] = whatif_result(answer, ())["workloads"]
    assert row["missing"] == 2


def test_a_condition_counts_an_applied_pod_that_a_quota_refuses(make, snapshot, write):
    """No workload lacks the pod, so the conditions about pods do not hold."""
    none = {**QUOTA, "spec": {"hard": {"pods": "0"}}, "status": {"hard": {"pods": "0"}}}
    change = ClusterChange(apply=(write("pod.json", make.pod("check")),))
    answer = what_if(snapshot(make.node("a"), none), change)
    [evidence] = check(parse_fail_on("errors>0"), answer.effect).evidence
    assert evidence.startswith('Pod default/check: pods "check" is forbidden: exceeded quota')
    assert check(parse_fail_on("not-created>0"), answer.effect).evidence == ()


def test_a_workload_that_creates_no_pod_at_all_is_not_untouched(make, snapshot):
    """No pod of the workload changes, but the pods that the change requests are missing."""
    web = make.workload(replicas=1)
    none = {**QUOTA, "spec": {"hard": {"pods": "1"}}, "status": {"hard": {"pods": "1"}}}
    answer = what_if(snapshot(make.node("a"), none, web), ClusterChange(scale=("deploy/web=3",)))
    assert answer.difference.placed == ()
    [row] = answer.effect.workloads
    assert (row.readiness.wanted, row.readiness.at_end, row.missing) == (3, 1, 2)
    assert row.is_harmed
    assert not answer.effect.is_none


@pytest.mark.parametrize(
    ("change", "untouched"),
    [
        (ClusterChange(delete=("deploy/web",)), 1),
        (ClusterChange(scale=("deploy/web=0",)), 1),
        (ClusterChange(scale=("deploy/web=2",)), 1),
        (ClusterChange(cordon=("a",)), 2),
    ],
)
def test_workloads_without_pods_at_the_end_do_not_lower_the_untouched(
    make, snapshot, change, untouched
):
    found = snapshot(make.node("a"), make.workload(replicas=1), make.workload(name="db"))
    answer = what_if(found, change)
    assert whatif_result(answer, ())["untouched_workloads"] == untouched


def test_a_job_whose_pod_the_quota_refuses_is_not_created_again(make, snapshot):
    """The Job still wants the evicted pod, so it is not gone for good."""
    job = {
        **namespaced("Job", "train", api_version="batch/v1"),
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "template": make.workload()["spec"]["template"],
        },
    }
    pod = make.pod("train-x", node_name="a", owner="train")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "Job-train"}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    full = {**QUOTA, "spec": {"hard": {"requests.cpu": "500m"}}, "status": {}}
    answer = what_if(
        snapshot(make.node("a"), make.node("b"), job, pod, full), ClusterChange(drain=("a",))
    )
    assert answer.difference.gone == ()
    [row] = answer.effect.workloads
    assert (row.readiness.wanted, row.not_created, row.missing) == (1, 1, 0)


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        ("ReplicaSet", "apps/v1"),
        ("StatefulSet", "apps/v1"),
        ("Job", "batch.volcano.sh/v1alpha1"),
        ("PyTorchJob", "kubeflow.org/v1"),
    ],
)
@pytest.mark.parametrize(("hard", "missing"), [("1500m", 1), ("2", 0)])
def test_the_quota_refuses_a_pod_of_an_owner_that_the_dump_lacks(
    make, snapshot, kind, api_version, hard, missing
):
    """The owner lacks the pod that was evicted; the error is over if the pod is created later."""
    pods = [make.pod(f"train-{number}", node_name="ab"[number]) for number in range(2)]
    owner = {"apiVersion": api_version, "kind": kind, "name": "train", "uid": "u"}
    for one in pods:
        one["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    full = {**QUOTA, "spec": {"hard": {"requests.cpu": hard}}, "status": {}}
    answer = what_if(
        snapshot(make.node("a"), make.node("b"), *pods, full), ClusterChange(drain=("a",))
    )
    found = answer.difference
    assert found.gone == found.removed == ()
    assert [one.pod.key for one in found.not_created] == ["default/train-0"][:missing]
    assert [one.missing for one in answer.effect.lasting_errors] == [missing][:missing]
    [row] = answer.effect.workloads
    assert (row.readiness.wanted, row.not_created, row.missing) == (2, missing, 0)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"delete": ("pod/agent-a",)}, id="the pod is deleted"),
        pytest.param(
            {"failures": Failures(fail_node=("a",)), "lasts": "30m"},
            id="the node fails and returns",
        ),
        pytest.param(
            {"set": ("ds/agent:spec.template.spec.priority=1",)}, id="a rollout deletes the pod"
        ),
    ],
)
def test_a_daemon_pod_that_the_quota_refuses_is_not_created_again(make, snapshot, change):
    """The DaemonSet still wants a pod on the node, so the pod is not only removed."""
    agent = make.workload("DaemonSet", "agent")
    agent["metadata"]["uid"] = "DaemonSet-agent"
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}
    nodes, pods = [make.node("a"), make.node("b")], []
    for name in "ab":
        pods.append(make.pod(f"agent-{name}", node_name=name))
        pods[-1]["metadata"]["ownerReferences"] = [{**owner, "uid": "DaemonSet-agent"}]
        pods[-1]["metadata"]["labels"] = {"app": "agent"}
    full = {**QUOTA, "spec": {"hard": {"pods": "1"}}, "status": {}}
    answer = what_if(snapshot(*nodes, agent, *pods, full), ClusterChange(**change))
    found = answer.difference
    assert found.removed == found.gone == ()
    [lost] = found.not_created
    assert lost.pod.workload.name == "agent"
    [error] = answer.effect.lasting_errors
    assert (error.missing, error.nodes) == (1, (lost.pod.node,))
    [row] = answer.effect.workloads
    assert (row.readiness.wanted, row.readiness.at_end) == (2, 1)
    assert (row.not_created, row.missing, row.removed) == (1, 0, 0)


def test_a_pod_that_is_applied_over_the_quota_is_part_of_the_answer(make, snapshot, write):
    full = {**QUOTA, "status": {"hard": HARD, "used": HARD}}
    pod = write("pod.json", make.pod())
    # A quota's usage is counted when the cluster is loaded: 26 pods exist.
    pods = [make.pod(f"p{number}", node_name="a", cpu="10m") for number in range(26)]
    answer = what_if(snapshot(make.node("a"), full, *pods), ClusterChange(apply=(pod,)))
    assert answer.difference.placed == ()
    [error] = answer.changed.errors
    assert error.subject == "Pod default/web"
    assert "exceeded quota: small" in error.message


def test_a_quota_holds_against_affinity_to_pods_of_other_namespaces(scale_up):
    scope = {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"}
    quota = namespaced(
        "ResourceQuota",
        "own-namespace",
        spec={"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": [scope]}},
    )
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaces": ["other"]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    answer = scale_up(1, quota, affinity={"podAffinity": required})
    [error] = answer.changed.errors
    assert "exceeded quota: own-namespace, requested: pods=1" in error.message


def test_a_runtime_class_adds_its_overhead(scale_up):
    runtime_class = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "1"}},
    }
    found = scale_up(10, runtime_class, runtimeClassName="kata").difference
    assert (len(found.placed), len(found.pending)) == (8, 2)


def test_pod_security_refuses_privileged_pods(scale_up):
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "default",
            "labels": {"pod-security.kubernetes.io/enforce": "baseline"},
        },
    }
    answer = scale_up(1, namespace, hostNetwork=True)
    [error] = answer.changed.errors
    assert 'violates PodSecurity "baseline:latest": host namespaces' in error.message


def test_a_cel_policy_sees_pods_with_all_their_defaults(scale_up):
    answer = scale_up(1, POLICY, BINDING)
    [error] = answer.changed.errors
    assert "ValidatingAdmissionPolicy 'pull' with binding 'pull' denied request: pull once" in (
        error.message
    )


def test_webhooks_are_named_instead_of_called(scale_up):
    webhook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "kyverno"},
        "webhooks": [
            {"name": "validate.kyverno.svc", "clientConfig": {"url": "https://127.0.0.1:1"},
             "admissionReviewVersions": ["v1"], "sideEffects": "None",
             "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                        "resources": ["pods"]}]},
            {"name": "other.kyverno.svc", "clientConfig": {"url": "https://127.0.0.1:1"},
             "admissionReviewVersions": ["v1"], "sideEffects": "None",
             "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                        "resources": ["services"]}]},
        ],
    }  # fmt: skip
    answer = scale_up(3, webhook)
    assert len(answer.difference.placed) == 3
    [note] = [one for one in answer.changed.notes if "become ready" not in one]
    assert "validate.kyverno.svc (3)" in note
    assert "other.kyverno.svc" not in note


def test_a_plugin_whose_kind_the_dump_lacks_refuses_nothing_and_is_named(scale_up):
    answer = scale_up(2, LIMITS, runtimeClassName="kata", serviceAccountName="web")
    assert len(answer.difference.placed) == 2
    [note] = [one for one in answer.changed.notes if "could not check new objects" in one]
    assert note.endswith(
        "namespaces (NamespaceLifecycle), serviceaccounts (ServiceAccount), "
        "runtimeclasses (RuntimeClass)."
    )


def test_an_absent_service_account_is_refused_where_the_dump_has_accounts(scale_up):
    account = namespaced("ServiceAccount", "default")
    answer = scale_up(1, account, serviceAccountName="builder")
    [error] = answer.changed.errors
    assert 'serviceaccount "builder" not found' in error.message


def test_objects_of_the_dump_are_not_admitted_again(make, snapshot):
    pod = make.pod(node_name="a", serviceAccountName="builder", hostNetwork=True)
    objects = [make.node("a"), pod, namespaced("ServiceAccount", "default"), POLICY, BINDING]
    assert what_if(snapshot(*objects), ClusterChange()).difference.is_empty


def test_leases_need_no_listed_namespace(make, snapshot):
    """Every server has the namespace of node leases, so no node becomes unreachable without it."""
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    objects = [make.node(name) for name in ("a", "b")]
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="10m")
    answer = what_if(snapshot(*objects, system), change)
    assert {one.node for one in answer.changed.outage.nodes} == {"a"}


@pytest.mark.parametrize("is_new", [True, False])
def test_a_quota_of_the_change_limits_the_pods_of_the_change(make, snapshot, write, is_new):
    """In a cluster, the quota's status is written before a user can scale the workload."""
    quota = {**QUOTA, "spec": {"hard": {"pods": "2"}}}
    del quota["status"]
    before = [] if is_new else [QUOTA]
    cluster = [make.node("a"), make.workload(replicas=1), *before]
    change = ClusterChange(apply=(write("quota.json", quota),), scale=("deploy/web=4",))
    answer = what_if(snapshot(*cluster), change)
    assert len(answer.difference.placed) == 1
    [error] = answer.changed.errors
    assert error.missing == 2


KATA = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata", "uid": "kata"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "1"}},
}


def test_the_last_runtime_class_can_be_deleted(make, snapshot):
    """The dump lists RuntimeClasses, so a class that the change deletes does not exist."""
    web = make.workload(replicas=0, runtimeClassName="kata")
    change = ClusterChange(scale=("deploy/web=1",), delete=("runtimeclass/kata",))
    answer = what_if(snapshot(make.node("a"), web, KATA), change)
    [error] = answer.changed.errors
    assert 'RuntimeClass "kata" not found' in error.message


def test_an_applied_runtime_class_does_not_make_others_missing(make, snapshot):
    """The dump lists no RuntimeClasses; the pods that name another class can be created."""
    web = make.workload(replicas=0, runtimeClassName="gvisor")
    web["metadata"]["uid"] = "web"
    new = make.workload(name="new", replicas=1, runtimeClassName="kata")
    change = ClusterChange(scale=("deploy/web=1",), apply=(KATA, new))
    answer = what_if(snapshot(make.node("a"), web), change)
    assert len(answer.difference.placed) == 2
    assert not answer.changed.errors
    [cpu] = [one for one in answer.changed.allocations if one.resource == "cpu"]
    assert cpu.requested == 2 * 1000 + 1000  # the applied class adds its overhead
    assert any("runtimeclasses (RuntimeClass)" in one for one in answer.changed.notes)


@pytest.mark.parametrize(("account", "is_created"), [("builder", False), ("default", True)])
def test_a_new_namespace_has_only_the_accounts_of_the_change(make, snapshot, account, is_created):
    """Kubernetes creates the account `default`; all others must be applied."""
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in ("kube-system", "default", "shop")
    ]
    web = make.workload(replicas=1, namespace="shop", serviceAccountName=account)
    change = ClusterChange(apply=(namespaces.pop(), web))
    answer = what_if(snapshot(make.node("a"), *namespaces), change)
    assert bool(answer.difference.placed) == is_created
    messages = [one.message for one in answer.changed.errors]
    assert any('serviceaccount "builder" not found' in one for one in messages) != is_created


def test_a_namespace_of_every_server_is_not_new(make, snapshot):
    """The dump lists `kube-system` only; the namespace `default` may have any account."""
    listed = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    web = make.workload(replicas=1, serviceAccountName="builder")
    answer = what_if(snapshot(make.node("a"), listed), ClusterChange(apply=(web,)))
    assert len(answer.difference.placed) == 1
    assert not answer.changed.errors
