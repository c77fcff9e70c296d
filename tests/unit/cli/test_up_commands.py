"""`fairlead up -- COMMAND`, `fairlead up --detach` and `fairlead down`, as processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture
def fairlead(tmp_path, monkeypatch):
    """Run `fairlead`; clusters in the background are those of this test only."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    def run(*arguments):
        command = [sys.executable, "-m", "fairlead.cli", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    yield run
    run("down")


READ_KUBECONFIG = "import os; print(open(os.environ['KUBECONFIG']).read().count('server:'))"


def test_a_command_runs_with_the_kubeconfig_and_ends_the_cluster(fairlead):
    done = fairlead("up", "--nodes", "1", "--", sys.executable, "-c", READ_KUBECONFIG)
    assert (done.returncode, done.stdout) == (0, "1\n")


def test_the_status_is_that_of_the_command(fairlead):
    assert fairlead("up", "--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7


def test_a_missing_command_is_refused_before_the_cluster_starts(fairlead):
    done = fairlead("up", "--", "no-such-command")
    assert (done.returncode, done.stderr) == (
        2,
        "fairlead: --: there is no command no-such-command\n",
    )


def test_a_cluster_in_the_background_is_ready_at_once_and_ends_with_down(fairlead):
    started = fairlead("up", "--detach", "--nodes", "1")
    assert started.returncode == 0
    path = started.stdout.removeprefix("export KUBECONFIG=").partition("  # ")[0]
    assert os.path.exists(path)  # noqa: PTH110
    second = fairlead("up", "--detach")
    assert second.returncode == 2
    assert "a cluster runs already (process" in second.stderr
    assert path in second.stderr
    ended = fairlead("down")
    assert (ended.returncode, path in ended.stderr) == (0, True)
    assert not os.path.exists(path)  # noqa: PTH110
    assert "no cluster runs in the background" in fairlead("down").stderr


def test_a_cluster_that_cannot_start_in_the_background_says_why(fairlead, tmp_path):
    done = fairlead("up", "--detach", "--data-dir", "/dev/null/x")
    assert done.returncode == 2
    assert done.stderr.startswith("fairlead: --data-dir: ")
    assert fairlead("down").returncode == 2


def test_the_duration_of_jobs_is_checked(fairlead):
    done = fairlead("up", "--job-duration", "soon")
    assert done.returncode == 2
    assert done.stderr.startswith("fairlead: --job-duration: ")
    assert done.stderr.endswith("or forever\n")
