"""What README.md shows is what happens: its console blocks are run again.

A block starts with `$ fairlead ...` and shows all of the command's standard output, except that
spaces at the ends of lines are left out. `--update-golden` writes the blocks anew.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from fairlead.cli import main

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "README.md"
BLOCK: Final = re.compile(r"(?<=^```console\n)\$ fairlead (.+)\n((?:.*\n)*?)(?=```$)", re.MULTILINE)
SHOWN: Final = BLOCK.findall(PAGE.read_text())


def output_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What `fairlead COMMAND` prints, without a report and without spaces at the ends of lines."""
    quiet = ["--no-report"] if command.startswith("whatif") else []
    main.run([*shlex.split(command), *quiet])
    return "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())


def test_there_is_something_shown() -> None:
    """The README leads with an answer."""
    assert any(command.startswith("whatif") for command, _ in SHOWN)


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_command_prints_what_is_shown(
    command: str,
    output: str,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Line by line."""
    monkeypatch.chdir(ROOT)
    printed = output_of(command, capsys)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(PAGE.read_text().replace(output, printed))
    else:
        assert printed == output
