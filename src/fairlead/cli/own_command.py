"""Runs a `fairlead` command in its own process, without blocking the calling event loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ANSWER_SECONDS_MAX: Final = 600


@dataclass(frozen=True, slots=True)
class Completed:
    """The exit code and standard output of a command.

    `error` is the last line that the command wrote to stderr, or "failed" if there is no such line.
    """

    code: int
    output: bytes
    error: str


async def run_own_command(arguments: Sequence[str]) -> Completed:
    """Run `fairlead` with `arguments`, and return its exit code and output.

    Raises TimeoutError if the command runs longer than ANSWER_SECONDS_MAX. The command is killed
    then, and also if the calling task is cancelled.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # no file of the current directory, such as calendar.py, replaces a module
        "-m",
        "fairlead.cli",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            output, errors = await process.communicate()
    except (TimeoutError, asyncio.CancelledError):
        process.kill()
        await process.wait()
        raise
    lines = errors.decode(errors="replace").strip().splitlines()
    assert process.returncode is not None
    return Completed(process.returncode, output, lines[-1] if lines else "failed")
