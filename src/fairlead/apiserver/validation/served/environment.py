"""Environment variables of containers, and where their values come from.

upstream: pkg/apis/core/validation/validation.go:ValidateEnv, validateEnvVarValueFrom
"""

from __future__ import annotations

import re
from typing import Any, Final

from fairlead.apiserver.validation.field import Causes, invalid, not_supported, required
from fairlead.apiserver.validation.metadata import dns_subdomain_problems
from fairlead.apiserver.validation.served.form import config_key_problems

Json = dict[str, Any]

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
_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_NAME: Final = re.compile("[ -<>-~]+")
_NAME_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)


def check_environment(field: str, variables: list[Json]) -> Causes:
    """The variables of a container."""
    for place, variable in enumerate(variables):
        where = f"{field}[{place}]"
        name = variable.get("name", "")
        if not name:
            yield required(f"{where}.name")
        elif not _NAME.fullmatch(name):
            yield invalid(f"{where}.name", name, _NAME_RULE)
        source = variable.get("valueFrom")
        if source is not None:
            yield from _check_source(f"{where}.valueFrom", variable, source)


def _check_source(field: str, variable: Json, source: Json) -> Causes:
    stated = [key for key in SOURCES if source.get(key) is not None]
    if source.get("fieldRef") is not None:
        yield from check_field_reference(f"{field}.fieldRef", source["fieldRef"])
    for key in ("configMapKeyRef", "secretKeyRef"):
        if source.get(key) is not None:
            yield from _check_key(f"{field}.{key}", source[key])
    if not stated:
        yield invalid(field, "", NO_SOURCE)
    elif variable.get("value"):
        yield invalid(field, "", "may not be specified when `value` is not empty")
    elif len(stated) > 1:
        yield invalid(field, "", "may not have more than one field specified at a time")


def check_field_reference(field: str, reference: Json, known: tuple[str, ...] = FIELDS) -> Causes:
    """A field of the pod itself."""
    path = reference.get("fieldPath", "")
    if not path:
        yield required(f"{field}.fieldPath")
    elif _SUBSCRIPT.fullmatch(path):
        return
    elif path not in (*FIELDS, *_OTHER_FIELDS):
        why = f"error converting fieldPath: field label not supported: {path}"
        yield invalid(f"{field}.fieldPath", path, why)
    elif path not in known:
        yield not_supported(f"{field}.fieldPath", path, known)


def _check_key(field: str, reference: Json) -> Causes:
    name, key = reference.get("name", ""), reference.get("key", "")
    if not name:
        yield required(f"{field}.name")
    if not key:
        yield required(f"{field}.key")
        return
    for problem in config_key_problems(key):
        yield invalid(f"{field}.key", key, problem)


def check_environment_sources(field: str, sources: list[Json]) -> Causes:
    """ConfigMaps and Secrets whose keys become variables."""
    for place, source in enumerate(sources):
        where = f"{field}[{place}]"
        stated = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in stated:
            name = source[key].get("name", "")
            if not name:
                yield required(f"{where}.{key}.name")
            for problem in dns_subdomain_problems(name) if name else ():
                yield invalid(f"{where}.{key}.name", name, problem)
        if not stated:
            yield invalid(where, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(stated) > 1:
            yield invalid(where, "", "may not have more than one field specified at a time")
