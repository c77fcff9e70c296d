"""`fairlead run` while its credentials or those of the API server are rotated."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from tests.live.authenticating_proxy import AuthenticatingProxy, server_context
from tests.live.cluster_client import Direct, all_bound, pod
from tests.live.event_loop import run_until_closed
from tests.live.test_faults import cluster

from fairlead.apiserver.auth.certificate_authority import new_authority, new_client
from fairlead.client.rest_client import RestClient

NOW = datetime.now(UTC)  # noqa: TID251 - OpenSSL checks certificates in real time
AUTHORITY, OTHER_AUTHORITY = new_authority(NOW), new_authority(NOW)
VERSION = "client.authentication.k8s.io/v1"
ROUNDS = 2
# The proxy is not under test. If a client ends while its TLS connection is paused, or during the
# handshake, asyncio drops the proxy's transport or socket without closing it.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed transport:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning"),
]
# For the binding of pods after a rotation. If the rotation is not noticed, the leader cannot renew
# its Lease and ends after 10 s, which `running` notices.
SECONDS_MAX = 90


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("rotation"), nodes=3) as found:
        yield found


class Files:
    """The files of a kubeconfig, and every secret that they have contained."""

    def __init__(self, folder):
        self.folder = folder
        self.secrets = []

    def write(self, name, text, *secrets):
        """Replace a file in one step."""
        new = self.folder / f"{name}.new"
        new.write_text(text)
        new.replace(self.folder / name)
        self.secrets += secrets

    def write_client(self, user, authority=AUTHORITY):
        """Replace the client certificate and its key, one after the other."""
        pair = new_client(authority, user, (), NOW)
        self.write("tls.crt", pair.certificate)
        self.write("tls.key", pair.key, *lines_of(pair.key))

    def write_kubeconfig(self, server, user):
        cluster = {"server": server, "certificate-authority": "ca.crt"}
        content = {
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        self.write("kubeconfig", json.dumps(content))

    def write_configuration(self):
        """Use a Lease of its own, because a test that fails may leave its Lease behind."""
        election = {"resourceName": self.folder.name.replace("_", "-")}
        kind = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
        }
        self.write("config", json.dumps({**kind, "leaderElection": election}))


def lines_of(key):
    return [line for line in key.splitlines() if not line.startswith("-----")]


@asynccontextmanager
async def running(files):
    """A scheduler in a process of its own; its log is in `files.folder / "log"`."""
    log = files.folder / "log"
    files.write_configuration()
    options = ("--kubeconfig", "kubeconfig", "--config", "config", "--listen", "none", "-v", "5")
    command = (sys.executable, "-m", "fairlead.cli", "run", *options)
    with log.open("wb") as stream:
        process = await asyncio.create_subprocess_exec(*command, stderr=stream, cwd=files.folder)
    try:
        yield process
        assert process.returncode is None, log.read_text()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()
    text = log.read_text()
    assert process.returncode == 0, text
    assert "running in" in text
    assert [secret for secret in files.secrets if secret in text] == []


def rotated(connection, folder, user, prepare, rotate, context):
    """Create pods before and after each of ROUNDS rotations; all are bound by one process.

    `user` is the user of the kubeconfig. `prepare` and `rotate` are called with the proxy, the
    files, and `rotate` with the number of the rotation. Returns the proxy.
    """
    files = Files(folder)

    async def run():
        proxy = AuthenticatingProxy(connection)
        async with RestClient(connection) as client:
            direct = Direct(client)
            files.write("ca.crt", AUTHORITY.certificate)
            files.write_kubeconfig(await proxy.listen(context), user)
            prepare(proxy, files)
            try:
                async with running(files):
                    for number in range(ROUNDS + 1):
                        if number:
                            await rotate(proxy, files, number)
                        prefix = f"{folder.name.replace('_', '-')}-{number}"
                        await direct.create([pod(f"{prefix}-{at}", "10m") for at in range(5)])
                        await direct.eventually(all_bound, SECONDS_MAX)
            finally:
                await proxy.stop()
        assert set(proxy.bound.values()) == {1}
        return proxy

    proxy = run_until_closed(run())
    gc.collect()  # the transports, while the filter of this module's warnings is in effect
    return proxy


CERTIFICATE_FILES = {"client-certificate": "tls.crt", "client-key": "tls.key"}


@pytest.mark.parametrize(
    "closes",
    [
        pytest.param(False, id="connections stay"),
        pytest.param(True, id="connections close", marks=pytest.mark.long),
    ],
)
def test_a_client_certificate_is_replaced(connection, tmp_path, closes):
    """kubeadm and cert-manager renew it in this way; the server answers 401 to the old one."""

    def prepare(proxy, files):
        files.write_client("c0")
        proxy.accepted = {"c0"}

    async def rotate(proxy, files, number):
        files.write_client(f"c{number}")
        proxy.accepted = {f"c{number}"}
        if closes:
            proxy.disconnect()

    context = server_context(tmp_path, AUTHORITY, NOW)
    proxy = rotated(connection, tmp_path, CERTIFICATE_FILES, prepare, rotate, context)
    assert all(proxy.seen[f"c{number}"] for number in range(ROUNDS + 1))


@pytest.mark.long
def test_a_client_certificate_is_refused_in_the_handshake(connection, tmp_path):
    """A proxy requires certificates, and its authority for clients is replaced."""

    def prepare(proxy, files):
        files.write_client("c0")
        proxy.accepted = {f"c{number}" for number in range(ROUNDS + 1)}

    async def rotate(proxy, files, number):
        authority = new_authority(NOW)
        context = server_context(tmp_path, AUTHORITY, NOW, authority, is_required=True)
        await proxy.listen(context)
        proxy.disconnect()
        await asyncio.sleep(0.5)  # the files follow a little later
        files.write_client(f"c{number}", authority)

    context = server_context(tmp_path, AUTHORITY, NOW, is_required=True)
    proxy = rotated(connection, tmp_path, CERTIFICATE_FILES, prepare, rotate, context)
    assert all(proxy.seen[f"c{number}"] for number in range(ROUNDS + 1))


def test_a_token_file_is_replaced(connection, tmp_path):
    """The kubelet replaces the token of a service account in this way.

    The server refuses the old token before the new one is in the file.
    """

    def prepare(proxy, files):
        files.write("token", "token-zero\n", "token-zero")
        proxy.accepted = {"token-zero"}

    old = ["token-zero"]

    async def rotate(proxy, files, number):
        proxy.accepted = {f"token-number-{number}"}
        async with asyncio.timeout(60):
            while not proxy.refused[old[-1]]:  # noqa: ASYNC110 - a counter reports no change
                await asyncio.sleep(0.01)
        old.append(f"token-number-{number}")
        files.write("token", f"token-number-{number}\n", f"token-number-{number}")

    user = {"tokenFile": "token"}
    context = server_context(tmp_path, AUTHORITY, NOW)
    rotated(connection, tmp_path, user, prepare, rotate, context)


PLUGIN = """\
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

status = json.loads(Path("credential").read_text())
expires = datetime.now(UTC) + timedelta(seconds=status.pop("seconds"))
status["expirationTimestamp"] = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                  "status": status}))
"""


def write_credential(files, form, user, seconds):
    """Write what the next run of the plugin prints."""
    status = {"seconds": seconds}
    if form == "token":
        status["token"] = user
        files.write("credential", json.dumps(status), user)
        return
    pair = new_client(AUTHORITY, user, (), NOW)
    status |= {"clientCertificateData": pair.certificate, "clientKeyData": pair.key}
    files.write("credential", json.dumps(status), *lines_of(pair.key))


def plugin_user():
    plugin = {"apiVersion": VERSION, "command": sys.executable, "interactiveMode": "Never"}
    return {"exec": {**plugin, "args": ["plugin.py"]}}


@pytest.mark.parametrize("form", ["token", pytest.param("certificate", marks=pytest.mark.long)])
def test_the_credential_of_an_exec_plugin_is_withdrawn(connection, tmp_path, form):
    """The plugin runs again when the server refuses the credential."""

    def prepare(proxy, files):
        files.write("plugin.py", PLUGIN)
        write_credential(files, form, "credential-0", 3_600)
        proxy.accepted = {"credential-0"}

    async def rotate(proxy, files, number):
        write_credential(files, form, f"credential-{number}", 3_600)
        proxy.accepted = {f"credential-{number}"}

    context = server_context(tmp_path, AUTHORITY, NOW)
    proxy = rotated(connection, tmp_path, plugin_user(), prepare, rotate, context)
    assert all(proxy.seen[f"credential-{number}"] for number in range(ROUNDS + 1))


@pytest.mark.long
@pytest.mark.parametrize("form", ["token", "certificate"])
def test_the_credential_of_an_exec_plugin_expires(connection, tmp_path, form):
    """The plugin runs again before the expiry; the server accepts each credential for 15 s."""

    def prepare(proxy, files):
        files.write("plugin.py", PLUGIN)
        write_credential(files, form, "credential-0", 15)
        proxy.accepted = {"credential-0"}

    async def rotate(proxy, files, number):
        write_credential(files, form, f"credential-{number}", 15)
        proxy.accepted.add(f"credential-{number}")
        await asyncio.sleep(15)
        proxy.accepted = {f"credential-{number}"}

    context = server_context(tmp_path, AUTHORITY, NOW)
    proxy = rotated(connection, tmp_path, plugin_user(), prepare, rotate, context)
    assert not proxy.refused
    assert all(proxy.seen[f"credential-{number}"] for number in range(ROUNDS + 1))


@pytest.mark.long
def test_the_servers_certificate_is_renewed(connection, tmp_path):
    """The authority stays the same; the server restarts, so connections close."""

    def prepare(proxy, files):
        files.write("token", "secret-token", "secret-token")
        proxy.accepted = {"secret-token"}

    async def rotate(proxy, _files, number):
        renewed = server_context(tmp_path, AUTHORITY, NOW + number * timedelta(seconds=1))
        await proxy.listen(renewed)
        proxy.disconnect()

    context = server_context(tmp_path, AUTHORITY, NOW)
    rotated(connection, tmp_path, {"tokenFile": "token"}, prepare, rotate, context)


@pytest.mark.long
def test_the_servers_authority_is_replaced(connection, tmp_path):
    """The file of authorities gets a second one, which then signs the server's certificate."""
    authorities = [AUTHORITY]

    def prepare(proxy, files):
        files.write("token", "secret-token", "secret-token")
        proxy.accepted = {"secret-token"}

    async def rotate(proxy, files, _number):
        authorities.append(new_authority(NOW))
        files.write("ca.crt", "".join(one.certificate for one in authorities[-2:]))
        await proxy.listen(server_context(tmp_path, authorities[-1], NOW))
        proxy.disconnect()

    context = server_context(tmp_path, AUTHORITY, NOW)
    rotated(connection, tmp_path, {"tokenFile": "token"}, prepare, rotate, context)
