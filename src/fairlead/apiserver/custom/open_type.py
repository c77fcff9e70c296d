"""A custom resource's type as OpenAPI describes it: its definition's schema, completed.

upstream: apiextensions-apiserver/pkg/controller/openapi/builder/builder.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.apiserver.kind import Kind

Json = dict[str, Any]

_META: Final = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1"


def open_type(kind: Kind, name: str) -> dict[str, Json]:
    """The types of objects and lists of a custom resource; `name` is the former's."""
    raw: Json = dict(kind.custom.schema.raw) if kind.custom else {"type": "object"}
    own: Json = raw.get("properties") or {}
    properties = {
        **own,
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": f"{_META}.ObjectMeta"}]},
    }
    listed = {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": f"{_META}.ListMeta"}]},
        },
    }
    return {
        name: {**raw, "properties": properties} | _kind(kind, kind.kind),
        f"{name}List": listed | _kind(kind, kind.list_kind),
    }


def _kind(kind: Kind, title: str) -> Json:
    named = {"group": kind.group, "kind": title, "version": kind.version}
    return {"x-kubernetes-group-version-kind": [named]}
