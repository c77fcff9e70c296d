"""A custom resource's type as OpenAPI describes it: its definition's schema, completed.

What every object has is told in the words of the kinds that the server knows by itself.

upstream: apiextensions-apiserver/pkg/controller/openapi/builder/builder.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.model import words

_PACKAGE: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_META: Final = f"#/components/schemas/{_PACKAGE}"
# Where the words stand: of an object, and of what has a list's metadata.
_OBJECT: Final = "io.k8s.api.apps.v1.Deployment"
_LIST: Final = f"{_PACKAGE}.Status"
_CONVENTIONS: Final = (
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
)


def open_type(kind: Kind, name: str) -> dict[str, Json]:
    """The types of objects and lists of a custom resource; `name` is the former's."""
    raw: Json = dict(kind.custom.raw) if kind.custom else {"type": "object"}
    own: Json = raw.get("properties") or {}
    items = {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}
    about = f"List of {kind.plural}. More info: {_CONVENTIONS}"
    listed = {
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {"items": {"description": about, **items}, **_common(_LIST, "ListMeta")},
    }
    properties = {**own, **_common(_OBJECT, "ObjectMeta")}
    return {
        name: {**raw, "properties": properties} | _kind(kind, kind.kind),
        f"{name}List": listed | _kind(kind, kind.list_kind),
    }


def _common(told: str, meta: str) -> dict[str, Json]:
    """What all objects have, or all lists, in the words of the type `told`."""
    types: dict[str, Json] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": f"{_META}.{meta}"}]},
    }
    return {name: {"description": words()[told][name], **types[name]} for name in types}


def _kind(kind: Kind, title: str) -> Json:
    named = {"group": kind.group, "kind": title, "version": kind.version}
    return {"x-kubernetes-group-version-kind": [named]}
