"""Converts objects of recorded node timelines to Kubernetes objects."""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.lease import NODE_LEASES
from fairlead.api.timestamp import format_micro_time, format_timestamp
from fairlead.conformance.nodelifecycle.node_world import instant
from fairlead.engine.core.instant import Instant

_CONDITION_FIELDS: Final = ("type", "status", "reason", "message")


def node_object(form: Json) -> Json:
    """Return the Node that the recorded `form` describes."""
    meta = {
        "name": form["name"],
        "uid": form["uid"],
        "creationTimestamp": _stamp(form["created_ms"]),
        "labels": form["labels"],
    }
    conditions = [
        {
            **_filled(one, _CONDITION_FIELDS),
            "lastHeartbeatTime": _stamp(one["heartbeat_ms"]),
            "lastTransitionTime": _stamp(one["transition_ms"]),
        }
        for one in form["conditions"]
    ]
    taints = [_filled(taint, tuple(taint)) for taint in form["taints"]]
    spec: Json = {"taints": taints, "unschedulable": form["unschedulable"]}
    return _object("v1", "Node", meta) | {"spec": spec, "status": {"conditions": conditions}}


def lease_object(node: str, renewed: Instant) -> Json:
    """Return the Lease of the node called `node`, renewed at `renewed`."""
    meta = {"namespace": NODE_LEASES, "name": node, "uid": f"uid-lease-{node}"}
    spec = {"renewTime": format_micro_time(renewed)}
    return _object("coordination.k8s.io/v1", "Lease", meta) | {"spec": spec}


def pod_object(form: Json, grace_s: int) -> Json:
    """Return the Pod that the recorded `form` describes, with the grace period `grace_s` (seconds).

    If `form` states the pod's readiness, the Pod has the conditions PodScheduled and Ready.
    """
    created = _stamp(form["created_ms"])
    meta = {
        "namespace": form["namespace"],
        "name": form["name"],
        "uid": form["uid"],
        "creationTimestamp": created,
    }
    spec: Json = {"tolerations": form["tolerations"], "terminationGracePeriodSeconds": grace_s}
    if form["node"]:
        spec["nodeName"] = form["node"]
    status: Json = {"phase": form["phase"]}
    if form["ready"]:
        status["conditions"] = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": created},
            {"type": "Ready", "status": form["ready"], "lastTransitionTime": created},
        ]
    return _object("v1", "Pod", meta) | {"spec": spec, "status": status}


def posted_condition(before: Json, wanted: Json, now: Instant) -> Json:
    """Return the condition `wanted` with the times that a kubelet sets at `now`.

    `before` is the node's present condition of this type, or {} if the node has none.
    """
    stamp = format_timestamp(now)
    changed = before.get("status") != wanted["status"]
    return {
        **_filled(wanted, _CONDITION_FIELDS),
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": stamp if changed else before["lastTransitionTime"],
    }


def _filled(form: Json, names: tuple[str, ...]) -> Json:
    """Return the members of `form` that are named in `names` and are not empty."""
    return {name: form[name] for name in names if form.get(name)}


def _object(api_version: str, kind: str, meta: Json) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}


def _stamp(t_ms: int) -> str:
    return format_timestamp(instant(t_ms))
