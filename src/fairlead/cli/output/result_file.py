"""Writes results to stdout, and the command log to a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlead.cli.output.atomic_file import AtomicFile
from fairlead.whatif.run.experiment_run import CommandLog


def print_bytes(content: bytes) -> None:
    """Write `content` to stdout unchanged. A closed pipe is ignored."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        discard_stdout()


def discard_stdout() -> None:
    """Redirect stdout to /dev/null, so that the interpreter does not fail when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
    print(f"{what}: {path}", file=sys.stderr)
