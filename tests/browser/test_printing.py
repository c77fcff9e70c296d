"""Printed reports in a real browser."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlead.cli.main import run

pytestmark = pytest.mark.needs("chromium")

STORE = Path(__file__).parents[2] / "examples" / "store" / "store.yaml"


@contextmanager
def printing(page):
    """Lay the page out for paper, as the browser does before it prints."""
    page.js("dispatchEvent(new Event('beforeprint'))")
    page.send("Emulation.setEmulatedMedia", media="print")
    try:
        yield
    finally:
        page.send("Emulation.setEmulatedMedia", media="")
        page.js("dispatchEvent(new Event('afterprint'))")


@pytest.mark.parametrize("name", ["large", "outage"])
def test_a_printed_report_is_light_expanded_and_as_wide_as_the_paper(page, reports, name):
    page.open(reports / f"{name}.html", theme="dark")
    page.js("localStorage.setItem('fairlead-report-theme', 'dark')")
    shown = (
        "[...document.querySelectorAll('[role=tabpanel]')].filter(e => e.offsetHeight > 0).length"
    )
    closed = "document.querySelectorAll('main details:not([open])').length"
    before = [page.js(shown), page.js(closed), page.js("document.querySelectorAll('tr').length")]
    with printing(page):
        assert page.js("getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"
        assert page.js("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
        filled = "document.querySelectorAll('[role=tabpanel]:not([data-empty])').length"
        assert page.js(shown) == page.js(filled) >= before[0]
        assert page.js(closed) == 0
        edges = (
            "[...document.querySelectorAll('main canvas, main .data, main .card')]"
            ".filter(e => !e.closest('dialog'))"
            ".map(e => Math.floor(e.getBoundingClientRect().right))"
        )
        assert 500 < max(page.js(edges)) <= 701
    after = [page.js(shown), page.js(closed), page.js("document.querySelectorAll('tr').length")]
    assert (after[0], after[1]) == (before[0], before[1])
    page.js("localStorage.clear()")  # other tests start with the theme of the system


def test_a_printed_table_does_not_break_short_names_of_nodes(page, reports):
    """In a table with many columns, the columns of nodes have room for `worker-09` or `pending`."""
    page.open(reports / "small.html", width=718)
    with printing(page):
        cells = "[...document.querySelectorAll('#panel-preemptions td.kind-node')]"
        assert min(page.js(f"{cells}.map(e => e.clientWidth)")) >= 62


def test_a_printed_table_breaks_neither_durations_nor_words(page, tmp_path):
    """The values of narrow columns, such as `13m31s` and `breached`, stay on one line."""
    path = tmp_path / "report.html"
    question = ["--fail-zone", "west-1b", "--for", "20m"]
    run(["whatif", str(STORE), *question, "--report", str(path), "-o", "json"])
    page.open(path, width=718)
    with printing(page):
        cells = "[...document.querySelectorAll('#panel-workloads td.kind-word span')]"
        assert "13m31s" in page.texts("#panel-workloads td.kind-word")
        assert page.js(f"{cells}.map(e => e.getClientRects().length)") == [1] * 8
        # Chromium repeats the headings on each page only if they contain no button box.
        assert page.js("getComputedStyle(document.querySelector('.data th button')).display") == (
            "contents"
        )


def test_a_printed_report_has_neither_buttons_nor_words_about_the_mouse(page, reports):
    """A reader of paper cannot click."""
    page.open(reports / "autoscaling.html", width=718)
    with printing(page):
        words = page.text("main")
        controls = "[...document.querySelectorAll('main :is(.choice button, select, input)')]"
        seen = page.js(f"{controls}.filter(e => e.checkVisibility()).map(e => e.outerHTML)")
    assert seen == []
    assert "One cell per node." in words
    assert "Point at a cell" not in words
    assert "Click a chart" not in words
    assert "Point at a cell" in page.text("main")


def test_the_sum_of_a_printed_legend_is_only_below_its_last_row(page, reports):
    """A browser repeats the foot of a table on every page."""
    page.open(reports / "small.html", width=718)
    with printing(page):
        display = page.js("getComputedStyle(document.querySelector('.readout tfoot')).display")
    assert display == "table-row-group"


def test_a_printed_table_has_room_for_to_the_end(page, tmp_path):
    path = tmp_path / "report.html"
    question = ["--scale", "deploy/store/frontend=40"]
    run(["whatif", str(STORE), *question, "--report", str(path), "-o", "json"])
    page.open(path, width=718)
    with printing(page):
        cells = "[...document.querySelectorAll('#panel-workloads td.kind-word')]"
        texts = page.js(f"{cells}.map(e => [e.innerText, e.firstChild.getClientRects().length])")
    assert ["to the end", 1] in texts
