"""Writing an anonymised snapshot and its key: both files or none."""

import json
import resource

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
