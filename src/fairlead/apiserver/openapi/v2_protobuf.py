"""OpenAPI v2 as protobuf, which parts of kubectl still request.

Field numbers are those of gnostic's messages. Extensions (`x-...`) have no protobuf field, so each
is encoded as a name and a YAML text.

upstream: github.com/google/gnostic-models/openapiv2/OpenAPIv2.proto
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.protobuf.wire import bytes_field, number_field

_VERBS: Final = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}
_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_COUNTS: Final = {
    "maxLength": 11,
    "minLength": 12,
    "maxItems": 14,
    "minItems": 15,
    "maxProperties": 17,
    "minProperties": 18,
}


def swagger_message(document: Json) -> bytes:
    """Return the document of `v2.swagger` as an encoded Document message."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = _named(2, ((path, _path(item)) for path, item in document["paths"].items()))
    types = _named(
        1, ((name, schema_message(one)) for name, one in document["definitions"].items())
    )
    return b"".join(
        (
            _text(1, document["swagger"]),
            bytes_field(2, info),
            bytes_field(8, paths),
            bytes_field(9, types),
            *(bytes_field(12, _security(one)) for one in document["security"]),
            bytes_field(13, _definitions(document["securityDefinitions"])),
        )
    )


def schema_message(schema: Json) -> bytes:
    """Return `schema` as an encoded Schema message."""
    return b"".join(_schema_fields(schema))


def _schema_fields(schema: Json) -> Iterator[bytes]:
    for key, value in schema.items():
        match key:
            case _ if key in _TEXTS:
                yield _text(_TEXTS[key], value)
            case _ if key in _COUNTS:
                yield number_field(_COUNTS[key], value)
            case "default":
                yield bytes_field(5, _any(value))
            case "uniqueItems":
                yield number_field(16, value)
            case "required":
                yield from (_text(19, name) for name in value)
            case "enum":
                yield from (bytes_field(20, _any(one)) for one in value)
            case "type":
                yield bytes_field(22, _text(1, value))
            case _:
                yield _nested(key, value)


def _nested(key: str, value: Any) -> bytes:
    """Return the encoded member `key` if it contains schemas or is an extension (`x-...`).

    Return b"" for any other key.
    """
    match key:
        case "additionalProperties" if isinstance(value, dict):
            return bytes_field(21, bytes_field(1, schema_message(value)))
        case "additionalProperties":
            return bytes_field(21, number_field(2, value))
        case "items":
            return bytes_field(23, bytes_field(1, schema_message(value)))
        case "allOf":
            return b"".join(bytes_field(24, schema_message(one)) for one in value)
        case "properties":
            named = ((name, schema_message(one)) for name, one in value.items())
            return bytes_field(25, _named(1, named))
        case _ if key.startswith("x-"):
            return _extension(31, key, value)
        case _:
            return b""


def _path(item: Json) -> bytes:
    parts = [
        bytes_field(number, _operation(item[verb]))
        for verb, number in _VERBS.items()
        if verb in item
    ]
    parts += [bytes_field(9, _parameter(one)) for one in item.get("parameters", ())]
    return b"".join(parts)


def _operation(operation: Json) -> bytes:
    responses = (
        (code, bytes_field(1, _response(one))) for code, one in operation["responses"].items()
    )
    return b"".join(
        (
            *(_text(1, one) for one in operation.get("tags", ())),
            _text(5, operation["operationId"]),
            *(_text(6, one) for one in operation.get("produces", ())),
            *(_text(7, one) for one in operation.get("consumes", ())),
            *(bytes_field(8, _parameter(one)) for one in operation.get("parameters", ())),
            bytes_field(9, _named(1, responses)),
            *(_text(10, one) for one in operation.get("schemes", ())),
            *(_extension(13, key, one) for key, one in operation.items() if key.startswith("x-")),
        )
    )


def _response(response: Json) -> bytes:
    made = _text(1, response["description"])
    if "schema" in response:
        made += bytes_field(2, bytes_field(1, schema_message(response["schema"])))
    return made


def _parameter(parameter: Json) -> bytes:
    """Return the encoded Parameter message of a body, query or path parameter."""
    if parameter["in"] == "body":
        body = _text(2, parameter["name"]) + _text(3, "body")
        body += number_field(4, parameter.get("required", False))
        body += bytes_field(5, schema_message(parameter["schema"]))
        return bytes_field(1, bytes_field(1, body))
    in_path = parameter["in"] == "path"
    unique, kind = (19, 5) if in_path else (20, 6)
    made = number_field(1, parameter.get("required", False)) + _text(2, parameter["in"])
    made += _text(3, parameter.get("description", "")) + _text(4, parameter["name"])
    made += _text(kind, parameter["type"]) + number_field(unique, True)  # noqa: FBT003
    return bytes_field(1, bytes_field(2, bytes_field(4 if in_path else 3, made)))


def _security(requirement: Mapping[str, Iterable[str]]) -> bytes:
    named = (
        (key, b"".join(_text(1, one) for one in values)) for key, values in requirement.items()
    )
    return _named(1, named)


def _definitions(definitions: Mapping[str, Json]) -> bytes:
    named = (
        (name, bytes_field(2, _text(1, one["type"]) + _text(2, one["name"]) + _text(3, one["in"])))
        for name, one in definitions.items()
    )
    return _named(1, named)


def _named(number: int, values: Iterable[tuple[str, bytes]]) -> bytes:
    """Return encoded fields with the number `number`, one for each (name, encoded value) pair."""
    return b"".join(
        bytes_field(number, _text(1, name) + bytes_field(2, value)) for name, value in values
    )


def _extension(number: int, name: str, value: Any) -> bytes:
    return bytes_field(number, _text(1, name) + bytes_field(2, _any(value)))


def _any(value: Any) -> bytes:
    return _text(2, json.dumps(value, separators=(",", ":")) + "\n")


def _text(number: int, value: str) -> bytes:
    return bytes_field(number, value.encode()) if value else b""
