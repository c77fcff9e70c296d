"""`fairlead top` against a served cluster."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys

import pytest
import yaml
from tests.up_process import up

from fairlead.cli.main import run


def test_top_prints_one_frame_of_a_served_cluster(tmp_path, capsys):
    with up("--nodes", "2") as config:
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        assert run(["clock", "advance", "30s", "--kubeconfig", str(path)]) == 0
        capsys.readouterr()
        assert run(["top", "--once", "--kubeconfig", str(path)]) == 0
        lines = capsys.readouterr().out.splitlines()
    assert "2 nodes, 0 pods" in lines[0]
    assert [line.split()[0] for line in lines[5:7]] == ["node-1", "node-2"]
    assert "used " in lines[1]
    assert any("RegisteredNode" in line for line in lines)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--every", "0.1s"], "--every: must be at least 1s"),
        (["--every", "never"], "--every: "),
        (["--kubeconfig", "/none"], "/none: "),
    ],
)
def test_invalid_input_is_refused_in_one_line(capsys, options, line):
    assert run(["top", "--once", *options]) == 2
    [error] = capsys.readouterr().err.splitlines()
    assert error.startswith(f"fairlead: {line}")


def test_a_terminal_shows_that_the_cluster_is_read_before_the_first_frame(tmp_path):
    """The server accepts connections, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        config = {
            "clusters": [{"name": "c", "cluster": {"server": address}}],
            "contexts": [{"name": "silent", "context": {"cluster": "c", "user": ""}}],
            "current-context": "silent",
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        terminal, its_end = pty.openpty()
        command = [sys.executable, "-m", "fairlead.cli", "top", "--kubeconfig", str(path)]
        process = subprocess.Popen(command, stdout=its_end, stderr=its_end)
        os.close(its_end)
        shown = b""
        while b"reading context silent" not in shown:
            shown += os.read(terminal, 1000)  # fails when the process has ended
        process.terminate()
        assert process.wait(60)
        os.close(terminal)
