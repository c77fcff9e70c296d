"""Fixtures that build the objects and files for tests of what-ifs."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from fairlead.whatif.input.document import Document
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.snapshot import read_snapshot


def node(name="n", cpu="4", **labels):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}},
    }


def pod(name="web", namespace="default", *, cpu="1", node_name="", owner="", **spec):
    metadata = {"name": name, "namespace": namespace}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner,
             "controller": True}
        ]  # fmt: skip
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    bound = {"nodeName": node_name} if node_name else {}
    status = {"phase": "Running"} if node_name else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **bound, **spec},
        "status": status,
    }


def workload(kind="Deployment", name="web", namespace="default", *, replicas=1, cpu="1", **spec):
    labels = {"app": name}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], **spec},
            },
        },
    }


def priority_class(name, value, **fields):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


@pytest.fixture
def make():
    """Makes objects as JSON values."""
    return SimpleNamespace(node=node, pod=pod, workload=workload, priority_class=priority_class)


@pytest.fixture
def found():
    """Returns manifests for JSON values, as if they were in one file."""
    return lambda *values: manifests([Document("f.yaml", list(values))])


@pytest.fixture
def write(tmp_path):
    """Writes a value to a file (as JSON, or a text unchanged); returns the path."""

    def write_file(name, *values):
        path = tmp_path / name
        text = values[0] if isinstance(values[0], str) else json.dumps(list(values))
        path.write_text(text)
        return str(path)

    return write_file


@pytest.fixture
def snapshot(write):
    """Returns the snapshot of a file with these objects."""
    return lambda *values: read_snapshot(write("snapshot.json", *values))
