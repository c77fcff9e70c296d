"""Writing an anonymised snapshot and its key: both files or none."""

import json
import resource

import pytest

from fairlead.cli.main import run

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a-name-of-a-node"},
    "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
}
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "a-name-of-a-node", "namespace": "kube-node-lease"},
}


def run_with_files_of_at_most(size: int, *arguments: str) -> int:
    """Return the exit code of the command. Writes beyond `size` bytes fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        return run(arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_neither_snapshot_nor_key(tmp_path, capsys):
    dump, file, key = (tmp_path / name for name in ("dump.json", "shared.json", "names.key"))
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, LEASE]}))
    arguments = ["snapshot", str(file), "--from", str(dump), "--anonymise", str(key)]
    assert run(arguments) == 0
    size, size_of_key = (one.stat().st_size for one in (file, key))
    assert size_of_key < size
    file.unlink()
    key.unlink()
    assert run_with_files_of_at_most(size - 1, *arguments) == 74
    assert capsys.readouterr().err.endswith(f"fairlead: {file}: File too large\n")
    assert list(tmp_path.iterdir()) == [dump]
    assert run(arguments) == 0


def test_a_key_that_cannot_be_written_is_removed(tmp_path, capsys):
    dump, key = tmp_path / "dump.json", tmp_path / "names.key"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, LEASE]}))
    arguments = ["snapshot", "/dev/null", "--from", str(dump), "--anonymise", str(key)]
    assert run_with_files_of_at_most(1, *arguments) == 74
    assert capsys.readouterr().err.endswith(f"fairlead: {key}: File too large\n")
    assert list(tmp_path.iterdir()) == [dump]


def node_in(key, name, domain):
    status = {"allocatable": {"cpu": "2", "memory": "16Gi", "pods": "110"}}
    status["conditions"] = [{"type": "Ready", "status": "True"}]
    metadata = {"name": name, "labels": {key: domain, "kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def job_set_in(key):
    """A JobSet of two Jobs, each with two pods in a domain of its own."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": pod}
    annotations = {"alpha.jobset.sigs.k8s.io/exclusive-topology": key}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": "default", "annotations": annotations},
        "spec": {
            "suspend": True,
            "replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": job}}],
        },
    }


@pytest.mark.parametrize("key", ["cloud.google.com/gke-nodepool", "example.com/rack"])
def test_as_many_copies_of_a_job_set_fit_in_an_exclusive_topology(tmp_path, capsys, key):
    """The key of the topology is published, or gets a pseudonym, as in the labels of the nodes."""
    dump, file = tmp_path / "dump.json", tmp_path / "shared.json"
    nodes = [node_in(key, f"n{at}", f"domain-{at % 4}") for at in range(8)]
    items = {"apiVersion": "v1", "kind": "List", "items": [*nodes, job_set_in(key)]}
    dump.write_text(json.dumps(items))
    arguments = ["snapshot", str(file), "--list", "--from", str(dump)]
    assert run([*arguments, "--anonymise", str(tmp_path / "names.key")]) == 0
    found = []
    for path in (dump, file):
        one = json.loads(path.read_text())["items"][-1]["metadata"]
        capsys.readouterr()
        run(["fit", str(path), "--like", f"jobset/default/{one['name']}", "-o", "json"])
        answer = json.loads(capsys.readouterr().out)
        found.append({name: answer[name] for name in ("count", "pods_each", "refusals")})
    assert found[0] == found[1]
    assert found[0]["count"] == 2
