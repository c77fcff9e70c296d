"""Credentials that expire, are refused or are rotated while requests are sent."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from fairlead.apiserver.auth.certificate_authority import new_authority, new_client, new_server
from fairlead.client import exec_plugin
from fairlead.client.connection import ConnectionConfig, ExecPlugin
from fairlead.client.credentials import Credentials
from fairlead.client.error import ConnectionConfigError, RequestError
from fairlead.client.kubeconfig import Kubeconfig
from fairlead.client.rest_client import ApiRequest, RestClient

VERSION = "client.authentication.k8s.io/v1"
GET = ApiRequest("GET", "/api/v1/pods")
POST = ApiRequest("POST", "/api/v1/pods", b"{}")
EPOCH = 1_000.0


class Clock:
    def __init__(self):
        self.now = EPOCH

    def __call__(self):
        return self.now


class Plugin:
    """A credential plugin: the n-th run prints the token tn, valid for `seconds` of the clock.

    From run `hanging_from` on, it prints nothing and does not end.
    """

    def __init__(self, folder, clock, seconds=0, hanging_from=None, failing_from=None):
        self._clock, self._seconds, self._folder = clock, seconds, folder
        self._hanging_from, self._failing_from = hanging_from, failing_from
        self._calls = folder / "calls"
        self.write()

    @property
    def runs(self):
        return len(self._calls.read_text()) if self._calls.exists() else 0

    def write(self):
        """Set the expiration that the next runs print, by the current time."""
        status = {"token": "TOKEN"}
        if self._seconds:
            expires = datetime.fromtimestamp(self._clock() + self._seconds, UTC)
            status["expirationTimestamp"] = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
        text = json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status})
        hangs = "" if self._hanging_from is None else f"if n > {self._hanging_from}: sleep(600)"
        fails = "" if self._failing_from is None else f"if n > {self._failing_from}: exit(3)"
        script = (
            "from time import sleep\nfrom pathlib import Path\n"
            f"open({str(self._calls)!r}, 'a').write('x')\n"
            f"n = len(Path({str(self._calls)!r}).read_text())\n"
            f"{hangs}\n{fails}\n"
            f"print({text!r}.replace('TOKEN', f't{{n}}'))\n"
        )
        (self._folder / "plugin.py").write_text(script)

    @property
    def config(self):
        return ExecPlugin(sys.executable, VERSION, (str(self._folder / "plugin.py"),))


class Server:
    """A server that accepts the tokens in `accepted`, and records received tokens."""

    def __init__(self, *accepted):
        self.accepted = accepted
        self.seen = []

    async def handle(self, request):
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.seen.append(token)
        await asyncio.sleep(0.05)
        if self.accepted and token not in self.accepted:
            return web.json_response({"message": "Unauthorized"}, status=401)
        return web.json_response({})


@asynccontextmanager
async def serving(handle, context=None):
    """Yield the URL of a server."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        scheme = "http" if context is None else "https"
        yield f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def ask(server, plugin, clock, work):
    """Return the result of `work` for a client of `server` with the credentials of `plugin`."""

    async def run():
        async with serving(server.handle) as url:
            config = ConnectionConfig(name="context x", server=url, exec_plugin=plugin.config)
            credentials = Credentials(config, clock)
            async with RestClient(config, credentials=credentials) as client:
                return await work(client)

    return asyncio.run(run())


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - nothing sets an event
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def no_plugin_remains():
    yield
    exec_plugin._kill_plugins()
    exec_plugin._RUNNING.clear()


@pytest.fixture
def clock():
    return Clock()


def test_a_plugin_runs_again_before_its_credential_expires(tmp_path, clock):
    """Requests use the old credential until the plugin has printed the new one."""
    server, plugin = Server(), Plugin(tmp_path, clock, seconds=900)

    async def work(client):
        await client.exchange(GET, 60)
        clock.now += 815
        plugin.write()
        assert (await client.exchange(GET, 60)).is_success
        await until(lambda: plugin.runs == 2 and client._credentials._execution is None)
        assert (await client.exchange(GET, 60)).is_success

    ask(server, plugin, clock, work)
    assert server.seen == ["t1", "t1", "t2"]


def test_requests_continue_while_a_plugin_hangs(tmp_path, clock):
    """The event loop is not blocked, and the credential is used until it expires."""
    server, plugin = Server(), Plugin(tmp_path, clock, seconds=900, hanging_from=1)

    async def work(client):
        await client.exchange(GET, 60)
        clock.now += 815
        for request in (GET, POST, GET):
            assert (await client.exchange(request, 60)).is_success
        await until(lambda: plugin.runs == 2)
        clock.now += 86
        waiting = asyncio.create_task(client.exchange(GET, 60))
        for _ in range(10):  # the event loop runs meanwhile
            await asyncio.sleep(0.01)
        assert not waiting.done()
        waiting.cancel()
        return await client.exchange(GET, 0.3)

    answer = ask(server, plugin, clock, work)
    assert (answer.status, plugin.runs, server.seen) == (0, 2, ["t1"] * 4)
    assert answer.message.endswith("the credential plugin has not ended yet")


def test_a_watch_waits_for_the_plugin_no_longer_than_its_timeout(tmp_path, clock):
    plugin = Plugin(tmp_path, clock, hanging_from=0)

    async def work(client):
        async for _ in client.stream(GET.path, {}, 0.3):
            pass

    with pytest.raises(RequestError, match="the credential plugin has not ended yet"):
        ask(Server(), plugin, clock, work)


def test_a_failed_plugin_runs_again_before_the_credential_expires(tmp_path, clock):
    server, plugin = Server(), Plugin(tmp_path, clock, seconds=900, failing_from=1)

    async def work(client):
        await client.exchange(GET, 60)
        clock.now += 815
        for runs in (2, 3):
            assert (await client.exchange(GET, 60)).is_success
            assert (await client.exchange(GET, 60)).is_success
            await until(lambda runs=runs: plugin.runs == runs)
            await until(lambda: client._credentials._execution is None)
            clock.now += 10

    ask(server, plugin, clock, work)


def test_a_plugin_that_has_never_worked_is_an_error_of_the_configuration(tmp_path, clock):
    plugin = Plugin(tmp_path, clock, failing_from=0)
    with pytest.raises(ConnectionConfigError, match="failed with exit code 3"):
        ask(Server(), plugin, clock, lambda client: client.exchange(GET, 60))


def test_a_plugin_that_has_worked_before_may_fail_for_a_while(tmp_path, clock):
    """Requests fail until the plugin works again, but do not run it all the time."""
    server, plugin = Server(), Plugin(tmp_path, clock, seconds=900, failing_from=1)

    async def work(client):
        await client.exchange(GET, 60)
        clock.now += 901
        failed = [await client.exchange(GET, 60) for _ in range(3)]
        with pytest.raises(RequestError, match="failed with exit code 3"):
            await client.get(GET.path)
        with pytest.raises(RequestError, match="failed with exit code 3"):
            async for _ in client.stream(GET.path, {}, 60):
                pass
        runs, plugin._failing_from = plugin.runs, None
        clock.now += 1
        plugin.write()
        return failed, runs, await client.exchange(GET, 60)

    failed, runs, answer = ask(server, plugin, clock, work)
    assert [one.status for one in failed] == [0, 0, 0]
    assert all("failed with exit code 3" in one.message for one in failed)
    assert (runs, answer.status, server.seen) == (2, 200, ["t1", "t3"])


def test_simultaneously_refused_requests_run_the_plugin_once(tmp_path, clock):
    server, plugin = Server("t2"), Plugin(tmp_path, clock)

    async def work(client):
        return await asyncio.gather(*(client.exchange(GET, 60) for _ in range(8)))

    answers = ask(server, plugin, clock, work)
    assert all(one.is_success for one in answers)
    assert plugin.runs == 2


def test_a_server_that_refuses_every_credential_does_not_run_the_plugin_each_time(tmp_path, clock):
    server, plugin = Server("none"), Plugin(tmp_path, clock)

    async def work(client):
        return [(await client.exchange(GET, 60)).status for _ in range(5)]

    assert ask(server, plugin, clock, work) == [401] * 5
    assert plugin.runs == 2


def test_a_credential_that_is_refused_again_is_renewed_again(tmp_path, clock):
    """The plugin may print a cached old credential; pauses between runs double up to 10 s."""
    server, plugin = Server("t3"), Plugin(tmp_path, clock)

    async def work(client):
        refused = await client.exchange(GET, 60)
        clock.now += 1
        renewed = await client.exchange(GET, 60)
        server.accepted = ("none",)
        runs = []
        for _ in range(40):
            clock.now += 1
            await client.exchange(GET, 60)
            runs.append(plugin.runs)
        return refused.status, renewed.status, runs

    refused, renewed, runs = ask(server, plugin, clock, work)
    assert (refused, renewed) == (401, 200)
    pauses = [at for at in range(1, 40) if runs[at] > runs[at - 1]]
    assert pauses == [1, 5, 13, 23, 33]


def test_a_credential_that_seems_expired_is_used_for_a_while(tmp_path, clock):
    """This machine's clock is an hour ahead."""
    server, plugin = Server(), Plugin(tmp_path, clock, seconds=-3_600)

    async def work(client):
        for _ in range(5):
            await client.exchange(GET, 60)

    ask(server, plugin, clock, work)
    assert plugin.runs == 1


def test_a_plugin_is_killed_when_the_process_ends(tmp_path, clock):
    plugin = Plugin(tmp_path, clock, hanging_from=0)

    async def work():
        credentials = Credentials(
            ConnectionConfig(name="x", server="https://x", exec_plugin=plugin.config), clock
        )
        waiting = asyncio.create_task(credentials.wait())
        await until(lambda: plugin.runs == 1)
        (process,) = exec_plugin._RUNNING
        exec_plugin._kill_plugins()
        with pytest.raises(ConnectionConfigError, match="failed with exit code -9"):
            await waiting
        return process.poll()

    assert asyncio.run(work()) == -9


def test_a_token_file_is_read_again_when_the_clock_was_set_back(tmp_path, clock):
    file = tmp_path / "token"
    file.write_text("one")
    used = Credentials(ConnectionConfig(name="x", server="https://x", token_file=str(file)), clock)
    used.headers()
    file.write_text("two")
    clock.now -= 86_400
    assert used.headers() == [("Authorization", "Bearer two")]


# --- certificates --------------------------------------------------------------------------

NOW = datetime.now(UTC)  # noqa: TID251 - OpenSSL checks certificates in real time
DAY = timedelta(days=1)
AUTHORITY, OTHER_AUTHORITY = new_authority(NOW), new_authority(NOW)


def server_context(folder, authority=AUTHORITY, now=NOW):
    pair = new_server(authority, ("127.0.0.1",), now)
    file = folder / "server.pem"
    file.write_text(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=AUTHORITY.certificate)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(file)
    return context


async def name_of_client(request):
    subject = dict(one[0] for one in request.transport.get_extra_info("peercert")["subject"])
    return web.json_response({"user": subject["commonName"]})


def kubeconfig(folder, url):
    """Return the connection of a kubeconfig that refers to files."""
    (folder / "ca.crt").write_text(AUTHORITY.certificate)
    file = folder / "kubeconfig"
    cluster = {"server": url, "certificate-authority": "ca.crt"}
    user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    context = {"cluster": "c", "user": "u"}
    content = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": context}],
        "current-context": "x",
    }
    file.write_text(json.dumps(content))
    return Kubeconfig((str(file),)).connection()


def write_client(folder, name, *, only_certificate=False):
    pair = new_client(AUTHORITY, name, (), NOW)
    (folder / "tls.crt").write_text(pair.certificate)
    if not only_certificate:
        (folder / "tls.key").write_text(pair.key)


def test_a_client_certificate_is_read_again(tmp_path, clock):
    """kubeadm or cert-manager may renew it; the files may be inconsistent for a moment."""
    write_client(tmp_path, "first")

    async def user(client):
        answer = await client.exchange(GET, 60)
        return json.loads(answer.body)["user"]

    async def run():
        async with serving(name_of_client, server_context(tmp_path)) as url:
            config = kubeconfig(tmp_path, url)
            async with RestClient(config, credentials=Credentials(config, clock)) as client:
                users = [await user(client)]
                write_client(tmp_path, "half", only_certificate=True)
                users.append(await user(client))
                clock.now += 60
                users.append(await user(client))
                (tmp_path / "tls.crt").write_text("")
                clock.now += 60
                users.append(await user(client))
                write_client(tmp_path, "second")
                clock.now += 60
                users.append(await user(client))
                return users

    assert asyncio.run(run()) == ["first", "first", "first", "first", "second"]


def test_a_reused_connection_configuration_has_the_current_certificate(tmp_path, clock):
    """`fairlead watch` keeps its connection, and makes a client for each read."""
    write_client(tmp_path, "first")
    config = kubeconfig(tmp_path, "https://x")
    write_client(tmp_path, "second")
    found = Credentials(config, clock).tls_texts()
    assert found.certificate == (tmp_path / "tls.crt").read_text() != config.certificate


def test_a_certificate_authority_is_read_again(tmp_path, clock):
    write_client(tmp_path, "first")
    context = server_context(tmp_path, OTHER_AUTHORITY)

    def rotate_authority():
        (tmp_path / "ca.crt").write_text(OTHER_AUTHORITY.certificate)

    async def run():
        async with serving(name_of_client, context) as url:
            config = kubeconfig(tmp_path, url)
            credentials = Credentials(config, clock)
            async with RestClient(config, credentials=credentials) as client:
                refused = await client.exchange(GET, 60)
                rotate_authority()
                clock.now += 60
                return refused, await client.exchange(GET, 60)

    refused, answer = asyncio.run(run())
    assert refused.status == 0
    assert "the server's certificate is not trusted" in refused.message
    assert answer.is_success


def test_files_are_read_again_after_a_failed_connection(tmp_path, clock):
    """Otherwise, a leader would lose its Lease before the files are read again after a minute."""
    write_client(tmp_path, "first")
    context = server_context(tmp_path, OTHER_AUTHORITY)

    async def run():
        async with serving(name_of_client, context) as url:
            config = kubeconfig(tmp_path, url)
            credentials = Credentials(config, clock)
            async with RestClient(config, credentials=credentials) as client:
                await client.exchange(GET, 60)
                (tmp_path / "ca.crt").write_text(OTHER_AUTHORITY.certificate)
                write_client(tmp_path, "second")
                refused = await client.exchange(GET, 60)  # once per second
                clock.now += 1
                await client.exchange(GET, 60)
                return refused.status, await client.exchange(GET, 60)

    refused, answer = asyncio.run(run())
    assert refused == 0
    assert json.loads(answer.body) == {"user": "second"}


def test_an_expired_server_certificate_is_reported(tmp_path, clock):
    write_client(tmp_path, "first")
    context = server_context(tmp_path, now=NOW - 10 * 366 * DAY)

    async def run():
        async with serving(name_of_client, context) as url:
            config = kubeconfig(tmp_path, url)
            async with RestClient(config) as client:
                return await client.exchange(GET, 60)

    answer = asyncio.run(run())
    assert answer.status == 0
    assert "the server's certificate is not trusted" in answer.message
    assert "expired" in answer.message
