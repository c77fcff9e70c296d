"""Manifests, and a controller that records its stimuli."""

from __future__ import annotations

import pytest

from fairlead.engine.core.issuer import SCHEDULER
from fairlead.engine.engine import Engine
from fairlead.engine.state.cluster import Cluster


class Listener:
    """A controller that records its stimuli and returns no commands."""

    issuer = SCHEDULER

    def __init__(self):
        self.stimuli = []

    def handle(self, stimulus, now):
        self.stimuli.append((now, stimulus))
        return []

    def next_deadline(self):
        return None

    def handle_deadline(self, now):
        raise AssertionError("nothing was due")


@pytest.fixture
def listener():
    return Listener()


@pytest.fixture
def engine(listener):
    return Engine(Cluster(), [listener])


@pytest.fixture
def pod():
    def make(name="a", *, node="", **metadata):
        spec = {"containers": [{"name": "c", "image": "i"}]}
        if node:
            spec["nodeName"] = node
        meta = {"name": name, "namespace": "ns", **metadata}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    return make


@pytest.fixture
def node():
    def make(name="n1", **status):
        meta = {"name": name}
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}

    return make
