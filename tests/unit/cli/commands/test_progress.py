"""Commands that read a dump show on a terminal what they are doing."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli.main import run

STORE = str(Path(__file__).parents[4] / "examples/store/store.yaml")


@pytest.mark.parametrize(
    ("words", "phases"),
    [
        (["explain", STORE, "node/worker-03"], ["reading", "explaining"]),
        (["snapshot", "out.json", "--from", STORE], ["reading", "writing"]),
        (
            ["snapshot", "out.json", "--from", STORE, "--anonymise", "key.json"],
            ["reading", "anonymising", "writing"],
        ),
    ],
    ids=["explain", "snapshot", "an anonymised snapshot"],
)
def test_a_terminal_shows_the_phases_of_a_command(words, phases, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert run(words) == 0
    shown = capsys.readouterr().err
    assert [one for one in phases if one not in shown] == []


def test_the_planning_commands_show_how_much_they_have_read(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    run(["fit", STORE, "--like", "deploy/store/frontend"])
    assert "objects" in capsys.readouterr().err


def test_forced_colours_do_not_write_progress_to_a_log(monkeypatch, capsys):
    """CI systems set FORCE_COLOR; a log would contain every state of the bar."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(["fit", STORE, "--like", "deploy/store/frontend"]) == 0
    assert capsys.readouterr().err == ""
