"""`fairlead snapshot` of a cluster that runs in another process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml
from kubernetes import client, config
from tests.up_process import up

from fairlead.whatif.snapshot.snapshot import read_snapshot


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The kubeconfig of a cluster with three nodes and the users alice and bob."""
    path = tmp_path_factory.mktemp("live") / "kubeconfig"
    with up("--nodes", "3", "--kubeconfig", str(path), "--user", "alice", "--user", "bob"):
        yield str(path)


def fairlead(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "fairlead.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_snapshot_contains_the_cluster_and_can_be_read_like_a_dump(cluster, tmp_path):
    file = tmp_path / "cluster.json"
    config.load_kube_config(cluster)
    for name in ("cluster-autoscaler-status", "other"):
        body = {"metadata": {"name": name}, "data": {"status": name}}
        client.CoreV1Api().create_namespaced_config_map("kube-system", body)
    done = fairlead("snapshot", str(file), "--kubeconfig", cluster)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"snapshot: {file} (")
    names = {manifest.title for manifest in read_snapshot(str(file)).manifests}
    assert {"Node node-1", "Node node-3", "Namespace kube-system"} <= names
    kinds = {title.partition(" ")[0] for title in names}
    assert not kinds & {"Secret", "Event"}
    config_maps = [title for title in names if title.startswith("ConfigMap ")]
    assert config_maps == ["ConfigMap kube-system/cluster-autoscaler-status"]


def test_a_user_without_rights_is_shown_the_role(cluster, tmp_path):
    file = tmp_path / "cluster.json"
    done = fairlead("snapshot", str(file), "--kubeconfig", cluster, "--context", "bob")
    assert done.returncode == 2
    assert 'User "bob" cannot list resource "nodes"' in done.stderr
    assert "`fairlead snapshot --rbac`" in done.stderr
    assert not file.exists()


def test_the_printed_roles_suffice_and_notes_name_the_unreadable_kinds(cluster, tmp_path):
    config.load_kube_config(cluster)
    roles = list(yaml.safe_load_all(fairlead("snapshot", "--rbac").stdout))
    api = client.RbacAuthorizationV1Api()
    api.create_cluster_role(roles[0])
    subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "ClusterRole", "name": roles[0]["metadata"]["name"]}
    reference["apiGroup"] = "rbac.authorization.k8s.io"
    binding = {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": reference}
    api.create_cluster_role_binding(binding)
    file = tmp_path / "cluster.json"
    done = fairlead("snapshot", str(file), "--kubeconfig", cluster, "--context", "alice")
    assert done.returncode == 0
    _, unread, hint = done.stderr.splitlines()
    assert unread == (
        "no leases could be read: an outage under way seems to begin earlier than it did"
    )
    assert "`fairlead snapshot --rbac`" in hint
    annotations = json.loads(file.read_text())["metadata"]["annotations"]
    assert annotations["fairlead.dev/unreadable"] == "leases.coordination.k8s.io"
    namespace = roles[1]["metadata"]["namespace"]
    api.create_namespaced_role(namespace, roles[1])
    api.create_namespaced_role_binding(
        namespace, {**binding, "roleRef": {**reference, "kind": "Role"}}
    )
    done = fairlead("snapshot", str(file), "--kubeconfig", cluster, "--context", "alice")
    assert len(done.stderr.splitlines()) == 1


def test_what_ifs_can_read_the_running_cluster(cluster):
    arguments = ("whatif", "--kubeconfig", cluster, "--cordon", "node-1", "-o", "json")
    done = fairlead(*arguments, "--no-report")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["source"] == "context fairlead"


def test_an_answer_names_the_unreadable_kinds(tmp_path):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    file = tmp_path / "cluster.json"
    annotations = {"fairlead.dev/unreadable": "poddisruptionbudgets.policy"}
    dump = {"kind": "List", "apiVersion": "v1", "metadata": {"annotations": annotations}}
    file.write_text(json.dumps({**dump, "items": [node]}))
    done = fairlead("whatif", str(file), "--cordon", "n", "-o", "json")
    said = "no poddisruptionbudgets could be read: drains and preemptions look easier than they are"
    assert said in json.loads(done.stdout)["notes"]


@pytest.mark.parametrize(
    "arguments", [["whatif"], ["whatif", "dump.json", "--context", "x"], ["explain", "pod/a/b"]]
)
def test_exactly_one_cluster_must_be_named(arguments):
    done = fairlead(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("fairlead: arguments: name ")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--rbac", "--context", "x"], "--rbac: prints roles"),
        ([], "FILE: is required"),
        (["out.json", "--kubeconfig", "absent"], "absent: cannot be read: No such file"),
        (["out.json", "--in-cluster", "--context", "x"], "--in-cluster: cannot be combined"),
        (["out.json", "--in-cluster"], "--in-cluster: KUBERNETES_SERVICE_HOST and"),
        (["no-folder/out.json", "--in-cluster"], "FILE: "),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(arguments, problem):
    done = fairlead("snapshot", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"fairlead: {problem}")
    assert done.stderr.count("\n") == 1
