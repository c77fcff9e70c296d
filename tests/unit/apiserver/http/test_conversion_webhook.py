"""Custom resources that a real HTTPS webhook converts; other requests go on meanwhile."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest
from tests.unit.apiserver.conftest import CountedIds
from tests.unit.apiserver.http.test_app import Client
from tests.unit.apiserver.widget import DEFINITIONS, NEW, OLD, Webhook, definition, new, old

from fairlead.apiserver.auth.authentication.token import TokenAuthenticator
from fairlead.apiserver.auth.certificate_authority import new_authority, new_server
from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.http.app import ApiApp
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import ADMIN

REAL_NOW = datetime.now(UTC)  # noqa: TID251 - certificates are checked in real time
WAIT_S = 60


class Handler(BaseHTTPRequestHandler):
    """Answers a review when `server.may_answer` is set; `server.asked` is set at each review."""

    def do_POST(self):
        """Convert the objects of the review."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        self.server.asked.set()
        self.server.may_answer.wait(WAIT_S)
        answer = self.server.webhook.answer_text(body)
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_what):
        """Do not log."""


class Server(ThreadingHTTPServer):
    """A webhook on a local port."""

    daemon_threads = True

    def __init__(self, context):
        super().__init__(("127.0.0.1", 0), Handler)
        self.webhook, self.paths, self.status = Webhook(), [], 200
        self.may_answer, self.asked, self.hung_up = Event(), Event(), Event()
        self.may_answer.set()
        self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def url(self):
        return f"https://127.0.0.1:{self.server_address[1]}/convert"

    def shutdown_request(self, request):
        """Close the connection."""
        super().shutdown_request(request)
        self.hung_up.set()

    def handle_error(self, *_of):
        """Ignore errors, because some tests close connections early."""


@pytest.fixture(scope="module")
def authority():
    return new_authority(REAL_NOW)


@pytest.fixture
def hook(authority, tmp_path):
    """A running webhook, which `authority` has signed."""
    pair = new_server(authority, ["127.0.0.1"], REAL_NOW)
    path = tmp_path / "pair.pem"
    path.write_text(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    with Server(context) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.may_answer.set()
            server.shutdown()
            thread.join()


class Api:
    """An application with the definition of widgets, whose webhook is `hook`."""

    def __init__(self, hook, ca):
        store = Store(CountedIds(), admission=(), registry=API_SERVER)
        server = complete_server(store, clock=lambda: 0, address="127.0.0.1:6443", version="0")
        self.app = ApiApp(server, TokenAuthenticator({"secret": ADMIN}), lambda: 0)
        encoded = base64.b64encode(ca.encode()).decode()
        asyncio.run(self.ask("POST", DEFINITIONS, definition(hook.url, ca=encoded)))

    def client(self, method, url, body=None, content_type="application/json"):
        text = b"" if body is None else json.dumps(body).encode()
        return Client(self.app, method, url, text, content_type=content_type)

    async def ask(self, *arguments, **options):
        """Return (status, body) of the response."""
        client = await self.client(*arguments, **options).run()
        return client.status, json.loads(client.body)


@pytest.fixture
def api(hook, authority):
    return Api(hook, authority.certificate)


def test_objects_are_converted_by_all_verbs(api, hook):
    async def session():
        status, made = await api.ask("POST", OLD, old())
        assert (status, made["spec"]) == (201, {"address": "a:1"})
        _, found = await api.ask("GET", f"{NEW}/w")
        assert found["spec"] == {"host": "a", "port": 1}
        _, listed = await api.ask("GET", OLD)
        assert [item["spec"] for item in listed["items"]] == [{"address": "a:1"}]
        changed = {**made, "spec": {"address": "b:2"}}
        _, found = await api.ask("PUT", f"{OLD}/w", changed)
        assert found["spec"] == {"address": "b:2"}
        merge, patch = "application/merge-patch+json", {"spec": {"address": "c:3"}}
        _, found = await api.ask("PATCH", f"{OLD}/w", patch, content_type=merge)
        assert found["spec"] == {"address": "c:3"}
        apply, applied = "application/apply-patch+yaml", old(address="d:4")
        path = f"{OLD}/w?fieldManager=m&force=true"
        _, found = await api.ask("PATCH", path, applied, content_type=apply)
        assert found["spec"] == {"address": "d:4"}
        path, patch = f"{OLD}/w/status", {"status": {"size": 2}}
        _, found = await api.ask("PATCH", path, patch, content_type=merge)
        assert found["status"] == {"size": 2}
        _, found = await api.ask("GET", f"{NEW}/w")
        assert (found["spec"], found["status"]) == ({"host": "d", "port": 4}, {"replicas": 2})
        status, _ = await api.ask("DELETE", f"{OLD}/w")
        assert status == 200
        assert (await api.ask("GET", f"{OLD}/w"))[0] == 404

    asyncio.run(session())
    assert set(hook.paths) == {"/convert"}


def lines_of(client):
    return [json.loads(line) for line in client.body.splitlines()]


def test_a_watch_sends_converted_events_in_order(api):
    async def watched():
        await api.ask("POST", NEW, new())
        client = api.client("GET", f"{OLD}?watch=1")
        task = asyncio.ensure_future(client.run())
        await client.until(b'"ADDED"')
        for port in range(2, 6):
            patch = {"spec": {"port": port}}
            merge = "application/merge-patch+json"
            await api.ask("PATCH", f"{NEW}/w", patch, content_type=merge)
        await api.ask("DELETE", f"{NEW}/w")
        await client.until(b'"DELETED"')
        client.leave()
        await asyncio.wait_for(task, WAIT_S)
        return lines_of(client)

    events = [(one["type"], one["object"]["spec"]["address"]) for one in asyncio.run(watched())]
    changed = [("MODIFIED", f"a:{port}") for port in range(2, 6)]
    assert events == [("ADDED", "a:1"), *changed, ("DELETED", "a:5")]


def test_other_requests_and_watches_go_on_while_a_slow_webhook_is_called(api, hook):
    async def session():
        await api.ask("POST", NEW, new())
        hook.may_answer.clear()
        hook.asked.clear()
        slow = asyncio.ensure_future(api.ask("GET", f"{OLD}/w"))
        watch = api.client("GET", f"{OLD}?watch=1")
        watching = asyncio.ensure_future(watch.run())
        await asyncio.to_thread(hook.asked.wait, WAIT_S)
        direct = api.client("GET", f"{NEW}?watch=1")
        watching_directly = asyncio.ensure_future(direct.run())
        status, found = await api.ask("GET", f"{NEW}/w")
        assert (status, found["spec"]) == (200, {"host": "a", "port": 1})
        await direct.until(b'"ADDED"')
        assert not slow.done()
        assert watch.body == b""
        hook.may_answer.set()
        assert (await slow)[1]["spec"] == {"address": "a:1"}
        await watch.until(b'"ADDED"')
        for client in (watch, direct):
            client.leave()
        await asyncio.wait_for(asyncio.gather(watching, watching_directly), WAIT_S)

    asyncio.run(session())


@pytest.mark.parametrize("query", ["", "&timeoutSeconds=1"])
def test_a_watch_ends_although_its_webhook_does_not_answer(api, hook, query):
    """It ends when its client leaves, and at its timeout."""

    async def ended():
        await api.ask("POST", NEW, new())
        hook.may_answer.clear()
        hook.asked.clear()
        hook.hung_up.clear()
        client = api.client("GET", f"{OLD}?watch=1{query}")
        task = asyncio.ensure_future(client.run())
        await asyncio.to_thread(hook.asked.wait, WAIT_S)
        if not query:
            client.leave()
        await asyncio.wait_for(task, WAIT_S)
        assert not hook.may_answer.is_set()
        hook.may_answer.set()
        await asyncio.to_thread(hook.hung_up.wait, WAIT_S)
        return client

    assert asyncio.run(ended()).body == b""


def test_a_failed_call_is_an_error_500(api, hook):
    async def session():
        await api.ask("POST", NEW, new())
        hook.status = 503
        status, refused = await api.ask("GET", f"{OLD}/w")
        assert status == 500
        assert refused["message"] == (
            "conversion webhook for example.com/v1, Kind=Widget failed: "
            "the server is currently unable to handle the request"
        )
        client = await api.client("GET", f"{OLD}?watch=1").run()
        (event,) = lines_of(client)
        assert (event["type"], event["object"]["code"]) == ("ERROR", 500)

    asyncio.run(session())


def test_a_certificate_of_another_authority_is_refused(hook):
    other = new_authority(REAL_NOW).certificate
    api = Api(hook, other)

    async def session():
        await api.ask("POST", NEW, new())
        return await api.ask("GET", f"{OLD}/w")

    status, refused = asyncio.run(session())
    assert status == 500
    assert "tls: failed to verify certificate" in refused["message"]
    assert hook.paths == []
