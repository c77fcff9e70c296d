"""The status of a CustomResourceDefinition: conditions, accepted names, stored versions.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go,
pkg/registry/customresourcedefinition/{strategy,etcd}.go, pkg/controller/status
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.condition import with_conditions

# The finalizer that keeps a definition until its objects are deleted.
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
_DELETING: Final = {
    **_TERMINATING,
    "reason": "InstanceDeletionInProgress",
    "message": "CustomResource deletion is in progress",
}


def with_stored_versions(definition: Json) -> Json:
    """Return `definition` with its storage version added to status.storedVersions.

    Missing fields of the status get their defaults.
    """
    status = dict(definition.get("status") or {})
    versions = definition["spec"].get("versions") or ()
    storage_versions = [version["name"] for version in versions if version.get("storage")]
    stored_versions = list(status.get("storedVersions") or ())
    stored_versions += [name for name in storage_versions if name not in stored_versions]
    status.setdefault("conditions", None)
    status.setdefault("acceptedNames", {"plural": "", "kind": ""})
    return {**definition, "status": {**status, "storedVersions": stored_versions or None}}


def with_names_accepted(definition: Json, now: int) -> Json:
    """Return `definition` with its names accepted at `now` (ns since 1970).

    The condition Established becomes False unless it is already True.
    """
    changes = (
        (_ACCEPTED,) if _has_condition(definition, "Established") else (_ACCEPTED, _INSTALLING)
    )
    return _with_accepted_names(definition, changes, now)


def with_established(definition: Json, now: int) -> Json:
    """Return `definition` with its names accepted and Established=True at `now` (ns since 1970).

    Return `definition` itself if this changes nothing.
    """
    return _with_accepted_names(definition, (_ACCEPTED, _ESTABLISHED), now)


def with_deletion_in_progress(definition: Json, now: int) -> Json:
    """Return `definition` with a Terminating condition: its custom resources are being deleted."""
    return _with_conditions(definition, (_DELETING,), now)


def is_accepted(definition: Json) -> bool:
    """Return whether the names in the spec have been accepted."""
    accepted_names = (definition.get("status") or {}).get("acceptedNames")
    return (
        _has_condition(definition, "NamesAccepted")
        and accepted_names == definition["spec"]["names"]
    )


def has_name_conflict(definition: Json) -> bool:
    """Return whether the condition NamesAccepted is False: a requested name is already in use."""
    return any(
        one.get("type") == "NamesAccepted" and one.get("status") == "False"
        for one in _conditions(definition)
    )


def is_established(definition: Json) -> bool:
    """Return whether `definition` is served: its names are accepted, and it is Established."""
    return is_accepted(definition) and _has_condition(definition, "Established")


def is_deleting_objects(definition: Json) -> bool:
    """Return whether a condition has the reason InstanceDeletionInProgress."""
    return any(one.get("reason") == _DELETING["reason"] for one in _conditions(definition))


def _has_condition(definition: Json, condition_type: str) -> bool:
    return any(
        one.get("type") == condition_type and one.get("status") == "True"
        for one in _conditions(definition)
    )


def _conditions(definition: Json) -> list[Json]:
    return (definition.get("status") or {}).get("conditions") or []


def _with_accepted_names(definition: Json, changes: tuple[Json, ...], now: int) -> Json:
    accepted_names = _with_conditions(definition, changes, now)
    status = {**accepted_names["status"], "acceptedNames": definition["spec"]["names"]}
    unchanged = status == (definition.get("status") or {})
    return definition if unchanged else {**definition, "status": status}


def _with_conditions(definition: Json, changes: tuple[Json, ...], now: int) -> Json:
    conditions = with_conditions(_conditions(definition), changes, format_timestamp(now))
    return {**definition, "status": {**(definition.get("status") or {}), "conditions": conditions}}


def mark_definition(definition: Json, now: int, _: int | None) -> Json:
    """Return `definition` marked for deletion at `now` (ns since 1970).

    The mark includes a finalizer, which keeps the definition until its custom resources are gone.
    """
    meta = definition["metadata"]
    if meta.get("deletionTimestamp"):
        if "deletionGracePeriodSeconds" in meta:
            return definition
        # upstream sets the grace period only on a second request
        return {**definition, "metadata": {**meta, "deletionGracePeriodSeconds": 0}}
    timestamp = format_timestamp(now)
    finalizers = [name for name in meta.get("finalizers", ()) if name != CLEANUP]
    meta_after = {**meta, "deletionTimestamp": timestamp, "finalizers": [*finalizers, CLEANUP]}
    status = definition.get("status") or {}
    conditions = with_conditions(status.get("conditions") or (), (_TERMINATING,), timestamp)
    return {**definition, "metadata": meta_after, "status": {**status, "conditions": conditions}}


def without_cleanup_finalizer(definition: Json) -> Json:
    """Return `definition` without the finalizer that `mark_definition` added."""
    meta = dict(definition["metadata"])
    finalizers = [name for name in meta.pop("finalizers", ()) if name != CLEANUP]
    if finalizers:
        meta["finalizers"] = finalizers
    return {**definition, "metadata": meta}
