"""Commands whose output has no notes name the empty files of a dump on standard error."""

from __future__ import annotations

import pytest

from fairlead.cli.main import run

AUDIT = '{"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Request"}\n'
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4}}\n"


@pytest.mark.parametrize(
    "command",
    [
        "replay audit.log --snapshot dump --config missing.yaml",
        "extender --snapshot dump --config missing.yaml --listen 127.0.0.1:0",
        "up --snapshot dump --autoscale karpenter --instance-types missing.csv",
    ],
)
def test_an_empty_file_of_a_dump_is_named(tmp_path, monkeypatch, capsys, command):
    """Each command fails after it has read the dump, and begins no server."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump/nodes.yaml").write_text(NODE)
    (tmp_path / "dump/pdb.json").write_text("")
    (tmp_path / "audit.log").write_text(AUDIT)
    assert run(command.split()) == 2
    skipped, problem = capsys.readouterr().err.splitlines()
    assert skipped == "skipped: dump/pdb.json is empty"
    assert problem.startswith("fairlead: ")
