"""The worlds that the contract holds for, behind one small interface."""

from __future__ import annotations

from itertools import count
from typing import ClassVar

import pytest

from fairlead.api.codec import decode
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.admission.simulation import SimulatedAdmission
from fairlead.apiserver.registry.store import Store
from fairlead.bench.bare_world import NOW, BareWorld
from fairlead.conformance.nodelifecycle.node_world import NodeWorld, instant
from fairlead.conformance.timelines.timeline_world import TimelineWorld
from fairlead.engine.core.command import RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.worlds.driver import Driver
from fairlead.worlds.local.world import LocalWorld
from fairlead.worlds.simulation.world import SimulatedWorld, command_line

START = parse_timestamp("2030-01-01T00:00:00Z")


class NamedIds:
    """Ids that do not depend on the order in which objects are created."""

    def __init__(self):
        self._suffixes = count(1)

    def new_uid(self, kind, namespace, name):
        return f"{kind.resource}-{namespace}-{name}"

    def new_suffix(self):
        return f"{next(self._suffixes):05}"


class Listening:
    """An engine, with all that it receives and issues (but events) written down."""

    def __init__(self, engine):
        self.engine = engine
        self.received = []
        self.issued = []

    def handle(self, stimulus, now):
        self.received.append((stimulus, now))
        return self._noted(self.engine.handle(stimulus, now), now)

    def next_deadline(self):
        return self.engine.next_deadline()

    def handle_deadline(self, now):
        return self._noted(self.engine.handle_deadline(now), now)

    def _noted(self, issued, now):
        self.issued += [(one, now) for one in issued if not isinstance(one.command, RecordEvent)]
        return issued

    @property
    def lines(self):
        """Command and component of all commands, sorted."""
        return sorted(
            f"{one.issuer.component.value} {command_line(one.command, now - START)}"
            for one, now in self.issued
        )


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
    """BareWorld, which has no store and one instant: everything is due at once."""

    start = NOW - seconds(100)

    def __init__(self, engine, objects=()):
        self.engine = Listening(engine)
        self.world = BareWorld(self.engine)
        self.world.enqueue([ObjectsLoaded([decode(one) for one in objects])])

    def run(self, after_s):
        del after_s
        self.world.run()


WITH_STORE = [Simulated, Local, NodeTimeline, Timeline]


@pytest.fixture(params=WITH_STORE, ids=lambda one: one.__name__.lower())
def any_world(request):
    """Makes a world with an engine and a store in it."""
    return request.param


@pytest.fixture(params=[*WITH_STORE, Bare], ids=lambda one: one.__name__.lower())
def any_driven_world(request):
    """Makes a world with an engine in it; every world keeps the contract."""
    return request.param


@pytest.fixture(params=[Simulated, Local], ids=lambda one: one.__name__.lower())
def full_world(request):
    """Makes a world with the whole cluster in it."""
    return request.param


@pytest.fixture
def full_worlds():
    """All of them."""
    return (Simulated, Local)
