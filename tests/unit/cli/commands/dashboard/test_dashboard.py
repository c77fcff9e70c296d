"""The dashboard of a served cluster: sessions, displayed state, and actions."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.auth.certificate_authority import new_authority
from fairlead.apiserver.endpoints.audit import AuditBackend
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.request import ADMIN
from fairlead.cli.commands.dashboard import live_recording
from fairlead.cli.commands.dashboard.live_recording import LiveRecording
from fairlead.cli.commands.dashboard.local_dashboard import LocalDashboard, objects_of, observe
from fairlead.cli.commands.dashboard.question import Questions, change_words
from fairlead.cli.commands.dashboard.sessions import Sessions
from fairlead.cli.options.controller import NodeFlags
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.error import InputError
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import LocalCluster, LocalOptions
from fairlead.worlds.local.server.serve import ServeOptions, served

START = parse_timestamp("2026-01-01T00:00:00Z")
KEY = new_authority(datetime(2026, 1, 1, tzinfo=UTC)).key


class Browser:
    """A client with cookies that sends the same headers as the dashboard's page."""

    def __init__(self, session, dashboard, cluster, audited, api):
        self.session = session
        self.link = dashboard.new_link()
        self.dashboard = dashboard
        self.cluster = cluster
        self.audited = audited
        self.api = api
        self.origin = self.link.partition("/login")[0]

    async def get(self, path, **headers):
        """Return status, headers and text; redirects are not followed."""
        url = path if path.startswith("http") else self.origin + path
        async with self.session.get(url, headers=headers, allow_redirects=False) as answer:
            return answer.status, answer.headers, await answer.text()

    async def post(self, path, body, **headers):
        """Return status and text."""
        sent = {"Origin": self.origin, "Content-Type": "application/json", **headers}
        data = json.dumps(body)
        async with self.session.post(self.origin + path, data=data, headers=sent) as answer:
            return answer.status, await answer.text()

    async def log_in(self):
        status, _, _ = await self.get(self.link)
        assert status == 303

    async def state(self):
        """Return the first state of a new stream."""
        async with self.session.get(f"{self.origin}/live") as answer:
            assert answer.content_type == "text/event-stream"
            line = await answer.content.readuntil(b"\n\n")
            return json.loads(line.removeprefix(b"data: "))


@asynccontextmanager
async def serving():
    """A cluster of three nodes with a dashboard: (dashboard, cluster, audit lines, address)."""
    audited = []
    with (
        socket.create_server(("127.0.0.1", 0)) as own,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        dashboard = LocalDashboard(own, Path("kubeconfig"))
        options = LocalOptions(nodes=3, logging=dashboard.logging(None))
        cluster = LocalCluster(options, LocalClock(START, paused=True), {"t": ADMIN}, KEY)
        door = ServeOptions(
            listening=listening,
            authenticate=cluster.tokens,
            audit=AuditBackend(audited.append),
            companion=dashboard,
        )
        async with served(cluster, door):
            yield dashboard, cluster, audited, f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(scope="module")
def visiting():
    """Runs `test(browser)` with a new browser; all tests share one cluster."""
    loop, stack = asyncio.new_event_loop(), AsyncExitStack()
    running = loop.run_until_complete(stack.enter_async_context(serving()))

    async def visit(test):
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            await test(Browser(session, *running))

    yield lambda test: loop.run_until_complete(asyncio.wait_for(visit(test), 60))
    loop.run_until_complete(stack.aclose())
    loop.close()


# --- who gets in ---------------------------------------------------------------------------------


def test_a_link_works_once(visiting):
    async def test(browser):
        status, headers, _ = await browser.get(browser.link)
        assert (status, headers["Location"]) == (303, "/")
        assert "HttpOnly; SameSite=Strict" in headers["Set-Cookie"]
        status, headers, text = await browser.get("/")
        assert status == 200
        assert "connect-src 'self'" in text
        assert (headers["X-Frame-Options"], headers["Cache-Control"]) == ("DENY", "no-store")
        browser.session.cookie_jar.clear()
        status, _, text = await browser.get(browser.link)
        assert status == 403
        assert "fairlead dashboard" in text

    visiting(test)


def test_nothing_is_served_without_a_session(visiting):
    async def test(browser):
        for path in ("/", "/live", "/reports/1", "/other"):
            assert (await browser.get(path))[0] == 401
        for path in ("/clock", "/node", "/ask", "/explain"):
            assert (await browser.post(path, {}))[0] == 401
        assert (await browser.get("/", Cookie="fairlead-1=wrong"))[0] == 401

    visiting(test)


def test_another_host_name_is_refused(visiting):
    async def test(browser):
        await browser.log_in()
        port = browser.origin.rpartition(":")[2]
        assert (await browser.get("/", Host=f"evil.example:{port}"))[0] == 421
        assert (await browser.get("/", Host=f"localhost:{port}"))[0] == 200
        assert (await browser.get(browser.dashboard.new_link(), Host="evil.example"))[0] == 421

    visiting(test)


@pytest.mark.parametrize("body", [b'"\xff"', b"[" * 16_000, b"{", b""])
def test_a_body_that_is_not_json_is_refused(visiting, body):
    async def test(browser):
        await browser.log_in()
        headers = {"Origin": browser.origin, "Content-Type": "application/json"}
        url = f"{browser.origin}/node"
        async with browser.session.post(url, data=body, headers=headers) as answer:
            assert answer.status == 400
            assert "error" in await answer.json()

    visiting(test)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_a_page_of_another_site_cannot_change_anything(visiting, headers, status):
    async def test(browser):
        await browser.log_in()
        body = {"node": "node-3", "action": "cordon"}
        assert (await browser.post("/node", body, **headers))[0] == status
        assert "unschedulable" not in browser.cluster.store.get(NODE, "", "node-3")["spec"]

    visiting(test)


def test_the_audit_log_has_changes_but_no_secrets(visiting):
    async def test(browser):
        await browser.log_in()
        await browser.post("/node", {"node": "node-1", "action": "cordon"})
        audited = b"".join(browser.audited).decode()
        assert "/api/v1/nodes/node-1" in audited
        secrets = [one.value for one in browser.session.cookie_jar]
        assert not any(secret in audited for secret in (*secrets, browser.link[-20:]))

    visiting(test)


def test_an_administrator_gets_further_links_from_the_api(visiting):
    async def test(browser):
        url = f"{browser.api}/fairlead/dashboard"
        async with browser.session.post(url) as answer:
            assert answer.status == 403
        headers = {"Authorization": "Bearer t"}
        async with browser.session.post(url, headers=headers) as answer:
            link = (await answer.json())["url"]
        assert link != browser.link
        assert (await browser.get(link))[0] == 303

    visiting(test)


def test_only_the_newest_links_and_sessions_are_valid():
    sessions = Sessions("c")
    codes = [sessions.new_code() for _ in range(9)]
    assert sessions.log_in(codes[0]) is None
    cookie = sessions.log_in(codes[1])
    assert sessions.log_in(codes[1]) is None
    assert sessions.is_open(cookie.partition(";")[0])
    assert not sessions.is_open("c=x")
    assert not sessions.is_open("")


@pytest.mark.parametrize("other", ['a={"x":1}', "x y=1", "name", "user=J\xf6", "c=old"])
def test_cookies_of_other_servers_on_the_machine_do_not_end_a_session(other):
    sessions = Sessions("c")
    cookie = sessions.log_in(sessions.new_code()).partition(";")[0]
    assert sessions.is_open(f"{other}; {cookie}")
    assert sessions.is_open(f"{cookie}; {other}")
    assert not sessions.is_open(other)


# --- what it shows and does ----------------------------------------------------------------------


def test_the_state_has_nodes_pods_and_the_clock(visiting):
    async def test(browser):
        await browser.log_in()
        state = await browser.state()
        assert (state["clock"]["speed"], state["clock"]["paused"]) == (1.0, True)
        assert state["page"]["kind"] == "live"
        assert state["page"]["nodes"]["name"] == ["node-1", "node-2", "node-3"]
        before = browser.cluster.clock.now()
        assert (await browser.post("/clock", {"advance": "5m"}))[0] == 200
        assert browser.cluster.clock.now() == before + seconds(300)

    visiting(test)


def test_a_stream_sends_the_state_again_when_it_has_changed(visiting):
    async def test(browser):
        await browser.log_in()
        async with browser.session.get(f"{browser.origin}/live") as answer:
            await answer.content.readuntil(b"\n\n")
            await browser.post("/node", {"node": "node-2", "action": "cordon"})
            # The effects of earlier tests may be sent first.
            unschedulable = []
            while 1 not in unschedulable:
                event = await answer.content.readuntil(b"\n\n")
                if event != b": alive\n\n":
                    state = json.loads(event.removeprefix(b"data: "))
                    unschedulable = state["page"]["nodes"]["unschedulable"]

    visiting(test)


def test_a_page_that_is_opened_later_shows_the_current_time(visiting):
    """This also holds if nothing has changed since another page was opened."""

    async def test(browser):
        await browser.log_in()
        clock = browser.cluster.clock
        clock.control(paused=False)
        try:
            before = (await browser.state())["clock"]["now"]
            await asyncio.sleep(1.1)
            assert (await browser.state())["clock"]["now"] > before
        finally:
            clock.control(paused=True)

    visiting(test)


def test_a_drain_evicts_pods_and_reports_refused_evictions(visiting):
    async def test(browser):
        store, now = browser.cluster.store, browser.cluster.clock.now()
        spec = {"nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]}
        for name in ("free", "guarded", "ended"):
            metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
            manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            created = store.create(manifest, now)
        store.update_status(POD, created, {**created, "status": {"phase": "Succeeded"}}, now)
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
        }
        store.create(budget, now)
        await browser.log_in()
        await browser.post("/clock", {"advance": "5s"})
        status, text = await browser.post("/node", {"node": "node-1", "action": "drain"})
        assert status == 200
        message = json.loads(text)["message"]
        assert message.startswith("node-1 is cordoned, 2 pods evicted. Refused: default/guarded: ")
        await browser.post("/clock", {"advance": "5s"})
        assert [pod["metadata"]["name"] for pod in store.list(POD)] == ["guarded"]
        # Soon after a slow update, a new stream begins with the state before it.
        async with browser.session.get(f"{browser.origin}/live") as answer:
            while event := await answer.content.readuntil(b"\n\n"):
                if json.loads(event.removeprefix(b"data: "))["page"]["summary"]["pods"] == 1:
                    break

    visiting(test)


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/node", {"node": "none", "action": "cordon"}, 'nodes "none" not found'),
        ("/node", {"node": "node-1", "action": "burn"}, "Invalid enum value 'burn'"),
        ("/clock", {"advance": "never"}, "advance: "),
        ("/explain", {"pod": "--help"}, "pod: --help: must be NAMESPACE/NAME"),
        ("/explain", {"pod": "default/none"}, "explain: "),
        ("/ask", {"change": ""}, "must begin with an option"),
        ("/ask", {"change": "--apply /etc/passwd"}, "change: --apply: must be one of"),
    ],
)
def test_invalid_input_is_refused_in_one_line(visiting, path, body, error):
    async def test(browser):
        await browser.log_in()
        status, text = await browser.post(path, body)
        assert status == 400
        assert error in json.loads(text)["error"]

    visiting(test)


def test_a_what_if_of_the_present_state_has_a_report(visiting):
    async def test(browser):
        await browser.log_in()
        status, text = await browser.post("/ask", {"change": "--drain node-1"})
        answer = json.loads(text)
        assert status == 200, text
        assert answer["findings"][0]["sentence"]
        status, _, text = await browser.get(answer["report"])
        assert status == 200
        assert "--drain node-1" in text
        assert (await browser.get("/reports/2"))[0] == 404

    visiting(test)


@pytest.mark.parametrize(
    "words", ["--report /tmp/x", "--plugin=evil.py", "/etc/passwd", "--context prod", "-o json"]
)
def test_a_change_cannot_name_files_or_clusters(words):
    with pytest.raises(InputError):
        change_words(words)


def test_changes_while_the_clock_is_advanced_are_recorded_at_their_times():
    """The clock shows the new time only at the end of an advance, or of a part of it."""

    async def test():
        async with (
            serving() as running,
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
        ):
            browser = Browser(session, *running)
            await browser.log_in()
            await browser.post("/node", {"node": "node-1", "action": "stop"})
            await browser.post("/clock", {"advance": "10m"})
            return (await browser.state())["page"]["outage"]["nodes"]["columns"]

    failed = asyncio.run(test())
    assert (failed["node"], failed["quiet_s"], failed["unready_s"]) == (["node-1"], [0.0], [50.0])


def test_evictions_by_clients_are_recorded_once():
    """A drain evicts a pod with the eviction API; no controller reports this eviction."""

    async def test():
        async with (
            serving() as running,
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
        ):
            browser = Browser(session, *running)
            await browser.log_in()
            metadata = {"name": "p", "namespace": "default"}
            spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "node-1"}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            browser.cluster.store.create(pod, browser.cluster.clock.now())
            await browser.post("/clock", {"advance": "10s"})
            assert (await browser.post("/node", {"node": "node-1", "action": "drain"}))[0] == 200
            await browser.post("/clock", {"advance": "1m"})
            return (await browser.state())["page"]

    page = asyncio.run(test())
    found = page["evictions"]["columns"]
    assert (found["pod"], found["node"], found["to"]) == (["default/p"], ["node-1"], ["gone"])
    assert (found["t_s"], found["why"]) == ([10.0], ["eviction API"])
    assert page["pdb_breaches"]["length"] == 0


def test_a_recording_restarts_if_no_page_is_open(monkeypatch):
    """The cluster may run for days, and the dashboard stores its recording."""
    monkeypatch.setattr(live_recording, "SAMPLES_MAX", 3)
    cluster = LocalCluster(LocalOptions(nodes=1), LocalClock(START, paused=True), {}, KEY)
    recording = LiveRecording("Local cluster", cluster.clock, lambda: objects_of(cluster), None)
    cluster.store.subscribe(lambda change: observe(recording, change, cluster.now()))
    for number in range(20):
        cluster.clock.jump_to(START + seconds(number))
        metadata = {"name": f"p{number}", "namespace": "default"}
        spec = {"containers": [{"name": "c", "image": "i"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        cluster.store.create(pod, cluster.clock.now())
    assert recording.revision >= 20
    assert len(recording._recorder.counts.samples) <= 3 + 1
    recording.close()


@pytest.mark.parametrize(
    ("flags", "after"),
    [
        pytest.param(NodeFlags(), "5m51s", id="50 s until the node is Unknown, then 300 s"),
        pytest.param(NodeFlags(node_monitor_grace_period="10s"), "5m11s", id="10 s, then 300 s"),
    ],
)
def test_what_ifs_follow_the_flags_of_the_node_controllers(tmp_path, flags, after):
    size = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    status = {"allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"}
    pod = {"name": "p", "namespace": "default", "ownerReferences": [{**owner, "controller": True}]}
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    items = [
        *({"kind": "Node", "metadata": {"name": name}, "status": status} for name in ("n1", "n2")),
        {"kind": "Pod", "metadata": pod, "spec": spec, "status": {"phase": "Running"}},
    ]
    dump = tmp_path / "dump.json"
    dump.write_text(
        json.dumps({"kind": "List", "items": [{"apiVersion": "v1", **one} for one in items]})
    )
    questions = Questions(lambda _folder: [str(dump)], flags.as_options())
    answer = asyncio.run(questions.ask({"change": "--fail-node n1"}))
    assert answer["findings"][-1]["sentence"].endswith(f"runs again after {after}.")
    explanation = asyncio.run(questions.explain({"pod": "default/p"}))
    assert "n1" in explanation["text"]


def test_an_explanation_names_the_cluster_and_no_temporary_file():
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    size = {"cpu": "4", "memory": "8Gi", "pods": "1"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}
    items = [
        {"kind": "Node", "metadata": {"name": "n"}, "status": {**status, "allocatable": size}},
        *(
            {
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"containers": [container], "nodeName": node},
            }
            for name, node in (("p", ""), ("q", "n"))
        ),
    ]

    def arguments(folder):
        path = folder / "cluster.json"
        listed = [{"apiVersion": "v1", **one} for one in items]
        path.write_text(json.dumps({"kind": "List", "items": listed}))
        return [str(path)]

    questions = Questions(arguments, source=("--kubeconfig", "my config"))
    found = asyncio.run(questions.explain({"pod": "default/p"}))
    command = "fairlead whatif --kubeconfig 'my config' --add-nodes 1 --like n"
    assert command in found["text"].replace(" \\\n", " ").replace("    ", "")
