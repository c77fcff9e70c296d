"""A local cluster whose objects are stored in a file."""

from __future__ import annotations

import json
from contextlib import contextmanager

from tests.unit.worlds.local.conftest import KEY, START

from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.request import ADMIN, Request
from fairlead.apiserver.storage.sqlite_log import SqliteLog
from fairlead.apiserver.storage.storage import ChangeType
from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog
from fairlead.engine.configuration.release import release_of
from fairlead.engine.core.instant import seconds
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import LocalCluster, LocalOptions

MAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
FULL = "etcdserver: mvcc: database space exceeded"


@contextmanager
def kept(path, gates=(), **options):
    """Yield a cluster without nodes, with `gates` on, whose journal is the file `path`."""
    journal = WriteAheadLog(path, synced=False, **options)
    clock = LocalClock(START, paused=True)
    release = release_of(gates=dict.fromkeys(gates, True))
    yield LocalCluster(LocalOptions(nodes=0, release=release), clock, {"t": ADMIN}, KEY, journal)
    journal.close()


def ask(cluster, method, path, body=None, query=()):
    text = b"" if body is None else json.dumps(body).encode()
    request = Request(method, path, query, {"content-type": "application/json"}, text, ADMIN)
    response = cluster.server.handle(request, START)
    return response.status, json.loads(b"".join(response.body))


def test_on_a_full_disk_writes_are_refused_and_reads_and_deletions_succeed(tmp_path):
    """As with a kube-apiserver whose etcd is full. Requests that store nothing succeed, too."""
    named = {"metadata": {"name": "a"}}
    room = ["room"]
    with kept(tmp_path / "j") as cluster:
        assert ask(cluster, "POST", MAPS, named)[0] == 201
        cluster.store.storage.has_room = lambda: bool(room)
        room.clear()
        for method, path, body in (
            ("POST", MAPS, {"metadata": {"name": "b"}}),
            ("PUT", f"{MAPS}/a", {**named, "data": {"k": "v"}}),
        ):
            status, said = ask(cluster, method, path, body)
            assert (status, said["message"], "reason" in said) == (500, FULL, False)
        again = {"metadata": {"name": "b"}}
        assert ask(cluster, "GET", f"{MAPS}/a")[0] == 200
        assert ask(cluster, "POST", MAPS, again, (("dryRun", "All"),))[0] == 201
        assert ask(cluster, "POST", MAPS, {"metadata": {"name": "B"}})[0] == 422
        review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
        assert ask(cluster, "POST", REVIEWS, review)[0] == 201
        assert ask(cluster, "DELETE", f"{MAPS}/a")[0] == 200
        assert ask(cluster, "GET", f"{MAPS}/a")[0] == 404
        room.append("room")
        assert ask(cluster, "POST", MAPS, again)[0] == 201


def test_responses_on_a_full_disk_do_not_contain_paths_of_the_server(tmp_path):
    with kept(tmp_path / "j") as cluster:
        ask(cluster, "POST", MAPS, {"metadata": {"name": "a"}})
        cluster.store.storage.has_room = bool
        headers = {"content-type": "application/json"}
        requests = (
            ("GET", "/healthz", b""),
            ("GET", "/livez", b""),
            ("GET", "/readyz", b""),
            ("GET", "/metrics", b""),
            ("GET", "/version", b""),
            ("GET", MAPS, b""),
            ("POST", MAPS, b'{"metadata": {"name": "b"}}'),
            ("PUT", f"{MAPS}/a", b'{"metadata": {"name": "a"}, "data": {"k": "v"}}'),
            ("PATCH", f"{MAPS}/a", b"["),
            ("DELETE", MAPS, b""),
        )
        texts = []
        for method, path, body in requests:
            request = Request(method, path, (("verbose", "true"),), headers, body, ADMIN)
            texts.append(b"".join(cluster.server.handle(request, START).body).decode())
    assert any("etcd" in text for text in texts[:3])  # the health report contains the reason
    for text in texts:
        assert str(tmp_path) not in text
        assert "/fairlead/" not in text


def test_writes_at_a_restart_are_stored(tmp_path):
    """The process died before it accepted the names of a stored definition."""
    names = {"kind": "Widget", "plural": "widgets", "listKind": "WidgetList", "singular": "widget"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": names,
        "versions": [version],
        "conversion": {"strategy": "None"},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", "uid": "u"},
        "spec": spec,
        "status": {"storedVersions": ["v1"]},
    }
    with kept(tmp_path / "j"):
        pass
    file = SqliteLog(tmp_path / "j", synced=False, log_capacity=9)
    newest = file.version + 1
    definition["metadata"]["resourceVersion"] = str(newest)
    kind = find_kind("crd")
    row = (kind.resource, "", "widgets.example.com", json.dumps(definition).encode())
    file.write([(newest, ChangeType.ADDED, *row, 0)], None)
    file.close()
    with kept(tmp_path / "j") as cluster:
        definition = cluster.store.find(kind, "", "widgets.example.com")
        assert definition["status"]["acceptedNames"]["plural"] == "widgets"
        assert ask(cluster, "POST", MAPS, {"metadata": {"name": "a"}})[0] == 201
    with kept(tmp_path / "j") as cluster:
        assert cluster.store.find(kind, "", "widgets.example.com") == definition


def test_a_feature_gate_enabled_later_adds_api_services_and_roles(tmp_path):
    """A start with the gate adds them; a start without it removes the APIService."""
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:"
    protection = f"{roles}controller:podgroup-protection-controller"
    service = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha2.scheduling.k8s.io"
    groups = "/apis/scheduling.k8s.io/v1alpha2/podgroups"

    def reads_groups(role):
        return any("podgroups" in rule.get("resources", ()) for rule in role["rules"])

    with kept(tmp_path / "j") as cluster:
        assert [ask(cluster, "GET", path)[0] for path in (service, protection)] == [404, 404]
        role = ask(cluster, "GET", f"{roles}kube-scheduler")[1]
        own = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
        role["rules"].append(own)
        assert ask(cluster, "PUT", f"{roles}kube-scheduler", role)[0] == 200
        fixed = ask(cluster, "GET", f"{roles}node-problem-detector")[1]
        fixed["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"
        fixed["rules"] = []
        assert ask(cluster, "PUT", f"{roles}node-problem-detector", fixed)[0] == 200
    with kept(tmp_path / "j", ["GenericWorkload"]) as cluster:
        status, registered = ask(cluster, "GET", service)
        assert (status, registered["status"]["conditions"][0]["status"]) == (200, "True")
        assert ask(cluster, "GET", protection)[0] == 200
        role = ask(cluster, "GET", f"{roles}kube-scheduler")[1]
        assert own in role["rules"]
        assert reads_groups(role)
        assert not ask(cluster, "GET", f"{roles}node-problem-detector")[1].get("rules")
        assert ask(cluster, "GET", groups)[0] == 200
    with kept(tmp_path / "j") as cluster:
        assert ask(cluster, "GET", service)[0] == 404
        assert ask(cluster, "GET", protection)[0] == 200


def test_generated_names_do_not_repeat_after_a_restart(tmp_path):
    """Upstream's suffixes are random. Uids are stored, so here only the serial numbers differ."""
    pods = "/api/v1/namespaces/default/pods"
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    made = ("labelSelector", "endpointslice.kubernetes.io/managed-by")

    def replaced(cluster):
        """Delete every pod and slice three times; return the names of all."""
        names = []
        for turn in range(3):
            cluster.control_plane.run_until(START + seconds(60 * turn + 60))
            for path, query in ((pods, ()), (slices, (made,))):
                for one in ask(cluster, "GET", path, query=query)[1]["items"]:
                    names.append(one["metadata"]["name"])
                    ask(cluster, "DELETE", f"{path}/{names[-1]}")
        return names

    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    with kept(tmp_path / "j") as cluster:
        replica_sets = "/apis/apps/v1/namespaces/default/replicasets"
        ask(cluster, "POST", replica_sets, {"metadata": {"name": "web"}, "spec": spec})
        service = {"metadata": {"name": "web"}, "spec": {"selector": labels, "clusterIP": "None"}}
        ask(cluster, "POST", "/api/v1/namespaces/default/services", service)
        before = replaced(cluster)
    with kept(tmp_path / "j") as cluster:
        after = replaced(cluster)
    assert len(before) == len(after) == 9
    assert not set(before) & set(after)
