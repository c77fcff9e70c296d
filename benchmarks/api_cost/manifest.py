"""The objects that the measurements use: new pods, running pods, and changes of pods."""

from __future__ import annotations

from typing import Final

import msgspec

from fairlead.api.json import Json

NAMESPACE: Final = "default"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
RUNNING: Final = f"{PODS}?watch=true&fieldSelector=status.phase%3DRunning"
CONFIG_MAPS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"

_PADDING: Final = "x" * 2_600  # so that a pod has about 4 KB, as in a real cluster

text: Final = msgspec.json.Encoder().encode


def running_pod(number: int) -> Json:
    """Return a stored, running pod of about 4 KB."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"web-{number:06}",
            "namespace": f"team-{number % 50}",
            "uid": f"00000000-0000-4000-8000-{number:012x}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web" if number % 2 else "api", "pod-template-hash": "5d4f8c7b9"},
            "annotations": {"example.com/notes": f"{_PADDING}{number}"},
        },
        "spec": {
            "nodeName": f"node-{number % 5000}",
            "priority": 0,
            "containers": [
                {
                    "name": "c",
                    "image": "registry.example.com/web:1.2.3",
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                    "env": [{"name": f"E{i}", "value": str(i)} for i in range(10)],
                }
            ],
        },
        "status": {"podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", **_RUNS},
    }


_RUNS: Final[Json] = {
    "phase": "Running",
    "conditions": [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ],
}


def posted_pod(number: int) -> bytes:
    """Return an ordinary new pod: 1.1 KB as posted, 4.2 KB as stored."""
    container = {
        "name": "web",
        "image": "registry.example.com/web:1.2.3",
        "command": ["serve"],
        "args": ["--port", "8080"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "10m", "memory": "16Mi"},
            "limits": {"memory": "256Mi"},
        },
        "env": [{"name": f"E{i}", "value": str(i)} for i in range(10)],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    meta = {
        "name": f"web-{number}",
        "labels": {"app": "web", "pod-template-hash": "5d4f8c7b9"},
        "annotations": {"example.com/notes": "x" * 200},
    }
    spec = {
        "terminationGracePeriodSeconds": 30,
        "containers": [container],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
    return text({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def binding(number: int) -> bytes:
    """Return the Binding of the pod `number`."""
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-1"}
    meta = {"name": f"web-{number}"}
    return text({"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target})


def status_patch(number: int) -> bytes:
    """Return the status patch that a kubelet sends when the pod `number` has started."""
    addresses = {"podIP": f"10.0.{number >> 8 & 255}.{number & 255}", "hostIP": "192.0.2.1"}
    return text({"status": {**_RUNS, **addresses, "startTime": "2026-01-01T00:00:00Z"}})


def label_patch(number: int) -> bytes:
    """Return a patch that sets a label."""
    return text({"metadata": {"labels": {"round": str(number)}}})


def config_map(number: int, value: str = "b") -> bytes:
    """Return a small ConfigMap."""
    meta = {"name": f"settings-{number}"}
    return text({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": value}})
