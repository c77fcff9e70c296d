"""The code blocks of docs/plugins.md, docs/batch.md and docs/python-api.md can be run.

The blocks of a page are run in order, in one folder and one namespace. A block whose first line is
`# NAME` is also written to that file, for later commands. Commands of `sh` blocks are run line by
line; they must have one of the expected exit codes.
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
from fairlead.whatif.configuration.plugin_source import GROUP, find_class

ROOT: Final = Path(__file__).parent.parent
GUIDES: Final = (ROOT / "docs" / "plugins.md", ROOT / "docs" / "batch.md")
PAGES: Final = (*GUIDES, ROOT / "docs" / "python-api.md")
each_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE: Final = re.compile(r"# ([\w.]+\.(?:py|yaml|toml))\n")
GUIDE: Final = "guide"
IS_RUN: Final = {"python", "sh", "yaml", "toml"}


def blocks(path: Path) -> list[tuple[int, str, str]]:
    """(line in the page, language, text) of every block."""
    page = path.read_text()
    return [
        (page.count("\n", 0, found.start(2)), found[1], found[2]) for found in BLOCK.finditer(page)
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory of a reader, with the examples; imported modules are removed."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if name == GUIDE or str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@each_page
def test_every_block_can_be_run(path: Path) -> None:
    """Every block has a language that the test can run, and all blocks of the guides are found."""
    languages = {language for _, language, _ in blocks(path)}
    assert languages <= IS_RUN
    assert path not in GUIDES or {"python", "sh", "yaml"} <= languages


@each_page
def test_all_blocks_of_a_guide_run_without_errors(path: Path, folder: Path) -> None:
    """The blocks are run from the first to the last."""
    module = sys.modules[GUIDE] = ModuleType(GUIDE)
    for line, language, text in blocks(path):
        if named := FILE.match(text):
            (folder / named[1]).write_text(text)
        match language:
            case "python":
                # Line numbers are those of the page, so that a failure shows the place.
                code = compile("\n" * line + text, str(path), "exec")
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
    """Check that the package's entry points exist under their names."""
    for name, value in project["project"]["entry-points"][GROUP].items():
        assert vars(find_class(value))["name"] == name
