"""Copies a node's static pods, and its pods whose DaemonSets the dump lacks, for new nodes.

A static pod comes from a file of its node, and the nodes of a pool have the same files. A DaemonSet
that the dump lacks cannot create its pod on a new node.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.api.json import Json
from fairlead.api.objects import ObjectMeta, Pod, PodStatus
from fairlead.api.pods.facts import controller_of, is_daemon_pod
from fairlead.apiserver.kind import DAEMON_SET, POD, Kind
from fairlead.engine.workloads.daemon_set.rule import pinned


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


def lacks_daemon_set(pod: Pod, find: Callable[[Kind, str, str], object | None]) -> bool:
    """Return whether the controller of `pod` is a DaemonSet that `find` does not find.

    `find` takes the kind, the namespace and the name of an object of the dump.
    """
    owner = controller_of(pod.metadata)
    return (
        owner is not None
        and is_daemon_pod(pod)
        and find(DAEMON_SET, pod.metadata.namespace, owner.name) is None
    )


def daemon_pod_on(pod: Pod, node: str, name: str) -> Json:
    """Return a copy of `pod` for `node`; `pod` belongs to a DaemonSet and is on another node.

    `name` is the name of the copy. The copy states no priority, because admission sets the
    priority.
    """
    meta = ObjectMeta(
        name=name,
        namespace=pod.metadata.namespace,
        labels=pod.metadata.labels,
        annotations=pod.metadata.annotations,
        owner_references=pod.metadata.owner_references,
    )
    spec = replace(pod.spec, node_name=node, priority=None, preemption_policy="")
    new = as_json(replace(pod, metadata=meta, spec=spec, status=PodStatus()))
    return {"apiVersion": POD.api_version, "kind": POD.kind, **pinned(new, node)}
