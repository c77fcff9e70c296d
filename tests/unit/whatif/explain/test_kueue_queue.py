"""Explanations of the queues of Kueue, and of JobSets that Kueue has not admitted."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.input.error import InputError

API = "kueue.x-k8s.io/v1beta2"
GPU = "nvidia.com/gpu"
RESERVED = {"type": "QuotaReserved", "status": "True"}
ADMITTED = {"type": "Admitted", "status": "True"}


def kueue(kind, name, spec, status=None, namespace=""):
    meta = {"name": name, "uid": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": API, "kind": kind, "metadata": meta, "spec": spec, "status": status or {}}


def cluster_queue(name="gpus", reserved="6", **spec):
    quota = {"name": GPU, "nominalQuota": "8", "borrowingLimit": "4"}
    flavor = {"name": "a100", "resources": [quota]}
    held = {"name": "a100", "resources": [{"name": GPU, "total": reserved}]}
    spec = {"resourceGroups": [{"coveredResources": [GPU], "flavors": [flavor]}], **spec}
    return kueue("ClusterQueue", name, spec, {"flavorsReservation": [held]})


def local_queue(name="team", cluster="gpus"):
    return kueue("LocalQueue", name, {"clusterQueue": cluster}, namespace="ml")


def workload(name, *conditions, queue="team", reserves="", **spec):
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name}
    spec = {"queueName": queue, "podSets": [{"name": "a", "count": 2}, {"name": "b"}], **spec}
    status = {"conditions": list(conditions)}
    if reserves:
        assigned = [{"name": part, "resourceUsage": {GPU: reserves}} for part in "ab"]
        status["admission"] = {"clusterQueue": "gpus", "podSetAssignments": assigned}
    found = kueue("Workload", f"job-{name}", spec, status, "ml")
    found["metadata"]["ownerReferences"] = [owner]
    return found


STRICT = "A workload that cannot be admitted blocks those after it (queueingStrategy StrictFIFO)."
WAITS = {"type": "QuotaReserved", "status": "False", "message": "insufficient unused quota."}
WORKLOADS = (
    workload("runs", RESERVED, ADMITTED, reserves="3"),
    workload("low", WAITS),
    workload("high", RESERVED, {**ADMITTED, "status": "False", "message": "check"}, priority=9),
    workload("off", active=False, priority=-1),
    workload("ended", RESERVED, ADMITTED, {"type": "Finished", "status": "True"}),
    workload("other", WAITS, queue="elsewhere"),
)


@pytest.fixture
def explained(snapshot, make):
    def explain(target, *objects):
        read = snapshot(make.node("n"), *objects)
        return explain_object(read, target, SchedulerConfig(), NO_CHOICE)

    return explain


def rows(answer, name, *fields):
    found = next(one.rows for one in answer.tables if one.name == name)
    return [tuple(row[field] for field in fields) for row in found]


@pytest.mark.parametrize(
    ("target", "title"),
    [
        ("clusterqueue/gpus", "clusterqueue/gpus"),
        ("cq/gpus", "clusterqueue/gpus"),
        ("localqueue/ml/team", "localqueue/ml/team"),
        ("localqueue.kueue.x-k8s.io/team", "localqueue/ml/team"),
        ("queue/team", "localqueue/ml/team"),
    ],
)
def test_a_queue_lists_its_quota_and_its_workloads(explained, target, title):
    """Workloads of higher priority come first, as in Kueue."""
    answer = explained(target, cluster_queue(), local_queue(), *WORKLOADS)
    assert answer.verdict == f"{title}: 3 workloads wait for admission, 1 is admitted."
    [room] = answer.steps
    assert (answer.findings, room.code) == (
        (),
        f"fairlead whatif {answer.source} --set job/ml/high:spec.suspend=false",
    )
    amounts = ("flavor", "resource", "quota", "borrowing_limit", "reserved", "left")
    assert rows(answer, "amounts", *amounts) == [("a100", GPU, "8", "4", "6", "2")]
    assert rows(answer, "waiting", "workload", "pods", "why") == [
        ("Job ml/high", 3, "check"),
        ("Job ml/low", 3, "insufficient unused quota"),
        ("Job ml/off", 3, "it is not active (spec.active)"),
    ]
    assert rows(answer, "admitted", "workload", "uses") == [("Job ml/runs", f"6 {GPU}")]


def test_all_cluster_queues_are_compared(explained):
    queues = [cluster_queue(), cluster_queue("cpus", reserved="9"), local_queue()]
    for target in ("queues", "clusterqueues", "cq"):
        answer = explained(target, *queues, *WORKLOADS)
        assert answer.verdict == "2 ClusterQueues of Kueue; 3 workloads wait for admission."
        assert rows(answer, "queues", "queue", "waiting", "admitted") == [
            ("cpus", 0, 0),
            ("gpus", 3, 1),
        ]
        assert rows(answer, "amounts", "queue", "left") == [("cpus", "0"), ("gpus", "2")]


@pytest.mark.parametrize(
    ("objects", "finding"),
    [
        ([], "ClusterQueue gpus does not exist, so Kueue admits nothing from this queue."),
        (
            [cluster_queue(stopPolicy="Hold")],
            "ClusterQueue gpus is stopped: it admits no workloads (stopPolicy Hold).",
        ),
        (
            [cluster_queue(cohortName="all")],
            "ClusterQueue gpus is in cohort all and may borrow unused quota there.",
        ),
        (
            [cluster_queue(queueingStrategy="StrictFIFO")],
            STRICT,
        ),
    ],
    ids=["missing", "stopped", "cohort", "strict"],
)
def test_the_state_of_the_cluster_queue_is_a_finding(explained, objects, finding):
    assert explained("localqueue/team", local_queue(), *objects).findings == (finding,)


def test_an_inactive_queue_says_why(explained):
    queue = cluster_queue()
    queue["status"]["conditions"] = [
        {"type": "Active", "status": "False", "message": "Can't admit: flavor not found."}
    ]
    said = "ClusterQueue gpus is not active: Can't admit: flavor not found."
    assert explained("cq/gpus", queue).findings == (said,)


@pytest.mark.parametrize("target", ["localqueue/ml/team", "clusterqueue/gpus", "clusterqueues"])
@pytest.mark.parametrize(
    ("malformed", "problem"),
    [
        (
            workload("w", podSets="x"),
            "Workload.kueue.x-k8s.io ml/job-w: spec.podSets: expected array",
        ),
        (
            workload("w", priority="x"),
            "Workload.kueue.x-k8s.io ml/job-w: spec.priority: expected int",
        ),
        (cluster_queue(resourceGroups="x"), "ClusterQueue gpus: spec.resourceGroups: expected arr"),
        (
            cluster_queue(
                resourceGroups=[
                    {"flavors": [{"name": "f", "resources": [{"name": "r", "nominalQuota": "-1"}]}]}
                ]
            ),
            "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: '-1' is not an amount",
        ),
    ],
)
def test_malformed_objects_of_kueue_are_errors(explained, target, malformed, problem):
    """Otherwise, their workloads and quotas would be missing in the answer."""
    queues = () if malformed["kind"] == "ClusterQueue" else (cluster_queue(),)
    with pytest.raises(InputError) as raised:
        explained(target, *queues, local_queue(), malformed)
    assert problem in str(raised.value)


@pytest.mark.parametrize("spec", [{}, None])
def test_a_local_queue_may_name_no_cluster_queue(explained, spec):
    """In Kueue, clusterQueue is an optional field of a LocalQueue."""
    queue = local_queue()
    queue["spec"] = spec
    answer = explained("localqueue/ml/team", cluster_queue(), queue, workload("w"))
    assert answer.verdict == "localqueue/ml/team: 1 workload waits for admission, 0 are admitted."
    assert answer.findings == (
        "The queue names no ClusterQueue, so Kueue admits nothing from this queue.",
    )
    assert rows(explained("clusterqueues", cluster_queue(), queue, workload("w")), "queues",
                "queue", "waiting") == [("gpus", 0)]  # fmt: skip


def test_a_cluster_queue_may_lack_a_spec(explained):
    bare = cluster_queue("bare")
    del bare["spec"]
    assert rows(explained("clusterqueues", cluster_queue(), bare), "amounts", "queue") == [
        ("gpus",)
    ]


def test_amounts_may_be_numbers_with_a_fraction(explained):
    quota = {"name": GPU, "nominalQuota": 9.5}
    groups = [{"flavors": [{"name": "a100", "resources": [quota]}]}]
    queue = cluster_queue(resourceGroups=groups)
    answer = explained(
        "cq/gpus", queue, local_queue(), workload("w", RESERVED, ADMITTED, reserves=1.5)
    )
    assert rows(answer, "amounts", "quota", "left") == [("9.5", "3500m")]
    assert rows(answer, "admitted", "uses") == [(f"3 {GPU}",)]


def test_queues_of_volcano_keep_their_names(explained):
    meta = {"name": "team"}
    other = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": meta}
    objects = [other | {"spec": {"weight": 1}}, cluster_queue(), local_queue()]
    assert explained("queue/team", *objects).verdict == "queue/team (weight 1) has no pods."
    assert explained("queues", *objects).verdict == "1 queue; 0 groups wait."
    with pytest.raises(InputError, match="there is no LocalQueue none; known: ml/team"):
        explained("lq/none", *objects)


def test_a_suspended_job_set_and_its_jobs_say_why_kueue_has_not_admitted_it(explained, make):
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s", "uid": "s"}
    meta = {"name": "s", "namespace": "ml", "uid": "s"}
    job_set = {**owner, "metadata": meta, "spec": {"suspend": True}}
    del job_set["name"], job_set["uid"]
    jobs = []
    for name in ("s-a-0", "s-a-1"):
        job = make.workload("Job", name, restartPolicy="Never") | {"apiVersion": "batch/v1"}
        job["metadata"] |= {"namespace": "ml", "ownerReferences": [owner | {"controller": True}]}
        jobs.append(job)
        job["spec"] = {"suspend": True, "template": job["spec"]["template"]}
    held = workload("s", WAITS)
    held["metadata"]["ownerReferences"] = [owner]
    answer = explained("jobset/s", job_set, *jobs, held)
    assert answer.findings == (
        "It is suspended (spec.suspend), so its Jobs get no pods.",
        "Kueue has not admitted it: insufficient unused quota.",
    )
    assert rows(answer, "jobs", "job") == [("ml/s-a-0",), ("ml/s-a-1",)]
    said = "Kueue has not admitted JobSet ml/s: insufficient unused quota."
    assert [one.command.partition("--set ")[2] for one in answer.steps] == [
        "jobset/ml/s:spec.suspend=false"
    ]
    of_job = explained("job/ml/s-a-0", job_set, *jobs, held)
    assert said in of_job.findings
    assert of_job.steps == ()  # the JobSet would suspend the Job again
