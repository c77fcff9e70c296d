"""Lines on stderr do not change the exit status of a command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


@pytest.fixture
def closed_pipe():
    """The file descriptor of a pipe whose reader has exited."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def test_a_condition_of_fail_on_sets_the_exit_status_if_nobody_reads_stderr(tmp_path, closed_pipe):
    """The name of the report is printed on stderr."""
    store = ROOT / "examples" / "store" / "store.yaml"
    question = ["whatif", store, "--drain", "worker-03", "--fail-on", "namespace=store"]
    done = subprocess.run(
        [sys.executable, "-m", "fairlead", *question, "--report", "r.html"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.DEVNULL,
        stderr=closed_pipe,
        check=False,
    )
    assert (tmp_path / "r.html").exists()
    assert done.returncode == 3
