"""The documentation site in a real browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.long]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", str(DOCS), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", ["index", "tutorial"])
def test_answers_fit_on_a_page_that_is_1280_pixels_wide(page, site, name):
    """Their lines have up to 120 characters."""
    page.open(site / f"{name}.html", width=1280, height=900)
    assert page.js("document.documentElement.scrollWidth <= innerWidth")
    blocks = "[...document.querySelectorAll('pre')]"
    assert page.js(f"{blocks}.every(e => e.scrollWidth <= e.clientWidth)")


@pytest.mark.parametrize("width", [390, 768, 1024, 1366, 1920])
def test_no_page_scrolls_sideways(page, site, width):
    page.open(site / "what-if.html", width=width, height=900)
    assert page.js("document.documentElement.scrollWidth <= innerWidth")
