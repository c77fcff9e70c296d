"""Containers, as far as no scheduler cares: ports' names, probes, hooks, images, security.

upstream: pkg/apis/core/validation/validation.go:validateContainerCommon, validateProbe,
validateHandler, ValidateSecurityContext
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    required,
)
from fairlead.apiserver.validation.served.environment import (
    check_environment,
    check_environment_sources,
)
from fairlead.apiserver.validation.served.form import (
    INT32_MAX,
    check_at_least,
    check_one_of,
    check_port,
    check_port_number,
    port_name_problems,
)
from fairlead.apiserver.validation.served.volume import check_mounts

Json = dict[str, Any]

PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES: Final = ("FallbackToLogsOnError", "File")
SECCOMP_TYPES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
NO_HANDLER: Final = "must specify a handler type"
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_COUNTS: Final = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
    "failureThreshold",
)  # fmt: skip


def check_container(field: str, container: Json, volumes: Mapping[str, Json]) -> Causes:
    """One container of a pod that has these volumes."""
    yield from _check_port_names(f"{field}.ports", container.get("ports") or [])
    yield from check_environment(f"{field}.env", container.get("env") or [])
    yield from check_environment_sources(f"{field}.envFrom", container.get("envFrom") or [])
    yield from check_mounts(f"{field}.volumeMounts", container.get("volumeMounts") or [], volumes)
    policy = container.get("imagePullPolicy", "")
    yield from check_one_of(f"{field}.imagePullPolicy", policy, PULL_POLICIES)
    said = container.get("terminationMessagePolicy", "")
    yield from check_one_of(f"{field}.terminationMessagePolicy", said, MESSAGE_POLICIES)
    for key in _PROBES:
        if container.get(key) is not None:
            yield from _check_probe(f"{field}.{key}", container[key])
    for key, handler in (container.get("lifecycle") or {}).items():
        if isinstance(handler, dict):
            yield from _check_handler(f"{field}.lifecycle.{key}", handler)
    yield from check_security(f"{field}.securityContext", container.get("securityContext") or {})


def _check_port_names(field: str, ports: list[Json]) -> Causes:
    names: dict[str, None] = {}
    for place, port in enumerate(ports):
        name = port.get("name", "")
        if not name:
            continue
        problems = port_name_problems(name)
        for problem in problems:
            yield invalid(f"{field}[{place}].name", name, problem)
        if not problems and name in names:
            yield duplicate(f"{field}[{place}].name", name)
        names[name] = None


def _check_probe(field: str, probe: Json) -> Causes:
    yield from _check_handler(field, probe)
    for key in _COUNTS:
        yield from check_at_least(f"{field}.{key}", probe.get(key), 0)
    is_readiness = field.endswith("readinessProbe")
    if not is_readiness and probe.get("successThreshold", 1) != 1:
        yield invalid(f"{field}.successThreshold", probe["successThreshold"], "must be 1")
    grace_s = probe.get("terminationGracePeriodSeconds")
    if is_readiness and grace_s is not None:
        why = "must not be set for readinessProbes"
        yield invalid(f"{field}.terminationGracePeriodSeconds", grace_s, why)
    elif grace_s is not None and grace_s <= 0:
        yield invalid(f"{field}.terminationGracePeriodSeconds", grace_s, "must be greater than 0")


def _check_handler(field: str, handler: Json) -> Causes:
    """What a probe or a hook does: one thing."""
    stated = [key for key in _HANDLERS if handler.get(key) is not None]
    if not stated:
        yield required(field, NO_HANDLER)
    for key in stated[1:]:
        yield forbidden(f"{field}.{key}", "may not specify more than 1 handler type")
    for key in stated[:1]:
        where, action = f"{field}.{key}", handler[key]
        if key == "exec" and not action.get("command"):
            yield required(f"{where}.command")
        if key == "httpGet" and not action.get("path"):
            yield required(f"{where}.path")
        if key in ("httpGet", "tcpSocket"):
            yield from check_port(f"{where}.port", action["port"])
        if key == "httpGet":
            yield from check_one_of(f"{where}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS"))
        if key == "grpc":
            yield from check_port_number(f"{where}.port", action["port"])


def check_security(field: str, context: Json) -> Causes:
    """Users, groups and profiles of a container or a pod."""
    for key in ("runAsUser", "runAsGroup", "fsGroup"):
        number = context.get(key)
        if number is not None and not 0 <= number <= INT32_MAX:
            why = f"must be between 0 and {INT32_MAX}, inclusive"
            yield invalid(f"{field}.{key}", number, why)
    profile = context.get("seccompProfile")
    if profile is not None:
        yield from _check_profile(f"{field}.seccompProfile", profile)
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(field, context, why)


def _check_profile(field: str, profile: Json) -> Causes:
    sort = profile.get("type", "")
    yield from check_one_of(f"{field}.type", sort, SECCOMP_TYPES)
    if sort == "Localhost" and not profile.get("localhostProfile"):
        yield required(f"{field}.localhostProfile", "must be set when seccomp type is Localhost")
    if sort != "Localhost" and profile.get("localhostProfile"):
        why = "can only be set when seccomp type is Localhost"
        yield invalid(f"{field}.localhostProfile", profile["localhostProfile"], why)
