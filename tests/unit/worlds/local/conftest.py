"""A local cluster whose clock is advanced by the test."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from fairlead.api.codec import decode_stored
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.auth.certificate_authority import new_authority
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.request import ADMIN, Request
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.engine import Engine
from fairlead.engine.state.cluster import Cluster as EngineState
from fairlead.worlds.driver import Driver
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.cluster import LocalCluster, LocalOptions
from fairlead.worlds.local.world import LocalWorld

START = parse_timestamp("2026-01-01T00:00:00Z")
KEY = new_authority(datetime(2026, 1, 1, tzinfo=UTC)).key


class Cluster:
    """A local cluster, called like an API server without a socket."""

    def __init__(self, **options):
        self.clock = LocalClock(START, paused=True)
        self.local = LocalCluster(LocalOptions(**options), self.clock, {"t": ADMIN}, KEY)
        self.pass_time(0)

    def pass_time(self, duration_s):
        self.clock.jump_to(self.clock.now() + seconds(duration_s))
        self.local.control_plane.run_until(self.clock.now())

    def ask(self, method, path, body=None, content_type="application/json", accept="", query=()):
        """Send a request; perform the work that is due; return the response as JSON."""
        text = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": content_type, "accept": accept}
        request = Request(method, path, query, headers, text, ADMIN)
        response = self.local.server.handle(request, self.clock.now())
        self.pass_time(0)
        return json.loads(b"".join(response.body))

    def start(self, controller, namespace):
        """Run an additional controller on this namespace, as after a restart."""
        store, now = self.local.store, self.clock.now()
        world = LocalWorld(store)
        found = store.get(find_kind("Namespace"), "", namespace)
        world.enqueue(ObjectsLoaded([decode_stored(found)]))
        Driver(Engine(EngineState(), [controller]), world, now=now).run(now)

    def find(self, kind, name, namespace="default"):
        return self.local.store.find(find_kind(kind), namespace, name)

    def list(self, kind, namespace="default"):
        return self.local.store.list(find_kind(kind), namespace)


@pytest.fixture
def make_cluster():
    """Makes clusters with these options."""
    return Cluster


@pytest.fixture
def cluster():
    """A cluster of three nodes in two zones, with a certificate authority."""
    return Cluster(nodes=3, zones=2, authority="PEM")
