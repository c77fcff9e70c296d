"""Names of Go types, which decoding errors quote.

Most names follow from a schema. But Go also has names for some string, list and map types, such as
`v1.ScopeType`. Schemas do not contain these names. Therefore `data/…-types.txt` has a line for each
struct with fields of such types. The line contains the struct's name, these fields and their types.

The path of a field of an embedded struct contains the name of this struct (`_EMBEDDED`).

upstream: the types of staging/src/k8s.io/api; sigs.k8s.io/json decode.go:addErrorContext
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from fairlead.api.data_folder import data_folder
from fairlead.apiserver.schema.model import VERSION, Schema, Type

_NAMES: Final = {
    Type.STRING: "string",
    Type.BYTES: "[]uint8",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.NUMBER: "float64",
    Type.BOOLEAN: "bool",
    Type.QUANTITY: "resource.Quantity",
    Type.INT_OR_STRING: "intstr.IntOrString",
    Type.TIME: "string",
    Type.MICRO_TIME: "string",
    Type.ANY: "map[string]interface {}",
}
# Named list types and their elements; elements of other list types never appear in errors.
_NAMED_LISTS: Final = {"v1.ExtraValue": "string"}
# Go types that embed a struct. Each line has the type, the struct, and a list of fields. After
# `of`, these are the fields that the struct declares. After `but`, these are the fields of the type
# that the struct does not declare.
_EMBEDDED: Final = """
admissionregistration.v1.NamedRuleWithOperations RuleWithOperations of operations
admissionregistration.v1.NamedRuleWithOperations RuleWithOperations.Rule but operations \
resourceNames
admissionregistration.v1.RuleWithOperations Rule but operations
core.v1.ConfigMapEnvSource LocalObjectReference of name
core.v1.ConfigMapKeySelector LocalObjectReference of name
core.v1.ConfigMapProjection LocalObjectReference of name
core.v1.ConfigMapVolumeSource LocalObjectReference of name
core.v1.EphemeralContainer EphemeralContainerCommon but targetContainerName
core.v1.PersistentVolumeSpec PersistentVolumeSource but capacity accessModes claimRef \
persistentVolumeReclaimPolicy storageClassName mountOptions volumeMode nodeAffinity \
volumeAttributesClassName
core.v1.Probe ProbeHandler of exec httpGet tcpSocket grpc
core.v1.SecretEnvSource LocalObjectReference of name
core.v1.SecretKeySelector LocalObjectReference of name
core.v1.SecretProjection LocalObjectReference of name
core.v1.Volume VolumeSource but name
networking.v1.IngressRule IngressRuleValue of http
resource.v1.DeviceAllocationConfiguration DeviceConfiguration of opaque
resource.v1.DeviceClaimConfiguration DeviceConfiguration of opaque
resource.v1.DeviceClassConfiguration DeviceConfiguration of opaque
"""


def go_type(schema: Schema) -> str:
    """Return the Go type of `schema`, such as `int32`, `[]v1.Container` or `map[string]string`."""
    if schema.type is Type.OBJECT:
        return schema.short_name
    if schema.items is None:
        return _NAMES[schema.type]
    inner = go_type(schema.items)
    return f"[]{inner}" if schema.type is Type.LIST else f"map[string]{inner}"


def declared_type(owner: Schema, field: str, depth: int, schema: Schema) -> str:
    """Return the Go type of a value in the field `field` of `owner`.

    The value is inside `depth` lists and maps; `schema` is the schema of the value.
    """
    name = _declared_types().get(owner.long_name, {}).get(field, "")
    for _ in range(depth):
        if name.startswith("[]"):
            name = name.removeprefix("[]")
        elif name.startswith("map["):
            name = name.partition("]")[2]
        else:
            name = _NAMED_LISTS.get(name, "")
    return name or go_type(schema)


def embedded_in(owner: Schema, field: str) -> str:
    """Return the embedded struct that declares `field` of `owner`; "" if `owner` declares it."""
    for name, (is_of, fields) in _embedded().get(owner.long_name, {}).items():
        if (field in fields) is is_of:
            return name
    return ""


@cache
def _declared_types(version: str = VERSION) -> Mapping[str, Mapping[str, str]]:
    """Return {struct name: {field name: Go type}} for the fields that have named Go types."""
    path = data_folder("fairlead.apiserver.schema").joinpath(f"{version}-types.txt")
    lines = (line.split() for line in path.read_text().splitlines())
    return {owner: dict(row.split("=") for row in rows) for owner, *rows in lines}


@cache
def _embedded() -> Mapping[str, Mapping[str, tuple[bool, frozenset[str]]]]:
    made: dict[str, dict[str, tuple[bool, frozenset[str]]]] = {}
    for line in _EMBEDDED.strip().splitlines():
        owner, name, of, *fields = line.split()
        made.setdefault(owner, {})[name] = of == "of", frozenset(fields)
    return made


def go_kind(value: Any) -> str:
    """Return the Go kind of a decoded JSON value, such as `map`, `slice`, `string` or `int64`."""
    match value:
        case dict():
            return "map"
        case list():
            return "slice"
        case str():
            return "string"
        case bool():
            return "bool"
        case float():
            return "float64"
        case _:
            return "int64"
