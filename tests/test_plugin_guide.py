"""docs/plugins.md does what it says: its blocks are run in order, in one folder and one namespace.

A block whose first line is `# NAME` is also written to that file, for the commands further down.
Commands of `sh` blocks are run line by line; they must end with what a run may end with.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from fairlead.cli import exit_code, main
from fairlead.whatif.plugin_source import GROUP, find_class

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "plugins.md"
BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE: Final = re.compile(r"# ([\w.]+\.(?:py|yaml|toml))\n")
IS_RUN: Final = {"python", "sh", "yaml", "toml"}


def blocks() -> list[tuple[int, str, str]]:
    """(line in the page, language, text) of every block."""
    page = PAGE.read_text()
    return [
        (page.count("\n", 0, found.start(2)), found[1], found[2]) for found in BLOCK.finditer(page)
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory of a reader, with the examples; nothing stays imported."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = set(sys.modules)
    yield tmp_path
    for name in [name for name in sys.modules if name not in known]:
        del sys.modules[name]


def test_every_block_can_be_run() -> None:
    """No block stands there that nobody tries."""
    languages = [language for _, language, _ in blocks()]
    assert set(languages) == IS_RUN
    assert languages.count("python") > 10


def test_the_guide_line_by_line(folder: Path) -> None:
    """From the first line to the last."""
    module = ModuleType("guide")
    sys.modules["guide"] = module
    for line, language, text in blocks():
        if named := FILE.match(text):
            (folder / named[1]).write_text(text)
        match language:
            case "python":
                # The numbers of lines are those of the page, so that a failure says where.
                code = compile("\n" * line + text, str(PAGE), "exec")
                exec(code, vars(module))
            case "sh":
                run_commands(text)
            case "toml":
                check_entry_points(tomllib.loads(text))


def run_commands(text: str) -> None:
    """Run each `fairlead ...` of a shell block."""
    for command in text.splitlines():
        program, *arguments = shlex.split(command)
        assert program == "fairlead", command
        assert main.run(arguments) in (exit_code.SUCCESS, exit_code.DIFFERENCE), command


def check_entry_points(project: dict[str, Any]) -> None:
    """What the package would offer is there, under its own name."""
    for name, value in project["project"]["entry-points"][GROUP].items():
        assert vars(find_class(value))["name"] == name
