"""Authentication by client certificates."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import ssl
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from fairlead.apiserver.auth import certificate_authority
from fairlead.apiserver.auth.authentication.token import TokenAuthenticator, authenticated
from fairlead.apiserver.auth.certificate_authority import new_authority, new_client, new_server
from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.http.app import ApiApp
from fairlead.apiserver.http.listener import Certificate, Listener
from fairlead.apiserver.http.peer_certificate import user_of_certificate
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.store import Store

# Clients check the server's certificate with the machine's clock.
REAL_NOW = datetime.now(UTC)  # noqa: TID251
AUTHORITY = new_authority(REAL_NOW)
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Ids:
    """An id source that is never used."""

    def new_uid(self, kind, namespace, name):
        return "uid"

    def new_suffix(self):
        return "00000"


@pytest.fixture
def who_am_i(tmp_path, now):
    """Returns the user of a request with a certificate (or none) and a token, or an error code."""

    def written(name, pair):
        (tmp_path / name).write_text(pair.certificate + pair.key)
        return str(tmp_path / name)

    async def asking(shown, token):
        server = written("server", new_server(AUTHORITY, ("127.0.0.1",), REAL_NOW))
        clients = tmp_path / "clients"
        clients.write_text(AUTHORITY.certificate)
        api = complete_server(
            Store(Ids(), registry=API_SERVER),
            clock=lambda: now,
            address="127.0.0.1:1",
            version="0",
        )
        app = ApiApp(api, TokenAuthenticator({"t": authenticated("by-token")}), lambda: now)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            listener = Listener(app, listening, Certificate(server, server, str(clients)))
            await listener.start()
            context = ssl.create_default_context(cadata=AUTHORITY.certificate)
            if shown is not None:
                context.load_cert_chain(written("client", shown))
            headers = {"authorization": f"Bearer {token}"} if token else {}
            try:
                async with (
                    aiohttp.ClientSession() as session,
                    session.post(
                        f"https://127.0.0.1:{port}{REVIEWS}",
                        data=json.dumps({}),
                        headers=headers | {"content-type": "application/json"},
                        ssl=context,
                    ) as response,
                ):
                    answer = await response.json()
                    return answer["status"]["userInfo"] if response.ok else response.status
            finally:
                await listener.stop()

    return lambda shown=None, token="": asyncio.run(asking(shown, token))


def test_a_client_certificate_identifies_the_user(who_am_i):
    shown = new_client(AUTHORITY, "alice", ("dev", "ops"), REAL_NOW)
    user = who_am_i(shown)
    assert user["username"] == "alice"
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown.certificate)).hexdigest()
    extra = {"authentication.kubernetes.io/credential-id": [f"X509SHA256={digest}"]}
    assert user["extra"] == extra
    assert sorted(user["groups"]) == ["dev", "ops", "system:authenticated"]


def test_a_client_certificate_takes_precedence_over_a_token(who_am_i):
    assert who_am_i(new_client(AUTHORITY, "alice", (), REAL_NOW), "t")["username"] == "alice"
    assert who_am_i(token="t")["username"] == "by-token"


def test_a_client_without_credentials_is_anonymous(who_am_i):
    assert who_am_i()["username"] == "system:anonymous"


def test_a_foreign_certificate_is_refused(who_am_i):
    shown = new_client(new_authority(REAL_NOW), "mallory", ("system:masters",), REAL_NOW)
    with pytest.raises(aiohttp.ClientError):
        who_am_i(shown)


def test_a_certificate_expires_by_the_clock_of_the_cluster(who_am_i, monkeypatch, now):
    """The machine's clock is later than both times here. A request can still have a token."""
    for seconds in (0, -1):
        expiry = datetime.fromtimestamp(now // 10**9 + seconds, UTC)
        assert expiry < REAL_NOW
        monkeypatch.setattr(certificate_authority, "NO_EXPIRY", expiry)
        shown = new_client(AUTHORITY, "alice", (), expiry - timedelta(days=1))
        if seconds == 0:
            assert who_am_i(shown)["username"] == "alice"
    assert who_am_i(shown, "t")["username"] == "by-token"
    assert who_am_i(shown) == 401


def test_a_serving_certificate_does_not_authenticate(who_am_i):
    """Users other than the administrator may be able to read its key."""
    with pytest.raises(aiohttp.ClientError):
        who_am_i(new_server(AUTHORITY, ("127.0.0.1",), REAL_NOW))


def test_a_certificate_without_a_common_name_identifies_no_user():
    assert user_of_certificate({}) is None
    assert user_of_certificate({"subject": ((("organizationName", "dev"),),)}) is None
