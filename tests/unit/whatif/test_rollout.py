"""What-ifs on dumps with a rollout in progress, and what-ifs whose change starts a rollout."""

from __future__ import annotations

import pytest
from tests.unit.whatif import rollout

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind, verdict_of
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.question import what_if

WEB = WorkloadRef("Deployment", "store", "web")
API = WorkloadRef("Deployment", "store", "api")


@pytest.fixture
def cluster(snapshot, make):
    """Returns the snapshot of these objects and six nodes."""
    return lambda objects: snapshot(*(make.node(f"n{n}", cpu="8") for n in range(6)), *objects)


def no_entries(found, *names):
    return all(getattr(found, name) == () for name in names)


def test_the_surplus_pods_of_a_stopped_rollout_are_not_wanted(cluster, make):
    """Only the change removes a pod, which terminates on a node whose kubelet does not answer.

    The Deployment wants 8 pods, and has 6 old pods and 4 new ones, which fit no node.
    """
    objects = rollout.in_progress()
    for one in objects:
        template = one["spec"].get("template", one)
        if template["spec"]["containers"][0]["image"] == "web:2":
            template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "99"
            if one["kind"] == "Pod":
                one["spec"]["nodeName"] = ""
                one["status"] = {"phase": "Pending"}
    leaving = rollout.pod("web", rollout.OLD, 9, "lost")
    leaving["status"]["conditions"][0]["status"] = "False"
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    lost = make.node("lost")
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    lost["spec"] = {"taints": [taint, {**taint, "effect": "NoSchedule"}]}
    change = ClusterChange(delete=("node/lost",))
    answer = what_if(cluster([*objects, lost, leaving]), change)
    [row] = [one for one in answer.effect.workloads if one.workload == WEB]
    assert (row.readiness.wanted, row.readiness.at_end) == (8, 6)


def test_a_change_of_a_settled_dump_starts_at_once(cluster):
    answer = what_if(cluster(rollout.at_rest()), ClusterChange(drain=("n5",)))
    assert answer.without.rest.after == 0
    assert answer.without.rest.activities == ()
    assert answer.changed.started_at == answer.without.started_at


def test_a_rollout_under_way_is_over_before_an_unrelated_node_is_drained(cluster):
    """The names of new pods differ between the runs, which is no effect of the drain."""
    snapshot = cluster(rollout.in_progress())
    answer = what_if(snapshot, ClusterChange(cordon=("n4",), drain=("n5",)))
    found, rest = answer.difference, answer.without.rest
    drained = {one.pod.key for one in found.evicted}
    assert {"store/api-ccccccccc-0", "store/api-ccccccccc-1"} <= drained
    assert {move.pod.key for move in found.moved} == drained
    assert {one.node for one in found.evicted} == {"n5"}
    assert no_entries(found, "placed", "gone", "removed", "updated", "pending")
    [activity] = rest.activities
    assert activity.workload == WEB
    assert activity.is_rollout
    assert activity.deleted == 6
    assert rest.after is not None
    assert answer.changed.started_at == snapshot.taken_at + rest.after
    assert min(one.at for one in found.evicted) == answer.changed.started_at


def test_an_outage_begins_with_the_change_after_a_rollout(cluster):
    """Its time lines do not contain the time before the change, in which the rollout ends."""
    change = ClusterChange(failures=Failures(fail_node=("n5",)))
    answer = what_if(cluster(rollout.in_progress()), change)
    found, start = answer.changed.outage, answer.changed.started_at
    assert answer.without.rest.after > 0
    assert found.zones[0].at == found.node_samples[0].at == start
    assert (found.zones[0].unready, found.zones[0].size) == (0, 6)


def test_a_rollout_is_over_before_the_change_although_a_pod_terminates_for_hours(cluster, make):
    """The end of the pod is a change after the horizon, so the run itself does not settle."""
    slow = make.pod("slow", node_name="n3", terminationGracePeriodSeconds=7200)
    slow["metadata"] |= {
        "deletionTimestamp": "2026-01-01T02:00:00Z",
        "deletionGracePeriodSeconds": 7200,
    }
    answer = what_if(cluster([*rollout.in_progress(), slow]), ClusterChange(drain=("n5",)))
    assert not answer.without.settled
    assert answer.without.rest.after is not None
    assert {one.node for one in answer.difference.evicted} == {"n5"}
    assert no_entries(answer.difference, "placed", "gone", "removed", "updated", "pending")


def test_a_new_image_updates_pods_and_loses_none(cluster, write):
    image = {"containers": [{"name": "c", "image": "web:2"}]}
    merge = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "store"},
        "spec": {"template": {"spec": image}},
    }
    change = ClusterChange(apply=(write("change.json", merge),))
    found = what_if(cluster(rollout.at_rest()), change).difference
    assert len(found.updated) == 8
    assert {one.before.revision for one in found.updated} == {rollout.OLD}
    assert no_entries(found, "placed", "gone", "removed", "moved", "pending")


def test_a_rollout_whose_new_pods_stay_pending_does_not_finish(cluster):
    """No node has room for a new pod, so the Deployment keeps the pods that must be available."""
    change = ClusterChange(set_resources=("deploy/web=cpu=9",))
    answer = what_if(cluster(rollout.at_rest()), change)
    (row,) = answer.effect.workloads
    assert (row.outdated, row.readiness.at_end) == (6, 6)
    assert (row.pending, row.updated) == (len(answer.difference.pending), 0)
    assert OutcomeKind.UPDATED not in [finding.kind for finding in answer.verdict.findings]
    assert "6 not updated" in row.words
    assert answer.verdict.first.sentence.endswith(
        "The rollout of deploy/store/web does not finish: 6 pods keep the old template."
    )


QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "pods", "namespace": "store"},
    "spec": {"hard": {"pods": "1"}},
}


def test_a_rollout_whose_new_pods_a_quota_refuses_does_not_finish(cluster):
    """No pod has the new revision: only the refused creations show that there is a rollout."""
    change = ClusterChange(set_resources=("deploy/web=cpu=2",))
    answer = what_if(cluster([*rollout.at_rest(), QUOTA]), change)
    (row,) = answer.effect.workloads
    assert (row.outdated, row.missing) == (6, 4)
    assert "6 not updated" in row.words
    assert answer.verdict.first.sentence.endswith(
        "The rollout of deploy/store/web does not finish: 6 pods keep the old template."
    )


def test_a_rollout_that_a_quota_had_stopped_before_is_no_effect_of_the_change(cluster):
    stopped = [
        rollout.deployment("web", 8, image="web:2", revision=2),
        rollout.replica_set("web", rollout.NEW, 2, image="web:2", revision=2),
        *rollout.at_rest()[1:],
    ]
    change = ClusterChange(set_resources=("deploy/api=cpu=2",))
    answer = what_if(cluster([*stopped, QUOTA]), change)
    assert [one.missing > 0 for one in answer.without.errors if one.workload == WEB] == [True]
    assert not any(one.outdated for one in answer.effect.workloads if one.workload == WEB)


def test_fewer_replicas_remove_pods_but_lose_none(cluster):
    found = what_if(cluster(rollout.at_rest()), ClusterChange(scale=("deploy/web=5",))).difference
    assert len(found.removed) == 3
    assert no_entries(found, "gone", "moved", "updated")


def test_ready_pods_are_counted_by_workload(cluster):
    """Both pods of api leave their only node, and start again elsewhere."""
    answer = what_if(cluster(rollout.at_rest()), ClusterChange(drain=("n5",)))
    assert list(answer.changed.workloads) == [API]
    found = answer.changed.workloads[API]
    assert (found.wanted, found.before, found.lowest, found.at_end) == (2, 2, 0, 2)
    assert found.lowest_for is not None
    assert 0 < found.lowest_for <= seconds(60)


def test_a_pod_that_cannot_start_again_is_missing_to_the_end(cluster):
    change = ClusterChange(drain=("n5",), cordon=tuple(f"n{n}" for n in range(5)))
    found = what_if(cluster(rollout.at_rest()), change).changed.workloads[API]
    assert (found.wanted, found.lowest, found.lowest_for, found.at_end) == (2, 0, None, 0)


def test_a_daemonset_wants_one_pod_per_node_while_a_surge_pod_is_pending(make, snapshot):
    """The new pod is created beside the old one, and each needs more than half of the node."""
    daemon = make.workload("DaemonSet", "agent", cpu="3")
    del daemon["spec"]["replicas"]
    daemon["metadata"]["uid"] = "ds-1"
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    daemon["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds-1"}
    pods = [make.pod(f"agent-{node}", cpu="3", node_name=node) for node in "abc"]
    for one in pods:
        one["metadata"] |= {
            "labels": {"app": "agent", "controller-revision-hash": "old"},
            "ownerReferences": [{**owner, "controller": True}],
        }
    objects = [*map(make.node, "abc"), daemon, *pods]
    image = "ds/agent:spec.template.spec.containers[0].image=new"
    answer = what_if(snapshot(*objects), ClusterChange(set=(image,)))
    (row,) = answer.effect.workloads
    assert row.pending == 1
    assert (row.readiness.wanted, row.readiness.at_end) == (3, 3)


@pytest.mark.parametrize(
    ("horizon", "kind", "updated", "outdated"),
    [
        (30, OutcomeKind.UNFINISHED, 2, 3),
        (3600, OutcomeKind.UPDATED, 6, 0),
    ],
)
def test_a_rollout_that_outlasts_the_simulation_is_not_finished(
    cluster, make, horizon, kind, updated, outdated
):
    """The pods are replaced one after the other, each in 11 s; after 30 s, one is terminating."""
    objects = _database(make, {"type": "RollingUpdate"})
    change = ClusterChange(set=("sts/db:spec.template.spec.containers[c].image=new",))
    answer = what_if(cluster(objects), change, Conditions(horizon=seconds(horizon)))
    [row] = answer.effect.workloads
    assert (row.outdated, row.updated) == (outdated, updated)
    found = verdict_of(answer.effect)
    assert found.first.kind is kind
    assert OutcomeKind.REMOVED not in [one.kind for one in found.findings]
    steps = [step.options for step in answer.next_steps]
    assert ("--horizon 2m" in steps) is (outdated > 0)
    if outdated:
        rest = "3 pods keep the old template. At this pace, the rollout takes 1m"
        assert rest in found.first.sentence


def _deadline_notes(answer):
    return [note for note in answer.changed.notes if "progressDeadlineSeconds" in note]


@pytest.mark.parametrize(
    ("startup", "deadline", "note"),
    [
        (
            700,
            None,
            "The rollout of deploy/store/web exceeds progressDeadlineSeconds after 10m00s: ",
        ),
        (700, 900, ""),
        (590, None, ""),
        (700, 2**31 - 1, ""),
    ],
    ids=["slow pods", "long deadline", "fast pods", "no deadline"],
)
def test_a_rollout_of_slow_pods_exceeds_the_progress_deadline(cluster, startup, deadline, note):
    """Each of the steps takes as long as a pod takes to be ready; then the rollout goes on."""
    objects = rollout.at_rest()
    if deadline is not None:
        objects[0]["spec"]["progressDeadlineSeconds"] = deadline
    change = ClusterChange(set=("deploy/web:spec.template.spec.containers[c].image=new",))
    conditions = Conditions(horizon=seconds(7200), startup=seconds(startup))
    answer = what_if(cluster(objects), change, conditions)
    assert len(answer.difference.updated) == 8
    assert [text[: len(note)] for text in _deadline_notes(answer)] == ([note] if note else [])


@pytest.mark.parametrize(
    ("change", "objects"),
    [
        (ClusterChange(set_resources=("deploy/web=cpu=9",)), []),
        (ClusterChange(set_resources=("deploy/web=cpu=2",)), [QUOTA]),
    ],
    ids=["pending pods", "refused pods"],
)
def test_a_rollout_that_stops_exceeds_the_progress_deadline(cluster, change, objects):
    answer = what_if(cluster([*rollout.at_rest(), *objects]), change)
    [note] = _deadline_notes(answer)
    assert note == (
        "The rollout of deploy/store/web exceeds progressDeadlineSeconds after 10m00s: the "
        "condition Progressing becomes False (ProgressDeadlineExceeded), and kubectl rollout "
        "status fails. The controller neither stops nor undoes the rollout."
    )


def test_a_revision_that_is_no_int64_counts_as_0(cluster):
    """Also with more digits than Python's `int` reads."""
    objects = rollout.at_rest()
    for one in objects:
        if one["kind"] == "ReplicaSet":
            one["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "9" * 5000
    answer = what_if(cluster(objects), ClusterChange(set_resources=("deploy/web=cpu=9",)))
    assert len(_deadline_notes(answer)) == 1


def test_a_replaced_pod_of_the_old_revision_does_not_hide_the_rollout(cluster):
    """The pods of the failed nodes are created again after the pods of the new revision."""
    failures = Failures(fail_node=("n0", "n1", "n2"))
    change = ClusterChange(set_resources=("deploy/web=cpu=9",), failures=failures)
    answer = what_if(cluster(rollout.at_rest()), change, Conditions(horizon=seconds(7200)))
    assert len(_deadline_notes(answer)) == 1


@pytest.mark.parametrize(
    "change",
    [ClusterChange(scale=("deploy/web=60",)), ClusterChange(drain=("n0", "n1", "n2", "n3", "n4"))],
    ids=["scaled", "drained"],
)
def test_pending_pods_of_a_complete_rollout_have_no_progress_deadline(cluster, change):
    answer = what_if(cluster(rollout.at_rest()), change)
    assert answer.difference.pending
    assert not _deadline_notes(answer)


@pytest.mark.parametrize(
    ("partition", "cpu", "outdated"),
    [(2, "1", 1), (3, "1", 0), (3, "9", 2), (6, "1", 0)],
    ids=["continues", "last pod terminates", "pending", "no pod"],
)
def test_pods_below_the_partition_are_no_part_of_the_rollout(
    cluster, make, partition, cpu, outdated
):
    """After 25 s, two pods are updated and db-3 is terminating; 9 CPUs fit no node."""
    objects = _database(make, {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}})
    change = ClusterChange(set_resources=(f"sts/db=cpu={cpu}",))
    if cpu == "1":
        change = ClusterChange(set=("sts/db:spec.template.spec.containers[c].image=new",))
    answer = what_if(cluster(objects), change, Conditions(horizon=seconds(25)))
    assert sum(row.outdated for row in answer.effect.workloads) == outdated


@pytest.mark.parametrize(
    ("kind", "change", "outdated"),
    [
        ("StatefulSet", ClusterChange(scale=("sts/db=60",)), 0),
        ("StatefulSet", ClusterChange(set_resources=("sts/db=cpu=9",)), 5),
        ("DaemonSet", ClusterChange(set=("node/small:spec.taints=[]",)), 0),
        ("DaemonSet", ClusterChange(set_resources=("ds/db=cpu=9",)), 5),
    ],
)
def test_pods_without_a_revision_label_have_the_template_of_the_dump(
    snapshot, make, kind, change, outdated
):
    """A pending pod with this template is no part of a rollout."""
    objects = _database(make, {"type": "RollingUpdate"})
    objects[0]["kind"] = kind
    for pod in objects[1:]:
        del pod["metadata"]["labels"]["controller-revision-hash"]
        pod["metadata"]["ownerReferences"][0]["kind"] = kind
    nodes = [make.node(f"n{n}", cpu="8") for n in range(6)]
    small = make.node("small", cpu="500m")
    small["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    answer = what_if(snapshot(*nodes, small, *objects), change)
    assert answer.difference.pending
    assert sum(row.outdated for row in answer.effect.workloads) == outdated


def test_a_daemon_set_does_not_update_its_pods_while_another_pod_is_unavailable(snapshot, make):
    """The pod of a failed node uses up maxUnavailable."""
    objects = _database(make, {"type": "RollingUpdate"})
    objects[0]["kind"] = "DaemonSet"
    for pod in objects[1:]:
        pod["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    nodes = [make.node(f"n{n}", cpu="8") for n in range(6)]
    nodes[0]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    objects[1]["status"]["conditions"][0]["status"] = "False"
    answer = what_if(snapshot(*nodes, *objects), ClusterChange(set_resources=("ds/db=cpu=2",)))
    assert verdict_of(answer.effect).first.sentence.strip() == (
        "The rollout of ds/default/db does not finish: 5 pods keep the old template."
    )


def _database(make, strategy):
    """Return a StatefulSet with six ready pods."""
    db = make.workload("StatefulSet", "db", replicas=6)
    db["metadata"]["uid"] = "db"
    db["spec"] |= {"serviceName": "db", "updateStrategy": strategy}
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "controller": True}
    pods = [
        make.pod(f"db-{n}", node_name=f"n{n}", terminationGracePeriodSeconds=10) for n in range(6)
    ]
    for pod in pods:
        pod["metadata"] |= {
            "labels": {"app": "db", "controller-revision-hash": "old"},
            "ownerReferences": [{**reference, "name": "db", "uid": "db"}],
        }
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return [db, *pods]
