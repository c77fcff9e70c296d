"""The report that compares several answers, and its links to the report of each answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli.main import run

pytestmark = pytest.mark.needs("chromium")

STORE = Path(__file__).parents[2] / "examples" / "store" / "store.yaml"
ZONE = "topology.kubernetes.io/zone=west-1a"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("comparison") / "report.html"
    changes = ["--change", f"at once:--drain {ZONE}",
               "--change", f"<b>in turns</b>:--drain {ZONE} --max-unavailable 1"]  # fmt: skip
    run(["whatif", str(STORE), *changes, "--report", str(path), "-o", "json"])
    return path


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_comparison_is_drawn_without_errors_within_the_page_width(
    page, report, theme, width, height
):
    page.open(report, width=width, height=height, theme=theme)
    assert page.problems == []
    assert page.requests == [report.as_uri()]
    assert page.texts(".compared .name") == ["at once", "<b>in turns</b>"]
    assert page.text(".best .badge") == "best outcome"
    assert page.js("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1280, 760, 390])
def test_long_names_of_alternatives_stay_in_their_places(page, tmp_path, width):
    """A name without spaces, such as the path of a file, is broken over lines."""
    path = tmp_path / "report.html"
    changes = ["--change", f"a:--drain {ZONE}", "--change", f"{'x' * 200}:--cordon {ZONE}"]
    run(["whatif", str(STORE), *changes, "--report", str(path), "-o", "json"])
    page.open(path, width=width, height=800)
    assert page.js("document.documentElement.scrollWidth") <= width
    assert page.js("""[...document.querySelectorAll("#workloads thead a")].every((link) =>
        link.getBoundingClientRect().right <= link.parentElement.getBoundingClientRect().right
    )""")


def test_a_printed_comparison_fits_on_the_paper_and_does_not_break_its_headings(page, report):
    page.open(report, width=718)
    page.js("dispatchEvent(new Event('beforeprint'))")
    page.send("Emulation.setEmulatedMedia", media="print")
    headings = "[...document.querySelectorAll('#alternatives thead th.kind-count')]"
    assert page.js(f"Math.max(...{headings}.map(e => e.clientHeight))") < 80
    right = "[...document.querySelectorAll('.compared')].map(e => e.getBoundingClientRect().right)"
    assert max(page.js(right)) <= 701
    page.send("Emulation.setEmulatedMedia", media="")
    page.js("dispatchEvent(new Event('afterprint'))")


def test_a_name_links_to_its_report_and_the_report_links_back(page, report):
    page.open(report)
    page.follow(".compared .name", 1)
    assert page.text("h1") == f"What if: --drain {ZONE} --max-unavailable 1"
    assert page.texts("nav.alternatives [aria-current]") == ["<b>in turns</b>"]
    page.follow("nav.alternatives a", 1)
    assert page.text("h1") == f"What if: --drain {ZONE}"
    page.follow("nav.alternatives a", 0)
    assert page.text("h1") == "2 answers side by side"
    assert page.problems == []
