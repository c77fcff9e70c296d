"""What a CustomResourceDefinition is completed with, and how it says what became of it.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go,
pkg/registry/customresourcedefinition/{strategy,etcd}.go, pkg/controller/status
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.condition import with_conditions

# Keeps a definition until the last of its objects is gone.
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_ACCEPTED: Final = {
    "type": "NamesAccepted",
    "status": "True",
    "reason": "NoConflicts",
    "message": "no conflicts found",
}
_ESTABLISHED: Final = {
    "type": "Established",
    "status": "True",
    "reason": "InitialNamesAccepted",
    "message": "the initial names have been accepted",
}
_INSTALLING: Final = {**_ESTABLISHED, "status": "False", "reason": "Installing"}
_TERMINATING: Final = {
    "type": "Terminating",
    "status": "True",
    "reason": "InstanceDeletionPending",
    "message": (
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    ),
}
_ENDING: Final = {
    **_TERMINATING,
    "reason": "InstanceDeletionInProgress",
    "message": "CustomResource deletion is in progress",
}


def with_stored_versions(definition: Json) -> Json:
    """`definition` with the version that is stored among those that ever were."""
    status = dict(definition.get("status") or {})
    versions = definition["spec"].get("versions") or ()
    storing = [version["name"] for version in versions if version.get("storage")]
    known = list(status.get("storedVersions") or ())
    known += [name for name in storing if name not in known]
    status.setdefault("conditions", None)
    status.setdefault("acceptedNames", {"plural": "", "kind": ""})
    return {**definition, "status": {**status, "storedVersions": known or None}}


def accepted(definition: Json, now: int) -> Json:
    """`definition` with its names accepted, and not yet established unless it was."""
    changes = (_ACCEPTED,) if _is(definition, "Established") else (_ACCEPTED, _INSTALLING)
    return _with(definition, changes, now)


def established(definition: Json, now: int) -> Json:
    """`definition` with its names accepted, and served; itself where they were."""
    return _with(definition, (_ACCEPTED, _ESTABLISHED), now)


def ending(definition: Json, now: int) -> Json:
    """`definition`, whose objects are being deleted."""
    return _with_conditions(definition, (_ENDING,), now)


def is_accepted(definition: Json) -> bool:
    """Whether its names are accepted, as they are now."""
    named = (definition.get("status") or {}).get("acceptedNames")
    return _is(definition, "NamesAccepted") and named == definition["spec"]["names"]


def is_refused(definition: Json) -> bool:
    """Whether a name of it belongs to another definition."""
    return any(
        one.get("type") == "NamesAccepted" and one.get("status") == "False"
        for one in _conditions(definition)
    )


def is_established(definition: Json) -> bool:
    """Whether it is served."""
    return is_accepted(definition) and _is(definition, "Established")


def is_ending(definition: Json) -> bool:
    """Whether it says that its objects are being deleted."""
    return any(one.get("reason") == _ENDING["reason"] for one in _conditions(definition))


def _is(definition: Json, condition_type: str) -> bool:
    return any(
        one.get("type") == condition_type and one.get("status") == "True"
        for one in _conditions(definition)
    )


def _conditions(definition: Json) -> list[Json]:
    return (definition.get("status") or {}).get("conditions") or []


def _with(definition: Json, changes: tuple[Json, ...], now: int) -> Json:
    named = _with_conditions(definition, changes, now)
    status = {**named["status"], "acceptedNames": definition["spec"]["names"]}
    unchanged = status == (definition.get("status") or {})
    return definition if unchanged else {**definition, "status": status}


def _with_conditions(definition: Json, changes: tuple[Json, ...], now: int) -> Json:
    conditions = with_conditions(_conditions(definition), changes, format_timestamp(now))
    return {**definition, "status": {**(definition.get("status") or {}), "conditions": conditions}}


def going(definition: Json, now: int) -> Json:
    """`definition`, which somebody has deleted: it stays until its objects are gone."""
    meta = definition["metadata"]
    if meta.get("deletionTimestamp"):
        if "deletionGracePeriodSeconds" in meta:
            return definition
        # upstream: only who asks again is answered as for other kinds
        return {**definition, "metadata": {**meta, "deletionGracePeriodSeconds": 0}}
    timestamp = format_timestamp(now)
    finalizers = [name for name in meta.get("finalizers", ()) if name != CLEANUP]
    held = {**meta, "deletionTimestamp": timestamp, "finalizers": [*finalizers, CLEANUP]}
    status = definition.get("status") or {}
    conditions = with_conditions(status.get("conditions") or (), (_TERMINATING,), timestamp)
    return {**definition, "metadata": held, "status": {**status, "conditions": conditions}}


def released(definition: Json) -> Json:
    """`definition` once its objects are gone."""
    meta = dict(definition["metadata"])
    finalizers = [name for name in meta.pop("finalizers", ()) if name != CLEANUP]
    if finalizers:
        meta["finalizers"] = finalizers
    return {**definition, "metadata": meta}
