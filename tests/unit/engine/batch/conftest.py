"""A cluster with queues and gangs, sessions over it, and a world that performs them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from fairlead.engine.batch.compose import compose
from fairlead.engine.batch.configuration_file import read_configuration, shipped_configuration
from fairlead.engine.batch.controller import Batch
from fairlead.engine.batch.defect import FIXED
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.batch.run_session import run_session
from fairlead.engine.batch.session.session import Session
from fairlead.engine.core.command import Bind, DeleteObject, PatchStatus, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import CommandSucceeded, ObjectChanged, ObjectDeleted
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.cluster import Cluster
from fairlead.testing.batch_builders import make_queue


class BatchHarness:
    """A cluster, its batch jobs, and methods that run sessions."""

    def __init__(self, configuration="fairlead", *, defects=FIXED, extensions=None, **changes):
        text = "\n" in configuration
        config = read_configuration(configuration) if text else shipped_configuration(configuration)
        self.config = replace(config, defects=defects, **changes)
        self.cluster = Cluster()
        self.composition = compose(self.config, self.cluster, extensions)
        self.jobs = self.composition.jobs
        self.tie_break = TieBreak(0)

    def put(self, *objects):
        for one in flat(objects):
            self.tell(ObjectChanged(one))
        return self

    def drop(self, *names):
        for name in names:
            self.tell(ObjectDeleted(self.cluster.pods[f"default/{name}"].pod))

    def tell(self, stimulus):
        self.cluster.apply(stimulus)
        self.jobs.apply(stimulus)

    def session(self, now_s=0.0):
        """Return an open session, for tests that call its operations directly."""
        session = Session(
            self.cluster, self.jobs, self.composition.policy, self.tie_break, seconds(now_s)
        )
        session.open()
        return session

    def run(self, now_s=0.0, observer=None):
        """Run one session; return its decisions by name."""
        done = run_session(
            self.composition, self.cluster, self.tie_break, seconds(now_s), observer=observer
        )
        self.cluster.table.validate()
        self.jobs.validate()
        return Decided(done)

    def task(self, name):
        return next(t for t in self.jobs.tasks.values() if t.key == f"default/{name}")

    def job(self, name):
        return self.jobs.jobs[f"default/{name}"]

    def dump(self):
        """Return all state that discarding a statement must restore."""
        table = self.cluster.table
        return {
            "tasks": {k: (t.status, t.node) for k, t in self.jobs.tasks.items()},
            "held": {j.id: trimmed(j.held) for j in self.jobs.jobs.values()},
            "pending": {j.id: trimmed(j.pending) for j in self.jobs.jobs.values()},
            "by_status": {
                j.id: [sorted(found) for found in j.by_status] for j in self.jobs.jobs.values()
            },
            "pods": {node.name: sorted(node.pods) for node in table.nodes()},
            "requested": table.requested.tolist(),
            "room": [r.tolist() for r in self.room()],
        }

    def room(self):
        room = self.composition.policy.room
        return np.copy(room.idle), np.copy(room.releasing)


def trimmed(amounts):
    found = list(amounts)
    while found and not found[-1]:
        found.pop()
    return found


def flat(objects):
    for one in objects:
        if isinstance(one, list | tuple):
            yield from flat(one)
        else:
            yield one


class Decided:
    """The outcome of a session, with names instead of objects."""

    def __init__(self, done):
        self.commands = done.commands
        self.reports = {report.job.id.rpartition("/")[2]: report for report in done.reports}
        self.wake_at = done.wake_at

    @property
    def bound(self):
        return {c.pod.name: c.node for c in self.commands if isinstance(c, Bind)}

    @property
    def evicted(self):
        return {c.target.name: c.why for c in self.commands if isinstance(c, DeleteObject)}

    @property
    def events(self):
        return [
            f"{kind_of(c.regarding)} {c.regarding.name} {c.reason}: {c.note}"
            for c in self.commands
            if isinstance(c, RecordEvent)
        ]

    @property
    def patches(self):
        return {
            (kind_of(c.target), c.target.name): c
            for c in self.commands
            if isinstance(c, PatchStatus)
        }


def kind_of(ref):
    """Return the kind without its API group."""
    return ref.kind.partition(".")[0]


class World:
    """Performs a controller's commands immediately and without refusals, with its own clock."""

    def __init__(self, configuration="fairlead", **changes):
        self.cluster = Cluster()
        config = replace(shipped_configuration(configuration), **changes)
        self.reports = []
        self.batch = Batch(config, self.cluster, self, TieBreak(0))
        self.now_s = 0.0
        self.sessions = []
        self.log = []

    def report(self, record):
        self.reports.append(record)

    def put(self, *objects):
        for one in flat(objects):
            self.tell(ObjectChanged(one))
        return self

    def drop(self, *names):
        for name in names:
            self.tell(ObjectDeleted(self.pod(name)))

    def pod(self, name):
        return self.cluster.pods[f"default/{name}"].pod

    def tell(self, stimulus):
        self.cluster.apply(stimulus)
        self._perform(self.batch.handle(stimulus, seconds(self.now_s)))

    def _perform(self, commands):
        for command in commands:
            self.log.append(command)
            match command:
                case Bind(pod=target, node=node):
                    self.tell(CommandSucceeded(command))
                    self.tell(ObjectChanged(running(self.pod(target.name), node)))
                case DeleteObject(target=target):
                    self.tell(CommandSucceeded(command))
                    self.tell(ObjectDeleted(self.pod(target.name)))
                case _:
                    self.tell(CommandSucceeded(command))

    def live_until(self, end_s):
        """Run every session that is due until `end_s`."""
        while (due := self.batch.next_deadline()) is not None and due <= seconds(end_s):
            self.now_s = max(self.now_s, due / seconds(1))
            self.sessions.append(self.now_s)
            self._perform(self.batch.handle_deadline(seconds(self.now_s)))
        self.now_s = end_s
        return self

    def running(self):
        return {
            info.pod.metadata.name: info.pod.spec.node_name
            for info in self.cluster.pods.values()
            if info.pod.spec.node_name
        }


def running(pod, node):
    change = msgspec.structs.replace
    return change(
        pod,
        spec=change(pod.spec, node_name=node),
        status=change(pod.status, phase="Running"),
    )


@pytest.fixture
def make_harness():
    """Makes clusters with other configurations."""
    return BatchHarness


@pytest.fixture
def harness():
    """A cluster with Fairlead's default configuration."""
    return BatchHarness()


@pytest.fixture
def kube_batch():
    """A cluster with kube-batch's built-in configuration, without its defects."""
    return BatchHarness("kube-batch").put(make_queue("default"))


@pytest.fixture
def worlds():
    """Makes worlds that run many sessions."""
    return World


@pytest.fixture
def statuses():
    """Returns how many members of a group have each status."""

    def count(harness, group):
        found = harness.job(group).by_status
        return {status.name: len(found[status]) for status in TaskStatus if found[status]}

    return count
