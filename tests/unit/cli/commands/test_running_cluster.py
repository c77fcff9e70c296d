"""A kubeconfig of a cluster that still runs is not replaced."""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from datetime import UTC, datetime
from socket import create_server
from threading import Thread

import pytest

from fairlead.apiserver.auth.certificate_authority import new_authority, new_server
from fairlead.cli.commands.up.running_cluster import require_ended
from fairlead.cli.main import run
from fairlead.worlds.local.kubeconfig import kubeconfig

NOW = datetime.now(UTC)  # noqa: TID251 - TLS reads the clock of the machine


@contextmanager
def serving(folder, authority):
    """Yield the port of a server that completes one TLS handshake."""
    pair = new_server(authority, ("127.0.0.1",), NOW)
    chain, key = folder / "server.crt", folder / "server.key"
    chain.write_text(pair.certificate)
    key.write_text(pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)

    def accept():
        try:
            connection, _ = listening.accept()
            context.wrap_socket(connection, server_side=True).close()
        except OSError:  # the client refused the certificate
            connection.close()

    with create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=accept)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def test_the_file_of_a_running_cluster_is_kept(tmp_path, capsys):
    authority, path = new_authority(NOW), tmp_path / "config"
    with serving(tmp_path, authority) as port:
        text = kubeconfig(f"https://127.0.0.1:{port}", "t", authority.certificate)
        path.write_text(text)
        assert run(["up", "--kubeconfig", str(path)]) == 2
    assert path.read_text() == text
    problem = (
        f"of a cluster that still runs (https://127.0.0.1:{port}); end that cluster, or choose"
    )
    assert problem in capsys.readouterr().err


def test_another_cluster_at_the_same_address_does_not_count(tmp_path):
    """The port of an ended cluster can be reused."""
    path = tmp_path / "config"
    with serving(tmp_path, new_authority(NOW)) as port:
        authority = new_authority(NOW).certificate
        path.write_text(kubeconfig(f"https://127.0.0.1:{port}", "t", authority))
        require_ended(path)


@pytest.mark.parametrize("text", ["", "clusters: 5", "[1", "clusters: [{cluster: {server: 'x:'}}]"])
def test_other_files_raise_nothing(tmp_path, text):
    path = tmp_path / "config"
    require_ended(path)
    path.write_text(text)
    require_ended(path)


def test_an_ended_cluster_raises_nothing(tmp_path):
    path = tmp_path / "config"
    with create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    path.write_text(kubeconfig(f"https://127.0.0.1:{port}", "t", new_authority(NOW).certificate))
    require_ended(path)
