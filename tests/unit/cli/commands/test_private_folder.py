"""Temporary folders of commands that end normally, and of commands that are killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile

import pytest

from fairlead.cli.commands.up.private_folder import LOCK, private_folder, remove_abandoned

HOLDER = """
import sys, time
from fairlead.cli.commands.up.private_folder import private_folder
with private_folder() as folder:
    (folder / "secret").write_text("s")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The parent of temporary folders, also for child processes."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def holder():
    """A process with its own private folder."""
    command = [sys.executable, "-c", HOLDER]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def names(place):
    return sorted(one.name for one in place.iterdir())


def test_a_folder_is_deleted_when_the_command_ends(place):
    with private_folder() as folder:
        assert folder.parent == place
        assert folder.stat().st_mode & 0o077 == 0
        assert names(folder) == [LOCK]
    assert names(place) == []


def test_folders_of_running_processes_are_not_deleted(place, holder):
    """This includes the folder of the process that cleans up."""
    with private_folder():
        remove_abandoned()
        assert len(names(place)) == 2


def test_the_folder_of_a_killed_process_is_deleted(place, holder):
    holder.kill()
    holder.wait()
    assert len(names(place)) == 1
    remove_abandoned()
    assert names(place) == []


def test_folders_that_fairlead_did_not_create_are_not_deleted(place):
    """Such folders have no lock, a symbolic link as the lock, or are writable by other users."""
    lockless, linked, shared = (place / f"fairlead-{name}" for name in ("a", "b", "c"))
    for folder in (lockless, linked, shared):
        folder.mkdir(mode=0o700)
    (place / LOCK).touch(0o600)
    (linked / LOCK).symlink_to(place / LOCK)
    (shared / LOCK).touch(0o600)
    shared.chmod(0o770)
    (place / "fairlead-file").touch()
    (place / "fairlead-link").symlink_to(lockless)
    before = names(place)
    remove_abandoned()
    assert names(place) == before
