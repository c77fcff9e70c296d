"""OpenAPI v3: documents for each API version, each group, and each path that has no group.

upstream: k8s.io/kube-openapi/pkg/builder3/openapi.go,
apiextensions-apiserver/pkg/controller/openapi/builder/builder.go,
staging/src/k8s.io/metrics/pkg/apis/metrics/v1beta1/types.go
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.discovery.version import MAJOR, MINOR
from fairlead.apiserver.kind import NODE_METRICS, POD_METRICS, Kind
from fairlead.apiserver.openapi import operation
from fairlead.apiserver.openapi.operation import Subject, group_title, tag
from fairlead.apiserver.openapi.path import paths_of, root
from fairlead.apiserver.openapi.schema_document import META, V3, Types
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.schema.model import schema_of, words

_SECURITY: Final = {
    "BearerToken": {
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
        "description": "Bearer Token authentication",
    }
}
_TEXT: Final = {"type": "string"}
_VERSION_INFO: Final = "io.k8s.apimachinery.pkg.version.Info"
_PARTS: Final = re.compile(r"[^A-Za-z0-9]+")
# Types that are listed for every group version.
_COMMON: Final = ("DeleteOptions", "WatchEvent")
_CORE: Final = ("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status")


def head() -> Json:
    """Return the members `openapi` and `info`, with which every document begins."""
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": f"{MAJOR}.{MINOR}"}}


def document(registry: ServedKinds, group: str, version: str, *, described: bool = True) -> Json:
    """Return the document of a served version, with descriptions if `described` is set."""
    types = Types(V3, described=described)
    paths = {f"{root(group, version)}/": _resources(group, version)}
    kinds = registry.kinds(group, version)
    for kind in kinds:
        paths |= dict(paths_of(_subject(kind, types), _type_of))
    types.add(_referenced(paths))
    documents = types.documents()
    _name_kinds(documents, kinds)
    return {
        **head(),
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {"schemas": documents, "securitySchemes": _SECURITY},
    }


def _resources(group: str, version: str) -> Json:
    """Return the path item of the version's discovery document."""
    name = f"get{_title(group)}{version.capitalize()}APIResources"
    return {"get": _get(name, tag(group, version), f"{META}.APIResourceList")}


def _get(name: str, tagged: str, definition: str) -> Json:
    responses = operation.responses((("200", definition),), operation.READ)
    return {"tags": [tagged], "operationId": name, "responses": responses}


def group_document(group: str, *, described: bool = True) -> Json:
    """Return the document of the path `/apis/<group>`, `/api` (group "") or `/apis` (group "*")."""
    types = Types(V3, described=described)
    match group:
        case "":
            path, name, tagged, definition = "/api/", "getCoreAPIVersions", "core", "APIVersions"
        case "*":
            path, name, tagged, definition = "/apis/", "getAPIVersions", "apis", "APIGroupList"
        case _:
            title = group_title(group)
            path, name, tagged = f"/apis/{group}/", f"get{_title(group)}APIGroup", title
            definition = "APIGroup"
    types.add([f"{META}.{definition}"])
    components = {"schemas": types.documents(), "securitySchemes": _SECURITY}
    paths = {path: {"get": _get(name, tagged, f"{META}.{definition}")}}
    return {**head(), "paths": paths, "components": components}


def plain_document(path: str) -> Json:
    """Return the document of a path such as `version`, which belongs to no API group."""
    types, definition = Types(V3), ""
    name = "get" + "".join(_title(part) for part in _PARTS.split(path) if part)
    response: Json = {"description": "OK", "content": {"application/json": {"schema": _TEXT}}}
    if path == "version":
        definition = _VERSION_INFO
        types.add([definition])
        response = operation.responses((("200", definition),), ("application/json",))["200"]
    components = {"schemas": types.documents(), "securitySchemes": _SECURITY}
    tagged = _PARTS.split(path)[0] or "wellKnown"
    get = {"tags": [tagged], "operationId": name, "responses": {"200": response}}
    return {**head(), "paths": {f"/{path}/": {"get": get}}, "components": components}


def _title(group: str) -> str:
    title = group_title(group)
    return title[:1].upper() + title[1:]


def _subject(kind: Kind, types: Types) -> Subject:
    name = _type_of(kind.api_version, kind.kind)
    if name is not None:
        return Subject(kind, name, f"{name}List")
    metrics_name = metrics_type_name(kind)
    name = metrics_name or custom_name(kind)
    made = metrics_types(kind) if metrics_name else openapi_schemas(kind, name)
    for definition, document in made.items():
        types.put(definition, document)
    types.add(_referenced(made))
    return Subject(kind, name, f"{name}List")


def custom_name(kind: Kind) -> str:
    """Return the type name of a custom resource, such as `com.example.v1.Widget`."""
    reversed_group = ".".join(reversed(kind.group.split(".")))
    return f"{reversed_group}.{kind.version}.{kind.kind}"


def _type_of(api_version: str, kind: str) -> str | None:
    schema = schema_of(api_version, kind)
    return schema.definition if schema else None


def _referenced(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref":
                yield item.removeprefix(V3.prefix)
            else:
                yield from _referenced(item)
    elif isinstance(value, list):
        for item in value:
            yield from _referenced(item)


def _name_kinds(documents: Mapping[str, Json], kinds: Sequence[Kind]) -> None:
    """Add x-kubernetes-group-version-kind to the types of `kinds`."""
    group, version = kinds[0].group, kinds[0].version
    for definition, api_version, title in _kinds_with_types(kinds):
        if definition in documents:
            own_group, _, own_version = api_version.rpartition("/")
            named = _kind(own_group, own_version, title)
            documents[definition]["x-kubernetes-group-version-kind"] = [named]
    for title in (*_COMMON, *_CORE):
        made = documents.get(f"{META}.{title}")
        if made is not None:
            own = [_kind(group, version, title)] if group and title in _COMMON else []
            made["x-kubernetes-group-version-kind"] = [_kind("", "v1", title), *own]


def _kinds_with_types(kinds: Iterable[Kind]) -> Iterator[tuple[str, str, str]]:
    """Yield (type name, apiVersion, kind) of all request and response bodies of `kinds`."""
    for kind in kinds:
        known = _type_of(kind.api_version, kind.kind) or metrics_type_name(kind)
        name = known or custom_name(kind)
        yield name, kind.api_version, kind.kind
        yield f"{name}List", kind.api_version, kind.list_kind
        for part in kind.subresources:
            group = part.group or kind.group
            version = part.version or kind.version
            api_version = f"{group}/{version}" if group else version
            definition = _type_of(api_version, part.kind)
            if definition is not None:
                yield definition, api_version, part.kind


def _kind(group: str, version: str, kind: str) -> Json:
    return {"group": group, "kind": kind, "version": version}


# --- custom resources ----------------------------------------------------------------------------

# apiVersion, kind and metadata are described as those of built-in kinds.

_PACKAGE: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_META: Final = f"#/components/schemas/{_PACKAGE}"
# types from which the descriptions of objects and of lists are copied
_OBJECT: Final = "io.k8s.api.apps.v1.Deployment"
_LIST: Final = f"{_PACKAGE}.Status"
_IDENTITY: Final = ("kind", "apiVersion")  # required in embedded resources
_CONVENTIONS: Final = (
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
)


def openapi_schemas(kind: Kind, name: str) -> dict[str, Json]:
    """Return two schemas by type name: `name` for a custom resource, `<name>List` for its list."""
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
    properties = {
        **{field: _with_metadata(one) for field, one in properties_of_object.items()},
        **_metadata_properties(_OBJECT, "ObjectMeta"),
    }
    return {
        name: {**raw, "properties": properties} | _group_version_kind(kind, kind.kind),
        f"{name}List": list_schema | _group_version_kind(kind, kind.list_kind),
    }


def _with_metadata(schema: Any) -> Any:
    """Return `schema`, in which each embedded resource declares apiVersion, kind and metadata."""
    # upstream: openapi/builder/builder.go:addEmbeddedProperties
    if not isinstance(schema, dict):  # additionalProperties can be a boolean
        return schema
    made = dict(schema)
    if isinstance(schema.get("properties"), dict):
        made["properties"] = {name: _with_metadata(one) for name, one in made["properties"].items()}
    for key in made.keys() & {"items", "additionalProperties"}:
        made[key] = _with_metadata(made[key])
    if made.get("x-kubernetes-embedded-resource"):
        own = _metadata_properties(_OBJECT, "ObjectMeta")
        made["properties"] = {**made.get("properties", {}), **own}
        required = made.get("required", [])
        made["required"] = [*required, *(one for one in _IDENTITY if one not in required)]
    return made


def _metadata_properties(definition: str, meta: str) -> dict[str, Json]:
    """Return the schemas of apiVersion, kind and metadata, with descriptions.

    The descriptions are those of the type `definition`. `meta` is the type of metadata: ObjectMeta
    or ListMeta.
    """
    types: dict[str, Json] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": f"{_META}.{meta}"}]},
    }
    return {name: {"description": words()[definition][name], **types[name]} for name in types}


def _group_version_kind(kind: Kind, title: str) -> Json:
    group_version_kind = {"group": kind.group, "kind": title, "version": kind.version}
    return {"x-kubernetes-group-version-kind": [group_version_kind]}


# --- metrics -------------------------------------------------------------------------------------


_METRICS_PACKAGE: Final = "io.k8s.metrics.pkg.apis.metrics.v1beta1"
_SCHEMAS: Final = "#/components/schemas"
_TEXT_WITH_DEFAULT: Final[Json] = {"type": "string", "default": ""}
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
    "items": {"$ref": f"{_SCHEMAS}/{_METRICS_PACKAGE}.ContainerMetrics"},
    "x-kubernetes-list-type": "atomic",
}
_METRICS_KINDS: Final[Mapping[Kind, tuple[str, Json]]] = {
    NODE_METRICS: ("The resource usage of a node.", {"usage": _USAGE}),
    POD_METRICS: ("The resource usage of a pod.", {"containers": _CONTAINERS}),
}


def metrics_type_name(kind: Kind) -> str | None:
    """Return the type name of NodeMetrics or PodMetrics, None for all other kinds."""
    return f"{_METRICS_PACKAGE}.{kind.kind}" if kind in _METRICS_KINDS else None


def metrics_types(kind: Kind) -> dict[str, Json]:
    """Return the types of a metrics kind and its list, with all types to which they refer."""
    name = f"{_METRICS_PACKAGE}.{kind.kind}"
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
        made[f"{_METRICS_PACKAGE}.ContainerMetrics"] = _object(
            "The resource usage of a container.",
            ["name", "usage"],
            {"name": _TEXT_WITH_DEFAULT, "usage": _USAGE},
        )
    return made


def _object(description: str, required: list[str], properties: Json) -> Json:
    return {
        "description": description,
        "type": "object",
        "required": required,
        "properties": properties,
    }
