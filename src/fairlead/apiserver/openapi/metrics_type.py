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
    "description": "Usage per resource; for memory, the working set.",
    "type": "object",
    "additionalProperties": {"$ref": _QUANTITY},
}
_KIND: Final[Json] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
_WHEN: Final[Json] = {
    "metadata": _one(f"{META}.ObjectMeta", "Standard object metadata."),
    "timestamp": _one(f"{META}.Time", "The end of the interval in which usage was measured."),
    "window": _one(f"{META}.Duration", "The length of that interval."),
}
_CONTAINERS: Final[Json] = {
    "description": "The running containers of the pod.",
    "type": "array",
    "items": {"$ref": f"{_SCHEMAS}/{_PACKAGE}.ContainerMetrics"},
    "x-kubernetes-list-type": "atomic",
}
_METRICS_KINDS: Final[Mapping[Kind, tuple[str, Json]]] = {
    NODE_METRICS: ("The resource usage of a node.", {"usage": _USAGE}),
    POD_METRICS: ("The resource usage of a pod.", {"containers": _CONTAINERS}),
}


def metrics_type_name(kind: Kind) -> str | None:
    """The type name of NodeMetrics or PodMetrics, None for all other kinds."""
    return f"{_PACKAGE}.{kind.kind}" if kind in _METRICS_KINDS else None


def metrics_types(kind: Kind) -> dict[str, Json]:
    """The types of a metrics kind and its list, with the types they refer to."""
    name = f"{_PACKAGE}.{kind.kind}"
    description, own = _METRICS_KINDS[kind]
    listed = {"type": "array", "items": {"$ref": f"{_SCHEMAS}/{name}"}}
    made = {
        name: _object(description, [*_WHEN, *own][1:], {**_KIND, **_WHEN, **own}),
        f"{name}List": _object(
            "A list of these objects.",
            ["items"],
            {
                **_KIND,
                "metadata": _one(f"{META}.ListMeta", "Standard list metadata."),
                "items": listed,
            },
        ),
        f"{META}.Duration": {"description": "A duration such as 15s.", "type": "string"},
    }
    if kind is POD_METRICS:
        made[f"{_PACKAGE}.ContainerMetrics"] = _object(
            "The resource usage of a container.",
            ["name", "usage"],
            {"name": _TEXT, "usage": _USAGE},
        )
    return made


def _object(description: str, required: list[str], properties: Json) -> Json:
    return {
        "description": description,
        "type": "object",
        "required": required,
        "properties": properties,
    }
