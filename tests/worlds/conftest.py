"""The worlds that the contract tests run on, behind one small interface."""

from __future__ import annotations

import asyncio
import json
import os
from typing import ClassVar

import pytest
from tests.up_process import up
from tests.worlds.listening import START, Listening, NamedIds
from tests.worlds.remote import Remote

from fairlead.api.codec import decode
from fairlead.apiserver.admission.simulation import SimulatedAdmission
from fairlead.apiserver.registry.store import Store
from fairlead.bench.bare_world import NOW, BareWorld
from fairlead.client.kubeconfig import Kubeconfig
from fairlead.client.rest_client import RestClient
from fairlead.conformance.nodelifecycle.node_world import NodeWorld, instant
from fairlead.conformance.timelines.timeline_world import TimelineWorld
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.worlds.driver import Driver
from fairlead.worlds.local.world import LocalWorld
from fairlead.worlds.simulation.world import SimulatedWorld

PARTS = "kubelet,workloads,volumes,provisioner,disruption,node-lifecycle,scheduler,metrics"


class Simulated:
    """SimulatedWorld."""

    start = START

    def __init__(self, engine, objects=()):
        self.engine = Listening(engine)
        self.world = SimulatedWorld(self.engine, start=START)
        self.store = self.world.store
        self.store.ids = NamedIds()
        self.world.load(objects)

    def at(self, after_s, act):
        self.world.at(START + seconds(after_s), act)

    def run(self, after_s):
        self.world.run(START + seconds(after_s))


class Local:
    """LocalWorld, which clients write to between two runs."""

    start = START

    def __init__(self, engine, objects=()):
        self.engine = Listening(engine)
        ids = NamedIds()
        admission = SimulatedAdmission(ids.new_suffix, lambda _, obj: obj)
        self.store = Store(ids, admission=admission.plugins)
        loaded = self.store.load(objects, START)
        self.world = LocalWorld(self.store)
        self.world.enqueue(ObjectsLoaded(loaded))
        self.driver = Driver(self.engine, self.world, now=START)
        self.acts = []

    def at(self, after_s, act):
        self.acts.append((START + seconds(after_s), act))

    def run(self, after_s):
        for due, act in self.acts:
            self.driver.run(due - 1)
            self.driver.pass_time(due)
            act(self.store, due)
        self.driver.run(START + seconds(after_s))


class NodeTimeline:
    """NodeWorld, which replays recorded node timelines."""

    start = instant(0)

    def __init__(self, engine, objects=()):
        self.engine = Listening(engine)
        self.world = NodeWorld(self.engine)
        self.store = self.world.store
        for one in objects:
            self.store.put_as_is(one, START)
        self.world.begin()

    def at(self, after_s, act):
        self.world.at(round(after_s * 1000), lambda now: act(self.store, now))

    def run(self, after_s):
        self.world.run(round(after_s * 1000))


class Timeline:
    """TimelineWorld, which replays recorded timelines of the scheduler."""

    start = instant(0)
    config: ClassVar = {"kubelet_start_ms": 60_000, "kubelet_stop_ms": 0}

    def __init__(self, engine, objects=()):
        self.engine = Listening(engine)
        self.world = TimelineWorld(self.config, {}, self.engine)
        self.store = self.world.store
        for one in objects:
            self.store.put_as_is(one, START)
        self.world.begin()

    def at(self, after_s, act):
        self.world.at(round(after_s * 1000), lambda now: act(self.store, now))

    def run(self, after_s):
        self.world.run(round(after_s * 1000))


class Bare:
    """BareWorld, which has no store and no time: everything is due immediately."""

    start = NOW - seconds(100)

    def __init__(self, engine, objects=()):
        self.engine = Listening(engine)
        self.world = BareWorld(self.engine)
        self.world.enqueue([ObjectsLoaded([decode(one) for one in objects])])

    def run(self, after_s):
        del after_s
        self.world.run()


WITH_STORE = [Simulated, Local, NodeTimeline, Timeline]


@pytest.fixture(scope="session")
def remote_connection(tmp_path_factory):
    """A cluster without controllers in another process, or that of FAIRLEAD_TEST_KUBECONFIG."""
    given = os.environ.get("FAIRLEAD_TEST_KUBECONFIG")
    if given:
        yield Kubeconfig((given,)).connection("")
        return
    path = tmp_path_factory.mktemp("remote") / "kubeconfig"
    with up("--nodes", "0", "--without", PARTS, "--kubeconfig", str(path), paused=False):
        yield Kubeconfig((str(path),)).connection("")


@pytest.fixture(scope="session")
def binds_by_name(remote_connection):
    """Return whether the server ignores the uid in a Binding, as Kubernetes 1.20 does."""

    async def version():
        async with RestClient(remote_connection) as client:
            return json.loads(await client.get("/version"))

    return int(asyncio.run(version())["minor"].rstrip("+")) <= 20


def made(world_class, request):
    """Makes worlds of a class; remote worlds are cleared and closed after the test."""
    if world_class is not Remote:
        yield world_class
        return
    worlds = []

    class Cleared(Remote):
        connection = request.getfixturevalue("remote_connection")
        binds_by_name = request.getfixturevalue("binds_by_name")

        def __init__(self, *arguments):
            worlds.append(self)
            super().__init__(*arguments)

    yield Cleared
    for world in worlds:
        world.remove_all()
        world.close()


@pytest.fixture(params=[*WITH_STORE, Remote], ids=lambda one: one.__name__.lower())
def any_world(request):
    """Makes a world with an engine and a store in it."""
    yield from made(request.param, request)


@pytest.fixture(params=[*WITH_STORE, Bare, Remote], ids=lambda one: one.__name__.lower())
def any_driven_world(request):
    """Makes a world with an engine; every world satisfies the contract."""
    yield from made(request.param, request)


@pytest.fixture(params=[Simulated, Local], ids=lambda one: one.__name__.lower())
def full_world(request):
    """Makes a world with the whole cluster in it."""
    return request.param


@pytest.fixture
def full_worlds():
    """The classes of all worlds with the whole cluster."""
    return (Simulated, Local)


@pytest.fixture(params=[Local, Remote], ids=lambda one: one.__name__.lower())
def other_world(request):
    """Makes a world that must decide like the simulation."""
    yield from made(request.param, request)
