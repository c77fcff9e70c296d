"""Recorded requests sent to a server over HTTP, with watches that stay open meanwhile."""

from __future__ import annotations

import pytest

from fairlead.conformance.api.exchange import ReplayRequest
from fairlead.conformance.api.server.on_socket import OnSocket
from fairlead.conformance.api.server.over_http import NoAnswerError, OverHttp
from fairlead.conformance.api.server.own_cluster import OwnCluster
from fairlead.conformance.api.server.own_server import USERS, token_of

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def asking(method, path, *query, body=b"", user="admin"):
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    return ReplayRequest(
        method=method, path=path, query=query, headers=headers, body=body, user=user
    )


@pytest.fixture
def server(tmp_path):
    """Fairlead's cluster on a socket, and a client of it."""
    with OnSocket(OwnCluster(), tmp_path) as served:
        tokens = {user: token_of(user) for user in USERS}
        transport = OverHttp(served.url, tokens, str(served.authority_file))
        yield transport
        transport.close()


def test_requests_and_watches_are_sent(server):
    watch = server.watch(asking("GET", CONFIG_MAPS, ("watch", "1"), ("timeoutSeconds", "30")))
    made = server.ask(asking("POST", CONFIG_MAPS, body=b'{"metadata": {"name": "x"}}'))
    assert (made.status, made.values("content-type")) == (201, ["application/json"])
    assert server.ask(asking("GET", f"{CONFIG_MAPS}/x")).body == made.body
    end = watch.finish(3, until_end=False)
    names = [event["object"]["metadata"]["name"] for event in end.events]
    assert (names[-1], end.ended) == ("x", False)


@pytest.mark.parametrize(("user", "status"), [(None, 403), ("nobody", 401), ("carol", 403)])
def test_tokens_identify_users(server, user, status):
    assert server.ask(asking("GET", "/api/v1/nodes", user=user)).status == status


def test_a_file_without_a_ca_certificate_is_named(tmp_path):
    file = tmp_path / "ca.crt"
    file.write_text("text")
    with pytest.raises(NoAnswerError, match=f"^{file}: not a CA certificate: "):
        OverHttp("https://127.0.0.1:1", {}, str(file)).ask(asking("GET", "/"))


def test_an_unreachable_server_is_reported(tmp_path):
    with pytest.raises(NoAnswerError, match="ConnectionRefused"):
        OverHttp("http://127.0.0.1:1", {}).ask(asking("GET", "/"))
