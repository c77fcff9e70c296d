"""The figures in docs/images/explanation are the output of tools/figures.py and match the pages."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "explanation"
FIGURES = runpy.run_path(str(ROOT / "tools" / "figures.py"))


@pytest.mark.parametrize("name", FIGURES["FIGURES"])
def test_a_figure_equals_the_output_of_its_run(name, request):
    path = FIGURES["FOLDER"] / f"{name}.svg"
    drawn = FIGURES["figure"](name)
    if request.config.getoption("--update-golden"):
        path.write_text(drawn)
    assert path.read_text() == drawn


@pytest.mark.parametrize("name", FIGURES["FIGURES"])
def test_no_line_of_an_event_crosses_a_name_in_a_bar_or_the_label_of_an_event(name):
    drawn = (FIGURES["FOLDER"] / f"{name}.svg").read_text()
    lines = [
        tuple(map(float, one))
        for one in re.findall(r'class="mark" d="M([\d.]+) ([\d.]+)V([\d.]+)"', drawn)
    ]
    texts = re.findall(r'<text class="(?:bar|what)?" x="([\d.]+)" y="([\d.]+)">([^<]*)<', drawn)
    assert texts
    for x, y, text in texts:
        begin, end = float(x), float(x) + FIGURES["CHARACTER"] * len(text)
        over = [at for at, top, bottom in lines if begin < at < end and top < float(y) < bottom]
        assert over == [], text


@pytest.mark.parametrize("name", FIGURES["FIGURES"])
def test_a_page_shows_its_figure_and_its_scenario(name):
    text = (PAGES / f"{name}.md").read_text()
    assert f"](../images/explanation/{name}.svg)" in text
    assert f"docs/explanation/scenarios/{name}.yaml" in text


@pytest.mark.parametrize("name", FIGURES["FIGURES"])
def test_times_in_a_page_are_in_its_figure(name):
    """Instants have the form 1:45; each is the start or end of a bar, or has a mark."""
    page = (PAGES / f"{name}.md").read_text()
    drawn = (FIGURES["FOLDER"] / f"{name}.svg").read_text()
    times = set(re.findall(r"(?<![\d:])\d{1,2}:\d\d(?![\d:])", page))
    assert times
    assert {time for time in times if not re.search(rf"(?<![\d:]){time}(?![\d:])", drawn)} == set()
