"""ClusterWorld in the contract suite: against a server in another process, in virtual time.

The server is a `fairlead up` without controllers, or the cluster of FAIRLEAD_TEST_KUBECONFIG. The
server generates its own uids, so they are exchanged for the scenario's uids in both directions.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import time
from functools import partial
from typing import ClassVar

from tests.live.event_loop import connections_closed
from tests.worlds.listening import Listening, NamedIds

from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import NODE, kind_of
from fairlead.client.api_resource import ApiResource
from fairlead.client.cache.list_watch import ListWatch
from fairlead.client.cache.reflector import Reflector, is_newer
from fairlead.client.connection import ConnectionConfig
from fairlead.client.request_queue import RequestLimits
from fairlead.client.rest_client import ApiRequest, RestClient
from fairlead.engine.core.instant import seconds
from fairlead.worlds.cluster.resource import CONTROLLERS, resources_by_kind, watched_resources
from fairlead.worlds.cluster.sender import Sender, SenderOptions
from fairlead.worlds.cluster.world import ClusterWorld
from fairlead.worlds.driver import Driver

START = parse_timestamp("2030-01-01T00:00:00Z")
QUIET_S = 0.1


class Exchanged(RestClient):
    """Exchanges the uids of the scenario for those of the server, in both directions."""

    def __init__(self, config, uids):
        super().__init__(config, connections_max=64)
        self.uids = uids
        self.is_shown = asyncio.Event()  # cleared while an object of unknown uid is created
        self.is_shown.set()

    def begin(self, request, seconds_max, on_answer):
        return False  # everything goes through `exchange`

    async def exchange(self, request, seconds_max):
        body = request.body
        for ours, theirs in self.uids.items() if body else ():
            body = body.replace(f'"{ours}"'.encode(), f'"{theirs}"'.encode())
        sent = ApiRequest(
            request.method, request.path, body, request.content_type, query=request.query
        )
        answer = await super().exchange(sent, seconds_max)
        return type(answer)(
            answer.status,
            self.ours(answer.body),
            answer.retry_after_s,
            answer.reason,
            self.ours(answer.message.encode()).decode(),
        )

    async def stream(self, path, query, seconds_max):
        async for lines in super().stream(path, query, seconds_max):
            await self.is_shown.wait()
            yield [self.ours(line) for line in lines]

    def ours(self, text):
        for ours, theirs in self.uids.items():
            text = text.replace(theirs.encode(), ours.encode())
        return text


def resource_of(kind):
    return ApiResource(kind.api_version, kind.kind, kind.plural, is_namespaced=kind.namespaced)


class RemoteStore:
    """The server, with the methods of a Store that scenarios use."""

    def __init__(self, loop, client):
        self._loop = loop
        self._client = client
        self.created = []
        self.deleted = set()
        self.versions = {}

    def _send(self, method, kind, namespace, name, body=None, **more):
        resource = resource_of(kind)
        path = resource.path(namespace, name) if name else resource.collection(namespace)
        content = None if body is None else json.dumps(body).encode()
        request = ApiRequest(method, path, content, **more)
        answer = self._loop.run_until_complete(self._client.exchange(request, 60))
        found = json.loads(answer.body or b"{}")
        meta = found.get("metadata") or {}
        if answer.is_success and method != "GET" and meta.get("name"):
            key = f"{namespace}/{meta['name']}" if namespace else meta["name"]
            self.versions[kind.kind, key] = meta.get("resourceVersion", "")
            if method == "DELETE":
                self.deleted.add((kind.kind, key))
        assert answer.is_success or answer.status == 404, answer
        return found if answer.is_success else None

    def get(self, kind, namespace, name):
        return self._send("GET", kind, namespace, name)

    find = get

    def patch(self, kind, namespace, name, patch, now):
        content_type = "application/merge-patch+json"
        self._send("PATCH", kind, namespace, name, patch, content_type=content_type)

    def delete(self, kind, namespace, name, now, deletion):
        options = {"gracePeriodSeconds": deletion.grace_period_s}
        self._send("DELETE", kind, namespace, name, options)

    def create(self, manifest, now):
        kind, meta = kind_of(manifest), manifest["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        plain = {**manifest, "metadata": {k: v for k, v in meta.items() if k != "uid"}}
        self._client.is_shown.clear()
        stored = self._send("POST", kind, namespace, "", plain)
        self.created.append((kind, namespace, name))
        ours = meta.get("uid") or NamedIds().new_uid(kind, namespace, name)
        self._client.uids[ours] = stored["metadata"]["uid"]
        self._client.is_shown.set()
        if kind is NODE:  # without the taint of a node that is not ready yet
            self.patch(kind, "", name, {"spec": {"taints": None}}, now)
        if manifest.get("status") and kind.has_status:
            patch = {"status": manifest["status"]}
            resource = resource_of(kind)
            path = resource.path(namespace, name, "status")
            content_type = "application/merge-patch+json"
            request = ApiRequest("PATCH", path, json.dumps(patch).encode(), content_type)
            answer = self._loop.run_until_complete(self._client.exchange(request, 60))
            assert answer.is_success, answer
        return stored

    def remove_all(self):
        for kind, namespace, name in reversed(self.created):
            self._send("DELETE", kind, namespace, name, {"gracePeriodSeconds": 0})


async def eventually(condition):
    """Wait for `condition`, for at most a minute."""
    for _ in range(12_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("waited in vain")


class Remote:
    """ClusterWorld against the server behind `connection`, which a fixture sets."""

    start = START
    connection: ClassVar[ConnectionConfig]

    def __init__(self, engine, objects=()):
        self.engine = Listening(engine)
        self.selector = selectors.DefaultSelector()
        self.loop = asyncio.SelectorEventLoop(self.selector)
        self.own = len(self.selector.get_map())  # the loop's pipe to itself
        self.client = Exchanged(self.connection, {})
        self.loop.run_until_complete(self.client.__aenter__())
        self.store = RemoteStore(self.loop, self.client)
        self.acts = []
        self.tasks = []
        for one in objects:
            self.store.create(one, START)
        self.loop.run_until_complete(self._begin())

    async def _begin(self):
        await asyncio.sleep(QUIET_S)  # the server's own controllers complete the objects
        resources = watched_resources(CONTROLLERS)
        reflectors = [Reflector(one, lambda: 0.0) for one in resources]
        for one in reflectors:
            watch = ListWatch(one, self.client, partial(self._observe, one), time.monotonic_ns)
            self.tasks.append(self.loop.create_task(watch.run()))
        self.reflectors = {one.resource.kind: one for one in reflectors}
        await eventually(lambda: all(one.has_synced for one in reflectors))
        self.driver = None
        options = SenderOptions(
            limits=RequestLimits(qps=0),
            clock=self._now,
            jitter=lambda: 0.0,
            may_send=lambda: True,
        )
        self.sender = Sender(self.client, resources_by_kind(resources), options)
        self.world = self.sender.world = ClusterWorld(reflectors, self.sender)
        self.driver = Driver(self.engine, self.world, now=START)
        self.world.start()

    def _now(self):
        return START if self.driver is None else self.driver.now

    def _observe(self, reflector, updates):
        if getattr(self, "world", None) is not None:
            self.world.observe(updates)

    def at(self, after_s, act):
        self.acts.append((START + seconds(after_s), act))

    def run(self, after_s):
        for due, act in self.acts:
            self.loop.run_until_complete(self._advance(due - 1))
            self.driver.pass_time(due)
            act(self.store, due)
            self.loop.run_until_complete(self._seen())
        self.acts = []
        self.loop.run_until_complete(self._advance(START + seconds(after_s)))

    async def _seen(self):
        """Wait until the watches have shown what the store has written."""
        for (kind, key), version in self.store.versions.items():
            await eventually(partial(self._has, kind, key, version))
        await asyncio.sleep(QUIET_S / 2)
        self.store.versions.clear()

    def _has(self, kind, key, version):
        found = self.reflectors[kind].objects
        if key not in found:
            return (kind, key) in self.store.deleted
        return not is_newer(version, found[key].metadata.resource_version)

    async def _advance(self, until):
        """Run until an instant; no time passes while requests are in flight."""
        while True:
            self.driver.run(self.driver.now)
            await eventually(self._is_settled)
            due = self.driver.next_due()
            if due is None or due > until:
                self.driver.pass_time(until)
                return
            self.driver.pass_time(due)

    def _is_settled(self):
        self.driver.run(self.driver.now)
        return self.sender.is_idle and self.world.is_quiet

    def close(self):
        self.loop.run_until_complete(self._end())
        self.loop.close()

    async def _end(self):
        self.sender.stop()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.client.__aexit__(None, None, None)
        await connections_closed(self.selector, self.own)

    def remove_all(self):
        self.store.remove_all()
