"""ChildCommand: runs the command of `fairlead up -- COMMAND`, then stops the cluster."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Final

from fairlead.cli import exit_code
from fairlead.cli.options.parameter import Names
from fairlead.whatif.input.error import InputError

STOP_SECONDS_MAX: Final = 10


class ChildCommand:
    """Runs the command `words` with KUBECONFIG set.

    If `words` is empty, there is no command, and `start` must not be called.
    """

    def __init__(self, words: Names) -> None:
        """Prepare to run the command `words`. Raises InputError if the command does not exist."""
        if words and shutil.which(words[0]) is None:
            raise InputError("--", f"there is no command {words[0]}")
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of the command, or SUCCESS if there is no command.

        Waits until the command has ended.
        """
        if self._process is None:
            return exit_code.SUCCESS
        code = self._process.wait()
        return code if code >= 0 else exit_code.SIGNALLED - code

    def start(self, kubeconfig: Path) -> None:
        """Start the command with KUBECONFIG set to `kubeconfig`.

        When the command ends, the cluster is stopped, too.
        """
        sys.stdout.flush()
        self._process = subprocess.Popen(  # noqa: S603 - the user's own command
            self._words, env={**os.environ, "KUBECONFIG": str(kubeconfig)}
        )
        Thread(target=self._end_with, args=(self._process,), daemon=True).start()

    def _end_with(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    def close(self) -> None:
        """Stop the command if it still runs."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
