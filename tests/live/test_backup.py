"""Backups of clusters, and the messages about damaged files of a backup."""

from __future__ import annotations

import subprocess
import sys

import pytest
from kubernetes import client, config
from tests.up_process import up


def fairlead(*arguments):
    command = [sys.executable, "-m", "fairlead.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def create(path, *names):
    """Create ConfigMaps in the running cluster; return the existing ones."""
    config.load_kube_config(path)
    api = client.CoreV1Api()
    for name in names:
        api.create_namespaced_config_map("default", {"metadata": {"name": name}})
    found = api.list_namespaced_config_map("default").items
    return {one.metadata.name for one in found} - {"kube-root-ca.crt"}


def test_a_backup_of_a_running_cluster_can_be_restored(tmp_path):
    path = str(tmp_path / "kubeconfig")
    here, again = str(tmp_path / "here"), str(tmp_path / "again")
    saved = tmp_path / "saved.tar"
    with up("--nodes", "1", "--data-dir", here, "--kubeconfig", path):
        create(path, "before")
        done = fairlead("backup", str(saved), "--data-dir", here)
        assert (done.returncode, done.stderr) == (0, f"backup: {saved}\n")
        create(path, "after")
    assert saved.stat().st_mode & 0o077 == 0
    assert fairlead("restore", str(saved), "--data-dir", again).returncode == 0
    with up("--data-dir", again, "--kubeconfig", path):
        assert create(path) == {"before"}
    refused = fairlead("restore", str(saved), "--data-dir", again)
    assert (refused.returncode, refused.stderr) == (
        2,
        f"fairlead: restore: {again}: is not empty\n",
    )


@pytest.fixture
def stopped(tmp_path):
    """The data directory of a cluster that has stopped, and a kubeconfig path."""
    here, path = tmp_path / "here", str(tmp_path / "kubeconfig")
    with up("--nodes", "1", "--data-dir", str(here), "--kubeconfig", path):
        create(path, "mine")
    return here, path


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        pytest.param("objects.db", "objects.db: is empty, but ", marks=pytest.mark.long),
        ("objects.", "objects.db: is empty, but a cluster has run in this directory"),
        ("tokens", "tokens: is missing, and with it all users' credentials"),
    ],
)
def test_lost_files_are_named_and_the_loss_must_be_accepted(stopped, lost, said):
    here, path = stopped
    for file in here.glob(f"{lost}*"):
        file.unlink()
    done = fairlead("up", "--data-dir", str(here))
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.endswith("; --accept-loss starts without the missing data\n")
    with up("--data-dir", str(here), "--kubeconfig", path, "--accept-loss"):
        assert create(path) == (set() if lost.startswith("objects") else {"mine"})
    with up("--data-dir", str(here), "--kubeconfig", path):
        create(path, "later")


def test_a_backup_of_a_stopped_cluster_can_be_restored(stopped, tmp_path):
    here, path = stopped
    saved, again = str(tmp_path / "saved.tar"), str(tmp_path / "again")
    assert fairlead("backup", saved, "--data-dir", str(here)).returncode == 0
    assert fairlead("restore", saved, "--data-dir", again).returncode == 0
    with up("--data-dir", again, "--kubeconfig", path):
        assert create(path) == {"mine"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("backup", "b.tar", "--data-dir", "none"), "--data-dir: none contains no cluster"),
        (("restore", "absent", "--data-dir", "new"), "restore: absent: No such file"),
        (("restore", "text", "--data-dir", "new"), "restore: text: is not a backup"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(arguments, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("hello")
    done = fairlead(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"fairlead: {problem}")
    assert done.stderr.count("\n") == 1
