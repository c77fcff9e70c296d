"""Reads kube-apiserver's AdmissionConfiguration (--admission-control-config-file).

Only the configuration of the plugin ResourceQuota is supported. Objects that match its
`limitedResources`, such as pods of high PriorityClasses, can be created only if a quota covers
them. A configuration of another plugin is an error.

    plugins:
    - name: ResourceQuota
      configuration:            # or `path`: another file, relative to this file
        apiVersion: apiserver.config.k8s.io/v1
        kind: ResourceQuotaConfiguration
        limitedResources:
        - resource: pods
          matchScopes:
          - {scopeName: PriorityClass, operator: In, values: [urgent]}

upstream: apiserver/pkg/admission/config.go:ReadAdmissionConfiguration,
plugin/resourcequota/apis/resourcequota/{v1,validation}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from fairlead.apiserver.admission.quota.resource_quota import LimitedResource
from fairlead.whatif.input.document import Document, read_one
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.input.strict_form import decode_strictly

RESOURCE_QUOTA: Final = "ResourceQuota"
_TYPES: Final = (
    ("apiserver.config.k8s.io/v1", "AdmissionConfiguration"),
    ("apiserver.k8s.io/v1alpha1", "AdmissionConfiguration"),
)
_QUOTA_TYPES: Final = (
    ("apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"),
    ("resourcequota.admission.k8s.io/v1beta1", "Configuration"),
    ("resourcequota.admission.k8s.io/v1alpha1", "Configuration"),
)
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


class _Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Base class of the file's parts, with upstream's field names; unknown fields are errors."""


class _Plugin(_Form, frozen=True):
    name: str
    path: str = ""
    configuration: dict[str, Any] | None = None


class _Configuration(_Form, frozen=True):
    api_version: str
    kind: str
    plugins: list[_Plugin] = []


class _Scope(_Form, frozen=True):
    scope_name: str
    operator: str
    values: list[str] = []


class _Limited(_Form, frozen=True):
    resource: str
    api_group: str = ""
    match_contains: list[str] = []
    match_scopes: list[_Scope] = []


class _Quotas(_Form, frozen=True):
    api_version: str
    kind: str
    limited_resources: list[_Limited] = []


def read_limited_resources(path: str) -> tuple[LimitedResource, ...]:
    """Return the limited resources in the AdmissionConfiguration at `path`. Raises InputError."""
    document = read_one(path, "AdmissionConfiguration")
    form = decode_strictly(document, _Configuration)
    _require_type(document.source, "", form, _TYPES)
    found: list[LimitedResource] = []
    for index, plugin in enumerate(form.plugins):
        where = f"plugins[{index}]"
        if plugin.name != RESOURCE_QUOTA:
            problem = (
                f"cannot be configured in Fairlead; {known_names(plugin.name, (RESOURCE_QUOTA,))}"
            )
            raise InputError(document.source, problem, object_name=plugin.name, field=where)
        if plugin.path and plugin.configuration is not None:
            raise InputError(document.source, "path and configuration are both set", field=where)
        found += _limited_resources(document.source, where, plugin)
    return tuple(found)


def _limited_resources(source: str, where: str, plugin: _Plugin) -> list[LimitedResource]:
    if plugin.configuration is not None:
        document, where = Document(source, plugin.configuration), f"{where}.configuration"
    elif plugin.path:
        document, where = read_one(str(Path(source).parent / plugin.path)), ""
    else:
        return []
    form = decode_strictly(document, _Quotas, where)
    _require_type(document.source, where, form, _QUOTA_TYPES)
    return [
        _limited(document.source, f"{where}.limitedResources[{index}]".lstrip("."), one)
        for index, one in enumerate(form.limited_resources)
    ]


def _limited(source: str, where: str, form: _Limited) -> LimitedResource:
    for scope in form.match_scopes:
        if scope.operator not in _OPERATORS:
            known = known_names(scope.operator, _OPERATORS)
            problem = f"unknown operator {scope.operator!r}; {known}"
            raise InputError(source, problem, field=f"{where}.matchScopes")
    resource = f"{form.resource}.{form.api_group}" if form.api_group else form.resource
    scopes = tuple(
        {"scopeName": one.scope_name, "operator": one.operator, "values": one.values}
        for one in form.match_scopes
    )
    return LimitedResource(resource=resource, contains=tuple(form.match_contains), scopes=scopes)


def _require_type(
    source: str, where: str, form: _Configuration | _Quotas, types: tuple[tuple[str, str], ...]
) -> None:
    if (form.api_version, form.kind) not in types:
        expected = " or ".join(f"{kind} of {version}" for version, kind in types)
        problem = f"{form.kind} of {form.api_version} is not supported; expected {expected}"
        raise InputError(source, problem, field=f"{where}.kind".lstrip("."))
