"""Validates the environment variables of containers and the sources of their values.

upstream: pkg/apis/core/validation/validation.go:ValidateEnv, validateEnvVarValueFrom
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.json import Json
from fairlead.api.quantity import canonical, parse_quantity
from fairlead.apiserver.validation.meta.field import Causes, invalid, not_supported, required
from fairlead.apiserver.validation.meta.format import (
    check_dns_label,
    check_local_path,
    check_qualified_name,
    check_subdomain,
    config_key_problems,
)

SOURCES: Final = (
    "fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef",
)  # fmt: skip
NO_SOURCE: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
    "`fileKeyRef`"
)
FIELDS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_OTHER_FIELDS: Final = (
    "metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName",
    "status.phase",
)  # fmt: skip
RESOURCES: Final = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
    "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_HUGEPAGES_PREFIXES: Final = ("requests.hugepages-", "limits.hugepages-")
_CPU_DIVISORS: Final = ("1m", "1")
_BYTE_DIVISORS: Final = (
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
)  # fmt: skip
# The names of resources in errors about divisors.
_DIVIDED: Final = {
    "cpu": "cpu",
    "memory": "memory",
    "ephemeral-storage": "local ephemeral storage",
}
_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_NAME: Final = re.compile("[ -<>-~]+")
_NAME_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)


def check_environment(field: str, variables: list[Json]) -> Causes:
    """Yield the errors of a container's environment variables."""
    for index, variable in enumerate(variables):
        where = f"{field}[{index}]"
        name = variable.get("name", "")
        if not name:
            yield required(f"{where}.name")
        else:
            yield from _check_variable_name(f"{where}.name", name)
        source = variable.get("valueFrom")
        if source is not None:
            yield from _check_source(f"{where}.valueFrom", variable, source)


def _check_variable_name(field: str, name: str) -> Causes:
    if not _NAME.fullmatch(name):
        yield invalid(field, name, _NAME_RULE)


def _check_source(field: str, variable: Json, source: Json) -> Causes:
    stated = [key for key in SOURCES if source.get(key) is not None]
    if source.get("fieldRef") is not None:
        yield from check_field_reference(f"{field}.fieldRef", source["fieldRef"])
    if source.get("resourceFieldRef") is not None:
        reference = source["resourceFieldRef"]
        yield from check_resource_reference(f"{field}.resourceFieldRef", reference, of_volume=False)
    for key in ("configMapKeyRef", "secretKeyRef"):
        if source.get(key) is not None:
            yield from _check_key(f"{field}.{key}", source[key])
    if source.get("fileKeyRef") is not None:
        yield from _check_file_key(f"{field}.fileKeyRef", source["fileKeyRef"])
    if not stated:
        yield invalid(field, "", NO_SOURCE)
    elif variable.get("value"):
        yield invalid(field, "", "may not be specified when `value` is not empty")
    elif len(stated) > 1:
        yield invalid(field, "", "may not have more than one field specified at a time")


def check_field_reference(field: str, reference: Json, known: tuple[str, ...] = FIELDS) -> Causes:
    """Yield the errors of a fieldRef, which refers to a field of the container's own pod.

    `known` are the supported field paths. A path to one label or annotation, such as
    `metadata.labels['app']`, is supported too.
    """
    path = reference.get("fieldPath", "")
    if not path:
        yield required(f"{field}.fieldPath")
    elif subscript := _SUBSCRIPT.fullmatch(path):
        part, key = subscript.groups()
        yield from check_qualified_name(field, key.lower() if part == "annotations" else key)
    elif path not in (*FIELDS, *_OTHER_FIELDS):
        why = f"error converting fieldPath: field label not supported: {path}"
        yield invalid(f"{field}.fieldPath", path, why)
    elif path not in known:
        yield not_supported(f"{field}.fieldPath", path, known)


def check_resource_reference(field: str, reference: Json, *, of_volume: bool) -> Causes:
    """Yield the errors of a resourceFieldRef, which refers to a container's requests or limits.

    If `of_volume` is True, `reference` is in a downward API volume, and must have a containerName.
    """
    # upstream: validation.go:validateContainerResourceFieldSelector
    resource = reference.get("resource", "")
    if of_volume and not reference.get("containerName"):
        yield required(f"{field}.containerName")
    elif not resource:
        yield required(f"{field}.resource")
    elif resource not in RESOURCES and not resource.startswith(_HUGEPAGES_PREFIXES):
        yield not_supported(f"{field}.resource", resource, RESOURCES)
    divisor = parse_quantity(reference.get("divisor") or "0")
    type_ = (
        "hugepages"
        if resource.startswith(_HUGEPAGES_PREFIXES)
        else _DIVIDED.get(resource.partition(".")[2])
    )
    known = _CPU_DIVISORS if type_ == "cpu" else _BYTE_DIVISORS
    if type_ is not None and divisor.nano and canonical(divisor) not in known:
        values = " and ".join(known) if type_ == "cpu" else ", ".join(known)
        why = f"only divisor's values {values} are supported with the {type_} resource"
        yield invalid(f"{field}.divisor", resource, why)


def _check_file_key(field: str, reference: Json) -> Causes:
    name, path, key = (reference.get(part) or "" for part in ("volumeName", "path", "key"))
    if name:
        yield from check_dns_label(f"{field}.volumeName", name)
    else:
        yield required(f"{field}.volumeName")
    if path:
        yield from check_local_path(f"{field}.path", path)
    else:
        yield required(f"{field}.path")
    if key:
        yield from _check_variable_name(f"{field}.key", key)
    else:
        yield required(f"{field}.key")


def _check_key(field: str, reference: Json) -> Causes:
    yield from check_subdomain(f"{field}.name", reference.get("name", ""))
    key = reference.get("key", "")
    if not key:
        yield required(f"{field}.key")
        return
    for problem in config_key_problems(key):
        yield invalid(f"{field}.key", key, problem)


def check_environment_sources(field: str, sources: list[Json]) -> Causes:
    """Yield the errors of envFrom, which lists ConfigMaps and Secrets as sources of variables."""
    for index, source in enumerate(sources):
        where = f"{field}[{index}]"
        if source.get("prefix"):
            yield from _check_variable_name(f"{where}.prefix", source["prefix"])
        stated = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in stated:
            name = source[key].get("name", "")
            if not name:
                yield required(f"{where}.{key}.name")
            else:
                yield from check_subdomain(f"{where}.{key}.name", name)
        if not stated:  # As in upstream, the path of the error is the list, not the source.
            yield invalid(field, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(stated) > 1:
            yield invalid(field, "", "may not have more than one field specified at a time")
