"""The dashboard in a real browser: live state, actions, what-ifs and explanations."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

STORE = Path(__file__).parents[2] / "examples" / "store" / "store.yaml"

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.long]


@contextmanager
def cluster(kubeconfig, *inputs):
    """Run a cluster with a stopped clock; yield the link of its dashboard."""
    command = [sys.executable, "-m", "fairlead.cli", "up", "--paused", "--dashboard"]
    command += [*inputs, "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()  # the path of the kubeconfig
        yield re.search(r"http://\S+", process.stdout.readline())[0]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        process.stdout.close()


def until(page, expression):
    """Wait until a JavaScript expression is true."""
    for _ in range(600):
        if page.js(expression):
            page.settle()
            return
        time.sleep(0.1)  # noqa: TID251 - for a browser and a server
    raise AssertionError(expression)


@contextmanager
def opened(page, link):
    """Open the dashboard at `link`, and leave it before its server ends."""
    page.resize(1280, 800)
    page.send("Page.navigate", url="about:blank")
    page.problems.clear()
    page.requests.clear()
    page.send("Page.navigate", url=link)
    until(page, "document.documentElement?.dataset.drawn === 'yes'")
    yield page
    page.send("Page.navigate", url="about:blank")  # a page would not find its server


@pytest.fixture
def dashboard(page, tmp_path):
    """The dashboard of a cluster with a store's nodes and pods."""
    with cluster(tmp_path / "kubeconfig", "--snapshot", str(STORE)) as link, opened(page, link):
        yield page


def press_button(page, place, text):
    """Click the button with this text."""
    buttons = page.texts(f"{place} button")
    page.click(f"{place} button", buttons.index(text))


def advance_a_minute(page):
    """Advance the clock by a minute, and wait until the page shows the new time.

    While the clock advances, the page shows times in between.
    """
    now = "Date.parse(document.querySelector('.clock-now').innerText)"
    begin = page.js(now)
    press_button(page, ".clock-buttons", "1m")
    until(page, f"{now} >= {begin} + 60000")


def test_a_node_is_stopped_and_its_pods_are_evicted(dashboard):
    page = dashboard
    page.js("location.hash = '#node=worker-01'")
    until(page, "document.querySelector('.node-actions') !== null")
    advance_a_minute(page)
    press_button(page, ".node-actions", "Stop")
    until(page, "document.querySelector('.node-actions').innerText.includes('has stopped')")
    assert page.text("#status .verdict").startswith("Every pod has a node")
    press_button(page, ".clock-buttons", "5m")
    until(page, "document.querySelector('#status .verdict').innerText.includes('out of service')")
    assert page.text("#status .verdict") == "1 node is out of service: worker-01."
    press_button(page, ".clock-buttons", "5m")
    until(page, "!document.querySelector('#tile-evicted .tile-value').innerText.startsWith('0')")
    page.mouse_over("h1")
    until(page, "document.querySelector('#nodes .panel .badge')?.innerText === 'out of service'")
    page.js("document.querySelector('#nodes .scrubber').focus()")
    page.press("Home")
    until(page, "document.querySelector('#nodes .panel .badge') === null")
    assert page.text("#nodes .time-words") == "At 0:00:00"
    page.press("End")
    until(page, "document.querySelector('#nodes .time-words').innerText === 'Now'")
    assert page.problems == []


@pytest.mark.needs("kubectl")
def test_preempted_pods_are_deleted_and_their_replacements_are_pending(dashboard, tmp_path):
    """A pod of priority class `customer-facing` preempts pods on a full cluster."""
    page = dashboard
    run_pod = ["kubectl", "--kubeconfig", str(tmp_path / "kubeconfig"), "run", "big", "--image=a"]
    resources = {"requests": {"cpu": "6"}}
    container = {"name": "big", "image": "a", "resources": resources}
    spec = {"priorityClassName": "customer-facing", "containers": [container]}
    overrides = json.dumps({"apiVersion": "v1", "spec": spec})
    subprocess.run([*run_pod, "--overrides", overrides], check=True, capture_output=True)
    press_button(page, ".clock-buttons", "1m")
    until(page, "document.querySelector('#status .findings').innerText.includes(': all gone, and')")
    [found] = page.texts("#status .findings li")
    pods = r"(\d+) pods of deploy/analytics/reports were displaced"
    waiting = r"(\d+) other pods of the same workload wait for a node"
    displaced, successors = re.fullmatch(f"{pods}: all gone, and {waiting}.", found).groups()
    assert displaced == successors
    assert page.text("#status .verdict").startswith(
        f"{successors} pods of deploy/analytics/reports"
    )


def test_pods_of_a_stopped_node_are_replaced_under_other_names(dashboard):
    """The old pods terminate on the stopped node; no sentence says that they have a node again."""
    page = dashboard
    page.js("document.dispatchEvent(new CustomEvent('shownode', {detail: 'worker-03'}))")
    press_button(page, ".node-actions", "Stop")
    until(page, "document.querySelector('#status .verdict').innerText.includes('out of service')")
    press_button(page, ".clock-buttons", "5m")
    press_button(page, ".clock-buttons", "1m")
    until(page, "document.querySelector('#status').innerText.includes('all replaced')")
    page.mouse_over("h1")
    until(page, "document.querySelector('#outage .tiles')?.innerText.includes('Evicted\\n2')")
    until(page, "document.querySelector('#outage .tiles').innerText.includes('new pods\\n2')")
    found = page.texts("#status .findings li")[-1]
    assert (
        found
        == "2 pods of deploy/store/frontend, deploy/store/search were displaced: all replaced."
    )
    tiles = dict(text.split("\n")[:2] for text in page.texts("#outage .tile"))
    assert (tiles["Back as new pods"], tiles["Not back"]) == ("2", "1")
    assert "at the end" not in page.text("main").lower()


@pytest.mark.needs("kubectl")
def test_deleted_nodes_do_not_count(dashboard, tmp_path):
    """A node that was cordoned and deleted is not cordoned, not in service and not suggested."""
    page = dashboard
    kubectl = ["kubectl", "--kubeconfig", str(tmp_path / "kubeconfig")]
    get = [*kubectl, "get", "nodes", "-o", "name"]
    listed = subprocess.run(get, check=True, capture_output=True, text=True).stdout.split()
    first, *others = sorted(name.removeprefix("node/") for name in listed)
    subprocess.run([*kubectl, "cordon", first], check=True, capture_output=True)
    until(page, "document.querySelector('#status').innerText.includes('cordoned')")
    subprocess.run([*kubectl, "delete", "node", first], check=True, capture_output=True)
    until(page, "!document.querySelector('#status').innerText.includes('cordoned')")
    assert page.lines("nav a")[1] == f"Nodes{len(others)}"
    assert page.texts(".suggestion")[0] == f"--drain {others[0]}"
    subprocess.run([*kubectl, "delete", "node", *others], check=True, capture_output=True)
    until(page, "document.querySelector('nav a:nth-child(2)').innerText === 'Nodes0'")
    assert "--drain" not in page.text("#status")


@pytest.mark.needs("kubectl")
def test_the_first_sentence_has_the_most_frequent_reasons_of_pending_pods(dashboard, tmp_path):
    """Two pods are too large, one has a scheduling gate, and no scheduler handles one."""
    page = dashboard
    large = {"containers": [{"name": "c", "image": "a", "resources": {"requests": {"cpu": "99"}}}]}
    small = {"containers": [{"name": "c", "image": "a"}]}
    specs = {
        "large-0": large,
        "large-1": large,
        "gated": {**small, "schedulingGates": [{"name": "example.com/hold"}]},
        "other": {**small, "schedulerName": "other"},
    }
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        for name, spec in specs.items()
    ]
    create = ["kubectl", "--kubeconfig", str(tmp_path / "kubeconfig"), "create", "-f", "-"]
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    subprocess.run(create, input=manifest, text=True, check=True, capture_output=True)
    press_button(page, ".clock-buttons", "10s")
    gated = "Scheduling is blocked due to non-empty scheduling gates"
    reasons = f". 2 pods: Insufficient cpu. 1 pod: {gated}. 1 pod: other reasons."
    # The page may show the first pods before the others are created.
    until(page, f"document.querySelector('#status .verdict').innerText.endsWith('{reasons}')")
    assert page.text("#status .verdict").startswith("4 pods of pod/default/")
    page.js("location.hash = '#pod=default/other'")
    until(page, "document.querySelector('.story')?.open")
    assert page.lines(".story tr") == ["0:00:00 Pending now"]


def test_a_what_if_runs_and_its_report_opens(dashboard):
    page = dashboard
    page.click(".suggestion")
    assert page.js("document.querySelector('.ask-field').value") == "--drain worker-00"
    press_button(page, "#ask", "Ask")
    until(page, "document.querySelector('.ask-answer a') !== null")
    assert page.texts(".ask-answer li") != []
    page.send("Page.navigate", url=page.js("document.querySelector('.ask-answer a').href"))
    until(page, "document.querySelector('#verdict') !== null")
    assert page.problems == []


def test_a_pod_is_explained(dashboard):
    page = dashboard
    page.js("location.hash = '#pod=store/orders-db-0'")
    until(page, "document.querySelector('.story')?.open")
    press_button(page, ".story", "Explain")
    until(page, "!document.querySelector('.explanation').hidden")
    assert "worker-00" in page.text(".explanation")
    page.press("Escape")
    assert page.js("document.querySelector('.story').open") is False


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_overflows_the_page_and_nothing_else_is_loaded(dashboard, width):
    page = dashboard
    page.resize(width, 844)
    page.settle()
    assert page.js("document.documentElement.scrollWidth") <= width
    origins = {url.split("/")[2] for url in page.requests if url.startswith("http")}
    assert len(origins) == 1


def test_the_time_line_appears_when_time_has_passed(dashboard):
    """One instant has no length to draw."""
    page = dashboard
    assert page.text("#timeline .nothing") == "No time has passed yet."
    advance_a_minute(page)
    page.mouse_over("h1")
    until(page, "document.querySelector('#timeline canvas') !== null")
    assert page.texts("#timeline .chart-head span") == ["51 all the time"]


def test_a_cluster_without_nodes_has_a_warning_and_no_empty_list(page, tmp_path):
    with cluster(tmp_path / "kubeconfig", "--nodes", "0") as link, opened(page, link):
        assert page.text("#status .verdict") == "The cluster has no nodes."
        assert page.js("document.querySelector('#status .verdict').className") == "verdict warning"
        assert page.text("#status") == "The cluster has no nodes."
