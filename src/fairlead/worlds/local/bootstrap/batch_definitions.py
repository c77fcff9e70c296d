"""The objects that a batch scheduler installs: CRDs of PodGroups and Queues, and the default Queue.

The schemas allow all fields; the batch scheduler reads only the fields that it supports.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import KINDS, Kind

_SHORT: Final = "scheduling.volcano.sh"
# upstream: apiextensions-apiserver/pkg/apihelpers/helpers.go:GetAPIApprovalState
_APPROVAL: Final = {"api-approved.kubernetes.io": "unapproved, kinds of batch schedulers"}
_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SCHEMA: Final = {
    "type": "object",
    "properties": {"spec": _ANYTHING, "status": _ANYTHING},
}


# Volcano's scheduler creates this Queue when the scheduler starts.
# upstream: volcano pkg/scheduler/cache/cache.go:newDefaultQueue
DEFAULT_QUEUE: Final = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "default"},
    "spec": {"reclaimable": True, "weight": 1},
}


def job_kinds() -> tuple[Json, ...]:
    """Return the CustomResourceDefinitions of the batch schedulers' kinds."""
    served = (one for one in KINDS if one.is_custom and one.kind in _COLUMNS)
    return tuple(_definition(kind) for kind in served)


def _definition(kind: Kind) -> Json:
    meta: Json = {"name": f"{kind.plural}.{kind.group}"}
    if kind.group.endswith(".k8s.io"):
        meta["annotations"] = _APPROVAL
    names = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.singular,
        # Only one group has short names; otherwise `kubectl get pg` would be ambiguous.
        "shortNames": list(kind.short_names) if kind.group == _SHORT else [],
    }
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": _SCHEMA},
        "additionalPrinterColumns": _COLUMNS[kind.kind],
    }
    scope = "Namespaced" if kind.namespaced else "Cluster"
    spec = {"group": kind.group, "names": names, "scope": scope, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": meta,
        "spec": spec,
    }


def _column(name: str, of: str, path: str) -> Json:
    return {"name": name, "type": of, "jsonPath": path}


_AGE: Final = _column("Age", "date", ".metadata.creationTimestamp")
_COLUMNS: Final[dict[str, list[Json]]] = {
    "PodGroup": [
        _column("Status", "string", ".status.phase"),
        _column("minMember", "integer", ".spec.minMember"),
        _column("Running", "integer", ".status.running"),
        _column("Queue", "string", ".spec.queue"),
        _AGE,
    ],
    "Queue": [
        _column("Weight", "integer", ".spec.weight"),
        _column("Parent", "string", ".spec.parent"),
        _AGE,
    ],
}
