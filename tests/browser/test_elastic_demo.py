"""The report of `make demo-elastic` in a real browser."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from tests.browser.conftest import Page

pytestmark = pytest.mark.needs("chromium")

REPORT = Path(__file__).parents[2] / "examples" / "elastic" / "report.py"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two runs, with the longest texts of a real one."""
    report = runpy.run_path(str(REPORT))
    waiting = {"bound": 1415, "still_waiting": 12, "median_s": 0, "p95_s": 111, "longest_s": 19740}
    days = [
        report["Day"](name, steps, steps, [(0, 14), (19, 120)], waiting)
        for name, steps in (
            ("fixed nodes", [(0, 15)]),
            ("Cluster Autoscaler", [(0, 3), (10, 16)]),
        )
    ]
    path = tmp_path_factory.mktemp("demo") / "elastic.html"
    path.write_text(report["page"](days), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [360, 500, 768, 1100])
def test_every_number_is_visible_without_scrolling_sideways(
    page: Page, demo: Path, width: int
) -> None:
    page.open(demo, width=width)
    assert (
        page.js(
            "[document.documentElement, ...document.querySelectorAll('body *')]"
            ".filter(e => e.scrollWidth > e.clientWidth && e.clientWidth > 0).length"
        )
        == 0
    )
    assert page.js(
        "[...document.querySelectorAll('td')]"
        ".every(e => e.getBoundingClientRect().right <= innerWidth)"
    )


@pytest.mark.parametrize("width", [360, 500, 768, 1100])
def test_the_texts_of_charts_stay_legible(page: Page, demo: Path, width: int) -> None:
    page.open(demo, width=width)
    heights = page.js(
        "[...document.querySelectorAll('svg text')]"
        ".map(e => e.getBoundingClientRect().height).filter(h => h > 0)"
    )
    assert min(heights) >= 10
