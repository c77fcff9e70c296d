"""The HTML report in a real browser: display, pointing, clicking and typing."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from fairlead.cli.main import run
from fairlead.cli.output.console.amount import amount_text, percent_text
from fairlead.cli.output.report_file import write_report
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.report.script import joined_modules
from fairlead.whatif.report.write import asset

pytestmark = pytest.mark.needs("chromium")

STORE = Path(__file__).parents[2] / "examples" / "store" / "store.yaml"
WIDTHS = (1920, 1366, 1024, 768, 480, 380)


def left_edge_of_first_cell(page):
    """Return a point in the first node's cell, as fractions of the canvas (label above, 22 px)."""
    width, height = page.js(
        "(e => [e.clientWidth, e.clientHeight])(document.querySelector('.node-canvas'))"
    )
    return 4 / width, 28 / height


def point_at_first_node(page):
    dx, dy = left_edge_of_first_cell(page)
    page.mouse_over(".node-canvas", dx=dx, dy=dy)


def formatted(page, expression):
    """Return the value of an expression that calls the formatting functions of the page."""
    return page.js(f"(() => {{ {joined_modules(asset, ('format.js',))}; return {expression}; }})()")


def drawn_texts(page, plots):
    """Return the texts that are drawn on the canvases of `plots` when they are drawn again."""
    page.js("""(() => {
        window.drawn = [];
        const draw = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
            window.drawn.push([this.canvas, text]);
            return draw.call(this, text, ...place);
        };
    })()""")
    page.resize(1000, 768)
    page.settle()
    return page.js(
        f"window.drawn.filter(([at]) => at.closest({plots!r})).map(([, text]) => String(text))"
    )


@pytest.mark.parametrize("report", ["small", "outage", "autoscaling"])
def test_every_chart_has_a_text_for_screen_readers(page, reports, report):
    """A canvas says nothing; the map of nodes has an accessible name of its own."""
    page.open(reports / f"{report}.html")
    labels = page.js("""[...document.querySelectorAll("canvas:not(.node-canvas)")].map(
        (canvas) => canvas.closest("[role=img]")?.getAttribute("aria-label") ?? null)""")
    assert len(labels) >= 2
    assert None not in labels


def test_the_histogram_of_nodes_states_its_unit(page, reports):
    """Its axis has the numbers 0 to 90."""
    page.open(reports / "small.html")
    assert page.text(".fill-histogram h4") == "Nodes by share of CPU requested, in percent"


def column(page, table, number):
    """Return the texts of one column of the displayed rows."""
    return page.texts(f"{table} tbody td:nth-child({number})")


@pytest.mark.parametrize(
    "name", ["small", "large", "hostile", "empty", "outage", "queues", "autoscaling"]
)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_report_is_drawn_without_errors(page, reports, name, theme):
    """There is no script error, no blocked style, and no request except for the file."""
    page.open(reports / f"{name}.html", theme=theme)
    assert page.js("document.documentElement.dataset.drawn") == "yes"
    assert page.problems == []
    assert [url for url in page.requests if not url.startswith(("data:", "file:"))] == []
    assert sum(url.startswith("file:") for url in page.requests) == 1


def test_the_page_rounds_as_the_text_output_does(page):
    """Shares and cores halfway between two numbers get the same digit in both outputs."""
    shares = [(part, 8800) for part in range(11, 8789, 11)] + [(7, 2000), (133, 400)]
    cores = range(10_050, 100_000, 50)
    ratios = [part / whole for part, whole in shares]
    assert formatted(page, f"{ratios}.map(percent)") == [percent_text(*one) for one in shares]
    assert formatted(page, f"{list(cores)}.map((one) => quantity(one, 'milli'))") == [
        amount_text("cpu", one) for one in cores
    ]


def test_the_page_writes_durations_as_the_text_output_does(page):
    """The answer's sentences and the page's own figures have one form: 2.5s, 6m05s, 1h02m."""
    lengths = [ms / 1000 for ms in (*range(0, 99_000, 4), 365_500, 3_599_700, 90_061_000)]
    assert formatted(page, f"{lengths}.map(duration)") == [
        for_readers(seconds(length)) for length in lengths
    ]


def test_every_instant_is_a_clock(page, reports):
    """The marks of the time axes are written as the instants in texts and tables are: 0:05:00."""
    page.open(reports / "outage.html")
    marks = drawn_texts(page, "#outage .plot")
    assert "0:05:00" in marks
    assert not [mark for mark in marks if re.search("[smhd]$", mark)]


@pytest.mark.parametrize("report", ["small", "outage"])
@pytest.mark.parametrize("width", WIDTHS)
def test_names_of_the_systems_priority_classes_are_whole(page, reports, width, report):
    """Every cluster has pods with system-node-critical; columns of figures are beside the name."""
    page.open(reports / f"{report}.html", width=width)
    fits = page.js(
        "(name => { name.textContent = 'system-node-critical';"
        " return name.scrollWidth <= name.clientWidth && name.scrollHeight <= name.clientHeight })"
        "(document.querySelector('.legend-name'))"
    )
    assert fits


@pytest.mark.parametrize("width", WIDTHS)
def test_no_name_in_a_table_is_cut(page, reports, width):
    """The end of a pod's name is visible at every width, because it tells replicas apart."""
    page.open(reports / "hostile.html", width=width)
    cut = page.js(
        "[...document.querySelectorAll('.data .link, .kind-pod .clamp, .kind-name .clamp')]"
        ".filter(e => e.scrollHeight > e.clientHeight + 1 && e.clientHeight).length"
    )
    assert cut == 0


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (
            ("ip-10-0-1-2.eu-1.internal", "ip-10-0-1-3.eu-1.internal"),
            ("ip-10-0-1-2", "ip-10-0-1-3"),
        ),
        (("10.0.1.2", "10.0.1.3"), ("10.0.1.2", "10.0.1.3")),
        (("node.a.internal", "node.b.internal"), ("node.a.internal", "node.b.internal")),
    ],
    ids=(
        "host names without the domain",
        "addresses are whole",
        "domains that tell nodes apart stay",
    ),
)
def test_cells_have_the_part_of_a_nodes_name_that_is_unique(page, tmp_path, names, shown):
    """A cell has room for about 15 letters."""
    report = {"kind": "simulate", "title": "Names", "nodes": [{"name": name} for name in names]}
    write_report(tmp_path / "names.html", report)
    page.open(tmp_path / "names.html")
    assert set(shown) <= set(drawn_texts(page, "#nodes"))


def test_a_nodes_name_that_is_too_long_for_its_cell_keeps_its_end(page, tmp_path):
    """Nodes of one pool differ only at the end of their names."""
    names = [
        f"gke-production-europe-general-purpose-pool-5f3b2c1d-{end}" for end in ("x8f2", "k3q9")
    ]
    report = {"kind": "simulate", "title": "Names", "nodes": [{"name": name} for name in names]}
    write_report(tmp_path / "names.html", report)
    page.open(tmp_path / "names.html")
    ends = {text[-4:] for text in drawn_texts(page, "#nodes") if "…" in text}
    assert ends == {"x8f2", "k3q9"}


@pytest.mark.parametrize("width", WIDTHS)
def test_zones_that_differ_only_at_the_end_are_told_apart(page, tmp_path, width):
    """The table shows whole names and whole percentages; the map cuts the middle of a name."""
    zones = [f"northamerica-northeast1-{zone}" for zone in "abcdefgh"]
    resources = {"allocatable": {"cpu": 4000}, "requested": {"cpu": 2345}}
    nodes = [{"name": f"n{at}", "zone": zones[at % 8], **resources} for at in range(640)]
    units = [{"name": "cpu", "unit": "milli", "allocatable": 2560000, "requested": 1500800}]
    report = {"kind": "simulate", "title": "Zones", "nodes": nodes, "resources": units}
    write_report(tmp_path / "zones.html", report)
    page.open(tmp_path / "zones.html", width=width)
    sizes = page.js(
        "[...document.querySelectorAll('#nodes .side, .zones th:first-child')]"
        ".map(e => e.scrollWidth - e.clientWidth)"
    )
    assert max(sizes) <= 0
    labels = [text for text in drawn_texts(page, "#nodes") if text.startswith("n")]
    assert {text[-1] for text in labels} == set("abcdefgh")


def test_a_report_without_a_measured_time_shows_none(page, reports):
    """The worst case of a sweep is reported without the time that it took."""
    page.open(reports / "queues.html")
    assert "Computed in" not in page.text(".facts")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "name", ["small", "large", "wide", "hostile", "empty", "outage", "queues", "autoscaling"]
)
def test_nothing_overflows_the_page(page, reports, name, width):
    """The page never scrolls horizontally; wide content scrolls within its card."""
    page.open(reports / f"{name}.html", width=width)
    assert page.js("document.documentElement.scrollWidth") <= width


def test_hostile_names_are_text(page, reports):
    """HTML in names, titles, rules and reasons is displayed, not interpreted."""
    page.open(reports / "hostile.html")
    page.click(".node-canvas")
    page.click("#pending summary")
    page.click("#tab-evictions")
    assert page.js("document.body.dataset.pwned") is None
    assert page.js("document.querySelectorAll('main img, main script').length") == 0
    assert page.text("h1").startswith("<script>document.body")


def test_the_security_policy_blocks_requests_and_foreign_scripts(page, reports):
    """An injected script could neither run inline nor send requests."""
    page.open(reports / "small.html")
    outcome = page.js(
        "fetch('http://127.0.0.1:9/').then(() => 'sent', () => "
        "performance.getEntriesByType('resource').length ? 'asked' : 'refused')"
    )
    page.js(
        "document.body.append(Object.assign(document.createElement('script'),"
        "{textContent: 'document.body.dataset.ran = 1'}))"
    )
    assert outcome == "refused"
    assert page.js("document.body.dataset.ran") is None
    assert any("Content Security Policy" in problem for problem in page.problems)


def test_the_key_figures_are_at_the_top(page, reports):
    """Placed, pending, preempted and evicted pods, the allocation, and the earlier values."""
    page.open(reports / "small.html")
    shown = page.text("#tile-preempted").split("\n")
    assert shown == ["Preempted", "7", "+7 compared with 0 without the change"]
    assert page.text("#tile-evicted").split("\n")[1] == "3"
    cells = page.texts(".allocation-cell")
    assert [cell.split("\n")[0] for cell in cells] == ["CPU", "Memory", "GPU"]
    assert "of 96 cores" in cells[0]
    assert page.js("document.querySelectorAll('.allocation .before').length") == 3


def test_a_displaced_pod_is_counted_once(page, reports):
    """The pods are 7 preempted, 3 evicted and 5 moved ones; the evicted pods have also moved.

    A sixth pod is only on another node than without the change.
    """
    page.open(reports / "small.html")
    rows = [page.text(f"#tab-{name} .amount") for name in ("preemptions", "evictions", "moved")]
    assert rows == ["7", "3", "6"]
    assert page.text('nav a[href="#changes"] .amount') == "12"


def test_a_report_with_new_pods_says_that_no_pod_was_displaced(page, tmp_path):
    """The new pods are in a table below the title "Displaced pods"."""
    path = tmp_path / "report.html"
    question = ["--scale", "deploy/store/frontend=9"]
    run(["whatif", str(STORE), *question, "--report", str(path), "-o", "json"])
    page.open(path)
    assert page.text("#changes .lead") == "No pod was displaced."
    assert page.text("#tab-placed .amount") == "1"


def test_empty_sections_have_a_message(page, reports):
    """An empty section contains a sentence instead of a table."""
    page.open(reports / "empty.html")
    words = page.text("main")
    for sentence in (
        "No resources were reported.",
        "No time line was recorded.",
        "The cluster has no nodes.",
        "No preemptions.",
        "No pods are pending.",
    ):
        assert sentence in words
    page.click("#tab-evictions")
    assert page.text("#panel-evictions") == "No evictions."
    page.click("#tab-pdb_breaches")
    assert page.text("#panel-pdb_breaches") == "No PodDisruptionBudget was breached."


def test_the_time_line_displays_the_values_at_the_mouse(page, reports):
    """The values follow the mouse over any chart, and return to those at the end."""
    page.open(reports / "small.html")
    assert page.text(".readout caption") == "At the end, 0:10:00"
    page.mouse_over(".u-over", 0, dx=0.5)
    assert page.text(".readout caption") == "At 0:05:00"
    assert page.texts(".readout tbody tr:last-child td")[2:] == ["7", "2"]
    page.mouse_over("h1")
    assert page.text(".readout caption") == "At the end, 0:10:00"


def test_a_number_of_pods_that_does_not_change_is_stated_once(page, tmp_path):
    """Its lowest value and its highest value are the same."""
    timeline = {
        "t_s": [0.0, 60.0],
        "series": [{"priority": 0, "running": [3, 3], "pending": [0, 1]}],
    }
    path = tmp_path / "report.html"
    data = {"kind": "simulate", "title": "t", "timeline": timeline, "virtual_seconds": 60.0}
    write_report(path, data)
    page.open(path)
    assert page.texts(".chart-head span") == ["3 all the time", "at most 1, at 0:01:00"]


def test_the_time_line_begins_at_the_start_of_the_run(page, reports):
    """Until the first pod is created, all counts are 0, in the charts and in the legend."""
    page.open(reports / "late.html")
    assert page.texts(".chart-head span")[0].startswith("at least 0, at 0:00:00; ")
    page.mouse_over(".u-over", 0, dx=0.25)
    assert page.text(".readout caption").startswith("At 0:02:")
    assert set(page.texts(".readout td")) == {"0"}
    page.mouse_over(".u-over", 0, dx=0.75)
    assert page.text(".readout caption").startswith("At 0:07:")
    assert page.texts(".readout tfoot td")[0] != "0"


@pytest.mark.parametrize("section", ["timeline", "outage"])
def test_the_last_label_of_a_time_axis_is_whole(page, reports, section):
    """A label is centred at its time, so the canvas continues for half a label after the end."""
    page.open(reports / "outage.html")
    longest = page.js("""(() => {
        const context = document.createElement("canvas").getContext("2d");
        context.font = "11px system-ui, sans-serif";
        return context.measureText("30d 12:00:00").width;
    })()""")
    after_end = page.js(f"""(() => {{
        const right = (name) =>
            document.querySelector("#{section} " + name).getBoundingClientRect().right;
        return right(".plot canvas") - right(".u-over");
    }})()""")
    assert after_end >= longest / 2


def test_the_time_line_can_be_used_by_keyboard(page, reports):
    """Arrow keys move the cursor if the charts have the focus."""
    page.open(reports / "small.html")
    page.js("document.querySelector('.plots').focus()")
    page.press("Home")
    assert page.text(".readout caption") == "At 0:00:00"
    page.press("ArrowRight")
    assert page.text(".readout caption") == "At 0:00:04"


def test_the_legend_hides_a_priority(page, reports):
    """A priority that is hidden by the legend is removed from the total and from every chart."""
    page.open(reports / "small.html")
    total = "document.querySelectorAll('.readout tfoot td')[2].textContent"
    assert page.js(total) == "7"
    page.click(".readout tbody tr:last-child button")
    assert page.js(total) == "0"
    for number in range(3):
        page.click(f".readout tbody tr:nth-child({number + 1}) button")
    assert page.text(".plots") == "All priorities are hidden."
    page.click(".readout tbody tr:first-child button")
    assert page.js("document.querySelectorAll('.chart').length") == 4


def test_the_displayed_measure_can_be_changed(page, reports):
    """A single measure can be drawn at the full height."""
    page.open(reports / "small.html")
    assert [head.split()[0] for head in page.texts(".chart-head")] == [
        "Running",
        "Pending",
        "Preempted",
        "Evicted",
    ]
    page.click(".timeline [data-value=preempted]")
    assert page.texts(".chart-head strong") == ["Preempted"]
    assert page.texts(".chart-head span") == ["7 in all"]


def test_dragging_zooms_and_a_button_resets_the_zoom(page, reports):
    """Dragging limits all charts to the selected time."""
    page.open(reports / "small.html")
    reset = "document.querySelector('.timeline .toolbar > .quiet').hidden"
    assert page.js(reset) is True
    page.drag(".u-over", 0.25, 0.5)
    assert page.js(reset) is False
    page.mouse_over(".u-over", 1, dx=0.5)
    assert page.text(".readout caption") in {"At 0:03:44", "At 0:03:48"}
    page.click(".timeline .toolbar > .quiet")
    assert page.js(reset) is True


def test_a_click_after_a_zoom_does_not_zoom_again(page, reports):
    """The chart on which the mouse was dragged is gone, and does not react to other clicks."""
    page.open(reports / "small.html")
    page.drag(".u-over", 0.25, 0.5)
    page.click(".timeline .toolbar > .quiet")
    page.click("h1")
    assert page.js("document.querySelector('.timeline .toolbar > .quiet').hidden") is True


def test_the_slider_below_zoomed_charts_covers_their_time(page, reports):
    """The slider has the range of the charts, also after it was moved, and the legend its time."""
    page.open(reports / "small.html")
    slider = """(({min, max, value}) => [min, max, value].map(Number))(
        document.querySelector(".chart-scrubber input")
    )"""
    assert page.js(slider) == [0, 600, 600]
    page.drag(".u-over", 0.25, 0.5)
    assert page.text(".readout caption") == "At the end, 0:10:00"
    page.click(".chart-scrubber input")
    start, end, shown = page.js(slider)
    assert [start, end, shown] == pytest.approx([150, 300, 225], abs=2)
    assert page.text(".readout caption").startswith("At 0:03:4")
    page.click(".timeline .toolbar > .quiet")
    assert page.js(slider) == [0, 600, shown]


def test_a_node_shows_its_pods_on_hover(page, reports):
    """The tooltip has node, resources, and pods with priority and requests."""
    page.open(reports / "small.html")
    assert page.js("document.querySelector('.tooltip').hidden") is True
    point_at_first_node(page)
    words = page.text(".tooltip")
    assert "shop-a-0" in words
    assert "eu-1a" in words
    assert "checkout-critical" in words
    assert "2 CPU · 4 GiB" in words
    page.mouse_over("h1")
    assert page.js("document.querySelector('.tooltip').hidden") is True


def test_a_click_selects_a_node_and_escape_clears_the_selection(page, reports):
    """The pods of the selected node stay displayed beside the map."""
    page.open(reports / "small.html")
    dx, dy = left_edge_of_first_cell(page)
    page.click(".node-canvas", dx=dx, dy=dy)
    page.mouse_over("h1")
    assert page.text(".panel .node-name") == "shop-a-0"
    assert page.js("document.querySelectorAll('.panel .pods tr').length") > 1
    page.press("Escape")
    assert page.texts(".zones tbody th") == ["eu-1a", "eu-1b", "eu-1c"]


def test_nodes_can_be_selected_by_keyboard(page, reports):
    """Arrow keys move between cells, Enter selects the node."""
    page.open(reports / "small.html")
    page.js("document.querySelector('.node-canvas').focus()")
    page.press("ArrowRight")
    page.press("ArrowRight")
    page.press("ArrowLeft")
    page.press("Enter")
    assert page.text(".panel .node-name") == "shop-a-1"
    assert page.text(".panel .badge") == "cordoned"


def test_a_map_of_five_thousand_nodes_fits_the_screen(page, reports):
    """The cells fit the screen of a laptop, and the mouse can point at each of them."""
    page.open(reports / "wide.html")
    assert page.js("document.querySelector('.node-canvas').clientHeight") < 650
    point_at_first_node(page)
    assert page.text(".tooltip .node-name") == "node-0"
    assert "default/busy-0" in page.text(".tooltip")


def test_the_map_is_coloured_by_the_selected_resource(page, reports):
    """Another resource changes the colours and the heading of the map."""
    page.open(reports / "large.html")
    picture = "document.querySelector('.node-canvas').toDataURL()"
    by_cpu = page.js(picture)
    page.click('#nodes [data-value="openb/gpu-milli"]')
    assert page.texts(".zones thead th")[3] == "GPU"
    assert page.js(picture) != by_cpu
    assert "have none" in page.text(".fill-histogram")


def test_a_search_dims_the_other_nodes(page, reports):
    """A pod's name finds its node among 1,523."""
    page.open(reports / "large.html")
    page.type("#nodes input", "openb-node-0042")
    assert page.text("#nodes .toolbar > .note") == "1 node found"
    page.type("#nodes input", "no such thing")
    assert page.text("#nodes .toolbar > .note") == "0 nodes found"


def test_preemptions_can_be_sorted(page, reports):
    """A heading sorts its column, and reverses the order when it is clicked again."""
    page.open(reports / "large.html")
    table = "#panel-preemptions"
    page.click(f"{table} th:nth-child(7) button")
    lowest = [int(text) for text in column(page, table, 7)]
    assert lowest == sorted(lowest)
    page.click(f"{table} th:nth-child(7) button")
    highest = [int(text) for text in column(page, table, 7)]
    assert highest == sorted(highest, reverse=True)
    assert highest[0] > lowest[-1]
    assert page.js(f"document.querySelectorAll('{table} th')[6].ariaSort") == "descending"


def test_preemptions_can_be_filtered_and_are_paginated(page, reports):
    """Text and rule filter the rows; further rows are on further pages."""
    page.open(reports / "large.html")
    table = "#panel-preemptions"
    assert page.text(f"{table} .page-status") == "1–10 of 300"
    page.click(f"{table} .pager button", 1)
    assert page.text(f"{table} .page-status") == "11–20 of 300"
    page.click(f"{table} .facet", 0)
    rule, amount = page.text(f"{table} .facet").split("\n")
    assert set(column(page, table, 6)) == {rule}
    assert page.text(f"{table} .page-status") == f"1–10 of {amount} (of 300)"
    page.type(f"{table} input", "nobody is called so")
    assert page.text(f"{table} tbody") == "No row matches the filter."


def test_a_node_in_a_table_links_to_the_map(page, reports):
    """A node's name in the table of preemptions selects the node on the map."""
    page.open(reports / "large.html")
    node = page.text("#panel-preemptions .kind-node .link")
    page.click("#panel-preemptions .kind-node .link")
    assert page.text(".panel .node-name") == node


def test_tabs_can_be_changed_by_keyboard(page, reports):
    """The arrow keys change the tab."""
    page.open(reports / "small.html")
    page.js("document.querySelector('#tab-preemptions').focus()")
    page.press("ArrowRight")
    assert page.js("document.activeElement.id") == "tab-evictions"
    assert column(page, "#panel-evictions", 5) == ["drained"] * 3
    page.press("ArrowRight")
    assert "shop-a-1" in page.text("#panel-moved")


def test_pending_pods_are_grouped_by_reason(page, reports):
    """Messages that differ only in counts are one group; the largest group lists its pods."""
    page.open(reports / "small.html")
    groups = page.texts("#pending .group-title")
    assert groups == ["Insufficient cpu · Insufficient memory · node(s) were unschedulable"]
    assert page.lines("#pending .meanings dt")[:2] == ["node(s) were unschedulable", "Insufficient"]
    assert len(column(page, "#pending", 1)) == 10
    assert column(page, "#pending", 4)[0].startswith("0/12 nodes are available: ")
    page.type("#pending input", "no such pod")
    assert "No pending pod matches the filter." in page.text("#pending")


def test_reasons_of_the_batch_scheduler_are_those_of_the_default_scheduler(page, tmp_path):
    """kube-batch writes a comma after "available", and "insufficient" in lower case."""
    pending = [
        {"pod": "shop/a", "priority": 0, "since_s": 0, "reason": f"0/9 nodes are available{words}"}
        for words in (", 1 insufficient cpu.", ": 9 Insufficient cpu.")
    ]
    report = {"kind": "whatif", "title": "What if", "pending": pending}
    write_report(tmp_path / "report.html", report)
    page.open(tmp_path / "report.html")
    assert page.texts("#pending .group-title") == ["Insufficient cpu"]
    assert page.lines("#pending .meanings dt") == ["Insufficient"]


@pytest.mark.parametrize("kind", ["whatif", "simulate"])
def test_the_reasons_of_a_verdict_are_on_lines_of_their_own(page, tmp_path, kind):
    """The claim is in large type. A dot inside a name ends no sentence."""
    claim, *reasons = "5 pods of v1.2 a.b/c stay pending.", "3 pods: Too hot.", "2 pods: no room."
    verdict = [{"severity": "bad", "sentence": " ".join((claim, *reasons))}]
    write_report(tmp_path / "report.html", {"kind": kind, "title": "Run", "verdict": verdict})
    page.open(tmp_path / "report.html")
    assert page.text("#verdict > p").split("\n") == [claim, *reasons]


@pytest.mark.parametrize("width", WIDTHS)
def test_lines_do_not_break_inside_a_flag(page, tmp_path, width):
    """A browser may break a line after each hyphen of `--startup-time`."""
    notes = [f"{'x' * length} (--startup-time)." for length in range(60)]
    report = {"kind": "simulate", "title": "Run", "notes": notes}
    write_report(tmp_path / "report.html", report)
    page.open(tmp_path / "report.html", width=width)
    heights = page.js(
        "[...document.querySelectorAll('.note .word:last-child')]"
        ".map(e => Math.round(e.getBoundingClientRect().height))"
    )
    assert len(heights) == len(notes)
    assert len(set(heights)) == 1


@pytest.mark.parametrize(
    ("pending", "pending_before", "sentence"),
    [
        (3, 2, "1 pod waits for 1 reason. 2 other pods are pending without the change, too."),
        (1, 0, "1 pod waits for 1 reason."),
    ],
)
def test_pods_that_are_pending_without_the_change_are_counted(
    page, tmp_path, pending, pending_before, sentence
):
    """The section lists only pods that are pending because of the change."""
    row = {"pod": "shop/a", "priority": 0, "since_s": 0, "reason": "no room"}
    write_report(
        tmp_path / "report.html",
        {
            "kind": "whatif",
            "title": "What if",
            "summary": {"pending": pending},
            "summary_before": {"pending": pending_before},
            "pending": [row],
        },
    )
    page.open(tmp_path / "report.html")
    assert page.text("#pending .lead") == sentence


def test_a_change_without_new_pending_pods_says_so(page, tmp_path):
    """A pod that is pending in both runs is not listed, but counted."""
    summary = {"pending": 1}
    report = {"kind": "whatif", "title": "What if", "summary": summary, "summary_before": summary}
    write_report(tmp_path / "report.html", report)
    page.open(tmp_path / "report.html")
    sentence = "No pod is pending because of the change. 1 pod is pending without the change, too."
    assert sentence in page.text("#pending")


def test_the_theme_follows_the_system_or_the_button(page, reports):
    """It is dark if the system is dark; the button overrides this."""
    background = "getComputedStyle(document.body).backgroundColor"
    page.open(reports / "small.html", theme="dark")
    dark = page.js(background)
    page.open(reports / "small.html", theme="light")
    light = page.js(background)
    assert dark != light
    page.click("#theme")
    assert page.js(background) == light
    page.click("#theme")
    assert page.js(background) == dark
    page.click("#theme")
    assert page.js(background) == light


def test_text_is_legible_in_both_themes(page, reports):
    """Every text has a contrast of at least 4.5 to 1 with its background (WCAG AA)."""
    for theme in ("light", "dark"):
        page.open(reports / "small.html", theme=theme)
        assert page.js(FAINT_TEXTS) == []


FAINT_TEXTS = """
(() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = channels(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !element.checkVisibility() || element.closest(":disabled, script, style")) continue;
    const [a, b] = [channels(getComputedStyle(element).color), behind(element)].map(light);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.push([element.className, element.textContent.slice(0, 30), ratio]);
  }
  return faint;
})()
"""


def test_a_phone_scrolls_to_the_panel_of_a_node(page, tmp_path):
    """The panel is below the map, which may fill the screen."""
    nodes = [{"name": f"worker-{n:02}", "pods": []} for n in range(60)]
    path = tmp_path / "report.html"
    write_report(path, {"kind": "simulate", "title": "t", "nodes": nodes})
    page.open(path, width=390, height=844)
    panel = "document.querySelector('#nodes .panel').getBoundingClientRect()"
    page.js("document.querySelector('.node-canvas').focus()")
    page.press("ArrowRight")
    page.press("Enter")
    assert page.js(f"{panel}.top >= 46 && {panel}.bottom <= innerHeight")
    page.press("Escape")
    page.js("scrollTo(0, 0)")
    page.js("location.hash = '#node=worker-07'")
    page.settle()
    assert page.text("#nodes .node-name") == "worker-07"
    assert page.js(f"{panel}.top >= 46 && {panel}.bottom <= innerHeight")


def test_a_panel_has_the_whole_labels_of_resources(page, tmp_path):
    amounts = {"ephemeral-storage": 2**30, "example.com/accelerators-of-the-newest-kind": 8}
    node = {"name": "worker-00", "allocatable": amounts, "pods": []}
    path = tmp_path / "report.html"
    write_report(path, {"kind": "simulate", "title": "t", "nodes": [node]})
    page.open(path)
    page.js("location.hash = '#node=worker-00'")
    page.settle()
    labels = "[...document.querySelectorAll('#nodes .panel .bars th')]"
    assert page.js(f"{labels}.map(e => e.scrollWidth <= e.clientWidth)") == [True, True]
    page.resize(390, 844)
    page.settle()
    assert page.js(f"{labels}[0].clientHeight") < 48  # "Ephemeral-storage" in two lines
    rights = [
        page.js(f"document.querySelector('#nodes {part}').getBoundingClientRect().right")
        for part in (".panel", ".panel .bars")
    ]
    assert rights[1] < rights[0]


def test_a_phone_shows_every_value_of_a_row(page, reports):
    """Rows are stacked: no value requires scrolling, and each has its heading."""
    page.open(reports / "large.html", width=390, height=844)
    table = "#panel-preemptions .data"
    assert page.js(f"document.querySelector('{table}').scrollWidth") <= 390
    cells = f"[...document.querySelectorAll('{table} tbody td')]"
    assert max(page.js(f"{cells}.map(e => e.getBoundingClientRect().right)")) <= 390
    content = (
        f"getComputedStyle(document.querySelector('{table} tbody .kind-node'), '::before').content"
    )
    assert page.js(content) == '"From"'


def test_a_phone_shows_the_priority_of_a_pod_below_its_name(page, reports):
    """The mark and the name of the priority are on one line, which begins where the pod's does."""
    page.open(reports / "large.html", width=390, height=844)
    cell = "document.querySelector('#panel-preemptions td.kind-pod:has(.of-pod)')"
    edges = ("left", "right", "top", "bottom")
    pod, priority = (
        page.js(f"(b => {list(edges)}.map(e => b[e]))({cell}.querySelector('{part}')"
                ".getBoundingClientRect())")
        for part in (".link", ".of-pod")
    )  # fmt: skip
    assert (priority[0], priority[2] >= pod[3] - 1) == (pod[0], True)
    assert priority[3] - priority[2] < 24


def test_a_phone_shows_the_whole_name_of_a_priority(page, tmp_path):
    """A name may have 253 characters, and no mouse shows the rest of a cut name."""
    name = "-".join(["priority"] * 20)
    row = {"pod": "default/a", "priority": 5, "since_s": 0.0, "reason": "0/1 nodes are available."}
    path = tmp_path / "report.html"
    priorities = [{"priority": 5, "name": name}]
    data = {"kind": "simulate", "title": "t", "pending": [row], "priorities": priorities}
    write_report(path, data)
    page.open(path, width=390, height=844)
    page.click("#pending summary")
    cell = "document.querySelector('#pending td.kind-priority')"
    assert page.js(f"{cell}.scrollWidth <= {cell}.clientWidth && {cell}.clientHeight > 40")


def test_on_a_phone_a_list_sorts_stacked_rows(page, reports):
    """Stacked rows have no column headings, so a list contains them."""
    page.open(reports / "large.html", width=390, height=844)
    table = "#panel-preemptions"
    assert page.js(f"document.querySelector('{table} .data thead').offsetHeight") <= 1
    choose = (
        f"(e => {{ e.value = 'candidates'; e.dispatchEvent(new Event('change')); }})"
        f"(document.querySelector('{table} .sorting'))"
    )
    page.js(choose)
    lowest = [int(text) for text in column(page, table, 7)]
    page.js(choose)
    highest = [int(text) for text in column(page, table, 7)]
    assert lowest == sorted(lowest)
    assert highest[0] > lowest[-1]
    assert page.js(f"document.querySelector('{table} .sorting').value") == ""


def test_every_column_of_preemptions_is_visible_at_a_width_of_1280(page, reports):
    page.open(reports / "large.html", width=1280, height=800)
    scroll = "document.querySelector('#panel-preemptions .scroll')"
    assert page.js(f"{scroll}.scrollWidth <= {scroll}.clientWidth")
    assert page.lines("#panel-preemptions th")[-1].startswith("Candidates")


def test_a_truncated_navigation_bar_fades_at_its_end(page, reports):
    """On a phone the navigation bar is wider than the screen; its ends fade."""
    page.open(reports / "large.html", width=390, height=844)
    ends = "['data-more-before', 'data-more-after']"
    more = f"{ends}.map(end => document.querySelector('nav').hasAttribute(end))"
    assert page.js(more) == [False, True]
    assert "linear-gradient" in page.js("getComputedStyle(document.querySelector('nav')).maskImage")
    page.js("document.querySelector('nav').scrollLeft = 9999")
    page.settle()
    assert page.js(more) == [True, False]
    page.open(reports / "large.html", width=1280, height=800)
    assert page.js(more) == [False, False]


def test_a_link_opens_a_tab_at_its_rows(page, reports):
    """The row is on a later page; clicking the same link again shows it again."""
    page.open(reports / "large.html")
    table = "#panel-preemptions"
    page.click(f"{table} .pager button", 1)
    victim = page.text(f"{table} tbody .link")
    page.js(
        "document.querySelector('#report').prepend(Object.assign(document.createElement('a'), "
        f"{{ id: 'try', href: '#tab=preemptions&row={quote(victim)}', textContent: 'try' }}))"
    )
    for _ in range(2):
        page.click("#try")
        page.settle()
        assert victim in page.text(f"{table} tr.marked")
        assert page.text(f"{table} .page-status") == "11–20 of 300"
        assert (
            0
            <= page.js("document.querySelector('#tab-preemptions').getBoundingClientRect().top")
            < 300
        )
        page.click(f"{table} .pager button", 0)
        page.js("window.scrollTo(0, 0)")


def test_the_url_contains_the_selected_tab(page, reports):
    page.open(reports / "large.html")
    page.click("#tab-evictions")
    assert page.js("location.hash") == "#tab=evictions"


def test_the_recovery_times_over_seeds_have_a_unit(page, tmp_path):
    """The other amounts in these columns are numbers of pods."""
    path = tmp_path / "report.html"
    question = ["--fail-zone", "west-1b", "--for", "20m", "--seeds", "2"]
    run(["whatif", str(STORE), *question, "--report", str(path), "-o", "json"])
    page.open(path)
    page.click("#tab-certainty")
    rows = page.lines("#panel-certainty tbody tr")
    assert "pods all affected run after 2 2 20m01s 20m01s 20m01s 20m01s certain" in rows
    assert "deploy/store/search evicted 2 2 3 3 3 3 certain" in rows
