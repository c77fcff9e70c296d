"""Deletion: the options of a request, the garbage collector's finalizers and graceful deletion.

The propagation policies `Foreground` (wait for dependents) and `Orphan` (keep dependents) each add
a finalizer. The garbage collector removes the finalizer when it has processed the dependents.

An object that is deleted gracefully is first marked with deletionTimestamp. For a pod on a node,
deletionTimestamp is the time by which the pod should have stopped. When the pod has stopped, the
kubelet deletes it again with a grace period of 0, which removes the pod. Pods without a node,
finished pods and pods that are deleted with a grace period of 0 are removed immediately. A second
deletion can only shorten the remaining time.

An object is kept until its last finalizer is removed, and a Namespace also until its
spec.finalizers are removed.

upstream: apiserver/pkg/registry/rest/delete.go:BeforeDelete, registry/generic/registry/store.go:
Delete, deletionFinalizersForGarbageCollection
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.finalizer import FOREGROUND, ORPHAN
from fairlead.api.json import Json
from fairlead.api.timestamp import (
    LAST_INSTANT,
    NANOSECONDS_PER_SECOND,
    format_timestamp,
    parse_timestamp,
)
from fairlead.apiserver.error import Cause, invalid
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.strategy import GarbageCollection, ResourceStrategy

_FINALIZERS: Final = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


class Deletion(Struct, frozen=True, kw_only=True):
    """The part of DeleteOptions that the store needs.

    If `grace_period_s` is None, the object's own grace period applies. `policy` is `Foreground`,
    `Background` or `Orphan`. If `policy` is "", a finalizer of the object determines the policy; if
    the object has no such finalizer, the default of its kind applies. `uid` and `resource_version`
    are preconditions: None matches every object, and "" matches no object.
    """

    grace_period_s: int | None = None
    policy: str = ""
    uid: str | None = None
    resource_version: str | None = None


def with_garbage_finalizer(strategy: ResourceStrategy, obj: Json, deletion: Deletion) -> Json:
    """Return `obj` with the finalizer of the propagation policy that applies to `deletion`.

    The policies `Foreground` and `Orphan` each have a finalizer; `Background` has none. The
    finalizers of the other policies are removed. If the kind does not support garbage collection,
    all these finalizers are removed.
    """
    meta = obj["metadata"]
    before = meta.get("finalizers", [])
    policy = deletion.policy or _default_policy(strategy, before)
    is_collected = strategy.garbage_collection is not GarbageCollection.UNSUPPORTED
    wanted = _FINALIZERS.get(policy) if is_collected else None
    after = [name for name in before if name not in (FOREGROUND, ORPHAN)]
    if wanted is not None:
        after = [*after, wanted]
    if set(after) == set(before):
        return obj
    changed = {key: value for key, value in meta.items() if key != "finalizers"}
    if after:
        changed["finalizers"] = after
    return {**obj, "metadata": changed}


def _default_policy(strategy: ResourceStrategy, finalizers: list[str]) -> str:
    """Return the policy of the first finalizer that belongs to a policy, or the kind's default."""
    # upstream: store.go:shouldOrphanDependents, shouldDeleteDependents
    policies = {finalizer: policy for policy, finalizer in _FINALIZERS.items()}
    own = (policies[name] for name in finalizers if name in policies)
    return next(own, strategy.garbage_collection)


def marked_for_deletion(
    strategy: ResourceStrategy, obj: Json, now: int, grace_period_s: int | None
) -> Json:
    """Return `obj` marked for deletion, or `obj` itself if nothing changes.

    If `grace_period_s` is None, the object's own grace period applies. A negative value means 1 s.
    """
    if grace_period_s is not None and grace_period_s < 0:
        grace_period_s = 1
    if obj["metadata"].get("deletionTimestamp"):
        repeat = strategy.repeat_deletion or shortened
        return repeat(obj, now, grace_period_s)
    if strategy.begin_deletion is not None:
        marked = strategy.begin_deletion(obj, now, grace_period_s)
        if marked is not None:
            return marked
    return mark_for_deletion(obj, now, 0) if obj["metadata"].get("finalizers") else obj


def mark_for_deletion(obj: Json, now: int, grace_period_s: int) -> Json:
    """Return `obj` with a deletionTimestamp and an incremented generation.

    The deletionTimestamp is `grace_period_s` after `now` (ns since 1970), but at most the last time
    that a timestamp can represent.
    """
    gone_at = min(now + grace_period_s * NANOSECONDS_PER_SECOND, LAST_INSTANT)
    meta = {
        **obj["metadata"],
        "deletionTimestamp": format_timestamp(gone_at),
        "deletionGracePeriodSeconds": grace_period_s,
    }
    if meta.get("generation"):
        meta["generation"] += 1
    return {**obj, "metadata": meta}


def may_remove(strategy: ResourceStrategy, obj: Json) -> bool:
    """Return whether `obj`, which is being deleted, can be removed now."""
    if obj["metadata"].get("finalizers"):
        return False
    return strategy.holds_deleted is None or not strategy.holds_deleted(obj)


def shortened(obj: Json, _: int, grace_period_s: int | None) -> Json:
    """Return `obj`, which is terminating, with a grace period of at most `grace_period_s`.

    If `grace_period_s` is None, the grace period does not change.
    """
    meta = obj["metadata"]
    left_s = meta.get("deletionGracePeriodSeconds")
    if grace_period_s is None or left_s is None or grace_period_s >= left_s:
        return obj
    gone_at = parse_timestamp(meta["deletionTimestamp"])
    gone_at = max(0, gone_at - (left_s - grace_period_s) * NANOSECONDS_PER_SECOND)
    changed = {
        **meta,
        "deletionTimestamp": format_timestamp(gone_at),
        "deletionGracePeriodSeconds": grace_period_s,
    }
    return {**obj, "metadata": changed}


def require_no_new_finalizers(kind: Kind, old: Json, new: Json) -> None:
    """Refuse finalizers that are added to an object that is being deleted. Raises ApiError 422."""
    # upstream: apimachinery/pkg/api/validation/objectmeta.go:ValidateNoNewFinalizers
    before, meta = old["metadata"], new["metadata"]
    if not before.get("deletionTimestamp"):
        return
    known = before.get("finalizers", ())
    added = sorted({name for name in meta.get("finalizers", ()) if name not in known})
    if added:
        listed = ", ".join(f'"{name}"' for name in added)
        why = "no new finalizers can be added if the object is being deleted, found new finalizers"
        cause = Cause(
            "FieldValueForbidden", f"Forbidden: {why} []string{{{listed}}}", "metadata.finalizers"
        )
        # Upstream reports this error twice.
        raise invalid(kind, before.get("namespace", ""), before["name"], (cause, cause))


def require_same_end(kind: Kind, old: Json, new: Json) -> None:
    """Refuse a write that marks an object for deletion or changes its grace period.

    If the object is already being deleted, its deletionTimestamp is not checked. Raises ApiError
    422.
    """
    # upstream: apimachinery/pkg/api/validation/objectmeta.go:ValidateObjectMetaAccessorUpdate
    before, meta = old["metadata"], new["metadata"]
    until, seconds = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    causes = []
    if until is not None and not before.get("deletionTimestamp"):
        causes.append(_immutable("deletionTimestamp", f'"{until}"'))
    if seconds not in (None, before.get("deletionGracePeriodSeconds")):
        causes.append(_immutable("deletionGracePeriodSeconds", str(seconds)))
    if causes:
        # Upstream checks these fields twice.
        raise invalid(kind, before.get("namespace", ""), before["name"], (*causes, *causes))


def _immutable(name: str, value: str) -> Cause:
    why = f"Invalid value: {value}: field is immutable"
    return Cause("FieldValueInvalid", why, f"metadata.{name}")
