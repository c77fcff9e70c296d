"""A report is written completely or not at all."""

from __future__ import annotations

import resource

import pytest

from fairlead.cli.output.report_file import write_report
from fairlead.whatif.report import render_report

SMALL = {"kind": "simulate", "title": "Small"}


def test_a_report_replaces_an_existing_file(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(path, SMALL)
    assert path.read_text(encoding="utf-8") == render_report(SMALL)


def test_a_full_disk_does_not_change_the_earlier_report(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            write_report(path, SMALL)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.filename == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_an_os_error_with_the_name_of_the_report(tmp_path):
    path = tmp_path / "absent" / "report.html"
    with pytest.raises(FileNotFoundError) as raised:
        write_report(path, SMALL)
    assert raised.value.filename == str(path)
