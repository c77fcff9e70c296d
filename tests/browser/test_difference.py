"""A what-if's report: both runs on the node map, what differs, and the story of a pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli.main import run

pytestmark = pytest.mark.needs("chromium")

STORE = Path(__file__).parents[2] / "examples" / "store"
VICTIM = "analytics/reports-54df9554fd-8nb45"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Nodes of one zone are drained, one node is deleted; the report knows both runs."""
    path = tmp_path_factory.mktemp("difference") / "report.html"
    change = ["--drain", "topology.kubernetes.io/zone=west-1a", "--delete", "node/worker-11"]
    run(["whatif", str(STORE / "store.yaml"), *change, "--report", str(path)])
    return path


@pytest.fixture
def drawn(page, report):
    """The page with that report."""

    def open_at(fragment="", **options):
        page.open(report, **options)
        if fragment:
            page.js(f"location.hash = {fragment!r}")
            page.settle()
        return page

    return open_at


def zones(page):
    return page.lines("#nodes .zones tbody tr")


def side(page, name):
    page.click(f"#nodes [data-value='{name}']")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_draws_without_complaint_in_all_three_views(drawn, theme):
    page = drawn(theme=theme)
    for name in ("before", "change", "after"):
        side(page, name)
    assert page.problems == []


def test_the_map_shows_the_nodes_of_either_run(drawn):
    page = drawn()
    assert [line.split()[:3] for line in zones(page)] == [
        ["west-1a", "6", "6"],
        ["west-1b", "5", "0"],
    ]
    side(page, "before")
    assert [line.split()[:3] for line in zones(page)] == [
        ["west-1a", "6", "0"],
        ["west-1b", "6", "0"],
    ]


def test_nodes_are_grouped_by_any_label(drawn):
    page = drawn()
    page.js(
        "(e => {e.value = 'pool'; e.dispatchEvent(new Event('change'))})"
        "(document.querySelector('#nodes select'))"
    )
    page.settle()
    assert page.text("#nodes .zones th") == "pool"
    assert {line.split()[0] for line in zones(page)} == {"large", "small"}


def test_a_node_says_which_pods_left_and_came(drawn):
    page = drawn("#node=worker-00")
    headings = page.lines("#nodes .panel h4")
    assert any(line.startswith("Left (") for line in headings)
    assert not any(line.startswith("Came") for line in headings)
    page = drawn("#node=worker-05")
    assert any(line.startswith("Came (") for line in page.lines("#nodes .panel h4"))


def test_a_deleted_node_is_marked(drawn):
    page = drawn("#node=worker-11")
    side(page, "change")
    assert page.lines("#nodes .panel .badge") == ["deleted"]


def test_the_story_of_a_pod_has_its_times_and_reasons(drawn):
    page = drawn()
    page.click("#changes .link")
    name = page.text(".story h2")
    assert name.count("/") == 1
    assert page.js("location.hash").startswith("#pod=")
    assert any(
        text.startswith(("Preempted on ", "Evicted from ")) for text in page.texts(".story td")
    )
    page.press("Escape")
    assert page.js("document.querySelector('.story').open") is False
    assert page.js("location.hash") == ""


def test_an_address_opens_the_story(drawn):
    page = drawn(f"#pod={VICTIM}")
    assert page.text(".story h2") == VICTIM
    assert page.lines(".story tr")[0].startswith("0:00:00 Preempted on worker-07 by store/search-")


def test_a_workload_leads_to_its_pods(drawn):
    page = drawn("#pod=sts/store/orders-db")
    assert page.text(".story h2") == "sts/store/orders-db"
    assert "3 wanted, 0 ready at the end" in page.text(".story p")
    told = page.lines(".story tr")
    assert "store/orders-db-1 Not created again: waits for store/orders-db-0" in told


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_sticks_out(drawn, width):
    page = drawn(f"#pod={VICTIM}", width=width)
    assert page.js("document.documentElement.scrollWidth") <= width
    box = page.js("document.querySelector('.story').getBoundingClientRect().right")
    assert box <= width
