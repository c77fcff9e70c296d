"""What a pod's status says, for expectations and for those that are not met."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.json import Json


def node_of(pod: Json) -> str:
    """The node it is bound to, "" if none."""
    return str(pod.get("spec", {}).get("nodeName", ""))


def is_ready(pod: Json) -> bool:
    """Whether it runs and is ready."""
    conditions = {c["type"]: c["status"] for c in _conditions(pod)}
    return pod["status"].get("phase") == "Running" and conditions.get("Ready") == "True"


def why_unschedulable(pod: Json) -> str:
    """What the scheduler says about a pod that it has found no node for, "" for others."""
    said = (c for c in _conditions(pod) if c.get("reason") == "Unschedulable")
    return next((str(condition.get("message", "")) for condition in said), "")


def evicted(pod: Json | None, uid: str) -> bool:
    """Whether the pod with `uid`, last seen as `pod`, is told to go, or has gone."""
    if pod is None or pod["metadata"]["uid"] != uid:
        return True
    return "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") == "Failed"


def story(pod: Json | None) -> str:
    """How it stands with a pod, in one line."""
    return "there is no such pod" if pod is None else ", ".join(_told(pod))


def lingering(obj: Json | None) -> str:
    """Why an object is still there, in one line."""
    meta = (obj or {}).get("metadata", {})
    if "deletionTimestamp" not in meta:
        return "nobody deleted it"
    kept = ", ".join(meta.get("finalizers", ()))
    return f"is being deleted, and kept by {kept}" if kept else "is being deleted"


def _told(pod: Json) -> Iterator[str]:
    yield pod.get("status", {}).get("phase", "Pending")
    if node_of(pod):
        yield f"on {node_of(pod)}"
    if pod["metadata"].get("deletionTimestamp"):
        yield "is being deleted"
    for condition in _conditions(pod):
        if condition.get("status") != "True" and condition.get("message"):
            yield f"{condition.get('reason', condition['type'])}: {condition['message']}"


def _conditions(pod: Json) -> list[Json]:
    return list(pod.get("status", {}).get("conditions", ()))
