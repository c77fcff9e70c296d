"""OpenAPI v2: one document for all kinds.

The document is converted from the v3 documents: request bodies become parameters, and references
point to `definitions`.

upstream: k8s.io/kube-openapi/pkg/builder/openapi.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.discovery.version import MAJOR, MINOR
from fairlead.apiserver.openapi.schema_document import V2, V3
from fairlead.apiserver.openapi.v3 import document
from fairlead.apiserver.registry.served_kinds import ServedKinds

_ANY_BODY: Final = ("*/*",)
# Keywords of custom resource schemas that v2 does not support, and `default`, which upstream
# prunes (kube-openapi, pkg/handler/default_pruning.go).
_PRUNED_KEYWORDS: Final = ("oneOf", "anyOf", "not", "nullable", "default")


def swagger(registry: ServedKinds) -> Json:
    """Return the OpenAPI v2 document of all kinds in `registry`."""
    paths: Json = {}
    definitions: Json = {}
    for group in registry.groups():
        for version in registry.versions(group):
            made = document(registry, group, version)
            paths |= {path: _path(item) for path, item in made["paths"].items()}
            for name, schema in made["components"]["schemas"].items():
                _merge(definitions, name, _schema(schema))
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": f"{MAJOR}.{MINOR}"},
        "paths": {path: paths[path] for path in sorted(paths)},
        "definitions": {name: definitions[name] for name in sorted(definitions)},
        "securityDefinitions": {
            "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}
        },
        "security": [{"BearerToken": []}],
    }


def _merge(definitions: Json, name: str, schema: Json) -> None:
    """Add the type `name` to `definitions`; `schema` replaces an earlier definition of the type.

    `x-kubernetes-group-version-kind` of the new definition lists the kinds of both definitions.
    """
    kinds = "x-kubernetes-group-version-kind"
    known = definitions.get(name, {}).get(kinds, [])
    definitions[name] = schema
    if kinds in schema or known:
        mine = schema.get(kinds, [])
        schema[kinds] = [*known, *(kind for kind in mine if kind not in known)]


def _path(item: Json) -> Json:
    made: Json = {key: _operation(item[key]) for key in item if key != "parameters"}
    if "parameters" in item:
        made["parameters"] = [_parameter(one) for one in item["parameters"]]
    return made


def _operation(operation: Json) -> Json:
    made = {
        key: value
        for key, value in operation.items()
        if key not in ("parameters", "requestBody", "responses")
    }
    responses = operation["responses"]
    parameters = [_parameter(one) for one in operation.get("parameters", ())]
    if "requestBody" in operation:
        parameters.insert(0, _body(operation["requestBody"]))
    if parameters:
        made["parameters"] = parameters
    sent = operation.get("requestBody", {}).get("content", {})
    made["consumes"] = list(sent) or list(_ANY_BODY)
    made["produces"] = next(
        (list(one["content"]) for one in responses.values() if "content" in one), []
    )
    made["schemes"] = ["https"]
    made["responses"] = {code: _response(response) for code, response in responses.items()}
    return made


def _parameter(parameter: Json) -> Json:
    made = {key: value for key, value in parameter.items() if key != "schema"}
    return {**made, **parameter["schema"]}


def _body(body: Json) -> Json:
    made: Json = {"name": "body", "in": "body", "schema": _first_schema(body["content"])}
    return {**made, "required": True} if body.get("required") else made


def _response(response: Json) -> Json:
    made: Json = {"description": response.get("description", "")}
    if "content" in response:
        made["schema"] = _first_schema(response["content"])
    return made


def _first_schema(content: Mapping[str, Json]) -> Json:
    schema: Json = _schema(next(iter(content.values()))["schema"])
    return schema


def _schema(schema: Any) -> Any:
    """Return a v3 schema as a v2 schema: without unsupported keywords, with v2 references."""
    if isinstance(schema, list):
        return [_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _schema(value) for key, value in schema.items() if key not in _PRUNED_KEYWORDS}
    if isinstance(schema.get("properties"), dict):  # property names may equal keywords
        made["properties"] = {name: _schema(one) for name, one in schema["properties"].items()}
    made = _opened(schema, made)
    reference = made.get("$ref")
    if isinstance(reference, str):
        made["$ref"] = reference.replace(V3.prefix, V2.prefix)
    # Types such as Quantity; structural schemas of custom resources have no type in `oneOf`.
    if "type" not in made and any("type" in one for one in schema.get("oneOf", ())):
        made["type"] = "string"
    wrapped = made.get("allOf")
    if isinstance(wrapped, list) and len(wrapped) == 1 and "$ref" in wrapped[0]:
        made.pop("allOf")
        made |= wrapped[0]
    return made


def _opened(schema: Json, made: Json) -> Json:
    """Return `made`, the v2 form of `schema`, without keywords that mislead clients of v2.

    With these keywords, clients would refuse allowed values: null, and fields that are not in
    `properties`.

    upstream: openapi/v2/conversion.go:ToStructuralOpenAPIV2, openapi/builder/builder.go:
    addEmbeddedProperties
    """
    is_open, is_nullable = (
        schema.get(key) is True for key in ("x-kubernetes-preserve-unknown-fields", "nullable")
    )
    removed = {"items", "properties"} if is_open or is_nullable else set[str]()
    kind = schema.get("type")
    has_items = "items" in made and "items" not in removed
    if is_nullable or (is_open and kind == "object") or (kind == "array" and not has_items):
        removed.add("type")
    made = {key: value for key, value in made.items() if key not in removed}
    if isinstance(made.get("required"), list):
        optional = _nullable(schema.get("properties")) if "properties" in made else set[str]()
        if is_open and schema.get("x-kubernetes-embedded-resource"):
            optional |= {"apiVersion", "kind"}  # added in v3
        made["required"] = [one for one in made["required"] if one not in optional]
        if not made["required"] or _nullable({"": schema.get("additionalProperties")}):
            del made["required"]
    return made


def _nullable(properties: Any) -> set[str]:
    """Return the names of the `properties` whose schema allows null."""
    found = properties.items() if isinstance(properties, dict) else ()
    return {name for name, one in found if isinstance(one, dict) and one.get("nullable") is True}
