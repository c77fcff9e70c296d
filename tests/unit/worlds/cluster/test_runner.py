"""What ends a replica and what is only reported; the API server is a scripted one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from fairlead.client.connection import ConnectionConfig
from fairlead.engine.core.command import Bind, Issued, ObjectRef
from fairlead.engine.core.issuer import API_SERVER
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.cluster.resource import (
    BATCH,
    SCHEDULER,
    TAINT_EVICTION,
    watched_resources,
)
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


def starting_again(refused):
    """An empty cluster whose server, once, may not read its roles yet when pods are watched."""

    async def handle(request):
        if request.path == "/api/v1/pods" and "resourceVersion" in request.query and not refused:
            refused.append(request)
            return web.json_response({"reason": "Forbidden"}, status=403)
        return await empty_cluster(request)

    return handle


async def run(commands, lines, handler=empty_cluster, controllers=(TAINT_EVICTION,), until=""):
    app = web.Application()
    app.router.add_get("/{path:.*}", handler)
    server = web.AppRunner(app, shutdown_timeout=0)
    await server.setup()
    try:
        site = web.TCPSite(server, "127.0.0.1", 0)
        await site.start()
        config = ConnectionConfig(name="fake", server=f"http://127.0.0.1:{server.addresses[0][1]}")

        def log(line):
            lines.append(line)
            if until and until in line:
                runner.stop()

        resources = watched_resources(controllers)
        options = RunnerOptions(
            config=config,
            resources=resources,
            build=lambda _: Deciding(commands),
            log=log,
            quiet_seconds=0.1,
        )
        runner = ClusterRunner(options)
        async with asyncio.timeout(20):
            return await runner.run()
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


def test_a_server_that_starts_again_does_not_end_the_run():
    lines = []
    again = "pods can be read again"
    assert asyncio.run(run([], lines, starting_again([]), until=again)) == ""
    assert lines == ["pods cannot be read (status 403); the known ones are used", again]


async def of_another_version(request):
    """An empty cluster that serves neither budgets nor custom resources."""
    if request.path.startswith(("/apis/policy/", "/apis/scheduling.volcano.sh/")):
        return web.Response(status=404)
    return await empty_cluster(request)


def test_built_in_resources_that_are_not_served_are_named_once():
    lines = []
    absent = "the server does not serve poddisruptionbudgets (policy/v1): decisions do without them"
    asyncio.run(run([], lines, of_another_version, (SCHEDULER, BATCH), until=absent))
    assert lines == [absent]
