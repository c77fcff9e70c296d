"""docs/fairlead.1 is what tools/man_page.py writes."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "man_page.py"))


def test_the_page_is_that_of_the_commands(request):
    if request.config.getoption("--update-golden"):
        TOOL["main"]()
    assert TOOL["PAGE"].read_text() == TOOL["man_page"]()


def test_the_wheel_has_the_page_where_man_looks_for_it():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    places = build["targets"]["wheel"]["shared-data"]
    assert places == {"docs/fairlead.1": "share/man/man1/fairlead.1"}
