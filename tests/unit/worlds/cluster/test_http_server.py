"""Authentication of HTTP requests to a replica by token reviews at a scripted API server."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import ClientSession, web

from fairlead.client.connection import ConnectionConfig
from fairlead.client.rest_client import RestClient
from fairlead.engine.core.instant import seconds
from fairlead.worlds.cluster import http_server
from fairlead.worlds.cluster.http_server import REMEMBERED, HttpServer

KNOWN = {"status": {"authenticated": True, "user": {"username": "jane", "groups": ["ops"]}}}
ALLOWED, DENIED = {"status": {"allowed": True}}, {"status": {"allowed": False}}


SILENT = "no answer"


class Reviewer:
    """An API server that returns these answers in order; each is (status, body), or SILENT.

    `limit` is called with the time within which the server must respond to the next request.
    """

    def __init__(self, *answers, limit=lambda _: None):
        self.answers = list(answers)
        self.limit = limit
        self.is_over = asyncio.Event()
        self.reviews = []
        self.lines = []
        self.now = 0
        self._limit_next_review()

    def _limit_next_review(self):
        self.limit(0.2 if self.answers[:1] == [SILENT] else 60)

    async def handle(self, request):
        self.reviews.append((await request.json())["spec"])
        answer = self.answers.pop(0)
        self._limit_next_review()
        if answer == SILENT:
            await self.is_over.wait()
            return web.Response()
        status, body = answer
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=text)

    def get(self, *headers, wait=0, path="/metrics", is_ready=True):
        """Return the (status, text) of GET `path` with each of `headers`."""

        async def run():
            api, url = await start(self.app())
            client = RestClient(ConnectionConfig(name="x", server=url), connections_max=2)
            server = HttpServer(
                client,
                lambda: self.now,
                is_ready=lambda: is_ready,
                exposition=lambda: b"metrics",
                explain=None,
            )
            server.log = self.lines.append
            replica, url = await start(server.app())
            found = []
            async with client, ClientSession() as session:
                for one in headers:
                    async with session.get(f"{url}{path}", headers=one) as answer:
                        found.append((answer.status, await answer.text()))
                    self.now += wait
            self.is_over.set()
            await replica.cleanup()
            await api.cleanup()
            return found

        return asyncio.run(run())

    def app(self):
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        return app


async def start(app):
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_a_token_is_reviewed_once_in_ten_seconds():
    reviewer = Reviewer((201, KNOWN), (201, ALLOWED))
    assert reviewer.get(bearer("t"), bearer("t")) == [(200, "metrics")] * 2
    assert reviewer.reviews == [
        {"token": "t"},
        {
            "user": "jane",
            "groups": ["ops"],
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    ]


def test_a_token_is_reviewed_again_after_ten_seconds():
    reviewer = Reviewer((201, KNOWN), (201, ALLOWED), (201, KNOWN), (201, DENIED))
    answers = reviewer.get(bearer("t"), bearer("t"), wait=REMEMBERED)
    assert answers == [(200, "metrics"), (403, "Forbidden")]


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic eDp5"}])
def test_a_request_without_a_token_is_refused_without_a_review(headers):
    reviewer = Reviewer()
    assert reviewer.get(headers) == [(401, "Unauthorized")]
    assert reviewer.reviews == []


@pytest.mark.parametrize("status", [{}, {"authenticated": False}, {"error": "expired"}])
def test_a_wrong_token_is_refused(status):
    assert Reviewer((201, {"status": status})).get(bearer("t")) == [(401, "Unauthorized")]


FAILURES = [
    pytest.param((403, {"message": "tokenreviews is forbidden"}), "is forbidden", id="forbidden"),
    pytest.param((404, b""), "status 404", id="not served"),
    pytest.param((500, b"oops"), "status 500: oops", id="failing"),
    pytest.param((201, b"<html>"), "the answer is not a review", id="html"),
    pytest.param((201, []), "the answer is not a review", id="a list"),
    pytest.param((201, {"status": []}), "the answer is not a review", id="status"),
    pytest.param(
        (201, {"status": {"authenticated": "false"}}), "the answer is not a review", id="text"
    ),
    pytest.param(SILENT, "the server did not answer in time", id="silent"),
]


@pytest.mark.parametrize(("failure", "why"), FAILURES)
@pytest.mark.parametrize("number", [0, 1], ids=["token", "access"])
def test_a_failed_review_is_logged_once_and_not_cached(monkeypatch, failure, why, number):
    def limit(seconds_max):
        monkeypatch.setattr(http_server, "REVIEW_SECONDS_MAX", seconds_max)

    known = [(201, KNOWN)][:number]
    answers = (*known, failure, *known, failure, (201, KNOWN), (201, ALLOWED))
    reviewer = Reviewer(*answers, limit=limit)
    answers = reviewer.get(bearer("t"), bearer("t"), bearer("t"))
    refused = (503, "the API server did not review the token")
    assert answers == [refused, refused, (200, "metrics")]
    (line,) = reviewer.lines
    assert line.startswith("tokens cannot be reviewed: /apis/")
    assert why in line


def test_reviews_that_hang_do_not_delay_the_probes(monkeypatch):
    monkeypatch.setattr(http_server, "REVIEW_SECONDS_MAX", 120)
    reviewer = Reviewer(*[SILENT] * 20)

    async def run():
        api, url = await start(reviewer.app())
        client = RestClient(ConnectionConfig(name="x", server=url), connections_max=2)
        server = HttpServer(
            client,
            lambda: seconds(0),
            is_ready=lambda: True,
            exposition=lambda: b"",
            explain=None,
        )
        replica, url = await start(server.app())
        async with client, ClientSession() as session:
            waiting = [
                asyncio.create_task(session.get(f"{url}/metrics", headers=bearer(at)))
                for at in range(20)
            ]
            async with asyncio.timeout(60):
                while len(reviewer.reviews) < 2:  # noqa: ASYNC110 - on both connections
                    await asyncio.sleep(0.01)
            async with asyncio.timeout(60), session.get(f"{url}/readyz") as answer:
                status = answer.status
            for one in waiting:
                one.cancel()
        reviewer.is_over.set()
        await replica.cleanup()
        await api.cleanup()
        return status

    assert asyncio.run(run()) == 200


@pytest.mark.parametrize(
    ("path", "is_ready", "answer"),
    [
        ("/livez", False, (200, "ok")),
        ("/livez?verbose", False, (200, "[+]ping ok\nlivez check passed\n")),
        ("/healthz?verbose", False, (200, "[+]ping ok\nhealthz check passed\n")),
        ("/readyz?verbose", True, (200, "[+]sched-handler-sync ok\nreadyz check passed\n")),
        (
            "/readyz",
            False,
            (500, "[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n"),
        ),
        (
            "/readyz?verbose&exclude=sched-handler-sync",
            False,
            (200, "[+]sched-handler-sync excluded: ok\nreadyz check passed\n"),
        ),
    ],
)
def test_probes_answer_as_in_kube_scheduler(path, is_ready, answer):
    assert Reviewer().get({}, path=path, is_ready=is_ready) == [answer]


def test_the_probe_of_one_check_says_why_it_failed_to_those_who_may_know():
    reviewer = Reviewer((201, KNOWN), (201, ALLOWED))
    path = "/readyz/sched-handler-sync"
    refused, failed = reviewer.get({}, bearer("t"), path=path, is_ready=False)
    assert refused == (401, "Unauthorized")
    assert failed == (500, "internal server error: handlers are not fully synchronized\n")
