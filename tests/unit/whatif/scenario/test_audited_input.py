"""A scenario from an audit log: writes of users are repeated, writes of controllers are not."""

from __future__ import annotations

import json

import pytest

from fairlead.apiserver.kind import DEPLOYMENT, JOB, NODE, POD, REPLICA_SET
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

ACCOUNT = "system:serviceaccount:kube-system:"
SCHEDULER = "system:kube-scheduler"
GROUPS = {"deployments": "apps", "replicasets": "apps", "jobs": "batch", "cronjobs": "batch"}
KINDS = {"deployments": "Deployment", "replicasets": "ReplicaSet", "jobs": "Job", "pods": "Pod",
         "nodes": "Node", "cronjobs": "CronJob", "namespaces": "Namespace"}  # fmt: skip


def write(verb, path, body, minute, user="admin", response=None):
    """An event; `path` is RESOURCE/NAME or RESOURCE/NAME/SUBRESOURCE in the namespace shop."""
    resource, name, subresource = [*path.split("/"), ""][:3]
    group = GROUPS.get(resource, "")
    reply = response or (body if verb == "create" and not subresource else None)
    typed = {"apiVersion": f"{group}/v1".strip("/"), "kind": KINDS[resource]}
    return {
        "apiVersion": "audit.k8s.io/v1", "kind": "Event", "level": "RequestResponse",
        "auditID": f"{path}{minute}", "stage": "ResponseComplete", "verb": verb,
        "user": {"username": user},
        "objectRef": {"resource": resource, "apiGroup": group, "name": name,
                      "namespace": "" if resource == "nodes" else "shop",
                      "subresource": subresource},
        "responseStatus": {"code": 200}, "requestObject": body,
        "responseObject": {**typed, **reply} if reply else None,
        "stageTimestamp": f"2026-03-01T10:{minute:02d}:00.000000Z",
    }  # fmt: skip


def owned(kind, name, uid):
    return [{"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": True}]


def template(app, **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container], **spec}}


def deployment(name, replicas):
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                 "template": template(name)},
    }  # fmt: skip


def replica_set(name, app, replicas):
    meta = {"name": name, "namespace": "shop", "uid": name,
            "ownerReferences": owned("Deployment", app, app)}  # fmt: skip
    return {"metadata": meta, "spec": deployment(app, replicas)["spec"]}


def pod(name, owner=None, **spec):
    meta = {"name": name, "namespace": "shop", "labels": {"app": "x"}}
    if owner:
        meta["ownerReferences"] = owned(*owner)
    return {"metadata": meta, **template("x", **spec)} | {"metadata": meta}


def node(name, **spec):
    status = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}
    return {"metadata": {"name": name, "labels": {"zone": "a"}}, "spec": spec, "status": status}


def bound(name, minute):
    return write("create", f"pods/{name}/binding", {"target": {"name": "n1"}}, minute, SCHEDULER)


RECORDED = [
    write("create", "deployments/web", deployment("web", 2), 1),
    write("create", "replicasets/web-5d", replica_set("web-5d", "web", 2), 1,
          f"{ACCOUNT}deployment-controller"),
    *(write("create", f"pods/web-5d-{n}", pod(f"web-5d-{n}", ("ReplicaSet", "web-5d", "web-5d")), 1,
            f"{ACCOUNT}replicaset-controller") for n in "ab"),
    bound("web-5d-a", 1),
    write("update", "deployments/web/scale", {"spec": {"replicas": 3}}, 5),
    write("create", "pods/alone", pod("alone"), 6),
    bound("alone", 7),
    write("create", "nodes/n2", node("n2"), 8, "system:node:n2"),
    write("create", "pods/of-argo", pod("of-argo", ("Workflow", "etl", "w")), 9, f"{ACCOUNT}argo"),
]  # fmt: skip


@pytest.fixture
def simulate(tmp_path):
    """Runs a scenario from `events` and a dump of one node and `dumped` objects."""

    def run_scenario(events, *dumped, files=True, settings=None, script=()):
        base = {"apiVersion": "v1", "kind": "Node", **node("n1")}
        (tmp_path / "dump.json").write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": [base, *dumped]})
        )
        (tmp_path / "audit.log").write_text("".join(f"{json.dumps(one)}\n" for one in events))
        source = {"files": ["dump.json"]} if files else {}
        cluster = {**source, "audit-log": "audit.log"}
        value = {"cluster": cluster, "settings": settings or {}, "events": [*script]}
        path = str(tmp_path / "s.yaml")
        (tmp_path / "s.yaml").write_text(json.dumps(value))
        return run_experiment(experiment_of(path, read_scenario(path)))

    return run_scenario


def pods_of(run):
    return sorted(one["metadata"]["name"] for one in run.store.list(POD))


def test_controllers_create_their_pods_once(simulate):
    """The simulated ReplicaSet creates two pods, then a third; the recorded pods are left out."""
    run = simulate(RECORDED)
    [found] = run.store.list(REPLICA_SET)
    assert (found["metadata"]["name"] != "web-5d", found["spec"]["replicas"]) == (True, 3)
    of_web = [name for name in pods_of(run) if name.startswith("web-")]
    assert len(of_web) == 3
    assert not {"web-5d-a", "web-5d-b"} & set(of_web)
    assert run.outcome.errors == ()


def test_writes_of_users_are_repeated_at_their_time(simulate):
    """The bare pod and the one of an unknown owner are created, and scheduled anew."""
    run = simulate(RECORDED)
    placed = {one.name: one for one in run.outcome.placed}
    assert {"alone", "of-argo"} < set(placed)
    assert sorted(one["metadata"]["name"] for one in run.store.list(NODE)) == ["n1", "n2"]
    [own] = [one for one in run.store.list(POD) if one["metadata"]["name"] == "of-argo"]
    assert "ownerReferences" not in own["metadata"]
    [note] = [one for one in run.outcome.notes if "left out, because" in one]
    assert ": 5 writes of controllers, schedulers and kubelets" in note


def test_pods_that_are_recorded_without_an_owner_are_created(simulate):
    """A controller created the pod, but no simulated controller would do so."""
    ownerless = write("create", "pods/web-1", pod("web-1"), 1, f"{ACCOUNT}replicaset-controller")
    run = simulate([ownerless, bound("web-1", 2)])
    assert [one.name for one in run.outcome.placed] == ["web-1"]


def test_a_log_without_writes_of_users_has_a_note(simulate):
    run = simulate([bound("web-1", 1)])
    [note] = [one for one in run.outcome.notes if "no write of the log is repeated" in one]
    assert "cluster.files" in note


def at_level_request(event, name=""):
    """Return the event without its response; `name` is the recorded name."""
    reference = {**event["objectRef"], "name": name}
    return {**event, "level": "Request", "responseObject": None, "objectRef": reference}


def test_objects_with_generated_names_are_created(simulate):
    """A log at level Request does not contain their names; a later write may contain them."""
    job = {"metadata": {"generateName": "train-", "namespace": "shop"},
           "spec": {"template": template("train", restartPolicy="Never")}}  # fmt: skip
    made = {**template("argo"), "metadata": {"generateName": "of-argo-", "namespace": "shop"}}
    events = [
        *(at_level_request(write("create", "jobs/", job, minute)) for minute in (1, 2)),
        *(at_level_request(write("create", "pods/", made, minute)) for minute in (3, 4)),
        write("create", "pods/of-argo-x/binding", {"target": {"name": "n1"}}, 5, SCHEDULER),
        write("delete", "jobs/train-y", None, 6),
    ]
    run = simulate(events)
    names = sorted(one["metadata"]["name"] for one in run.store.list(POD))
    assert names[:2] == ["of-argo-1", "of-argo-x"]
    assert len(names) == 3
    [left] = run.store.list(JOB)
    assert left["metadata"]["name"] == "train-1"


def test_a_workload_of_the_dump_is_scaled_and_its_recorded_pods_are_not_created(simulate):
    kept = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment("web", 1)}
    old = {"apiVersion": "apps/v1", "kind": "ReplicaSet", **replica_set("web-5d", "web", 1)}
    old["spec"]["selector"]["matchLabels"]["pod-template-hash"] = "5d"
    new = pod("web-5d-new", ("ReplicaSet", "web-5d", "web-5d"))
    events = [
        write("patch", "deployments/web/scale", {"spec": {"replicas": 4}}, 2),
        write("create", "pods/web-5d-new", new, 3, f"{ACCOUNT}replicaset-controller"),
        write("delete", "pods/web-5d-new", None, 4),
    ]
    run = simulate(events, kept, old)
    [found] = run.store.list(DEPLOYMENT)
    assert found["spec"]["replicas"] == 4
    assert len(pods_of(run)) == 4
    assert any("deletions and evictions of pods that controllers replace are left out (1)." in one
               for one in run.outcome.notes)  # fmt: skip


def test_a_change_after_a_scaling_is_repeated(simulate):
    """The log does not contain the versions of the workload after the scalings.

    Versions of objects that are stored apart, such as that of n9, may be much higher.
    """
    kept = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment("web", 1)}
    kept["metadata"]["resourceVersion"] = "100"
    other = {"apiVersion": "v1", "kind": "Node", **node("n9")}
    other["metadata"]["resourceVersion"] = "900"
    later = deployment("web", 4)
    later["metadata"]["resourceVersion"] = "200"
    later["spec"]["template"]["metadata"]["labels"]["release"] = "2"
    events = [
        write("patch", "deployments/web/scale", {"spec": {"replicas": 2}}, 1),
        write("patch", "deployments/web/scale", {"spec": {"replicas": 4}}, 2),
        write("patch", "deployments/web", {"spec": {}}, 3, response=later),
    ]
    [found] = simulate(events, kept, other).store.list(DEPLOYMENT)
    assert found["spec"]["replicas"] == 4
    assert found["spec"]["template"]["metadata"]["labels"]["release"] == "2"


def test_changes_and_deletions_of_users_are_repeated(simulate):
    events = [
        *RECORDED,
        write("patch", "nodes/n1", {"spec": {"unschedulable": True}}, 20,
              response=node("n1", unschedulable=True)),
        write("patch", "nodes/n2", {}, 21, f"{ACCOUNT}node-controller",
              response=node("n2", taints=[{"key": "node.kubernetes.io/not-ready",
                                           "effect": "NoExecute"}])),
        write("delete", "deployments/web", None, 22),
        write("delete", "pods/alone", None, 23),
    ]  # fmt: skip
    run = simulate(events)
    nodes = {one["metadata"]["name"]: one["spec"] for one in run.store.list(NODE)}
    assert nodes["n1"]["unschedulable"] is True
    assert "taints" not in nodes["n2"]
    assert pods_of(run) == ["of-argo"]


def test_the_out_of_service_taint_of_a_user_is_repeated(simulate):
    """An agent of the node sets another taint; controllers set the rest."""
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    agent = {"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"}
    of_controllers = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    unready = [{"key": key, "effect": "NoExecute"} for key in of_controllers]
    tainted = node("n2", taints=[*unready, taint, agent])
    run = simulate([*RECORDED, write("patch", "nodes/n2", {}, 21, response=tainted)])
    [found] = [one["spec"] for one in run.store.list(NODE) if one["metadata"]["name"] == "n2"]
    assert found["taints"] == [taint, agent]


GPU = {"key": "gpu", "effect": "PreferNoSchedule"}


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        pytest.param([], [GPU], [(*GPU.values(), "")], id="added"),
        pytest.param([GPU], [], [], id="removed"),
        pytest.param([GPU], [{**GPU, "value": "a"}], [(*GPU.values(), "a")], id="changed"),
    ],
)
def test_a_write_of_taints_keeps_the_taints_of_a_simulated_failure(simulate, before, after, left):
    """If the write replaced all taints, the pod would tolerate the failure for 5m once more."""
    others = [{"apiVersion": "v1", "kind": "Node", **node(name)} for name in ("n2", "n3")]
    alone = {"apiVersion": "v1", "kind": "Pod", **pod("alone", nodeName="n1")}
    events = [
        write("patch", "nodes/n1", {}, 1, response=node("n1", taints=before)),
        write("patch", "nodes/n1", {}, 6, response=node("n1", taints=after)),
    ]
    run = simulate(events, *others, alone, script=[{"at": "1m", "fail-node": "n1"}])
    nodes = {one["metadata"]["name"]: one["spec"] for one in run.store.list(NODE)}
    found = [(one["key"], one["effect"], one.get("value", "")) for one in nodes["n1"]["taints"]]
    failed = [("node.kubernetes.io/unreachable", one, "") for one in ("NoExecute", "NoSchedule")]
    assert sorted(found) == sorted([*left, *failed])
    [evicted] = run.outcome.evicted
    assert evicted.at - run.outcome.started_at <= seconds(60 + 60 + 300)


def test_a_pod_that_completed_runs_as_long_as_recorded(simulate):
    job = {"metadata": {"name": "etl", "namespace": "shop", "uid": "etl"},
           "spec": {"template": template("etl", restartPolicy="Never")}}  # fmt: skip
    made = pod("etl-1", ("Job", "etl", "etl"), restartPolicy="Never")

    def status(phase, minute):
        body = {**made, "spec": {**made["spec"], "nodeName": "n1"}, "status": {"phase": phase}}
        return write("patch", "pods/etl-1/status", {"status": {"phase": phase}}, minute,
                     "system:node:n1", response=body)  # fmt: skip

    events = [
        write("create", "jobs/etl", job, 1),
        write("create", "pods/etl-1", made, 1, f"{ACCOUNT}job-controller"),
        bound("etl-1", 2),
        status("Running", 3),
        status("Succeeded", 13),
    ]
    run = simulate(events)
    [ran] = run.outcome.pods.values()
    assert (ran.name != "etl-1", ran.phase) == (True, "Succeeded")
    assert run.outcome.virtual_seconds == 601  # a second to start, and ten minutes as recorded


def job_spec():
    return {"completions": 1, "parallelism": 1, "template": template("x", restartPolicy="Never")}


def test_jobs_of_a_cron_job_are_created_as_recorded(simulate):
    cron_job = {"metadata": {"name": "tidy", "namespace": "shop", "uid": "t"},
                "spec": {"schedule": "*/5 * * * *",
                         "jobTemplate": {"spec": job_spec()}}}  # fmt: skip
    meta = {"name": "tidy-123", "namespace": "shop", "uid": "j",
            "ownerReferences": owned("CronJob", "tidy", "t")}  # fmt: skip
    user = f"{ACCOUNT}cronjob-controller"
    events = [
        write("create", "cronjobs/tidy", cron_job, 1),
        write("create", "jobs/tidy-123", {"metadata": meta, "spec": job_spec()}, 5, user),
        write("create", "pods/tidy-123-a", pod("tidy-123-a", ("Job", "tidy-123", "j")), 5,
              f"{ACCOUNT}job-controller"),
    ]  # fmt: skip
    (name,) = pods_of(simulate(events))
    assert name.startswith("tidy-123-")
    assert name != "tidy-123-a"
    scheduled = pods_of(simulate(events, settings={"cron-jobs": True}))
    assert not any(one.startswith("tidy-123-") for one in scheduled)


def test_without_a_dump_the_log_shows_the_nodes(simulate):
    heartbeat = write("patch", "nodes/n7/status", {}, 0, "system:node:n7",
                      response=node("n7") | {"metadata": {
                          "name": "n7", "creationTimestamp": "2026-02-01T00:00:00Z"}})  # fmt: skip
    run = simulate([heartbeat, write("create", "pods/alone", pod("alone"), 6)], files=False)
    assert [one.node for one in run.outcome.placed] == ["n7"]


def test_workloads_that_are_not_recorded_are_named(simulate):
    """The policy of a replay records ReplicaSets, but not the Deployments that scale them."""
    kept = {"apiVersion": "apps/v1", "kind": "Deployment", **deployment("web", 1)}
    made = replica_set("web-6e", "web", 3)
    run = simulate([write("create", "replicasets/web-6e", made, 2,
                          f"{ACCOUNT}deployment-controller")], kept)  # fmt: skip
    assert any("records no write of a Deployment" in one for one in run.outcome.notes)


def test_an_incomplete_last_line_is_left_out_with_a_note(simulate, tmp_path):
    simulate(RECORDED)
    log = tmp_path / "audit.log"
    log.write_bytes(log.read_bytes()[:-20])
    scenario = read_scenario(str(tmp_path / "s.yaml"))
    run = run_experiment(experiment_of(str(tmp_path / "s.yaml"), scenario))
    assert "of-argo" not in pods_of(run)
    line = f"audit.log: line {len(RECORDED)}, the last one, is incomplete"
    assert any(line in note for note in run.outcome.notes)


def test_a_lower_level_is_refused_with_the_level_needed(simulate):
    low = {**RECORDED[0], "level": "Metadata"}
    expected = (
        r"s\.yaml: cluster\.audit-log: .*audit\.log: line 1: create deployments was recorded at "
        "level Metadata; the audit policy must record deployments at level Request or"
    )
    with pytest.raises(InputError, match=expected):
        simulate([low])


def test_the_error_for_an_unknown_priority_class_names_the_way_out(simulate):
    spec = {"containers": [{"name": "main", "image": "app"}], "priorityClassName": "urgent"}
    created = write("create", "pods/web", {"metadata": {"name": "web"}, "spec": spec}, 2)
    created |= {"level": "Request", "responseObject": None}
    expected = r"urgent was found; add a dump that contains it to cluster\.files$"
    with pytest.raises(InputError, match=expected):
        simulate([created])
    created["requestObject"]["spec"]["priority"] = 5
    known = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 10}
    with pytest.raises(InputError, match=r"from the given PriorityClass name$"):
        simulate([created], known | {"metadata": {"name": "urgent"}})


def test_a_recorded_workload_of_too_many_pods_is_refused(simulate):
    huge = write("create", "deployments/web", deployment("web", 1_000_001), 2)
    with pytest.raises(InputError, match=r"Deployment shop/web: spec\.replicas: 1000001 is more"):
        simulate([huge])


def test_a_deleted_namespace_is_deleted(simulate):
    """kube-apiserver records the name of a Namespace in objectRef.namespace, too, if it exists."""
    shop = {"metadata": {"name": "shop"}}
    created = write("create", "namespaces/shop", shop, 0)
    del created["objectRef"]["namespace"]
    deleted = write("delete", "namespaces/shop", None, 30, response=shop)
    assert pods_of(simulate([created, *RECORDED, deleted])) == []
