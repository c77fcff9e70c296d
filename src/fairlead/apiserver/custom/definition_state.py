"""What a CustomResourceDefinition is completed with, and how it says what became of it.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go,
pkg/registry/customresourcedefinition/{strategy,etcd}.go, pkg/controller/status
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.condition import with_conditions

Json = dict[str, Any]

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
_TERMINATING: Final = {
    "type": "Terminating",
    "status": "True",
    "reason": "InstanceDeletionPending",
    "message": (
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    ),
}


def completed(definition: Json) -> Json:
    """`definition` with what its author left out."""
    spec = definition.get("spec") or {}
    names = dict(spec.get("names") or {})
    kind = str(names.get("kind", ""))
    if kind:
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
    conversion = spec.get("conversion") or {"strategy": "None"}
    return {**definition, "spec": {**spec, "names": names, "conversion": conversion}}


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


def established(definition: Json, now: int) -> Json:
    """`definition` with its names accepted; itself where they were."""
    names = definition["spec"]["names"]
    status = definition.get("status") or {}
    conditions = with_conditions(
        status.get("conditions") or (), (_ACCEPTED, _ESTABLISHED), format_timestamp(now)
    )
    after = {**status, "conditions": conditions, "acceptedNames": names}
    return definition if after == status else {**definition, "status": after}


def going(definition: Json, now: int) -> Json:
    """`definition`, which somebody has deleted: it stays until its objects are gone."""
    meta = definition["metadata"]
    if meta.get("deletionTimestamp"):
        return definition
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
