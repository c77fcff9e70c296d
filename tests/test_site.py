"""The pages in docs/ build as a site, and the commands as a manual page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

DOCS: Final = Path(__file__).parent.parent / "docs"

pytestmark = pytest.mark.long


def build(builder: str, folder: Path) -> None:
    """Run Sphinx; a warning is an error."""
    command = [sys.executable, "-m", "sphinx", "-b", builder, "-W", "-q", str(DOCS), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_site_has_every_page_and_no_broken_link(tmp_path: Path) -> None:
    build("html", tmp_path)
    pages = {path.relative_to(tmp_path).with_suffix("") for path in tmp_path.rglob("*.html")}
    assert {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")} <= pages
    reference = (tmp_path / "commands.html").read_text()
    assert "--max-unavailable" in reference
    assert "fairlead whatif" in reference


def test_the_site_loads_nothing_from_the_network(tmp_path: Path) -> None:
    build("html", tmp_path)
    loading = ('src="http', 'rel="stylesheet" href="http', "@import", "url(http")
    files = (*tmp_path.rglob("*.html"), *tmp_path.rglob("*.css"))
    assert [path for path in files if any(one in path.read_text() for one in loading)] == []


def test_the_manual_page_has_all_commands(tmp_path: Path) -> None:
    build("man", tmp_path)
    text = (tmp_path / "fairlead.1").read_text()
    assert all(name in text for name in ("fairlead whatif", "fairlead explain", "fairlead up"))


def test_make_names_each_page_before_it_is_built() -> None:
    """Sphinx prints nothing for up to a minute."""
    command = ["make", "-n", "site", f"SITE_STAMP={__file__}"]
    done = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=True)
    lines = [one for one in done.stdout.splitlines() if "sphinx" in one or one.startswith("echo")]
    assert [line.split()[0] == "echo" for line in lines] == [True, False, True, False]
