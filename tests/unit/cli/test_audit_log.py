"""The audit log of `fairlead up`."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from fairlead.cli.audit_log import opened_audit
from fairlead.whatif.input_error import InputError


def test_lines_are_appended_for_the_user_alone(tmp_path):
    path = tmp_path / "audit.log"
    for line in (b"a\n", b"b\n"):
        with opened_audit(path) as write:
            write(line)
    assert path.read_bytes() == b"a\nb\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(InputError, match="Is a directory"), opened_audit(tmp_path):
        pass


def test_lines_that_cannot_be_written_are_told_of_once(capsys):
    with opened_audit(Path("/dev/full")) as write:
        write(b"a\n")
        write(b"b\n")
    told = capsys.readouterr().err
    assert told == "fairlead: --audit: /dev/full: No space left on device: lines are missing\n"
