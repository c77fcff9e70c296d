"""The OpenAPI schemas of a custom resource and its list.

apiVersion, kind and metadata are described as those of built-in kinds.

upstream: apiextensions-apiserver/pkg/controller/openapi/builder/builder.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.model import words

_PACKAGE: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_META: Final = f"#/components/schemas/{_PACKAGE}"
# Definitions that the descriptions are taken from: of objects, and of lists.
_OBJECT: Final = "io.k8s.api.apps.v1.Deployment"
_LIST: Final = f"{_PACKAGE}.Status"
_CONVENTIONS: Final = (
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
)


def openapi_schemas(kind: Kind, name: str) -> dict[str, Json]:
    """The schemas of a custom resource, called `name`, and of its list."""
    raw: Json = dict(kind.custom.raw) if kind.custom else {"type": "object"}
    properties_of_object: Json = raw.get("properties") or {}
    items = {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}
    list_description = f"List of {kind.plural}. More info: {_CONVENTIONS}"
    list_schema = {
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "items": {"description": list_description, **items},
            **_metadata_properties(_LIST, "ListMeta"),
        },
    }
    properties = {**properties_of_object, **_metadata_properties(_OBJECT, "ObjectMeta")}
    return {
        name: {**raw, "properties": properties} | _kind(kind, kind.kind),
        f"{name}List": list_schema | _kind(kind, kind.list_kind),
    }


def _metadata_properties(definition: str, meta: str) -> dict[str, Json]:
    """The properties of all objects or lists, described as in `definition`."""
    types: dict[str, Json] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": f"{_META}.{meta}"}]},
    }
    return {name: {"description": words()[definition][name], **types[name]} for name in types}


def _kind(kind: Kind, title: str) -> Json:
    group_version_kind = {"group": kind.group, "kind": title, "version": kind.version}
    return {"x-kubernetes-group-version-kind": [group_version_kind]}
