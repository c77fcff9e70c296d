"""FaultProxy: a proxy between a client and an API server that injects faults.

Each request gets a fault with some probability, drawn from a seed. It is refused before the server
receives it, answered with another response, performed without a response, or delayed. Watches are
cut in the middle of an object, send nothing, or send an error or a broken line. Lists return an
earlier list of the same path.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from contextlib import asynccontextmanager
from random import Random  # noqa: TID251 - seeded

import aiohttp
from aiohttp import web

REFUSALS: tuple[tuple[int, str, dict[str, str]], ...] = (
    (409, "Conflict", {}),
    (429, "TooManyRequests", {"Retry-After": "0"}),
    (500, "InternalError", {}),
    (503, "ServiceUnavailable", {"Retry-After": "0"}),
    (504, "Timeout", {}),
)

_ERROR = b'{"type": "ERROR", "object": {"kind": "Status", "code": %d, "message": "injected"}}'
ENDINGS: dict[str, list[bytes]] = {
    "error event": [_ERROR % code for code in (0, 403, 404, 409, 410, 429, 500, 504)],
    "broken line": [b'{"type": "ADDED"', b"<html>", b"[" * 10_000, b'{"type": "X", "object": 5}'],
}


class FaultProxy:
    """Passes requests to the server of `connection`; a fraction `share` of them get faults."""

    def __init__(self, connection, seed, share=0.3):
        self.connection = connection
        self.random = Random(seed)
        self.share = share
        self.met = Counter()
        self.bound = Counter()
        self.lists = {}

    async def start(self):
        await self.open()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    async def open(self):
        """Prepare the application; it does not listen yet."""
        context = ssl.create_default_context(cadata=self.connection.authority)
        connector = aiohttp.TCPConnector(limit=0, ssl=context)
        headers = {"Authorization": f"Bearer {self.connection.token}"}
        self.session = aiohttp.ClientSession(connector=connector, headers=headers)
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self.handle)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self.runner.setup()

    async def stop(self):
        await self.runner.cleanup()
        await self.session.close()

    def fault(self, *names):
        """Return one of `names`, or "" for no fault."""
        if self.random.random() >= self.share:
            return ""
        name = self.random.choice(names)
        self.met[name] += 1
        return name

    async def handle(self, request):
        if request.query.get("watch"):
            return await self.watch(request)
        names = ["delay", "refuse", "lost request", "lost answer", "foreign answer"]
        is_list = request.method == "GET" and request.path.count("/") in (3, 4)
        if is_list and request.path in self.lists:
            names.append("stale list")
        fault = self.fault(*names)
        if fault == "delay":
            await asyncio.sleep(self.random.random() * 0.2)
        instead = self.instead_of_server(fault, request)
        if instead is not None:
            return instead
        status, headers, body = await self.forward(request)
        if is_list and status == 200:
            self.lists.setdefault(request.path, body)
        if request.path.endswith("/binding") and status < 300:
            self.bound[request.path] += 1
        if fault == "lost answer":
            return self.cut(request)
        return web.Response(status=status, headers=headers, body=body)

    def instead_of_server(self, fault, request):
        """Return the response to a request that does not reach the server; None if it does."""
        match fault:
            case "refuse":
                code, reason, headers = self.random.choice(REFUSALS)
                status = {"kind": "Status", "code": code, "reason": reason, "message": "injected"}
                return web.json_response(status, status=code, headers=headers)
            case "lost request":
                return self.cut(request)
            case "foreign answer":
                return web.Response(text="<html>Please log in</html>", content_type="text/html")
            case "stale list":
                body = self.lists[request.path]
                return web.Response(body=body, content_type="application/json")
        return None

    def cut(self, request):
        if request.transport is not None:  # None if the client has already closed the connection
            request.transport.abort()
        return web.Response()

    async def forward(self, request):
        url = self.connection.server + request.path_qs
        kept = {"Content-Type": request.headers.get("Content-Type", "application/json")}
        body = await request.read()
        async with self.session.request(
            request.method, url, data=body or None, headers=kept
        ) as answer:
            kept = {"Content-Type": answer.headers.get("Content-Type", "application/json")}
            return answer.status, kept, await answer.read()

    async def watch(self, request):
        """Pass on a watch; it may be refused, cut after some bytes, or send nothing."""
        fault = self.fault("refuse watch", "cut", "silence", "error event", "broken line")
        if fault == "refuse watch":
            code, reason, headers = self.random.choice([*REFUSALS[1:], (410, "Expired", {})])
            status = {"kind": "Status", "code": code, "reason": reason, "message": "injected"}
            return web.json_response(status, status=code, headers=headers)
        left = self.random.randrange(20_000) if fault else None
        url = self.connection.server + request.path_qs
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        async with self.session.get(url) as answer, aborting(answer):
            response.set_status(answer.status)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                if left is not None and len(chunk) >= left:
                    await response.write(chunk[:left])
                    if fault in ENDINGS:
                        await response.write(b"\n" + self.random.choice(ENDINGS[fault]) + b"\n")
                    if fault == "silence":
                        await asyncio.sleep(30)
                    return self.cut(request)
                left = None if left is None else left - len(chunk)
                await response.write(chunk)
        return response


@asynccontextmanager
async def aborting(answer):
    """Abort the connection of `answer` if it still delivers when the block ends.

    If it were closed, it would wait for the server's closing message, which may arrive after the
    end of the test.
    """
    try:
        yield
    finally:
        if answer.connection is not None and answer.connection.transport is not None:
            answer.connection.transport.abort()
