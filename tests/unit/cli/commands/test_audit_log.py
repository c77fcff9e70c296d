"""The audit log of `fairlead up`."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.apiserver.endpoints.audit import AuditLevel
from fairlead.cli.commands.up.audit_log import opened_audit
from fairlead.whatif.input.error import InputError


def opened(path):
    return opened_audit(path, AuditLevel.METADATA)


def test_lines_are_appended_to_a_file_that_only_its_user_can_read(tmp_path):
    path = tmp_path / "audit.log"
    for line in (b"a\n", b"b\n"):
        with opened(path) as log:
            log.write(line)
    assert path.read_bytes() == b"a\nb\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_lines_are_appended_to_the_file_of_standard_output(tmp_path):
    """The process and the log would overwrite each other's text if FILE were opened twice."""
    code = """
from pathlib import Path
from fairlead.apiserver.endpoints.audit import AuditLevel
from fairlead.cli.commands.up.audit_log import opened_audit

print("a")
with opened_audit(Path("/dev/stdout"), AuditLevel.METADATA) as log:
    log.write(b"b\\n")
print("c")
"""
    path = tmp_path / "out"
    with path.open("wb") as stdout:
        subprocess.run([sys.executable, "-c", code], stdout=stdout, check=True)
    assert path.read_text() == "a\nb\nc\n"


def test_a_file_that_cannot_be_opened_is_refused(tmp_path):
    with (
        pytest.raises(InputError, match="Is a directory"),
        opened(tmp_path),
    ):
        pass


def test_lines_that_cannot_be_written_are_reported_once(capsys):
    with opened(Path("/dev/full")) as log:
        log.write(b"a\n")
        log.write(b"b\n")
    err = capsys.readouterr().err
    assert err == "fairlead: --audit: /dev/full: No space left on device: lines are missing\n"


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_pipe_without_reader_is_refused(pipe):
    """The pipe is refused without waiting for a reader."""
    with (
        pytest.raises(InputError, match="is a pipe without a reader"),
        opened(pipe),
    ):
        pass


def test_a_line_is_written_to_a_pipe_completely_or_not_at_all(pipe, capsys):
    """A slow reader does not delay the writer."""
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    line = b"x" * 4_999 + b"\n"
    with opened(pipe) as log:
        for _ in range(30):
            log.write(line)
        first = os.read(reader, 1 << 20)
        log.write(line)
        first += os.read(reader, 1 << 20)
    os.close(reader)
    assert set(first.split(b"\n")) == {line[:-1], b""}
    err = capsys.readouterr().err
    assert err == f"fairlead: --audit: {pipe}: is read too slowly: lines are missing\n"


def test_a_disconnected_reader_is_reported(pipe, capsys):
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with opened(pipe) as log:
        os.close(reader)
        log.write(b"a\n")
    assert capsys.readouterr().err.endswith("Broken pipe: lines are missing\n")
