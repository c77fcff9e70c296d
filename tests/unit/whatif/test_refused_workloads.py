"""What-ifs whose changes cause the API server to refuse pods that are created later."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.outcome.assessment.fail_on import parse_fail_on
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result

WEB = "deploy/default/web"
JOB = "job/default/once"


def core(kind, name, **fields):
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        **fields,
    }


def quota(**hard):
    return core("ResourceQuota", "q", spec={"hard": hard})


def namespace(name="default"):
    meta = {"name": name}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def minimum(cpu):
    return core("LimitRange", "r", spec={"limits": [{"type": "Container", "min": {"cpu": cpu}}]})


@pytest.fixture
def ask(make, snapshot, write):
    """Asks about a cluster with a Deployment of two pods that request 1 cpu each."""

    def ask_what_if(*objects, apply=(), **change):
        files = tuple(write(f"{number}.json", one) for number, one in enumerate(apply))
        web = make.workload(name="web", replicas=2)
        cluster = snapshot(make.node("a", cpu="9"), web, *objects)
        return what_if(cluster, ClusterChange(apply=files, **change))

    return ask_what_if


def refused(answer):
    return [(str(one.workload), one.message) for one in answer.effect.refused_replacements]


CASES = {
    "a quota on a resource that the pods do not state": (
        (), {"apply": (quota(**{"limits.memory": "1Gi"}),)},
        "failed quota: q: must specify limits.memory for: c",
    ),
    "a limit of a quota below the usage": (
        (quota(**{"requests.cpu": "2"}),), {"set": ("quota/q:spec.hard[requests.cpu]=1",)},
        (
            "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=2, limited: "
            "requests.cpu=1"
        ),
    ),
    "a range above the requests": (
        (), {"apply": (minimum("2"),)}, "minimum cpu usage per Container is 2, but request is 1",
    ),
    "a Pod Security Standard that the pods violate": (
        (namespace(), namespace("kube-system")),
        {"set": ("ns/default:metadata.labels[pod-security.kubernetes.io/enforce]=restricted",)},
        'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "change", "why"), CASES.values(), ids=CASES)
def test_a_change_after_which_the_next_pod_is_refused_has_a_verdict(ask, objects, change, why):
    """No existing pod changes, but the next eviction would lose a pod."""
    answer = ask(*objects, **change)
    [(workload, message)] = refused(answer)
    assert (workload, message[: len(why)]) == (WEB, why)
    first = answer.verdict.first
    assert first.kind is OutcomeKind.REPLACEMENTS_REFUSED
    assert first.sentence.startswith(f"From now on, new pods of {WEB} are refused, including")
    assert not answer.effect.is_none
    [evidence] = parse_fail_on("replacements-refused").evidence(answer.effect)
    assert evidence == f"{WEB}: {message}"


def test_a_deleted_class_or_account_refuses_the_pods_that_name_it(make, snapshot):
    """Each kind of object that admission looks up has the same answer."""
    spec = {"priorityClassName": "low", "serviceAccountName": "bot"}
    web = make.workload("StatefulSet", "web", **spec)
    accounts = [core("ServiceAccount", name) for name in ("bot", "default")]
    objects = [make.node("a"), web, make.priority_class("low", 1), *accounts]
    for name, message in (
        ("pc/low", "no PriorityClass with name low was found"),
        ("sa/bot", 'error looking up service account default/bot: serviceaccount "bot" not found'),
    ):
        answer = what_if(snapshot(*objects), ClusterChange(delete=(name,)))
        assert refused(answer) == [("sts/default/web", message)]


def test_a_refusal_that_exists_without_the_change_is_no_effect(ask):
    quotas = quota(**{"limits.memory": "1Gi"}), core("ResourceQuota", "other", spec={"hard": {}})
    answer = ask(*quotas, set=("quota/other:spec.hard.pods=9",))
    assert answer.changed.refused_workloads
    assert not answer.effect.refused_workloads
    assert answer.verdict.first.kind is OutcomeKind.UNCHANGED


@pytest.mark.parametrize(("limit", "replacements_refused"), [("2", False), ("1", True)])
def test_a_quota_may_have_room_only_for_replacements(ask, limit, replacements_refused):
    """A pod that has ended does not count, so its replacement needs no more room."""
    answer = ask(quota(pods="3"), set=(f"quota/q:spec.hard.pods={limit}",))
    [one] = whatif_result(answer)["refused_workloads"]
    assert one == {
        "workload": WEB,
        "message": f"exceeded quota: q, requested: pods=1, used: pods=2, limited: pods={limit}",
        "replacements_refused": replacements_refused,
    }
    assert answer.effect.is_none is not replacements_refused
    note = f"Pods of {WEB} can still be replaced, but one more pod is refused: {one['message']}."
    assert any(said.startswith(note) for said in answer.changed.notes) is not replacements_refused


def test_a_workload_that_lacks_refused_pods_is_named_once(ask):
    """The error about the missing pods says the same."""
    answer = ask(apply=(quota(**{"limits.memory": "1Gi"}),), scale=(f"{WEB}=3",))
    assert refused(answer)
    assert OutcomeKind.REPLACEMENTS_REFUSED not in [one.kind for one in answer.verdict.findings]
    assert answer.verdict.first.kind is OutcomeKind.ERROR


def test_reasons_that_differ_are_counted(ask, make):
    """Amounts of one quota or of one LimitRange that differ are one reason."""
    others = [make.workload(name=name, cpu=cpu) for name, cpu in (("b", "3"), ("c", "4"))]
    answer = ask(
        quota(**{"requests.cpu": "9"}), *others, set=("quota/q:spec.hard[requests.cpu]=1",)
    )
    assert answer.verdict.first.sentence == (
        "From now on, new pods of deploy/default/b, deploy/default/c and 1 more are refused, "
        "including replacements: exceeded quota: q."
    )
    answer = ask(*others, apply=(minimum("4"),))
    assert answer.verdict.first.sentence == (
        "From now on, new pods of deploy/default/b, deploy/default/web are refused, including "
        "replacements: minimum cpu usage per Container is 4."
    )
    far = minimum("5")
    far["metadata"]["namespace"] = "far"
    answer = ask(*others, make.workload(namespace="far"), apply=(minimum("4"), far))
    assert answer.verdict.first.sentence.endswith(
        " So are new pods of 1 more workload, for other reasons."
    )


def test_one_level_of_pod_security_is_one_reason(ask, make):
    """The messages name the containers of each pod."""
    other = make.workload(name="b")
    other["spec"]["template"]["spec"]["containers"][0]["name"] = "main"
    edit = "ns/default:metadata.labels[pod-security.kubernetes.io/enforce]=restricted"
    answer = ask(namespace(), namespace("kube-system"), other, set=(edit,))
    assert answer.verdict.first.sentence == (
        "From now on, new pods of deploy/default/b, deploy/default/web are refused, including "
        'replacements: violates PodSecurity "restricted:latest".'
    )


def test_a_job_is_tried_only_while_it_creates_pods(ask, make):
    """A CronJob is tried even if it has no Job yet."""
    pods = make.workload()["spec"]["template"]
    pods = {**pods, "spec": {**pods["spec"], "restartPolicy": "Never"}}
    jobs = [
        {**core("Job", name, spec={"template": pods, "completions": 1}, status=status),
         "apiVersion": "batch/v1"}
        for name, status in (
            ("once", {}),
            ("done", {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}),
        )
    ]  # fmt: skip
    spec = {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": pods}}}
    nightly = {**core("CronJob", "nightly", spec=spec), "apiVersion": "batch/v1"}
    paused = {**core("CronJob", "paused", spec={**spec, "suspend": True}), "apiVersion": "batch/v1"}
    answer = ask(*jobs, nightly, paused, apply=(quota(**{"limits.memory": "1Gi"}),))
    assert [name for name, _ in refused(answer)] == ["cronjob/default/nightly", WEB, JOB]


def test_a_workload_that_keeps_its_pods_is_tried_after_a_change_of_its_template(make, snapshot):
    """With OnDelete, the new template applies only to pods that are created later."""
    web = make.workload("StatefulSet", "web")
    web["spec"]["updateStrategy"] = {"type": "OnDelete"}
    cluster = snapshot(make.node("a"), web, minimum("500m"))
    answer = what_if(cluster, ClusterChange(set_resources=("sts/web=cpu=100m",)))
    [(workload, message)] = refused(answer)
    assert workload == "sts/default/web"
    assert message == "minimum cpu usage per Container is 500m, but request is 100m"


@pytest.mark.parametrize("change", [{"cordon": ("a",)}, {"scale": ("deploy/web=3",)}])
def test_other_changes_try_no_pods(ask, change):
    """A trial takes time, and only changes of what admission reads can alter its result."""
    answer = ask(quota(**{"limits.memory": "1Gi"}), **change)
    assert answer.changed.refused_workloads == answer.without.refused_workloads == ()


def test_calls_of_webhooks_in_trials_are_not_counted(ask):
    """The note about webhooks counts the requests of the run."""
    hook = {
        "name": "check.example.com",
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                   "resources": ["pods"]}],
        "clientConfig": {"url": "https://127.0.0.1"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }  # fmt: skip
    hooks = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "check"},
        "webhooks": [hook],
    }
    answer = ask(hooks, apply=(minimum("2"),))
    assert refused(answer)
    [note] = [one for one in answer.changed.notes if "webhooks" in one]
    assert note.endswith("by webhook: check.example.com (2).")


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_workloads_that_want_no_pods_are_not_tried(ask, make, kind):
    idle = make.workload(kind, "idle", replicas=0)
    found = ask(idle, apply=(quota(**{"limits.memory": "1Gi"}),))
    assert [workload for workload, _ in refused(found)] == [WEB]


def test_the_pods_of_a_replica_set_without_owner_count_for_its_deployment(ask, make):
    """The ReplicaSet of a dump without its Deployment; the quota has room for a replacement."""
    lone = make.workload("ReplicaSet", "api-5d4", replicas=1)
    lone["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = "5d4"
    lone["metadata"]["labels"] = {"pod-template-hash": "5d4"}
    found = ask(lone, apply=(quota(pods="3"),)).effect.refused_workloads
    rows = {str(one.workload): one.replacements_refused for one in found}
    assert rows == {WEB: False, "deploy/default/api": False}


def test_a_note_names_each_quota_without_room_for_more_pods(ask, make):
    other = make.workload(name="other", namespace="far", replicas=1)
    far = quota(pods="1")
    far["metadata"] = {"name": "z", "namespace": "far"}
    notes = ask(other, apply=(quota(pods="2"), far)).changed.notes
    for workload, name in ((WEB, "q"), ("deploy/far/other", "z")):
        start = f"Pods of {workload} can still be replaced, but one more pod is refused: exceeded "
        assert any(one.startswith(f"{start}quota: {name}, ") for one in notes)


def policy_with_parameters(kind, expression):
    """Return a policy that validates new pods, whose parameters are objects of the core `kind`."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "bounds"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": kind},
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                     "resources": ["pods"]}
                ]
            },
            "validations": [{"expression": expression}],
        },
    }  # fmt: skip


def binding_with(reference):
    """Return the binding of the policy; its paramRef is `reference`, or absent if it is {}."""
    spec = {"policyName": "bounds", "validationActions": ["Deny"]}
    if reference:
        spec["paramRef"] = {**reference, "parameterNotFoundAction": "Allow"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "bounds"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("reference", "is_tried"),
    [
        ({"name": "bounds", "namespace": "default"}, True),
        ({"name": "bounds"}, True),
        ({"selector": {"matchLabels": {"for": "pods"}}}, True),
        ({"name": "bounds", "namespace": "other"}, False),
        ({"name": "other"}, False),
        ({}, False),
    ],
    ids=["by name", "of each namespace", "by label", "elsewhere", "with another name", "none"],
)
def test_a_changed_parameter_of_a_policy_refuses_pods(ask, reference, is_tried):
    """The policy itself does not change. Objects that no binding names are no parameters."""
    policy = policy_with_parameters("ConfigMap", "params == null || params.data.open == 'yes'")
    binding = binding_with(reference)
    bounds = core("ConfigMap", "bounds", data={"open": "yes"})
    bounds["metadata"]["labels"] = {"for": "pods"}
    answer = ask(policy, binding, bounds, set=("cm/bounds:data.open=no",))
    assert [workload for workload, _ in refused(answer)] == [WEB] * is_tried
    answer = ask(policy, binding, bounds, delete=("cm/bounds",))
    assert refused(answer) == []


@pytest.mark.parametrize(
    ("kind", "reference", "edit"),
    [
        ("ConfigMap", {"name": "far", "namespace": "far"}, "cm/far:metadata.labels.open=no"),
        ("Namespace", {"name": "far"}, "ns/far:metadata.labels.open=no"),
    ],
    ids=["of a fixed namespace", "of no namespace"],
)
def test_a_parameter_for_all_namespaces_refuses_pods_of_other_namespaces(
    ask, kind, reference, edit
):
    policy = policy_with_parameters(kind, "params.metadata.labels.open == 'yes'")
    bounds = core("ConfigMap", "far")
    bounds["metadata"]["namespace"] = "far"
    objects = [bounds, namespace("far"), namespace(), namespace("kube-system")]
    for one in objects:
        one["metadata"]["labels"] = {"open": "yes"}
    answer = ask(policy, binding_with(reference), *objects, set=(edit,))
    assert [workload for workload, _ in refused(answer)] == [WEB]
