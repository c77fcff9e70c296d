"""`fairlead up` as a process of its own, for tests of what outlives it."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import yaml


@contextmanager
def up(*options, ending=signal.SIGTERM, paused=True):
    """The kubeconfig of a cluster that runs with these options, until it is ended so."""
    clock = ("--paused",) if paused else ()
    command = [sys.executable, "-m", "fairlead.cli", "up", *clock, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("export KUBECONFIG="), line
        yield yaml.safe_load(Path(line.partition("=")[2].split()[0]).read_text())
    finally:
        process.send_signal(ending)
        process.wait(timeout=20)
        process.stdout.close()
