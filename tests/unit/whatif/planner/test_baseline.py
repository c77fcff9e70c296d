"""Plans begin with the pods that workloads lack, as if the controllers had created them."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.whatif.planner.conftest import daemon_pod, deployment
from tests.unit.whatif.snapshot.test_dumped_objects import deployment as dumped_deployment
from tests.unit.whatif.snapshot.test_dumped_objects import meta, node, pods_of_a_workload, texts_of

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.configuration.release import ReleaseChoice
from fairlead.whatif.planner.baseline import read_baseline
from fairlead.whatif.planner.fit import fit
from fairlead.whatif.planner.new_pod import pod_source
from fairlead.whatif.question import what_if
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.snapshot import parse_snapshot, snapshot_of_texts


@pytest.fixture
def baseline():
    """The baseline of a snapshot with the default configuration."""
    return lambda read: read_baseline(read, SchedulerConfig(), ReleaseChoice(), NoProgress())


def pods_of(base):
    return sorted((pod.pod.metadata.name, pod.pod.spec.node_name) for pod in base.model.pods())


def test_pods_of_manifests_are_created(snapshot, make, baseline):
    """The nodes have eight cores, and the manifests request seven."""
    manifests = [make.node("a"), make.node("b"), make.workload(replicas=6)]
    other = make.workload("Deployment", "api", replicas=1)
    read = snapshot(*manifests, other)
    base = baseline(read)
    note = (
        "7 pods that workloads lack are created first: 1 of deploy/default/api, "
        "6 of deploy/default/web."
    )
    assert note in base.notes
    assert len(base.model.pods()) == 7
    source = pod_source(None, "deploy/api", "", Inventory(base.snapshot.manifests))
    assert fit(base.model, source, NoProgress()).count == 1
    scaled = what_if(read, ClusterChange(scale=("deploy/api=4",)))
    assert len(scaled.changed.pending()) == 2


def test_a_dump_at_rest_is_the_baseline(snapshot, make, baseline):
    """The ReplicaSet of a Deployment does not count beside it, nor do DaemonSets with a pod."""
    daemon = make.workload("DaemonSet", "agent")
    daemon["metadata"]["uid"] = "ds-uid"
    read = snapshot(make.node("a"), *deployment(make, "web", ["a"]), daemon, daemon_pod(make, "a"))
    base = baseline(read)
    assert base.snapshot is read
    assert not any("lack" in note for note in base.notes)


def test_pods_that_cannot_be_created_do_not_change_the_baseline(snapshot, make, baseline):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": "default"},
        "spec": {"hard": {"pods": "0"}},
        "status": {"hard": {"pods": "0"}, "used": {"pods": "0"}},
    }
    read = snapshot(make.node("a"), make.workload(replicas=2), quota)
    base = baseline(read)
    assert base.snapshot is read


def test_daemon_sets_without_pods_get_one_on_each_node(snapshot, make, baseline):
    read = snapshot(make.node("a"), make.node("b"), make.workload("DaemonSet", "agent"))
    assert [node for _, node in pods_of(baseline(read))] == ["a", "b"]


@pytest.mark.parametrize(("more", "count"), [({}, 2), ({"suspend": True}, 0)])
def test_jobs_that_have_not_begun_get_their_pods(snapshot, make, baseline, more, count):
    job = make.workload("Job", "work")
    job["apiVersion"] = "batch/v1"
    job["spec"] = {"parallelism": 2, "completions": 4, "template": job["spec"]["template"], **more}
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    base = baseline(snapshot(make.node("a"), job))
    assert len(base.model.pods()) == count


def test_one_missing_pod_is_created_and_the_other_pods_stay(make, baseline):
    objects = [make.node("a"), make.node("b"), *deployment(make, "web", ["a", "b"])]
    objects += deployment(make, "api", ["a", "b"])
    gone = objects.pop()
    for number, one in enumerate(objects):
        one["metadata"].setdefault("uid", f"uid-{number}")
        one["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    text = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects}
    read = parse_snapshot("dump.json", msgspec.json.encode(text))
    base = baseline(read)
    assert [note for note in base.notes if "lack" in note] == [
        "1 pod that workloads lack is created first: 1 of deploy/default/api."
    ]
    before = {(pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in objects
              if pod["kind"] == "Pod"}  # fmt: skip
    after = pods_of(base)
    assert before < set(after)
    assert len(after) == 4
    assert gone["metadata"]["name"] not in dict(after)


def test_a_job_that_fails_before_the_plan_creates_no_more_pods(snapshot, make, baseline):
    """The pod of the Job is evicted by a taint while web's pod is created."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default", "uid": "train"},
        "spec": {"backoffLimit": 0, "template": template},
    }
    pod = make.pod("train-1", node_name="a", owner="train", restartPolicy="Never")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    tainted = make.node("a")
    tainted["spec"] = {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}
    base = baseline(snapshot(tainted, make.node("b"), job, pod, make.workload(replicas=1)))
    assert [node for _, node in pods_of(base)] == ["b"]
    [known] = [one for one in base.snapshot.manifests if one.ref.name == "train"]
    assert known.value["status"]["conditions"] == [{"type": "Failed", "status": "True"}]
    after = baseline(base.snapshot)
    assert pods_of(after) == pods_of(base)


def test_pods_that_the_dump_has_as_columns_are_kept(baseline):
    pods = list(pods_of_a_workload())
    nodes = [{**node(), "metadata": meta(one["spec"]["nodeName"])} for one in pods]
    read = snapshot_of_texts("c", texts_of([*pods, *nodes, dumped_deployment()]), {})
    base = baseline(read)
    assert base.created == "1 pod that workloads lack is created first: 1 of deploy/shop/web."
    after = {one.metadata.name for one in (found.pod for found in base.model.pods())}
    assert {one["metadata"]["name"] for one in pods} < after
    assert len(after) == len(pods) + 1
