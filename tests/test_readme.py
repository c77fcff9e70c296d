"""The console blocks in README.md and the guides in docs show the actual output of their commands.

A block starts with `$ fairlead ...` and shows all of the command's standard output, except that
spaces at the ends of lines are removed, and that a line `[...]` stands for any lines.
`--update-golden` rewrites the blocks, except those with such a line.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from fairlead.cli import main

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "docs" / "consolidate.md",
    ROOT / "docs" / "devices.md",
    ROOT / "docs" / "drain-plan.md",
    ROOT / "docs" / "explanation" / "gangs.md",
    ROOT / "docs" / "explanation" / "node-lifecycle.md",
    ROOT / "docs" / "explanation" / "preemption.md",
    ROOT / "docs" / "fit.md",
    ROOT / "docs" / "incident.md",
    ROOT / "docs" / "index.md",
    ROOT / "docs" / "outages.md",
    ROOT / "docs" / "pod-groups.md",
    ROOT / "docs" / "rebalance.md",
    ROOT / "docs" / "replay.md",
    ROOT / "docs" / "size.md",
    ROOT / "docs" / "sweep.md",
    ROOT / "docs" / "tutorial.md",
    ROOT / "docs" / "upgrade-check.md",
    ROOT / "docs" / "versions.md",
)
LEFT_OUT: Final = "[...]\n"
BLOCK: Final = re.compile(r"(?<=^```console\n)\$ fairlead (.+)\n((?:.*\n)*?)(?=```$)", re.MULTILINE)
SHOWN: Final = [(page, *block) for page in PAGES for block in BLOCK.findall(page.read_text())]


def output_of(command: str, capsys: pytest.CaptureFixture[str], folder: Path) -> str:
    """Return the output of `fairlead COMMAND`, without a report and trailing spaces.

    The files of a sweep are written to `folder`.
    """
    quiet = ["--no-report"] if command.startswith("whatif") else []
    if command.startswith("sweep"):
        quiet = ["--on", "processes:1", "--out", str(folder)]
    main.run([*shlex.split(command), *quiet])
    return "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())


def test_the_readme_begins_with_a_what_if() -> None:
    """Its first command is `fairlead whatif`."""
    assert any(page is PAGES[0] and command.startswith("whatif") for page, command, _ in SHOWN)


def is_shown(printed: str, shown: str) -> bool:
    """Return whether `shown` equals `printed`, except for elided lines."""
    parts = (re.escape(part) for part in shown.split(LEFT_OUT))
    return re.fullmatch("(?:.*\n)*?".join(parts), printed) is not None


def test_only_elided_lines_may_differ() -> None:
    """All lines in the block must be in the output, in this order."""
    printed = "a\nb\nc\nd\n"
    assert is_shown(printed, "a\n[...]\nd\n")
    assert is_shown(printed, "[...]\nb\nc\n[...]\n")
    assert not is_shown(printed, "[...]\nc\nb\n[...]\n")
    assert not is_shown(printed, "b\n[...]\n")
    assert not is_shown(printed, "[...]\nc\n")


@pytest.mark.parametrize(
    ("page", "command", "output"), SHOWN, ids=[f"{page.name}: {how}" for page, how, _ in SHOWN]
)
def test_a_command_prints_the_lines_of_its_block(
    page: Path,
    command: str,
    output: str,
    *,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The output is compared line by line."""
    monkeypatch.chdir(ROOT)
    printed = output_of(command, capsys, tmp_path)
    if LEFT_OUT in output:
        assert is_shown(printed, output), printed
    elif request.config.getoption("--update-golden"):
        block = f"$ fairlead {command}\n"
        page.write_text(page.read_text().replace(f"{block}{output}```", f"{block}{printed}```"))
    else:
        assert printed == output
