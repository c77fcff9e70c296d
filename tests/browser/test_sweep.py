"""The report of a sweep in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli.main import run

pytestmark = pytest.mark.needs("chromium")

SCENARIO = Path(__file__).parents[2] / "examples" / "priorities" / "scenario.yaml"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Two cases: without a failure, and with a failed node."""
    folder = tmp_path_factory.mktemp("sweep") / "out"
    run(["sweep", str(SCENARIO), "--lose", "node@5m", "--out", str(folder)])
    return folder / "report.html"


@pytest.mark.parametrize("width", [360, 500, 760, 1280])
def test_the_distributions_are_visible_without_scrolling_sideways(page, report, width):
    page.open(report, width=width)
    table = "document.querySelector('.measures').closest('section')"
    assert page.js(f"{table}.scrollWidth <= {table}.clientWidth")
    assert page.js("document.documentElement.scrollWidth <= innerWidth")
    assert page.js("document.querySelector('.measures svg').getBoundingClientRect().width") > 100
    assert page.problems == []


def test_a_printed_report_shows_every_column_of_the_cases(page, report):
    """Paper cannot be scrolled sideways."""
    page.open(report, width=718)
    page.send("Emulation.setEmulatedMedia", media="print")
    columns = "[...document.querySelectorAll('th')].map(e => e.getBoundingClientRect().right)"
    assert max(page.js(columns)) <= 701
    page.send("Emulation.setEmulatedMedia", media="")
