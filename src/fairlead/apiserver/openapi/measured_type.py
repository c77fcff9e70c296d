"""Types of metrics.k8s.io, which the schema tables do not have.

upstream: staging/src/k8s.io/metrics/pkg/apis/metrics/v1beta1/types.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import NODE_METRICS, POD_METRICS, Kind
from fairlead.apiserver.openapi.schema_document import META

_PACKAGE: Final = "io.k8s.metrics.pkg.apis.metrics.v1beta1"
_SCHEMAS: Final = "#/components/schemas"
_TEXT: Final[Json] = {"type": "string", "default": ""}
_QUANTITY: Final = f"{_SCHEMAS}/io.k8s.apimachinery.pkg.api.resource.Quantity"


def _one(name: str, description: str) -> Json:
    return {"description": description, "allOf": [{"$ref": f"{_SCHEMAS}/{name}"}]}


_USAGE: Final[Json] = {
    "description": "What is used of each resource; of memory, the working set.",
    "type": "object",
    "additionalProperties": {"$ref": _QUANTITY},
}
_KIND: Final[Json] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
_WHEN: Final[Json] = {
    "metadata": _one(f"{META}.ObjectMeta", "Of what was measured: name and labels."),
    "timestamp": _one(f"{META}.Time", "When the interval ended over which it was measured."),
    "window": _one(f"{META}.Duration", "How long that interval was."),
}
_CONTAINERS: Final[Json] = {
    "description": "Every container of the pod that runs.",
    "type": "array",
    "items": {"$ref": f"{_SCHEMAS}/{_PACKAGE}.ContainerMetrics"},
    "x-kubernetes-list-type": "atomic",
}
_MEASUREMENTS: Final[Mapping[Kind, tuple[str, Json]]] = {
    NODE_METRICS: ("What a node uses.", {"usage": _USAGE}),
    POD_METRICS: ("What a pod uses.", {"containers": _CONTAINERS}),
}


def measured_name(kind: Kind) -> str | None:
    """The name of the type of NodeMetrics or PodMetrics, None for all other kinds."""
    return f"{_PACKAGE}.{kind.kind}" if kind in _MEASUREMENTS else None


def measured_type(kind: Kind) -> dict[str, Json]:
    """The types of a metrics kind and its list, with the types they refer to."""
    name = f"{_PACKAGE}.{kind.kind}"
    description, own = _MEASUREMENTS[kind]
    listed = {"type": "array", "items": {"$ref": f"{_SCHEMAS}/{name}"}}
    made = {
        name: _object(description, [*_WHEN, *own][1:], {**_KIND, **_WHEN, **own}),
        f"{name}List": _object(
            "A list of such.",
            ["items"],
            {**_KIND, "metadata": _one(f"{META}.ListMeta", "Of the list."), "items": listed},
        ),
        f"{META}.Duration": {"description": "As Go writes it: 15s.", "type": "string"},
    }
    if kind is POD_METRICS:
        made[f"{_PACKAGE}.ContainerMetrics"] = _object(
            "What a container uses.", ["name", "usage"], {"name": _TEXT, "usage": _USAGE}
        )
    return made


def _object(description: str, required: list[str], properties: Json) -> Json:
    return {
        "description": description,
        "type": "object",
        "required": required,
        "properties": properties,
    }
