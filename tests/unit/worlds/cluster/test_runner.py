"""A defect ends a replica, so that another one takes over from an undamaged state."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from fairlead.client.connection import ConnectionConfig
from fairlead.engine.core.command import Bind, Issued, ObjectRef
from fairlead.engine.core.issuer import API_SERVER
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.cluster.resource import TAINT_EVICTION, watched_resources
from fairlead.worlds.cluster.runner import ClusterRunner, RunnerOptions

UNENCODABLE: Any = object()
BROKEN = Issued(Bind(ObjectRef("Pod", "shop", "web-0", "u-1"), UNENCODABLE), API_SERVER)


class Deciding:
    """An engine that answers its first stimulus with `commands`, or fails."""

    def __init__(self, commands):
        self.cluster = Cluster()
        self._commands = commands

    def handle(self, _stimulus, _now):
        if self._commands is None:
            raise RuntimeError("of the engine")
        return self._commands

    def next_deadline(self):
        return None

    def handle_deadline(self, _now):
        return ()


async def empty_cluster(request):
    """Lists are empty, and nothing changes."""
    if "sendInitialEvents" in request.query:
        return web.Response(status=400)
    if "watch" in request.query:
        await asyncio.sleep(0.01)
        return web.Response()
    return web.json_response({"items": [], "metadata": {"resourceVersion": "1"}})


async def run(commands, lines):
    app = web.Application()
    app.router.add_get("/{path:.*}", empty_cluster)
    server = web.AppRunner(app, shutdown_timeout=0)
    await server.setup()
    try:
        site = web.TCPSite(server, "127.0.0.1", 0)
        await site.start()
        config = ConnectionConfig(name="fake", server=f"http://127.0.0.1:{server.addresses[0][1]}")
        resources = watched_resources((TAINT_EVICTION,))
        options = RunnerOptions(
            config=config, resources=resources, build=lambda _: Deciding(commands), log=lines.append
        )
        async with asyncio.timeout(20):
            return await ClusterRunner(options).run()
    finally:
        await server.cleanup()


@pytest.mark.parametrize(
    ("commands", "problem"),
    [
        pytest.param(None, "internal error: RuntimeError: of the engine", id="in the engine"),
        pytest.param([BROKEN], "internal error: TypeError", id="in a request"),
    ],
)
def test_a_defect_ends_the_run_with_a_traceback(commands, problem):
    lines = []
    assert asyncio.run(run(commands, lines)).startswith(problem)
    assert lines[0].startswith("Traceback")
