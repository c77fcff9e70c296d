"""Builders for Nodes, Pods and PodDisruptionBudgets with defaults for all fields.

By default, a node offers 4 cores, 16Gi of memory and room for 110 pods. A pod has one container
without requests, and a uid made from its name. In all modules of builders, the arguments `spec` and
`status` contain further fields by their JSON names. These fields override the fields that the
builder sets. A builder raises DecodeError, a ValueError, for a field that the kind does not have.
The builders of PodGroups and Queues raise DecodeError for a field that Fairlead does not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlead.api.json import Json
from fairlead.api.objects import Node, Pod, PodDisruptionBudget
from fairlead.testing.built_object import built


def make_node(  # noqa: PLR0913 - a builder takes what a case varies
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    devices: Mapping[str, str | int] | None = None,
    **allocatable: str | int,
) -> Node:
    """Return a node; `allocatable` has amounts by resource name, which override the defaults.

    `devices` has amounts of resources whose names are not Python identifiers (nvidia.com/gpu). A
    taint is `key=value:effect` or `key:effect`. `images` maps image names to sizes in bytes. If
    `unschedulable` is set, the node is cordoned.
    """
    offered = {"cpu": "4", "memory": "16Gi", "pods": "110", **allocatable, **(devices or {})}
    found = [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()]
    return built(
        Node,
        "v1",
        {
            "metadata": {
                "name": name,
                "labels": dict(labels or {}),
                "annotations": dict(annotations or {}),
            },
            "spec": {"taints": [_taint(text) for text in taints], "unschedulable": unschedulable},
            "status": {"allocatable": offered, "images": found},
        },
    )


def _taint(text: str) -> Json:
    left, _, effect = text.rpartition(":")
    key, _, value = left.partition("=")
    return {"key": key, "value": value, "effect": effect}


def make_pod(  # noqa: PLR0913 - a builder takes what a case varies
    name: str,
    *,
    namespace: str = "default",
    uid: str | None = None,
    node: str = "",
    priority: int | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    requests: Mapping[str, str | int] | None = None,
    host_ports: Iterable[int] = (),
    nominated: str = "",
    terminating: bool = False,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> Pod:
    """Return a Running pod on `node`, or a Pending pod without a node if `node` is "".

    `uid` defaults to `uid-` followed by the name. `requests` are the requests of the pod's only
    container, by resource name, and `host_ports` are host ports of that container. `nominated` is
    the pod's nominated node. If `terminating` is set, the pod has a deletionTimestamp. `spec` and
    `status` add fields by JSON names, and override other arguments.
    """
    metadata: Json = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    metadata["annotations"] = dict(annotations or {})
    metadata["uid"] = f"uid-{name}" if uid is None else uid
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ports = [{"containerPort": port, "hostPort": port} for port in host_ports]
    resources = {"requests": dict(requests or {})}
    container = {"name": "main", "image": "app", "resources": resources, "ports": ports}
    own: Json = {"containers": [container], "nodeName": node}
    if priority is not None:
        own["priority"] = priority
    phase = "Running" if node else "Pending"
    return built(
        Pod,
        "v1",
        {
            "metadata": metadata,
            "spec": own | dict(spec or {}),
            "status": {"phase": phase, "nominatedNodeName": nominated} | dict(status or {}),
        },
    )


def make_budget(
    name: str,
    selector: Mapping[str, str],
    *,
    allowed: int,
    namespace: str = "default",
    disrupted: Iterable[str] = (),
) -> PodDisruptionBudget:
    """Return a PodDisruptionBudget that selects pods by the labels `selector`.

    Its status allows `allowed` disruptions. `disrupted` contains the names of pods whose disruption
    the budget's status already counts.
    """
    status = {
        "disruptionsAllowed": allowed,
        "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
    }
    return built(
        PodDisruptionBudget,
        "policy/v1",
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": dict(selector)}},
            "status": status,
        },
    )
