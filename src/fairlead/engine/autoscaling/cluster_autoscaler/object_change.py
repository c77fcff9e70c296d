"""Decides whether a change to an object can affect a loop of the autoscaler.

A change to a part that the autoscaler does not read, such as a node's heartbeat, has no effect.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import (
    ApiObject,
    ControllerRevision,
    CronJob,
    Deployment,
    Endpoints,
    EndpointSlice,
    Job,
    Lease,
    Node,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    Unstructured,
)
from fairlead.api.pods.facts import condition, is_terminal
from fairlead.api.pods.requests import pod_requests

_UNREAD: Final = (
    ControllerRevision,
    CronJob,
    Deployment,
    EndpointSlice,
    Endpoints,
    Lease,
    PriorityClass,
    Unstructured,
)


def is_read(kind: type[ApiObject]) -> bool:
    """Return True if the autoscaler reads objects of `kind`."""
    return kind not in _UNREAD


def is_visible_change(old: ApiObject, new: ApiObject) -> bool:
    """Return whether two versions of an object differ in a part that the autoscaler reads."""
    match old, new:
        case (Pod(), Pod()):
            return _of_pod(old) != _of_pod(new) or _is_load_changed(old, new)
        case (Node(), Node()):
            return _of_node(old) != _of_node(new)
        case (ReplicaSet(), ReplicaSet()):
            return old.spec.replicas != new.spec.replicas
        case (ReplicationController(), ReplicationController()):
            return old.spec.replicas != new.spec.replicas
        case (Job(), Job()):
            return False
        case (StatefulSet(), StatefulSet()):
            return False
        case (PodDisruptionBudget(), PodDisruptionBudget()):
            before = old.spec, old.status.disruptions_allowed
            return before != (new.spec, new.status.disruptions_allowed)
        case _:
            return True


def _of_pod(pod: Pod) -> tuple[object, ...]:
    meta, status = pod.metadata, pod.status
    scheduled = condition(pod, "PodScheduled")
    return (
        meta.uid,
        meta.deletion_timestamp,
        status.nominated_node_name,
        is_terminal(pod),
        None if scheduled is None else (scheduled.status, scheduled.reason),
        meta.labels,
        meta.annotations,
        meta.owner_references,
        pod.spec,
    )


def _is_load_changed(old: Pod, new: Pod) -> bool:
    """Return whether a pod's effective requests differ between two versions with equal specs.

    The requests also depend on the resources in the status, which an in-place resize changes.
    """
    if not _states_resources(old) and not _states_resources(new):
        return False
    return pod_requests(old, existing=True) != pod_requests(new, existing=True)


def _states_resources(pod: Pod) -> bool:
    status = pod.status
    if status.resources is not None:
        return True
    reported = (*status.container_statuses, *status.init_container_statuses)
    return any(one.resources is not None for one in reported)


def _of_node(node: Node) -> tuple[object, ...]:
    conditions = tuple(
        (one.type, one.status, one.last_transition_time) for one in node.status.conditions
    )
    meta, status = node.metadata, node.status
    return meta.labels, meta.annotations, node.spec, status.allocatable, status.capacity, conditions
