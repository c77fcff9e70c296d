"""One cluster per module; each test has its own object names."""

from __future__ import annotations

import itertools

import pytest

from fairlead.testing.cluster.start import start_cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster whose clock is ten times as fast as real time."""
    with start_cluster(tmp_path_factory.mktemp("cluster"), nodes=3, zones=3, speed=10) as started:
        yield started


@pytest.fixture(scope="module")
def numbers():
    return itertools.count(1)


@pytest.fixture
def name(numbers):
    """A name that no other test uses."""
    return f"n{next(numbers)}"


@pytest.fixture
def namespace(cluster, name):
    """A namespace for this test, with its ServiceAccount."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    cluster.expect(lambda: cluster.get("sa", "default", name))
    return name


def pod_manifest(name, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}], **spec},
    }


@pytest.fixture
def pod():
    """Makes the manifest of a pod."""
    return pod_manifest
