"""Reads pod statuses, for expectations and their failure messages."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.json import Json


def node_of(pod: Json) -> str:
    """The node the pod is bound to, "" if none."""
    return str(pod.get("spec", {}).get("nodeName", ""))


def is_ready(pod: Json) -> bool:
    """Whether the pod runs and is ready."""
    conditions = {c["type"]: c["status"] for c in _conditions(pod)}
    return pod["status"].get("phase") == "Running" and conditions.get("Ready") == "True"


def why_unschedulable(pod: Json) -> str:
    """The scheduler's message for an unschedulable pod, "" for others."""
    said = (c for c in _conditions(pod) if c.get("reason") == "Unschedulable")
    return next((str(condition.get("message", "")) for condition in said), "")


def is_evicted(pod: Json | None, uid: str) -> bool:
    """Whether the pod with `uid` is terminating, failed or gone; `pod` has its name now."""
    if pod is None or pod["metadata"]["uid"] != uid:
        return True
    return "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") == "Failed"


def status_text(pod: Json | None) -> str:
    """The status of a pod in one line."""
    return "there is no such pod" if pod is None else ", ".join(_parts(pod))


def deletion_text(obj: Json | None) -> str:
    """Why an object still exists, in one line."""
    meta = (obj or {}).get("metadata", {})
    if "deletionTimestamp" not in meta:
        return "it was not deleted"
    kept = ", ".join(meta.get("finalizers", ()))
    return f"is terminating, kept by finalizers {kept}" if kept else "is terminating"


def _parts(pod: Json) -> Iterator[str]:
    yield pod.get("status", {}).get("phase", "Pending")
    if node_of(pod):
        yield f"on {node_of(pod)}"
    if pod["metadata"].get("deletionTimestamp"):
        yield "is terminating"
    for condition in _conditions(pod):
        if condition.get("status") != "True" and condition.get("message"):
            yield f"{condition.get('reason', condition['type'])}: {condition['message']}"


def _conditions(pod: Json) -> list[Json]:
    return list(pod.get("status", {}).get("conditions", ()))
