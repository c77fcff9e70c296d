"""The program `fairlead`, also run by `python -m fairlead`."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

from fairlead.cli import exit_code
from fairlead.worlds.gc_thresholds import collect_rarely


def main() -> None:
    """Run the command in `sys.argv` and end the process with the command's exit code."""
    collect_rarely()  # before modules are loaded, because they create many long-lived objects
    is_interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_interruptible:  # else the signal is ignored
        # While modules are loaded, Python calls functions whose exceptions it prints and ignores.
        # A KeyboardInterrupt in one of them would be lost.
        signal.signal(signal.SIGINT, _leave)
    from fairlead.cli.main import main as run_process  # noqa: PLC0415 - takes 0.1 s

    if is_interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run_process()


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    os._exit(exit_code.INTERRUPTED)


if __name__ == "__main__":
    main()
