"""Writes results to stdout, accompanying lines to stderr, and the command log to a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.cli.output.atomic_file import AtomicFile
from fairlead.whatif.input.mapped_file import require_unchanged_files

if TYPE_CHECKING:
    from fairlead.whatif.run.experiment_run import CommandLog


def print_bytes(content: bytes) -> None:
    """Write `content` to stdout unchanged. A closed pipe is ignored.

    Raises InputError if the command's input file has been changed since it was read
    (`mapped_file`).
    """
    require_unchanged_files()
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        discard_stdout()


def discard_stdout() -> None:
    """Redirect stdout to /dev/null, so that the interpreter does not fail when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_notice(line: str) -> None:
    """Print `line` on stderr; do nothing if this fails, for example because of a closed pipe.

    The result on stdout and the exit status must not depend on who reads stderr.
    """
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        # Without this, the interpreter would fail when it flushes stderr at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def print_empty_files(files: Iterable[str]) -> None:
    """Print a line on stderr for each of the empty `files` of a dump, which were skipped."""
    for file in files:
        print_notice(f"skipped: {file} is empty")


@contextmanager
def command_log(path: Path | None) -> Iterator[CommandLog | None]:
    """Yield a function that writes a run's commands to `path`; None if `path` is None."""
    if path is None:
        yield None
        return
    with AtomicFile(path) as file:
        yield lambda line: file.write(line.encode() + b"\n")


def say_written(what: str, path: Path) -> None:
    """Report on stderr that `what` was written to `path`; stdout must contain only the result."""
    print_notice(f"{what}: {path}")
