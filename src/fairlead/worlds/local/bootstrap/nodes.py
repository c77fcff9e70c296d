"""The nodes of a new cluster: identical, spread over zones, and Ready.

upstream: pkg/kubelet/nodestatus/setters.go for the fields that a kubelet reports
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.nodes.kubelet_behaviour import SIMULATED_RUNTIME
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import ARCH, HOSTNAME, OS, ZONE
from fairlead.apiserver.discovery.version import MAJOR, MINOR
from fairlead.engine.core.instant import Instant
from fairlead.engine.kubelet.node_status.node_condition import HEALTHY

CAPACITY: Final = {
    "cpu": "4",
    "ephemeral-storage": "100Gi",
    "memory": "16Gi",
    "pods": "110",
}
REGION: Final = "local"
# What a kubelet of 1.36 declares with default settings.
# upstream: component-helpers/nodedeclaredfeatures/features: Discover
DECLARED_FEATURES: Final = (
    "ExtendWebSocketsToKubelet",
    "GuaranteedQoSPodCPUResize",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)


def node_manifests(count: int, zones: int, now: Instant) -> Iterator[Json]:
    """Yield `count` nodes (`node-1`, ...), assigned round-robin to `zones` zones."""
    for number in range(1, count + 1):
        zone = zone_name((number - 1) % zones)
        yield _node(number, zone, now)


def zone_name(number: int) -> str:
    """Return the name of the zone with the index `number`: zone-a for 0, zone-b for 1 and so on."""
    return f"zone-{_letters(number)}"


def _letters(number: int) -> str:
    """Return the letters in the name of the zone `number`: a, b, ..., z, aa, ab, ..."""
    letters = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


def _node(number: int, zone: str, now: Instant) -> Json:
    name = f"node-{number}"
    timestamp = format_timestamp(now)
    labels = {**node_labels(name), "topology.kubernetes.io/region": REGION, ZONE: zone}
    conditions = [
        {
            "type": one.type,
            "status": one.status,
            "lastHeartbeatTime": timestamp,
            "lastTransitionTime": timestamp,
            "reason": one.reason,
            "message": one.message,
        }
        for one in HEALTHY.values()
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"podCIDR": pod_range(number)},
        "status": {
            "capacity": dict(CAPACITY),
            "allocatable": dict(CAPACITY),
            "conditions": conditions,
            "addresses": node_addresses(number, name),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": node_info(number),
            "declaredFeatures": list(DECLARED_FEATURES),
        },
    }


def node_labels(name: str) -> dict[str, str]:
    """Return the labels that a kubelet sets on the node `name`."""
    # upstream: pkg/kubelet/kubelet_node_status.go:initialNode, updateDefaultLabels
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        ARCH: "amd64",
        HOSTNAME: name,
        OS: "linux",
    }


def pod_range(number: int) -> str:
    """Return the network of the pods on the simulated node `number`."""
    third, last = divmod(number, 250)
    return f"10.{128 + third % 120}.{last}.0/24"


def node_addresses(number: int, name: str) -> list[Json]:
    """Return the status.addresses of the simulated node `number`, whose name is `name`."""
    third, last = divmod(number, 250)
    return [
        {"type": "InternalIP", "address": f"192.168.{third % 250}.{last + 1}"},
        {"type": "Hostname", "address": name},
    ]


def node_info(number: int) -> dict[str, str]:
    """Return the status.nodeInfo of the simulated node `number`."""
    return {
        "architecture": "amd64",
        "bootID": f"{number:08x}-0000-4000-8000-000000000000",
        "containerRuntimeVersion": SIMULATED_RUNTIME,
        "kernelVersion": "simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": f"v{MAJOR}.{MINOR}.0",
        "machineID": f"{number:032x}",
        "operatingSystem": "linux",
        "osImage": "Fairlead simulated node",
        "systemUUID": f"{number:08x}-0000-4000-8000-000000000001",
    }
