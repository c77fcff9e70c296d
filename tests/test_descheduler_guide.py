"""The policy in docs/descheduler.md evicts the pods that the page shows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from fairlead.cli import main

ROOT: Final = Path(__file__).parent.parent
GUIDE: Final = (ROOT / "docs" / "descheduler.md").read_text()
SHELL: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE: Final = re.compile(r"^```console\n\$ fairlead (.+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_answer_has_every_line_that_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines are in the page's order; `[...]` stands for any lines."""
    [write_policy] = SHELL.findall(GUIDE)
    [(command, shown)] = CONSOLE.findall(GUIDE)
    subprocess.run(["/bin/sh", "-c", write_policy], cwd=tmp_path, check=True)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    main.run([*command.split(), "--no-report"])
    printed = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
    parts = (re.escape(part) for part in shown.split("[...]\n"))
    assert re.fullmatch("(?:.*\n)*?".join(parts), printed)
