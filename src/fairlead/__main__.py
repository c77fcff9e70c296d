"""The program `fairlead`, also run by `python -m fairlead`."""

from __future__ import annotations

import sys

from fairlead.cli import exit_code


def main() -> None:
    """Run the command in `sys.argv` and end the process with the command's exit code."""
    try:
        from fairlead.cli.main import main as run_process  # noqa: PLC0415 - takes 0.1 s
    except KeyboardInterrupt:  # the modules are still being loaded
        sys.exit(exit_code.INTERRUPTED)
    run_process()


if __name__ == "__main__":
    main()
