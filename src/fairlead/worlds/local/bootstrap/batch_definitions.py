"""The objects that a batch scheduler installs: CRDs of PodGroups and Queues, and the default Queue.

As in the schedulers' own CRDs, kubectl refuses unknown fields of a spec, except for the kinds of
kube-batch, whose CRDs have no schemas. Values are checked when the objects are written
(`apiserver/validation`). The batch scheduler reads only the fields that it supports.

upstream: volcano: staging/src/volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go;
scheduler-plugins: apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import KINDS, Kind

_SHORT: Final = "scheduling.volcano.sh"
# upstream: apiextensions-apiserver/pkg/apihelpers/helpers.go:GetAPIApprovalState
_APPROVAL: Final = {"api-approved.kubernetes.io": "unapproved, kinds of batch schedulers"}
_ANYTHING: Final = {"x-kubernetes-preserve-unknown-fields": True}
_OBJECT: Final = {"type": "object", **_ANYTHING}
_SELECTOR: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"


def fields(names: str, **others: Any) -> dict[str, Any]:
    """Return an object with the fields `names` of any type, and with `others`."""
    return dict.fromkeys(names.split()) | others


# In these tables, an object is a dict of its fields, and a list has the type of its items as its
# only item. A text is the name of a type of Kubernetes, and None stands for any value.
NETWORK_TOPOLOGY: Final = fields("mode highestTierAllowed highestTierName")
_NODE_GROUPS: Final = fields(
    "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"
)
_VOLCANO_POD_GROUP: Final = fields(
    "minMember minTaskMember queue priorityClassName minResources",
    networkTopology=NETWORK_TOPOLOGY,
    subGroupPolicy=[
        fields(
            "name subGroupSize minSubGroups matchLabelKeys",
            networkTopology=NETWORK_TOPOLOGY,
            labelSelector=_SELECTOR,
        )
    ],
)
_VOLCANO_QUEUE: Final = fields(
    "weight capability reclaimable type parent deserved priority dequeueStrategy",
    extendClusters=[fields("name weight capacity")],
    guarantee=fields("resource"),
    affinity={"nodeGroupAffinity": _NODE_GROUPS, "nodeGroupAntiAffinity": _NODE_GROUPS},
    dra=fields("capability deserved guarantee"),
)
# The fields of specs, by group and kind.
GANG_SPECS: Final[Mapping[tuple[str, str], Any]] = {
    ("scheduling.volcano.sh", "PodGroup"): _VOLCANO_POD_GROUP,
    ("scheduling.volcano.sh", "Queue"): _VOLCANO_QUEUE,
    ("scheduling.x-k8s.io", "PodGroup"): fields("minMember minResources scheduleTimeoutSeconds"),
}


def _schema(kind: Kind) -> Json:
    form = GANG_SPECS.get((kind.group, kind.kind))
    spec = _OBJECT if form is None else _value_schema(form)
    return {"type": "object", "properties": {"spec": spec, "status": _OBJECT}}


def _value_schema(form: Any) -> Json:
    """Return the structural schema of a value of a table above."""
    match form:
        case dict():
            properties = {name: _value_schema(each) for name, each in form.items()}
            return {"type": "object", "properties": properties}
        case [item]:
            return {"type": "array", "items": _value_schema(item)}
        case _:
            return _ANYTHING


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
        "schema": {"openAPIV3Schema": _schema(kind)},
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
