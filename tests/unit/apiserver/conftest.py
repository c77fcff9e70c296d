"""A store with predictable ids, and objects to store."""

from __future__ import annotations

import pytest

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_timestamp
from fairlead.apiserver.registry.store import Store

NOW = parse_timestamp("2026-01-01T00:00:00Z")


class CountedIds:
    """uid-1, uid-2, …; the same sequence numbers the suffixes."""

    def __init__(self):
        self.count = 0

    def new_uid(self, kind, namespace, name):
        self.count += 1
        return f"uid-{self.count}"

    def new_suffix(self):
        self.count += 1
        return f"{self.count:05}"


def make_pod(name="a", *, namespace="default", node="", phase="", metadata=None, **spec):
    obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **(metadata or {})},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }
    if node:
        obj["spec"]["nodeName"] = node
    if phase:
        obj["status"] = {"phase": phase}
    return obj


def make_class(name="high", value=1000, **more):
    meta = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": meta,
        "value": value,
        **more,
    }


@pytest.fixture
def now():
    return NOW


@pytest.fixture
def later():
    """`later(s)` is `s` seconds after now."""
    return lambda seconds: NOW + seconds * NANOSECONDS_PER_SECOND


@pytest.fixture
def store():
    return Store(CountedIds())


@pytest.fixture
def new_store():
    """Makes stores whose logs keep `log_capacity` changes."""
    return lambda **settings: Store(CountedIds(), **settings)


@pytest.fixture
def pod():
    return make_pod


@pytest.fixture
def priority_class():
    return make_class
