"""A scheduling queue, and a scheduler whose API server is played by the test."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import Bind, DeleteObject, PatchObject, PatchStatus, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
)
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.engine import Engine
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.engine.scheduling.queue.backoff import BackoffConfig
from fairlead.engine.scheduling.queue.scheduling_queue import SchedulingQueue
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_pod

FIT = ("NodeResourcesFit",)


class Waiting:
    """A scheduling queue with methods that use names and seconds."""

    def __init__(self, start_s=0.0, gate=None, profiles=None, kind=SchedulingQueue, **config):
        self.cluster = Cluster()
        handle = PluginHandle(self.cluster, Nominator())
        frameworks = {
            profile.scheduler_name: build_profile(profile, handle, TieBreak(0)).framework
            for profile in profiles or (Profile(),)
        }
        config = {key: seconds(value) if key != "pop_from_backoff" else value
                  for key, value in config.items()}  # fmt: skip
        self.queue = kind(frameworks, BackoffConfig(**config), seconds(start_s), gate)

    def info(self, pod):
        return PodInfo(pod, self.cluster.shapes.shape_of(pod))

    def add(self, name, at_s=0.0, **more):
        self.queue.add(self.info(make_pod(name, **more)), seconds(at_s))

    def update(self, name, at_s, kinds=(), **more):
        """Update a waiting pod; `kinds` are the events of the change."""
        old = self.find(name).info
        new = self.info(make_pod(name, **more))
        events = [ClusterEvent(kind, old, new) for kind in kinds]
        self.queue.update(new, seconds(at_s), events)

    def find(self, name):
        return self.queue.find(f"default/{name}")

    def place(self, name):
        return self.find(name).place.value

    def pop(self, at_s=0.0):
        """Return the name of the popped pod, None if no pod is due."""
        queued = self.queue.pop(seconds(at_s))
        return queued and queued.info.pod.metadata.name

    def fail(self, at_s, plugins=FIT):
        """Pop a pod and put it back rejected by `plugins`, or after an error; returns its name."""
        queued = self.queue.pop(seconds(at_s))
        self.queue.put_back(queued, seconds(at_s), tuple(plugins))
        return queued.info.pod.metadata.name

    def wake(self, at_s, kind=EventKind.ASSIGNED_POD_DELETE, old=None, new=None, **more):
        old = old or (self.info(make_pod("gone", node="n")) if new is None else None)
        self.queue.wake(ClusterEvent(kind, old, new, **more), seconds(at_s))

    def due_s(self):
        """Return the next deadline in seconds, or None; 0 means immediately."""
        due = self.queue.next_deadline()
        return None if due is None else due / seconds(1)


@pytest.fixture
def waiting():
    """The default queue."""
    return Waiting()


@pytest.fixture(scope="session")
def new_waiting():
    """Makes queues with other configurations."""
    return Waiting


class Stage:
    """A scheduler in a world that the test plays: the test sends changes and outcomes.

    Methods return commands as short tuples (see `summary`). `sent` contains the commands without an
    outcome, oldest first.
    """

    def __init__(self, *objects, seed=0, at_s=1000.0, **config):
        self.now = seconds(at_s)
        self.cluster = Cluster()
        self.records = Records()
        self.scheduler = Scheduler(
            SchedulerConfig(**config), self.cluster, self.records, TieBreak(seed), seconds(at_s)
        )
        self.engine = Engine(self.cluster, [self.scheduler])
        self.sent = []
        self.put(*objects)

    def put(self, *objects):
        """Add or update these objects."""
        return [said for one in objects for said in self._handle(ObjectChanged(one))]

    def gone(self, *objects):
        return [said for one in objects for said in self._handle(ObjectDeleted(one))]

    def step(self, after_s=0.0):
        """Handle the deadline that is due `after_s` from now; return the new commands."""
        self.now += seconds(after_s)
        due = self.engine.next_deadline()
        assert due is not None
        assert due <= self.now
        return self._sent(self.engine.handle_deadline(self.now))

    def steps(self):
        """Handle everything that is due now, without outcomes in between; return the commands."""
        commands = []
        while self.is_due():
            commands += self.step()
        return commands

    def is_due(self):
        due = self.engine.next_deadline()
        return due is not None and due <= self.now

    def done(self, *kinds):
        """Report that the oldest command succeeded."""
        command = self.sent.pop(0)
        assert not kinds or summary(command)[0] in kinds
        return self._handle(CommandSucceeded(command))

    def refused(self, reason=FailureReason.INTERNAL_ERROR, message="no"):
        """Report that the oldest command failed."""
        return self._handle(CommandFailed(self.sent.pop(0), reason, message))

    def all_done(self):
        """Report success for all sent commands and those that follow, without object changes."""
        commands = []
        while self.sent:
            commands += self.done()
        return commands

    def _handle(self, stimulus):
        return self._sent(self.engine.handle(stimulus, self.now))

    def _sent(self, issued):
        commands = [one.command for one in issued]
        self.sent += [one for one in commands if not isinstance(one, RecordEvent)]
        return [summary(command) for command in commands]

    def place(self, name):
        queued = self.scheduler.queue.find(f"default/{name}")
        return queued and queued.place.value

    def on(self, node):
        return sorted(pod.key for pod in self.cluster.table.find(node).pods.values())

    def nominated(self, name):
        return self.scheduler.nominator.node_of(f"uid-{name}")


class Records(list):
    """A reporter that stores its records."""

    def report(self, record):
        self.append(record)

    def of(self, kind):
        return [record for record in self if isinstance(record, kind)]


def summary(command):
    """Return a command as a short tuple."""
    match command:
        case Bind(pod, node):
            return ("bind", pod.name, node)
        case DeleteObject(target):
            return ("delete", target.name)
        case RecordEvent(regarding=pod, reason=reason, note=note):
            return ("event", pod.name, reason, note)
        case PatchObject(target, _):
            return ("write", target.name)
        case PatchStatus(target, fields, conditions):
            shown = [(one.type, one.status, one.reason, one.message) for one in conditions]
            return ("patch", target.name, dict(fields), *shown)
    raise AssertionError(command)


@pytest.fixture(scope="session")
def stage():
    """Makes stages."""
    return Stage


@pytest.fixture
def staged(stage):
    """Makes stages whose default profile also has `plugins`, before all others, with weight 5."""

    def make(*plugins, objects=(), last=False, **more):
        named = tuple((plugin.name, 5) for plugin in plugins)
        order = (*DEFAULT_PLUGINS, *named) if last else (*named, *DEFAULT_PLUGINS)
        factories = {one.name: (lambda _handle, _args, one=one: one) for one in plugins}
        return stage(*objects, profiles=(Profile(plugins=order),), out_of_tree=factories, **more)

    return make
