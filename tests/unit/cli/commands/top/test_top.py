"""`fairlead top` against a served cluster."""

from __future__ import annotations

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
