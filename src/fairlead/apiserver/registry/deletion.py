"""Deletion: how an object is asked to go, and what stays behind to see to its dependents.

Who waits for dependents (Foreground) or wants to keep them (Orphan) leaves a finalizer, which the
garbage collector takes off when its work is done.

upstream: apiserver/pkg/registry/generic/registry/store.go:
deletionFinalizersForGarbageCollection, pkg/registry/{batch/job,core/event,
core/replicationcontroller}/strategy.go:DefaultGarbageCollectionPolicy
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import Cause, invalid
from fairlead.apiserver.kind import JOB, REPLICATION_CONTROLLER, Kind

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_FINALIZERS: Final = {"Foreground": FOREGROUND, "Orphan": ORPHAN}
_NEVER_COLLECTED: Final = "events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The wishes of a request; None and a `policy` of "" leave things to the object.

    `policy` is Foreground, Background or Orphan; `uid` and `resource_version` are preconditions,
    None for any; "" is that of no object.
    """

    grace_period_s: int | None = None
    policy: str = ""
    uid: str | None = None
    resource_version: str | None = None


def with_garbage_finalizer(kind: Kind, obj: Json, deletion: Deletion) -> Json:
    """`obj` with the finalizer that the policy asks for, and without the other."""
    meta = obj["metadata"]
    before = meta.get("finalizers", [])
    policy = deletion.policy or _own_policy(kind, before)
    wanted = None if kind.resource == _NEVER_COLLECTED else _FINALIZERS.get(policy)
    after = [name for name in before if name not in (FOREGROUND, ORPHAN)]
    if wanted is not None:
        after = before if wanted in before else [*after, wanted]
    if after == before:
        return obj
    changed = {key: value for key, value in meta.items() if key != "finalizers"}
    if after:
        changed["finalizers"] = after
    return {**obj, "metadata": changed}


def require_no_new_finalizers(kind: Kind, old: Json, new: Json) -> None:
    """Refuse to hold an object that is on its way out any longer. Raises ApiError 422."""
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
        # Upstream finds it twice.
        raise invalid(kind, before.get("namespace", ""), before["name"], (cause, cause))


def require_same_end(kind: Kind, old: Json, new: Json) -> None:
    """Refuse a write that says when an object goes: that takes a deletion. Raises ApiError 422."""
    # upstream: apimachinery/pkg/api/validation/objectmeta.go:ValidateObjectMetaAccessorUpdate
    before, meta = old["metadata"], new["metadata"]
    until, seconds = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    causes = []
    if until is not None and not before.get("deletionTimestamp"):
        causes.append(_immutable("deletionTimestamp", f'"{until}"'))
    if seconds not in (None, before.get("deletionGracePeriodSeconds")):
        causes.append(_immutable("deletionGracePeriodSeconds", str(seconds)))
    if causes:
        # Upstream looks twice.
        raise invalid(kind, before.get("namespace", ""), before["name"], (*causes, *causes))


def _immutable(name: str, value: str) -> Cause:
    why = f"Invalid value: {value}: field is immutable"
    return Cause("FieldValueInvalid", why, f"metadata.{name}")


def _own_policy(kind: Kind, finalizers: list[str]) -> str:
    if ORPHAN in finalizers:
        return "Orphan"
    if FOREGROUND in finalizers:
        return "Foreground"
    return "Orphan" if kind in (JOB, REPLICATION_CONTROLLER) else "Background"
