"""Deletion: how an object is asked to go, and what stays behind to see to its dependents.

Who waits for dependents (Foreground) or wants to keep them (Orphan) leaves a finalizer, which the
garbage collector takes off when its work is done.

upstream: apiserver/pkg/registry/generic/registry/store.go:
deletionFinalizersForGarbageCollection, pkg/registry/batch/job/strategy.go:
DefaultGarbageCollectionPolicy
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fairlead.apiserver.kind import JOB, Kind

Json = dict[str, Any]

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_FINALIZERS: Final = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The wishes of a request; None and "" leave things to the object.

    `policy` is Foreground, Background or Orphan; `uid` and `resource_version` are preconditions.
    """

    grace_period_s: int | None = None
    policy: str = ""
    uid: str = ""
    resource_version: str = ""


def with_garbage_finalizer(kind: Kind, obj: Json, deletion: Deletion) -> Json:
    """`obj` with the finalizer that the policy asks for, and without the other."""
    meta = obj["metadata"]
    before = meta.get("finalizers", [])
    policy = deletion.policy or _own_policy(kind, before)
    wanted = _FINALIZERS.get(policy)
    after = [name for name in before if name not in (FOREGROUND, ORPHAN)]
    if wanted is not None:
        after = before if wanted in before else [*after, wanted]
    if after == before:
        return obj
    changed = {key: value for key, value in meta.items() if key != "finalizers"}
    if after:
        changed["finalizers"] = after
    return {**obj, "metadata": changed}


def _own_policy(kind: Kind, finalizers: list[str]) -> str:
    if ORPHAN in finalizers:
        return "Orphan"
    if FOREGROUND in finalizers:
        return "Foreground"
    return "Orphan" if kind is JOB else "Background"
