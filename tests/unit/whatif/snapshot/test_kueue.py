"""What a dump says about Jobs and pods that Kueue holds back."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.pod import explain_pod
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.plan_note import plan_notes
from fairlead.whatif.question import what_if

QUEUE = {"kueue.x-k8s.io/queue-name": "lq"}
NO_QUOTA = {"type": "QuotaReserved", "status": "False", "message": "insufficient unused quota"}
RESERVED = {"type": "QuotaReserved", "status": "True"}
CHECKED = {"type": "Admitted", "status": "False", "message": "The workload has failed checks."}
ADMITTED = {"type": "Admitted", "status": "True"}


def job(make, name="train", *, suspend=True):
    found = make.workload("Job", name, restartPolicy="Never")
    found["metadata"] |= {"labels": QUEUE, "uid": name}
    template = found["spec"]["template"]
    return found | {"apiVersion": "batch/v1", "spec": {"suspend": suspend, "template": template}}


def workload(owner, *conditions, **spec):
    """The Workload of Kueue for `owner`."""
    meta = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"]}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "w",
            "namespace": "default",
            "ownerReferences": [reference | {"uid": meta.get("uid", "u")}],
        },
        "spec": spec,
        "status": {"conditions": list(conditions)},
    }


@pytest.mark.parametrize(
    ("conditions", "spec", "sentence"),
    [
        ([NO_QUOTA], {}, "Kueue has not admitted it: insufficient unused quota."),
        ([RESERVED, CHECKED], {}, "Kueue has not admitted it: The workload has failed checks."),
        ([], {}, "Kueue has not admitted it yet."),
        ([], {"active": False}, "Kueue does not admit it, because its Workload w is not active"),
        ([RESERVED, ADMITTED], {}, None),
        (None, {}, "Kueue starts it when the quota of LocalQueue default/lq allows."),
    ],
)
def test_a_suspended_job_says_why_kueue_has_not_admitted_it(
    snapshot, make, conditions, spec, sentence
):
    held = job(make)
    objects = [make.node("a"), held]
    if conditions is not None:
        objects.append(workload(held, *conditions, **spec))
    answer = explain_object(snapshot(*objects), "job/train", SchedulerConfig(), NO_CHOICE)
    assert answer.findings[0] == "It is suspended (spec.suspend), so it gets no pods."
    found = [one for one in answer.findings if "Kueue" in one]
    assert len(found) == (sentence is not None)
    assert all(one.startswith(sentence) for one in found)


@pytest.mark.parametrize(
    "malformed",
    [
        {"spec": "foo"},
        {"status": {"conditions": {"type": "Admitted"}}},
        {"status": {"conditions": [{"type": 1}]}},
        {"status": []},
    ],
)
def test_a_malformed_workload_counts_as_absent(snapshot, make, malformed):
    """A dump can contain any values in custom resources."""
    held = job(make)
    read = snapshot(make.node("a"), held, workload(held) | malformed)
    answer = explain_object(read, "job/train", SchedulerConfig(), NO_CHOICE)
    why = "Kueue starts it when the quota of LocalQueue default/lq allows."
    assert why in " ".join(answer.findings)


def test_a_new_custom_resource_is_not_said_to_start(snapshot, write, make):
    """No pods are created for it, so it does not start without Kueue either."""
    meta = {"name": "p", "labels": QUEUE}
    new = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": meta, "spec": {}}
    created = what_if(snapshot(make.node("a")), ClusterChange(apply=(write("p.json", new),)))
    assert not any("Kueue" in one for one in created.changed.notes)


@pytest.mark.parametrize(
    ("conditions", "waits"),
    [([NO_QUOTA], True), ([], True), ([RESERVED, ADMITTED], False), (None, True)],
)
def test_a_note_names_what_kueue_has_not_admitted(snapshot, make, conditions, waits):
    """The deletion frees quota, but only Kueue would start the other Job then."""
    held, running = job(make), job(make, "other", suspend=False)
    pod = make.pod("other-x", node_name="a")
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "other", "uid": "other"}
    pod["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    objects = [make.node("a"), held, running, pod, make.workload(replicas=0)]
    if conditions is not None:
        objects.append(workload(held, *conditions))
    read = snapshot(*objects)
    answer = what_if(read, ClusterChange(delete=("job/other",)))
    note = (
        "Kueue has not admitted 1 workload of the dump: Job default/train. Kueue is not simulated, "
        "so it admits no workload here, even if there is enough quota."
    )
    assert (note in answer.changed.notes) is waits
    unrelated = what_if(read, ClusterChange(scale=("deploy/web=1",)))
    assert note not in unrelated.changed.notes
    for target in ("deploy/web", "job/other", "node/a", "pods", "nodes"):  # nothing starts
        explained = explain_object(read, target, SchedulerConfig(), NO_CHOICE)
        assert note not in explained.notes


@pytest.mark.parametrize("places_gangs", [True, False])
def test_a_plan_that_keeps_room_for_gangs_says_that_kueue_gets_none(snapshot, make, places_gangs):
    """The held Job has no pods, so other plans are not about it."""
    held = job(make)
    read = snapshot(make.node("a"), held, workload(held, NO_QUOTA))
    model = ClusterModel(read, SchedulerConfig())
    notes = plan_notes(read, model, NO_CHOICE, places_gangs=places_gangs)
    ending = "This answer keeps no room for such workloads."
    assert any(one.endswith(ending) for one in notes) is places_gangs
    assert any("Kueue" in one for one in notes) is places_gangs


def test_a_new_suspended_job_stays_suspended(snapshot, write, make):
    new = job(make)
    answer = what_if(snapshot(make.node("a")), ClusterChange(apply=(write("j.json", new),)))
    assert answer.changed.notes[0].startswith(
        "Job default/train stays suspended here, because Kueue, which starts Jobs of LocalQueue "
        "default/lq, is not simulated."
    )


def test_changes_of_quotas_have_no_effect(snapshot, write, make):
    meta = {"name": "cq"}
    quota = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": meta}
    change = ClusterChange(apply=(write("cq.json", quota | {"spec": {}}),))
    notes = what_if(snapshot(make.node("a")), change).changed.notes
    assert "Kueue is not simulated, so ClusterQueue cq has no effect." in notes


def test_a_pod_with_the_gate_of_kueue_says_why_it_waits(snapshot, make):
    gated = make.pod("p", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    read = snapshot(make.node("a"), gated, workload(gated, NO_QUOTA))
    notes = explain_pod(read, "pod/p", SchedulerConfig()).notes
    assert notes == ("Kueue has not admitted it: insufficient unused quota.",)


def test_a_resumed_job_set_of_a_queue_is_noted(snapshot, make):
    meta = {"name": "s", "namespace": "default", "labels": QUEUE, "uid": "s"}
    held = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta}
    held["spec"] = {"suspend": True}
    change = ClusterChange(set=("jobset/s:spec.suspend=false",))
    notes = what_if(snapshot(make.node("a"), held), change).changed.notes
    start = (
        "Kueue starts JobSet default/s only when the quota of LocalQueue default/lq allows; here"
    )
    assert any(one.startswith(start) for one in notes)


def test_a_new_or_resumed_job_of_a_queue_is_noted(snapshot, write, make):
    """Kueue would suspend the new Job, and suspend the resumed Job again."""
    held = snapshot(make.node("a"), job(make))
    note = "Kueue starts Job default/{} only when the quota of LocalQueue default/lq allows; here"
    resumed = what_if(held, ClusterChange(set=("job/train:spec.suspend=false",)))
    assert any(one.startswith(note.format("train")) for one in resumed.changed.notes)
    file = write("job.json", job(make, "new", suspend=False))
    created = what_if(held, ClusterChange(apply=(file,)))
    assert any(one.startswith(note.format("new")) for one in created.changed.notes)
    running = snapshot(make.node("a"), job(make, suspend=False))
    edited = what_if(running, ClusterChange(set=("job/train:spec.parallelism=2",)))
    assert not any("Kueue" in one for one in edited.changed.notes)
