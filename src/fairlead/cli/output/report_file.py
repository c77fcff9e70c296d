"""Writes the HTML report of a command to its file."""

from __future__ import annotations

from pathlib import Path

from fairlead.cli.output.atomic_file import write_atomically
from fairlead.whatif.report import ReportData, encode_report


def write_report(path: Path, data: ReportData) -> None:
    """Write the report on `data` to `path`; if an OSError is raised, the old content remains."""
    write_atomically(path, encode_report(data))
