"""A queue of the default profile, and pods to put into it."""

from __future__ import annotations

import pytest

from fairlead.core.instant import seconds
from fairlead.core.tie_break import TieBreak
from fairlead.framework.cluster_event import ClusterEvent, EventKind
from fairlead.framework.nominator import Nominator
from fairlead.framework.profile import Profile
from fairlead.scheduling.backoff import BackoffConfig
from fairlead.scheduling.compose import Beliefs, serve
from fairlead.scheduling.queue import SchedulingQueue
from fairlead.state.cluster import Cluster
from fairlead.state.pod_info import PodInfo
from fairlead.testing.builders import make_pod

FIT = ("NodeResourcesFit",)


class Waiting:
    """A scheduling queue spoken to in names and seconds."""

    def __init__(self, start_s=0.0, gate=None, profiles=None, **config):
        self.cluster = Cluster()
        beliefs = Beliefs(self.cluster, Nominator())
        frameworks = {
            profile.scheduler_name: serve(profile, beliefs, TieBreak(0)).framework
            for profile in profiles or (Profile(),)
        }
        config = {key: seconds(value) if key != "pop_from_backoff" else value
                  for key, value in config.items()}  # fmt: skip
        self.queue = SchedulingQueue(frameworks, BackoffConfig(**config), seconds(start_s), gate)

    def info(self, pod):
        return PodInfo(pod, self.cluster.shapes.shape_of(pod))

    def add(self, name, at_s=0.0, **more):
        self.queue.add(self.info(make_pod(name, **more)), seconds(at_s))

    def update(self, name, at_s, kinds=(), **more):
        """A new version of a waiting pod, whose change amounts to `kinds`."""
        old = self.find(name).info
        new = self.info(make_pod(name, **more))
        events = [ClusterEvent(kind, old, new) for kind in kinds]
        self.queue.update(new, seconds(at_s), events)

    def find(self, name):
        return self.queue.find(f"default/{name}")

    def place(self, name):
        return self.find(name).place.value

    def pop(self, at_s=0.0):
        """The popped pod's name, None if nobody's turn has come."""
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
        """When something is due, in seconds; 0 at once."""
        due = self.queue.next_deadline()
        return None if due is None else due / seconds(1)


@pytest.fixture
def waiting():
    """The default queue."""
    return Waiting()


@pytest.fixture(scope="session")
def new_waiting():
    """Makes queues that are configured otherwise."""
    return Waiting
