"""The three nodes of the cluster in which the API responses were recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import ARCH, HOSTNAME, OS, ZONE

ZONES: Final = {"node-1": "zone-a", "node-2": "zone-b", "node-3": "zone-b"}
CONTROL_PLANE: Final = {"node-1": {"node-role.kubernetes.io/control-plane": ""}}
ROOM: Final = {"cpu": "4", "ephemeral-storage": "50Gi", "memory": "8Gi", "pods": "110"}
_HEALTHY_CONDITIONS: Final = (
    (
        "MemoryPressure",
        "False",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_MACHINE: Final = {
    "machineID": "",
    "systemUUID": "",
    "bootID": "",
    "kernelVersion": "6.1.0",
    "osImage": "Golden Linux 1",
    "containerRuntimeVersion": "containerd://2.0.0",
    "kubeletVersion": "v1.36.2",
    "kubeProxyVersion": "",
    "operatingSystem": "linux",
    "architecture": "amd64",
}


def recorded_nodes(now: int) -> Iterator[Json]:
    """Yield the manifests of the nodes; `now` (ns since 1970) is the time of their heartbeats."""
    for number, name in enumerate(ZONES, 1):
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": _labels(name),
                "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            },
            "spec": {"podCIDR": f"10.244.{number}.0/24", "podCIDRs": [f"10.244.{number}.0/24"]},
            "status": _status(name, now),
        }


def _labels(name: str) -> Json:
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        ARCH: "amd64",
        HOSTNAME: name,
        OS: "linux",
        ZONE: ZONES[name],
        **CONTROL_PLANE.get(name, {}),
    }


def _status(name: str, now: int) -> Json:
    times = {"lastHeartbeatTime": format_timestamp(now), "lastTransitionTime": None}
    return {
        "capacity": dict(ROOM),
        "allocatable": dict(ROOM),
        "conditions": [
            {"type": kind, "status": status, **times, "reason": reason, "message": message}
            for kind, status, reason, message in _HEALTHY_CONDITIONS
        ],
        "addresses": [
            {"type": "InternalIP", "address": "127.0.0.1"},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 29_250}},
        "nodeInfo": dict(_MACHINE),
    }
