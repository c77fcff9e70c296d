"""The extender client over real connections: normal, slow and broken servers, and TLS."""

from __future__ import annotations

import re
import socket

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import CommandFailed, ExtenderAnswered
from fairlead.engine.scheduling.extender.extender import ExtenderTls
from fairlead.worlds.extender import client
from fairlead.worlds.extender.client import HttpExtenders, TlsError

SHORT = seconds(1) // 20
BODY = b'{"NodeNames":["a"]}'


@pytest.fixture
def ask(extender_at, reach, question):
    """Calls an extender with this response; returns the result."""

    def to(respond, **more):
        with extender_at(respond) as server:
            extender = reach(server.port, **more)
            with HttpExtenders([extender]) as extenders:
                return extenders.call(question(extender), BODY)

    return to


def test_a_request_is_posted_as_json(extender_at, reach, question):
    """upstream: extender.go: send."""
    with extender_at(lambda _: (200, {"NodeNames": []})) as server:
        extender = reach(server.port)
        with HttpExtenders([extender]) as extenders:
            call = question(extender)
            assert extenders.call(call, BODY) == ExtenderAnswered(call, 200, b'{"NodeNames": []}')
            assert extenders.call(call, BODY).status == 200
        [(path, headers, body), _] = server.requests
        assert (path, headers["Content-Type"]) == ("/base/filter", "application/json")
        assert body == {"NodeNames": ["a"]}
        assert len(server.connections) == 1


def test_a_closed_connection_is_opened_again_for_the_next_request(extender_at, reach, question):
    def respond(request):
        request.close_connection = True
        return 200, b"x"

    with extender_at(respond) as server:
        extender = reach(server.port)
        with HttpExtenders([extender]) as extenders:
            for _ in range(3):
                server.may_hang_up.clear()
                assert extenders.call(question(extender), BODY).body == b"x"
                server.may_hang_up.set()
                server.hung_up.wait()
                server.hung_up.clear()
        assert len(server.connections) == 3


@pytest.mark.parametrize("status", [204, 400, 500])
def test_a_response_with_any_status_is_returned(ask, status):
    answer = ask(lambda _: (status, b""))
    assert (answer.status, answer.body) == (status, b"")


@pytest.mark.parametrize("status", [302, 307])
def test_redirects_are_not_followed(ask, status):
    paths = []

    def respond(request):
        paths.append(request.path)
        return status, b"", {"Location": "/elsewhere"}

    assert ask(respond).status == status
    assert paths == ["/base/filter"]


def test_a_slow_extender_is_a_timeout(ask):
    def respond(request):
        request.server.over.wait()

    answer = ask(respond, timeout=SHORT)
    assert isinstance(answer, CommandFailed)
    assert answer.message == (
        f'Post "{answer.command.url}": context deadline exceeded '
        "(Client.Timeout exceeded while awaiting headers)"
    )


def test_the_timeout_applies_to_the_whole_response(ask):
    """The timeout limits the whole response, not the time between two bytes."""

    def respond(request):
        request.send_response(200)
        request.send_header("Content-Length", "1000000")
        request.end_headers()
        while not request.server.over.wait(0.01):
            request.wfile.write(b" ")

    assert "context deadline exceeded" in ask(respond, timeout=SHORT).message


def test_an_endless_response_is_not_read_completely(ask, monkeypatch):
    monkeypatch.setattr(client, "ANSWER_BYTES_MAX", 1000)

    def respond(request):
        request.send_response(200)
        request.send_header("Content-Length", "1000000000000")
        request.end_headers()
        while not request.server.over.is_set():
            request.wfile.write(b" " * 500)

    assert "the answer is longer than" in ask(respond).message


@pytest.mark.parametrize("raw", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Le"])
def test_a_response_that_is_not_http_is_a_failure(ask, raw):
    def respond(request):
        request.wfile.write(raw)

    assert isinstance(ask(respond), CommandFailed)


def test_a_truncated_response_is_a_failure(ask):
    def respond(request):
        request.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"NodeNames"')

    assert isinstance(ask(respond), CommandFailed)


def test_a_refused_connection_is_a_failure(reach, question):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        extender = reach(taken.getsockname()[1])
        with HttpExtenders([extender]) as extenders:
            answer = extenders.call(question(extender), b"{}")
    text = r'Post "\S+": dial tcp 127.0.0.1:\d+: connect: connection refused'
    assert re.fullmatch(text, answer.message)


@pytest.fixture
def ask_securely(extender_at, reach, question, secured):
    """Calls an extender over TLS; returns the answer, or the failure's message.

    `asks` requires a client certificate.
    """

    def over(tls=None, *, asks=False, **more):
        with extender_at(lambda _: (200, b"ok"), secured(asks=asks)) as server:
            extender = reach(server.port, "https", tls=tls, **more)
            with HttpExtenders([extender]) as extenders:
                answer = extenders.call(question(extender), BODY)
        return answer.message if isinstance(answer, CommandFailed) else answer.body

    return over


@pytest.mark.needs("openssl")
def test_an_unknown_certificate_is_not_trusted(ask_securely):
    assert "certificate verify failed" in ask_securely()


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("more", [{"tls": ExtenderTls(insecure=True)}, {"enable_https": True}])
def test_an_unknown_certificate_is_accepted_without_verification(ask_securely, more):
    """upstream: extender.go: makeTransport."""
    assert ask_securely(**more) == b"ok"


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("as_data", [False, True])
def test_a_certificate_authority_is_trusted_for_the_name_in_the_certificate(
    ask_securely, certificates, as_data
):
    path = certificates / "ca.pem"
    bundle = b"# a comment in Latin-1: \xfc\n" + path.read_bytes()
    ca = {"ca_data": bundle} if as_data else {"ca_file": str(path)}
    assert ask_securely(ExtenderTls(server_name="extender.test", **ca)) == b"ok"
    assert "certificate verify failed" in ask_securely(ExtenderTls(server_name="x", **ca))
    assert "certificate verify failed" in ask_securely(ExtenderTls(**ca), enable_https=True)


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("as_data", [False, True])
def test_the_scheduler_sends_its_client_certificate(ask_securely, certificates, as_data):
    cert, key = (certificates / f"client.{part}" for part in ("pem", "key"))
    if as_data:
        proof = {"cert_data": cert.read_bytes(), "key_data": key.read_bytes()}
    else:
        proof = {"cert_file": str(cert), "key_file": str(key)}
    assert ask_securely(ExtenderTls(insecure=True, **proof), asks=True) == b"ok"
    assert ask_securely(ExtenderTls(insecure=True), asks=True) != b"ok"


@pytest.mark.parametrize(
    ("tls", "line"),
    [
        ({"ca_file": "/nowhere"}, "caFile: cannot be read: No such file or directory"),
        ({"ca_data": b"x"}, "caData: cannot be used: "),
        ({"ca_data": b"\xff"}, "caData: cannot be used: "),
        ({"cert_file": "/nowhere"}, "certFile: cannot be read: No such file or directory"),
        ({"cert_data": b"x", "key_data": b"y"}, "certData: cannot be used: "),
    ],
)
def test_unusable_tls_files_are_refused_with_their_field(reach, tls, line):
    with pytest.raises(TlsError, match=re.escape(line)):
        HttpExtenders([reach(1, "https", tls=ExtenderTls(**tls))])
