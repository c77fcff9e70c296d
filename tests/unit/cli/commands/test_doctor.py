"""`fairlead doctor` lists what is installed, what is missing, and whether it is required."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

from fairlead.cli import exit_code
from fairlead.cli.commands import doctor
from fairlead.cli.main import run


def test_a_machine_that_has_everything_passes(capsys):
    assert run(["doctor"]) == exit_code.SUCCESS
    printed = capsys.readouterr().out
    assert "libraries are installed" in printed
    assert "missing" not in printed


def test_a_missing_library_fails(monkeypatch, capsys):
    found = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: "" if name == "numpy" else found(name))
    assert run(["doctor"]) == exit_code.DIFFERENCE
    assert "missing  library numpy: pip install numpy" in capsys.readouterr().out


def test_the_required_libraries_of_a_source_tree_are_unknown(monkeypatch, capsys):
    def requires(_):
        raise PackageNotFoundError

    monkeypatch.setattr(doctor.metadata, "requires", requires)
    assert run(["doctor"]) == exit_code.SUCCESS
    assert "note     the package fairlead is not installed" in capsys.readouterr().out


def test_kubectl_is_only_needed_for_some_commands(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["doctor"]) == exit_code.SUCCESS
    assert "note     kubectl is not on the PATH (needed for dumping" in capsys.readouterr().out


def test_a_cluster_that_does_not_answer_fails(tmp_path, capsys):
    config = tmp_path / "config"
    config.write_text(
        "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}],"
        " contexts: [{name: c, context: {cluster: c}}], current-context: c}"
    )
    assert run(["doctor", "--kubeconfig", str(config)]) == exit_code.DIFFERENCE
    assert "missing  context c: " in capsys.readouterr().out


def test_an_invalid_kubeconfig_is_bad_input(tmp_path):
    assert run(["doctor", "--kubeconfig", str(tmp_path / "none")]) == exit_code.BAD_INPUT
