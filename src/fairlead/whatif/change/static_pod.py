"""Copies the static pods of a node for new nodes of the same pool.

A static pod comes from a file of its node, and the nodes of a pool have the same files.
"""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import ObjectMeta, Pod, PodStatus
from fairlead.apiserver.kind import POD


def static_pod_name(pod: Pod, node: str) -> str:
    """Return the name that the static pod `pod` has on `node`.

    upstream: pkg/kubelet/config/common.go: generatePodName
    """
    return f"{pod.metadata.name.removesuffix(f'-{pod.spec.node_name}')}-{node}"


def static_pod_on(pod: Pod, node: str) -> Json:
    """Return a copy for `node` of the static pod `pod` of another node."""
    meta = ObjectMeta(
        name=static_pod_name(pod, node),
        namespace=pod.metadata.namespace,
        labels=pod.metadata.labels,
        annotations=pod.metadata.annotations,
    )
    # The class sets the priority: admission refuses a pod that states another priority.
    priority = None if pod.spec.priority_class_name else pod.spec.priority
    spec = replace(pod.spec, node_name=node, priority=priority)
    new = replace(pod, metadata=meta, spec=spec, status=PodStatus())
    return {"apiVersion": POD.api_version, "kind": POD.kind, **as_json(new)}
