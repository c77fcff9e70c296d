"""Plans for a cluster after a change have all pods of the changed workloads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from fairlead.apiserver.kind import POD
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.configuration.release import ReleaseChoice
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.baseline import read_baseline
from fairlead.whatif.planner.changed_snapshot import changed_snapshot
from fairlead.whatif.planner.missing_pod import refusal_notes, with_missing_pods
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.manifest import ReplicaManifests, entries_of
from fairlead.whatif.snapshot.snapshot import read_snapshot

EXAMPLE = Path(__file__).parents[4] / "examples" / "store" / "store.yaml"


@pytest.fixture
def changed(snapshot):
    """The baseline of a plan after a change of the cluster with these objects."""

    def after(change, *objects):
        config = SchedulerConfig()
        found = changed_snapshot(snapshot(*objects), change, 0)
        base = read_baseline(found.snapshot, config, ReleaseChoice(), NoProgress())
        base = with_missing_pods(base, found.pods, found.stateful_sets, config, 0)
        refused = refusal_notes(base, found.others)
        return replace(base, notes=(*found.notes, *refused, *base.notes))

    return after


def cores(base):
    """Return how many pods of each workload request how many cores."""
    return Counter(
        (str(workload_of(one.pod)), one.pod.spec.containers[0].resources.requests["cpu"])
        for one in base.model.pods()
    )


def with_pods(make, kind="Deployment", *, count=2, **spec):
    """Return a workload of `count` pods that request a core each, and its pods on the node a."""
    web = make.workload(kind, replicas=count)
    web["metadata"]["uid"] = "web"
    web["spec"] |= spec
    if kind == "DaemonSet":
        del web["spec"]["replicas"]
    owner, sets = "web", []
    if kind == "Deployment":
        owner, template = "web-1", web["spec"]["template"]
        labels = {**template["metadata"]["labels"], "pod-template-hash": "1"}
        sets = [make.workload("ReplicaSet", owner, replicas=count)]
        sets[0]["metadata"] |= {"uid": owner, "labels": labels, "ownerReferences": [reference(web)]}
        sets[0]["spec"]["template"] = {**template, "metadata": {"labels": labels}}
        sets[0]["spec"]["selector"] = {"matchLabels": labels}
    pods = []
    for number in range(count):
        pod = make.pod(f"{owner}-{number}", node_name="a", owner=owner)
        pod["metadata"]["labels"] = (sets or [web])[0]["spec"]["template"]["metadata"]["labels"]
        pod["metadata"]["ownerReferences"] = [reference((sets or [web])[0])]
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(pod)
    return [web, *sets, *pods]


def reference(owner):
    kept = {key: owner["metadata"][key] for key in ("name", "uid")}
    return {"apiVersion": "apps/v1", "kind": owner["kind"], **kept, "controller": True}


@pytest.mark.parametrize(("replicas", "pods"), [("5", {("deploy/default/web", "1"): 5}), ("0", {})])
def test_a_scaled_workload_has_its_new_number_of_pods(changed, make, replicas, pods):
    """The node has room for four pods."""
    change = ClusterChange(scale=(f"deploy/web={replicas}",))
    base = changed(change, make.node("a"), *with_pods(make))
    assert cores(base) == pods
    assert base.notes[0] == f"This answer is about the cluster after --scale deploy/web={replicas}."


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_scaled_stateful_set_has_all_its_pods(changed, make, policy):
    """With OrderedReady, a StatefulSet creates no pod after one that fits on no present node."""
    objects = with_pods(make, "StatefulSet", podManagementPolicy=policy, serviceName="web")
    base = changed(ClusterChange(scale=("sts/web=9",)), make.node("a"), *objects)
    assert cores(base) == {("sts/default/web", "1"): 9}
    assert len({pod.pod.metadata.name for pod in base.model.pods()}) == 9
    later = [note for note in base.notes if "creates only after earlier pods" in note]
    assert len(later) == (policy == "OrderedReady")


@pytest.mark.parametrize(
    ("kind", "spec", "cpu"),
    [
        ("Deployment", {}, {"3": 2}),
        ("Deployment", {"paused": True}, {"1": 2}),
        ("StatefulSet", {"serviceName": "web"}, {"3": 2}),
        ("StatefulSet", {"serviceName": "web", "updateStrategy": {
            "type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}, {"1": 1, "3": 1}),
        ("StatefulSet", {"serviceName": "web", "updateStrategy": {"type": "OnDelete"}}, {"1": 2}),
        ("DaemonSet", {}, {"3": 1}),
    ],
)  # fmt: skip
def test_a_new_template_replaces_the_old_pods(changed, make, write, kind, spec, cpu):
    """A rollout on the present nodes would stop: the node has room for one new pod beside two."""
    objects = with_pods(make, kind, count=1 if kind == "DaemonSet" else 2, **spec)
    new = {**objects[0], "spec": {**objects[0]["spec"]}}
    new["spec"]["template"] = make.workload(cpu="3")["spec"]["template"]
    change = ClusterChange(apply=(write("new.json", new),))
    found = cores(changed(change, make.node("a"), *objects))
    assert {amount: count for (_, amount), count in found.items()} == cpu


def test_new_objects_and_pods_are_created(changed, make, write):
    pod = make.pod("solo", cpu="2")
    files = [make.workload("StatefulSet", "db", replicas=3, cpu="4"), pod]
    files[0]["spec"]["serviceName"] = "db"
    change = ClusterChange(apply=(write("new.json", *files),), scale=("deploy/web=3",))
    assert cores(changed(change, make.node("a"), *with_pods(make))) == {
        ("deploy/default/web", "1"): 3,
        ("sts/default/db", "4"): 3,
        ("pod/default/solo", "2"): 1,
    }


def test_a_volcano_job_has_the_pods_of_its_tasks(changed, make, write):
    template = make.workload(cpu="3")["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    train = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"minAvailable": 2, "schedulerName": "volcano", "queue": "default",
                 "tasks": [{"name": "w", "replicas": 2, "template": template}]},
    }  # fmt: skip
    change = ClusterChange(apply=(write("new.json", train),))
    assert cores(changed(change, make.node("a"))) == {("job/default/train-w", "3"): 2}


def test_pods_that_were_read_together_are_replaced():
    """Neighbouring replicas of a dump of kubectl are one entry of its manifests."""
    read = read_snapshot(str(EXAMPLE))
    assert any(isinstance(one, ReplicaManifests) for one in entries_of(read.manifests))
    named = "deploy/store/frontend:spec.template.metadata.labels.new"
    found = changed_snapshot(read, ClusterChange(set=(f"{named}=yes",)), 0)
    base = read_baseline(found.snapshot, SchedulerConfig(), ReleaseChoice(), NoProgress())
    pods = base.model.pods()
    own = [one for one in pods if str(workload_of(one.pod)) == "deploy/store/frontend"]
    assert [one.labels.get("new") for one in own] == ["yes"] * 8
    assert len(pods) == sum(one.kind is POD for one in read.manifests)


def test_a_refused_pod_has_a_note(changed, make, write):
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"pods": "2"}},
    }  # fmt: skip
    change = ClusterChange(apply=(write("new.json", make.pod("solo")),))
    base = changed(change, make.node("a"), quota, *with_pods(make))
    assert len(base.model.pods()) == 2
    [note] = [note for note in base.notes if "solo is not created" in note]
    assert "exceeded quota" in note


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"scale": ("deploy/api=3",)}, "--scale: there is no Deployment api; known: default/web"),
        ({"scale": ("web",)}, "--scale: 'web' is not WORKLOAD/NAME=REPLICAS"),
        ({"apply": ("gone.yaml",)}, "gone.yaml: cannot be read"),
    ],
)
def test_errors_are_those_of_a_what_if(changed, make, change, line):
    with pytest.raises(InputError) as refused:
        changed(ClusterChange(**change), make.node("a"), *with_pods(make))
    assert str(refused.value).startswith(line)


@pytest.mark.parametrize(("pods", "left_out"), [("2", "2 pods"), ("3", "1 pod"), ("4", "")])
def test_a_scaled_workload_whose_pods_a_quota_refuses_has_a_note(changed, make, pods, left_out):
    quota = {
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"pods": pods}},
    }  # fmt: skip
    change = ClusterChange(scale=("deploy/web=4",))
    base = changed(change, make.node("a"), quota, *with_pods(make))
    assert cores(base) == {("deploy/default/web", "1"): int(pods)}
    verb = "is" if left_out == "1 pod" else "are"
    start = f"{left_out} of Deployment default/web {verb} not included: "
    notes = [note for note in base.notes if "exceeded quota" in note]
    assert [note.startswith(start) for note in notes] == ([True] if left_out else [])
