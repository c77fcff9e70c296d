"""Bookmarks and backlog of watches."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.leaping_loop import LeapingLoop
from tests.unit.apiserver.conftest import CountedIds

from fairlead.apiserver.endpoints.server import ApiServer
from fairlead.apiserver.http import watch_stream
from fairlead.apiserver.http.watch_stream import stream
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import ADMIN, Request

NODES = "/api/v1/nodes"


def bookmarks(query):
    """Return the times (s) of the bookmarks of a watch without events, and the time of its end."""
    server = ApiServer(Store(CountedIds(), admission=()), clock=lambda: 0)
    loop = LeapingLoop()
    marked = []

    async def send(message):
        events = map(json.loads, message.get("body", b"").splitlines())
        marked.extend(round(loop.time()) for event in events if event["type"] == "BOOKMARK")

    watch = server.handle(Request("GET", NODES, (("watch", "1"), *query), {}, b"", ADMIN), 0)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(stream(watch, server.watches, asyncio.Queue().get, send))
    return marked, round(loop.time())


WANTED = ("allowWatchBookmarks", "1")
NOW = ("resourceVersion", "1")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ((WANTED, NOW, ("timeoutSeconds", "30")), ([28], 30)),
        ((WANTED, NOW, ("timeoutSeconds", "200")), ([60, 120, 180, 198], 200)),
        ((WANTED, NOW, ("timeoutSeconds", "122")), ([60, 120], 122)),
        ((WANTED, ("timeoutSeconds", "70")), ([0, 60, 68], 70)),
        ((NOW, ("timeoutSeconds", "200")), ([], 200)),
    ],
)
def test_an_idle_watch_sends_a_bookmark_every_minute_and_before_its_end(query, expected):
    """So the client can continue even if the log no longer contains its last version."""
    assert bookmarks(query) == expected


def test_events_wait_in_the_watch_until_the_client_reads(monkeypatch):
    """In the watch, events are shared with other watches, and their number is limited."""
    monkeypatch.setattr(watch_stream, "CHUNK_BYTES_MAX", 500)
    store = Store(CountedIds(), admission=())
    server = ApiServer(store, clock=lambda: 0)
    for number in range(20):
        store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number:02}"}}, 0)
    watch = server.handle(Request("GET", NODES, (("watch", "1"),), {}, b"", ADMIN), 0)

    async def unread():
        room = asyncio.Semaphore(2)  # the head
        sent = []

        async def send(message):
            await room.acquire()
            sent.append(message.get("body", b""))

        task = asyncio.ensure_future(stream(watch, server.watches, asyncio.Queue().get, send))
        for _ in range(10):
            await asyncio.sleep(0)
        waiting = len(watch.pop_lines())
        task.cancel()
        return waiting

    assert asyncio.run(unread()) > 15
