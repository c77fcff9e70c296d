"""The audit events of the writes of a local cluster's own controllers."""

from __future__ import annotations

import json

import pytest

from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.endpoints.audit import AuditBackend, AuditLevel, audit_line
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.request import ADMIN, Request
from fairlead.engine.core.instant import seconds, to_seconds
from fairlead.whatif.audit.audit_log import read_audit_log
from fairlead.whatif.audit.recorded_cluster import RecordedCluster
from fairlead.whatif.input.document import Document
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.worlds.local.write_audit import WriteAudit

SETS = "/apis/apps/v1/namespaces/default/replicasets"
PODS = "/api/v1/namespaces/default/pods"
LABELS = {"app": "web"}
WEB = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}


def audited(cluster, level):
    """Create a ReplicaSet and delete one of its pods; return the lines of the audit log."""
    lines = []
    audit = WriteAudit(AuditBackend(lines.append, level), cluster.clock.now)
    cluster.local.control_plane.audit_writes(audit)

    def ask(method, path, body=b""):
        request = Request(method, path, headers={"content-type": "application/json"}, body=body)
        response = cluster.local.server.handle(request, cluster.clock.now())
        lines.append(audit_line(request, response, cluster.clock.now(), level))
        cluster.pass_time(0)
        cluster.pass_time(60)

    ask("POST", SETS, json.dumps(WEB).encode())
    ask("DELETE", f"{PODS}/{cluster.list('pod')[0]['metadata']['name']}")
    return lines


def test_the_events_name_the_requests_and_users_of_upstream(cluster):
    events = [json.loads(one) for one in audited(cluster, AuditLevel.REQUEST_RESPONSE)]
    found = {
        (
            one["verb"],
            one["objectRef"].get("subresource", ""),
            one["user"]["username"].rpartition(":")[2].rstrip("123"),
        )
        for one in events
        if one["objectRef"]["resource"] == "pods" and one["user"]["username"] != ADMIN.name
    }
    assert found == {
        ("create", "", "replicaset-controller"),
        ("create", "binding", "kube-scheduler"),
        ("update", "status", "node-"),
        ("delete", "", "node-"),
    }


@pytest.mark.parametrize("level", [AuditLevel.REQUEST, AuditLevel.REQUEST_RESPONSE])
def test_replay_computes_the_pods_of_the_cluster_from_the_events(cluster, level):
    nodes = [Document("dump", {**one}) for one in cluster.list("node", "")]
    log = b"".join(audited(cluster, level))
    recorded = RecordedCluster("log", "")
    recorded.load(Snapshot("dump", tuple(manifests(nodes)), cluster.clock.now()))
    deleted = set()
    writes, _ = read_audit_log("log", log)
    for write in writes:
        list(recorded.apply(write))
        deleted |= {write.name} if write.verb == "delete" and write.kind is POD else set()
    assert (recorded.unknown_bindings, recorded.unfollowed) == ([], [])
    assert len(deleted) == 1
    for pod in cluster.list("pod"):
        found = recorded.find(POD, "default", pod["metadata"]["name"])
        assert found["spec"]["nodeName"] == pod["spec"]["nodeName"]
        assert found["status"]["phase"] == "Running"
    assert all(recorded.find(POD, "default", name) is None for name in deleted)
    assert recorded.find(NODE, "", "node-1") is not None


def test_writes_during_an_advance_have_the_times_of_the_writes(cluster):
    """The clock is advanced after the work: a pod runs 0.5 s after its binding, not with it."""
    lines = []
    audit = WriteAudit(AuditBackend(lines.append, AuditLevel.REQUEST_RESPONSE), cluster.clock.now)
    cluster.local.control_plane.audit_writes(audit)
    request = Request("POST", SETS, headers={}, body=json.dumps(WEB).encode())
    cluster.local.server.handle(request, cluster.clock.now())
    cluster.local.control_plane.run_until(cluster.clock.now() + seconds(60))
    times = {}
    for event in map(json.loads, lines):
        is_binding = event["objectRef"].get("subresource") == "binding"
        if is_binding or phase_of(event) == "Running":
            moment = parse_timestamp(event["stageTimestamp"])
            times.setdefault(event["objectRef"]["name"], {})[is_binding] = moment
    assert len(times) == WEB["spec"]["replicas"]
    assert {to_seconds(found[False] - found[True]) for found in times.values()} == {0.5}


def test_late_work_has_the_time_of_the_clock(cluster):
    """The binding of a pod is not recorded before the request that creates the pod."""
    lines = []
    audit = WriteAudit(AuditBackend(lines.append, AuditLevel.REQUEST), cluster.clock.now)
    cluster.local.control_plane.audit_writes(audit)
    request = Request("POST", SETS, headers={}, body=json.dumps(WEB).encode())
    late = cluster.clock.now()
    cluster.clock.jump_to(late + seconds(5))
    cluster.local.server.handle(request, cluster.clock.now())
    cluster.local.control_plane.run_until(late)
    times = {parse_timestamp(json.loads(line)["stageTimestamp"]) for line in lines}
    assert times == {late + seconds(5)}


def phase_of(event):
    body = event.get("responseObject") or {}
    return body["status"].get("phase") if body.get("kind") == "Pod" else None
