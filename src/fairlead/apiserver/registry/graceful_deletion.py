"""Graceful deletion: an object that is to go says so, and goes when it may.

A pod on a node gets the instant by which it should have stopped; its kubelet removes it by
deleting it with a grace period of 0. Pods without a node, finished pods, and pods deleted with 0
go at once. A second deletion may only shorten what is left. Finalizers keep any object until the
last one is taken off; apart from those, objects of other kinds go at once.

upstream: apiserver/pkg/registry/rest/delete.go:BeforeDelete, registry/generic/registry/store.go:
Delete, and pkg/registry/core/pod/strategy.go:CheckGracefulDelete
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_timestamp, parse_timestamp
from fairlead.apiserver.apiextensions.definition.status import going
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, POD, Kind

FINISHED_PHASES: Final = ("Succeeded", "Failed")


def marked_for_deletion(kind: Kind, obj: Json, now: int, grace_period_s: int | None) -> Json:
    """`obj` as it looks once asked to go; `obj` itself where asking changes nothing.

    `grace_period_s` None leaves it to the object.
    """
    if grace_period_s is not None and grace_period_s < 0:
        grace_period_s = 1
    if kind is CUSTOM_RESOURCE_DEFINITION:
        return going(obj, now)
    if obj["metadata"].get("deletionTimestamp"):
        return _hurried(obj, grace_period_s)
    if kind is POD:
        return _begun(obj, now, _pod_grace_period_s(obj, grace_period_s))
    if kind is NAMESPACE and _content_finalizers(obj):
        return _terminating(_begun(obj, now, 0))
    return _begun(obj, now, 0) if obj["metadata"].get("finalizers") else obj


def may_go(kind: Kind, obj: Json) -> bool:
    """Whether nothing holds `obj`, which was asked to go, any longer."""
    meta = obj["metadata"]
    if meta.get("finalizers"):
        return False
    if kind is NAMESPACE:
        return not _content_finalizers(obj)
    return kind is not POD or not meta.get("deletionGracePeriodSeconds")


def _pod_grace_period_s(pod: Json, asked_s: int | None) -> int:
    spec = pod["spec"]
    if not spec.get("nodeName") or pod["status"].get("phase") in FINISHED_PHASES:
        return 0
    if asked_s is not None:
        return asked_s
    own_s: int = spec["terminationGracePeriodSeconds"]  # defaults see to it
    return own_s


def _begun(obj: Json, now: int, grace_period_s: int) -> Json:
    """Controllers must notice that the object is going, so its generation grows."""
    gone_at = now + grace_period_s * NANOSECONDS_PER_SECOND
    meta = {
        **obj["metadata"],
        "deletionTimestamp": format_timestamp(gone_at),
        "deletionGracePeriodSeconds": grace_period_s,
    }
    if meta.get("generation"):
        meta["generation"] += 1
    return {**obj, "metadata": meta}


def _content_finalizers(namespace: Json) -> list[str]:
    """Who must agree that a namespace is empty before it goes."""
    finalizers: list[str] = namespace.get("spec", {}).get("finalizers", [])
    return finalizers


def _terminating(namespace: Json) -> Json:
    # upstream: pkg/registry/core/namespace/storage/storage.go:Delete
    status = {**namespace.get("status", {}), "phase": "Terminating"}
    meta = {
        key: value
        for key, value in namespace["metadata"].items()
        if key != "deletionGracePeriodSeconds"
    }
    return {**namespace, "metadata": meta, "status": status}


def _hurried(obj: Json, grace_period_s: int | None) -> Json:
    """`obj`, going already, with a shorter grace period if one is given."""
    meta = obj["metadata"]
    left_s = meta.get("deletionGracePeriodSeconds")
    if grace_period_s is None or left_s is None or grace_period_s >= left_s:
        return obj
    gone_at = parse_timestamp(meta["deletionTimestamp"])
    gone_at -= (left_s - grace_period_s) * NANOSECONDS_PER_SECOND
    shortened = {
        **meta,
        "deletionTimestamp": format_timestamp(gone_at),
        "deletionGracePeriodSeconds": grace_period_s,
    }
    return {**obj, "metadata": shortened}
