"""Builds the nodes and pods of upstream's benchmarks.

upstream: test/integration/scheduler_perf/templates
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    CSINode,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Service,
)
from fairlead.api.well_known_label import HOSTNAME, ZONE

CSI_DRIVER: Final = "ebs.csi.aws.com"


def nodes(
    count: int, zones: int = 0, allocatable: Mapping[str, str] | None = None, start: int = 0
) -> list[Node]:
    """Return `count` nodes of 4 CPU, 32Gi and 110 pods, spread over `zones` zones (0 for none).

    `allocatable` overrides these amounts. `start` is the number in the name of the first node.
    """
    offered = {"cpu": "4", "memory": "32Gi", "pods": "110", **(allocatable or {})}
    return [_node(i, zones, offered) for i in range(start, start + count)]


def _node(i: int, zones: int, offered: Mapping[str, str]) -> Node:
    name = f"node-{i:05d}"
    labels = {HOSTNAME: name}
    if zones:
        labels[ZONE] = f"zone{i % zones + 1}"
    obj = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": dict(offered)}}
    return decode_as(Node, obj)


def pods(
    prefix: str, count: int, namespace: str = "bench", spec: Json | None = None, **metadata: Any
) -> Iterator[Pod]:
    """Yield `count` pods with `spec`, which requests 100m CPU and 500Mi by default.

    Their names are `prefix` and a number. `metadata` contains further fields of the metadata, keyed
    by their JSON names.
    """
    spec = spec or requests("100m", "500Mi")
    for i in range(count):
        name = f"{prefix}-{i:05d}"
        meta = {"name": name, "namespace": namespace, "uid": name, **metadata}
        yield decode_as(Pod, {"metadata": meta, "spec": spec})


def requests(cpu: str, memory: str, **spec: Any) -> Json:
    """Return a pod spec with one container that requests `cpu` and `memory`; `spec` adds fields."""
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    return {"containers": [{"name": "pause", "image": "pause", "resources": resources}], **spec}


def light(**spec: Any) -> Json:
    """Return a pod spec whose container has no requests; `spec` adds fields."""
    return {"containers": [{"name": "pause", "image": "pause"}], **spec}


def affinity_term(color: str, topology_key: str, **more: Any) -> Json:
    """Return a pod affinity term for pods whose label "color" has the value `color`.

    `more` adds fields to the term.
    """
    selector = {"matchLabels": {"color": color}}
    return {"labelSelector": selector, "topologyKey": topology_key, **more}


def required(kind: str, term: Json) -> Json:
    """Return an affinity with one required `term`; `kind` is podAffinity or podAntiAffinity."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def preferred(kind: str, term: Json) -> Json:
    """Return an affinity with one preferred `term` of weight 1."""
    weighted = [{"weight": 1, "podAffinityTerm": term}]
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def namespaces(prefix: str, count: int, labels: Mapping[str, str]) -> list[Namespace]:
    """Return `count` namespaces with `labels`."""
    metas = ({"name": f"{prefix}-{i}", "labels": dict(labels)} for i in range(count))
    return [decode_as(Namespace, {"metadata": meta}) for meta in metas]


def service(name: str, namespace: str, selector: Mapping[str, str]) -> Service:
    """Return the Service `name` that selects pods of `namespace` by `selector`."""
    meta = {"name": name, "namespace": namespace}
    return decode_as(Service, {"metadata": meta, "spec": {"selector": dict(selector)}})


def csi_nodes(count: int, limit: int) -> list[CSINode]:
    """Return the CSINodes of the first `count` nodes; a node can have at most `limit` volumes."""
    spec = {"drivers": [{"name": CSI_DRIVER, "allocatable": {"count": limit}}]}
    metas = ({"name": f"node-{i:05d}"} for i in range(count))
    return [decode_as(CSINode, {"metadata": meta, "spec": spec}) for meta in metas]


def claimed_volumes(prefix: str, count: int, namespace: str = "bench") -> Iterator[ApiObject]:
    """Yield `count` CSI volumes and their claims, which have the same names."""
    for i in range(count):
        name = f"{prefix}-{i:05d}"
        reference = {"namespace": namespace, "name": name, "uid": f"claim-{name}"}
        source = {"driver": CSI_DRIVER, "volumeHandle": name}
        volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany"], "csi": source}
        yield decode_as(
            PersistentVolume,
            {
                "metadata": {"name": name},
                "spec": volume | {"claimRef": reference},
                "status": {"phase": "Bound"},
            },
        )
        done = {"pv.kubernetes.io/bind-completed": "true"}
        meta = {"name": name, "namespace": namespace, "uid": f"claim-{name}", "annotations": done}
        claim = {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}}
        yield decode_as(
            PersistentVolumeClaim,
            {
                "metadata": meta,
                "spec": claim | {"volumeName": name},
                "status": {"phase": "Bound"},
            },
        )


def claiming_pods(
    prefix: str, count: int, namespace: str = "bench", spec: Json | None = None
) -> Iterator[Pod]:
    """Yield `count` pods; each pod uses the claim that has the same name as the pod.

    `spec` requests 100m CPU and 500Mi by default. The pods' names are `prefix` and a number.
    """
    spec = spec or requests("100m", "500Mi")
    for i in range(count):
        name = f"{prefix}-{i:05d}"
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        meta = {"name": name, "namespace": namespace, "uid": name}
        yield decode_as(Pod, {"metadata": meta, "spec": spec | {"volumes": [volume]}})
