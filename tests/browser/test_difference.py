"""A what-if's report: both runs on the node map, the differences, and the history of a pod."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli.main import run

pytestmark = pytest.mark.needs("chromium")

STORE = Path(__file__).parents[2] / "examples" / "store"
VICTIM = "analytics/reports-54df9554fd-8nb45"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Nodes of one zone are drained, and one node is deleted; the report contains both runs."""
    path = tmp_path_factory.mktemp("difference") / "report.html"
    change = ["--drain", "topology.kubernetes.io/zone=west-1a", "--delete", "node/worker-11"]
    run(["whatif", str(STORE / "store.yaml"), *change, "--report", str(path)])
    return path


@pytest.fixture
def drawn(page, report):
    """The page with this report."""

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
def test_all_three_views_are_drawn_without_errors(drawn, theme):
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


def test_a_node_lists_the_pods_that_were_added_and_removed(drawn):
    page = drawn("#node=worker-00")
    headings = page.lines("#nodes .panel h4")
    assert any(line.startswith("Pods that left (") for line in headings)
    assert not any(line.startswith("Pods that came") for line in headings)
    page = drawn("#node=worker-05")
    assert any(line.startswith("Pods that came (") for line in page.lines("#nodes .panel h4"))


def test_a_deleted_node_is_marked(drawn):
    page = drawn("#node=worker-11")
    side(page, "change")
    assert page.lines("#nodes .panel .badge") == ["deleted"]


def test_the_history_of_a_pod_has_times_and_reasons(drawn):
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


def test_a_url_opens_the_history_of_a_pod(drawn):
    page = drawn(f"#pod={VICTIM}")
    assert page.text(".story h2") == VICTIM
    assert page.lines(".story tr")[0].startswith("0:00:00 Preempted on worker-07 by store/search-")


def test_a_workload_links_to_its_pods(drawn):
    page = drawn("#pod=sts/store/orders-db")
    assert page.text(".story h2") == "sts/store/orders-db"
    assert "3 wanted, 0 ready at the end" in page.text(".story p")
    lines = page.lines(".story tr")
    assert "store/orders-db-1 Not created again: waits for store/orders-db-0" in lines


def test_a_waiting_pod_of_a_workload_has_the_reason_why_it_lost_its_node(drawn):
    page = drawn("#pod=deploy/analytics/reports")
    line = next(line for line in page.lines(".story tr") if line.startswith(VICTIM))
    assert line.startswith(f"{VICTIM} Preempted on worker-07 by store/search-")
    assert ". Pending to the end: 0/" in line


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overflows_the_page(drawn, width):
    page = drawn(f"#pod={VICTIM}", width=width)
    assert page.js("document.documentElement.scrollWidth") <= width
    box = page.js("document.querySelector('.story').getBoundingClientRect().right")
    assert box <= width


# --- the scrubber --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outage(tmp_path_factory):
    """A zone of six nodes fails for twenty minutes."""
    path = tmp_path_factory.mktemp("outage") / "report.html"
    change = ["--fail-zone", "west-1b", "--for", "20m"]
    run(["whatif", str(STORE / "store.yaml"), *change, "--report", str(path)])
    return path


def node_time(page):
    return page.text("#nodes .time-words")


def pinned_pods(page):
    return page.texts("#nodes .panel .pod-name")


def test_the_url_shows_a_node_at_an_instant(page, outage):
    page.open(outage)
    page.js("location.hash = '#node=worker-01'")
    page.settle()
    at_end = pinned_pods(page)
    page.js("location.hash = '#node=worker-01&t=340'")
    page.settle()
    assert node_time(page) == "At 0:05:40"
    assert page.text(".readout caption") == "At 0:05:40"
    assert page.lines("#nodes .panel .badge") == ["out of service"]
    assert "store/frontend-6d58cd5f89-7lx4f" in pinned_pods(page)
    assert "store/frontend-6d58cd5f89-7lx4f" not in at_end


def test_a_click_on_a_chart_moves_the_node_map(page, outage):
    page.open(outage)
    assert node_time(page) == "At the end, 0:20:01"
    page.click("#timeline .u-over", 0, dx=0.25)
    assert node_time(page).startswith(("At 0:04:59", "At 0:05:0"))
    assert page.js("location.hash").startswith("#t=")
    assert page.js("document.querySelectorAll('.time-mark:not([hidden])').length") >= 4
    assert page.problems == []


def test_the_keys_of_the_time_slider_move_between_changes(page, outage):
    page.open(outage)
    page.js("document.querySelector('#nodes .scrubber').focus()")
    page.press("Home")
    assert node_time(page) == "At 0:00:00"
    page.press("ArrowRight")
    assert page.js("document.querySelector('.scrubber').getAttribute('aria-valuetext')") == (
        node_time(page)
    )
    assert node_time(page) != "At 0:00:00"
    page.press("End")
    assert node_time(page) == "At the end, 0:20:01"
    assert page.js("location.hash") == ""


def test_the_map_without_the_change_shows_no_effect_of_the_change(page, outage):
    page.open(outage)
    page.js("location.hash = '#node=worker-01&t=400'")
    page.settle()
    side(page, "before")
    assert page.lines("#nodes .panel .badge") == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_tooltip_of_any_node_stays_inside_the_window(page, outage, width):
    page.open(outage, width=width)
    box = "document.querySelector('.tooltip').getBoundingClientRect()"
    for dx, dy in ((0.02, 0.3), (0.5, 0.6), (0.98, 0.9), (0.9, 0.3)):
        page.mouse_over(".node-canvas", dx=dx, dy=dy)
        if page.js("document.querySelector('.tooltip').hidden"):
            continue
        left, right, top, bottom = page.js(f"(b => [b.left, b.right, b.top, b.bottom])({box})")
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= 768


def test_the_places_of_displaced_pods_include_those_of_deleted_nodes(drawn):
    """The pods of the deleted node were neither preempted nor evicted."""
    page = drawn()
    rows = page.js("[...document.querySelectorAll('#changes [role=tab] .amount')].length")
    assert rows > 1
    displaced = page.text('nav a[href="#changes"] .amount')
    assert page.text("#changes .lead").startswith(f"Of {displaced} displaced pods, at the end: ")


@pytest.mark.parametrize("width", [1280, 1366])
def test_the_table_of_node_pools_fits_the_page(drawn, width):
    page = drawn(width=width)
    page.click("#tab-node_pools")
    table = "document.querySelector('#panel-node_pools .scroll')"
    assert page.js(f"{table}.scrollWidth <= {table}.clientWidth")


def test_a_run_without_time_has_no_chart(page, tmp_path):
    """Nothing happens after the cordon, so the run ends at once."""
    path = tmp_path / "cordon.html"
    change = ["--cordon", "worker-03", "--report", str(path)]
    run(["whatif", str(STORE / "store.yaml"), *change])
    page.open(path)
    assert "The run ended at its start" in page.text("#timeline")
    assert page.js("document.querySelectorAll('#timeline .chart').length") == 0
    assert page.problems == []
