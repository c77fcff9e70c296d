"""`fairlead dashboard`, and the dashboard options of `fairlead up`."""

from __future__ import annotations

import pytest
import yaml
from tests.up_process import up

from fairlead.cli.main import run


@pytest.fixture
def link_of(tmp_path, capsys):
    """Returns (exit code, output) of `fairlead dashboard` for a cluster with these options."""

    def ask(*options):
        with up("--nodes", "1", *options) as config:
            path = tmp_path / "kubeconfig"
            path.write_text(yaml.safe_dump(config))
            code = run(["dashboard", "--kubeconfig", str(path)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return ask


def test_a_link_is_printed(link_of):
    code, out, _ = link_of("--dashboard")
    assert code == 0
    assert out.startswith("http://127.0.0.1:")
    assert "/login?code=" in out


def test_an_error_says_that_a_cluster_has_no_dashboard(link_of):
    code, out, err = link_of()
    assert (code, out) == (2, "")
    assert err.endswith(": the cluster has no dashboard; start it with fairlead up --dashboard\n")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--dashboard-port", "8002"], "--dashboard-port: needs --dashboard"),
        (["--dashboard", "--dashboard-port", "70000"], "--dashboard-port: must be from 0 to 65535"),
    ],
)
def test_invalid_options_are_refused_in_one_line(capsys, options, line):
    assert run(["up", *options]) == 2
    assert capsys.readouterr().err == f"fairlead: {line}\n"
