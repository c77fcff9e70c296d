"""Backups are written and restored completely or not at all."""

from __future__ import annotations

import os
import resource
import sqlite3
from contextlib import closing, contextmanager
from datetime import UTC, datetime

import pytest

from fairlead.apiserver.storage.write_ahead_log import WriteAheadLog
from fairlead.cli import exit_code
from fairlead.cli.main import run
from fairlead.worlds.local.backup import restore_backup
from fairlead.worlds.local.data_dir import objects_file, open_data_dir


@contextmanager
def files_of_at_most(size):
    """Make writes beyond `size` bytes fail, as on a full disk."""
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def stopped(tmp_path):
    """The data directory of a cluster that is not running."""
    directory = tmp_path / "data"
    path = objects_file(directory)
    open_data_dir(directory, (), datetime(2026, 1, 1, tzinfo=UTC))
    WriteAheadLog(path).close()
    return directory


def test_a_backup_is_private_even_if_it_replaces_a_public_file(stopped, tmp_path):
    saved = tmp_path / "saved.tar"
    saved.touch(0o644)
    assert run(["backup", str(saved), "--data-dir", str(stopped)]) == exit_code.SUCCESS
    assert saved.stat().st_mode & 0o077 == 0


def test_a_failed_backup_keeps_the_older_backup(stopped, tmp_path, capsys):
    saved = tmp_path / "saved.tar"
    saved.write_bytes(b"older")
    size = (stopped / "objects.db").stat().st_size
    with files_of_at_most(size + 512):  # The tar file is larger than the copy of the objects.
        status = run(["backup", str(saved), "--data-dir", str(stopped)])
    assert status == exit_code.OUTPUT_FAILED
    assert capsys.readouterr().err == f"fairlead: {saved}: File too large\n"
    assert saved.read_bytes() == b"older"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["data", "saved.tar"]


@pytest.mark.parametrize("exists", [False, True])
def test_a_failed_restore_leaves_no_files(stopped, tmp_path, exists):
    saved, again = tmp_path / "saved.tar", tmp_path / "again"
    run(["backup", str(saved), "--data-dir", str(stopped)])
    if exists:
        again.mkdir()
    with files_of_at_most(4000), pytest.raises(OSError, match="File too large"):
        restore_backup(saved, again)
    assert again.exists() == exists
    assert not exists or not list(again.iterdir())
    restore_backup(saved, again)
    assert (again / "objects.db").read_bytes()
    assert all(one.stat().st_mode & 0o077 == 0 for one in again.iterdir())


@pytest.mark.parametrize("name", ["objects.db", "objects.db-wal", "tokens", "port", "address"])
@pytest.mark.parametrize("command", [["backup", "b.tar"], ["up"]], ids=["backup", "up"])
def test_a_pipe_in_place_of_a_file_is_refused(stopped, name, command, capsys, monkeypatch):
    """Opening a pipe would wait for a writer for ever."""
    monkeypatch.chdir(stopped.parent)
    (stopped / name).unlink(missing_ok=True)
    os.mkfifo(stopped / name, 0o600)
    if name == "objects.db":
        (stopped / "objects.mark").unlink(missing_ok=True)
    assert run([*command, "--data-dir", "data"]) == exit_code.BAD_INPUT
    said = f"fairlead: --data-dir: data/{name}: is not a regular file\n"
    assert capsys.readouterr().err == said


def test_a_pipe_is_not_restored(tmp_path, capsys):
    os.mkfifo(tmp_path / "b.tar")
    command = ["restore", str(tmp_path / "b.tar"), "--data-dir", str(tmp_path / "again")]
    assert run(command) == exit_code.BAD_INPUT
    assert "b.tar: is not a regular file" in capsys.readouterr().err
    assert not (tmp_path / "again").exists()


def with_pod(directory, text):
    """Write one pod with the JSON `text` into the stopped cluster in `directory`."""
    with closing(sqlite3.connect(directory / "objects.db")) as file, file:
        file.execute("INSERT INTO current VALUES ('pods', 'a', 'p', ?)", (text,))


def truncated(directory):
    """Remove the end of the file of objects."""
    path = directory / "objects.db"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (truncated, "objects.db: is damaged: database disk image is malformed"),
        (lambda directory: with_pod(directory, b"[]"), "objects.db: is damaged: "),
        (lambda directory: (directory / "ca.crt").write_text("x"), "ca.crt: is damaged"),
        (lambda directory: (directory / "tokens").unlink(), "tokens: is missing"),
        (lambda directory: (directory / "used").touch(), "objects.db: is empty, but a cluster "),
    ],
    ids=["a truncated database", "a malformed object", "a bad key", "no tokens", "a lost database"],
)
def test_a_damaged_cluster_is_not_backed_up(stopped, tmp_path, damage, says, capsys):
    damage(stopped)
    command = ["backup", str(tmp_path / "b.tar"), "--data-dir", str(stopped)]
    assert run(command) == exit_code.BAD_INPUT
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"fairlead: --data-dir: {stopped}/{says}")
    assert [one.name for one in tmp_path.iterdir()] == ["data"]
