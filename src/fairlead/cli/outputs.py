"""What a command leaves behind: text or JSON on stdout, files where they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlead.cli.output_file import WholeFile
from fairlead.cli.terminal import nobody_reads_stdout
from fairlead.whatif.report import ReportData, write_report
from fairlead.whatif.run import CommandLog


def print_bytes(content: bytes) -> None:
    """`content` on stdout as it is, as far as anyone reads it."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        nobody_reads_stdout()


@contextmanager
def command_log(path: Path | None) -> Iterator[CommandLog | None]:
    """Where a run's commands go: to `path`, or nowhere for None."""
    if path is None:
        yield None
        return
    with WholeFile(path) as file:
        yield lambda line: file.write(line.encode() + b"\n")


def report_to(path: Path | None, data: ReportData) -> None:
    """Write the HTML report and say where, unless `path` is None."""
    if path is not None:
        write_report(path, data)
        say_written("report", path)


def say_written(what: str, path: Path) -> None:
    """Tell the user about a file; on stderr, so that stdout stays what was asked for."""
    print(f"{what}: {path}", file=sys.stderr)
