"""docs/fairlead.1 is the output of tools/man_page.py."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "man_page.py"))


def test_the_page_describes_all_commands(request):
    if request.config.getoption("--update-golden"):
        TOOL["main"]()
    assert TOOL["PAGE"].read_text() == TOOL["man_page"]()


def test_the_wheel_has_the_page_in_the_search_path_of_man():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    places = build["targets"]["wheel"]["shared-data"]
    assert places == {"docs/fairlead.1": "share/man/man1/fairlead.1"}
