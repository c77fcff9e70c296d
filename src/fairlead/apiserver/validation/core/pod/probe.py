"""Probes and lifecycle hooks of containers.

upstream: pkg/apis/core/validation/validation.go:validateProbe, validateHandler, validateLifecycle
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes, forbidden, invalid, required
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_port,
)

NO_HANDLER: Final = "must specify a handler type"
ONE_HANDLER: Final = "may not specify more than 1 handler type"
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS: Final = ("postStart", "preStop")
_OF_PROBES: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS: Final = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS: Final = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
    "failureThreshold", "terminationGracePeriodSeconds",
)  # fmt: skip
_HEADER_FORM: Final = "[-A-Za-z0-9]+"
_HEADER: Final = re.compile(_HEADER_FORM)
_HEADER_RULE: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. "
    f"'X-Header-Name', regex used for validation is '{_HEADER_FORM}')"
)


def check_probes(field: str, container: Json, grace_period_s: int | None) -> Causes:
    """All hooks and probes of a container."""
    lifecycle = container.get("lifecycle") or {}
    for key in HOOKS:
        if lifecycle.get(key) is not None:
            where = f"{field}.lifecycle.{key}"
            yield from _check_handler(where, lifecycle[key], _OF_HOOKS, grace_period_s)
    for key in PROBES:
        if container.get(key) is not None:
            yield from _check_probe(f"{field}.{key}", container[key])


def _check_probe(field: str, probe: Json) -> Causes:
    yield from _check_handler(field, probe, _OF_PROBES, None)
    yield from check_fields(field, "core.v1.Probe", probe, *_COUNTS)
    grace_s, where = probe.get("terminationGracePeriodSeconds"), "terminationGracePeriodSeconds"
    if field.endswith("readinessProbe"):
        if grace_s is not None:
            yield invalid(f"{field}.{where}", grace_s, "must not be set for readinessProbes")
    elif probe.get("successThreshold", 1) != 1:
        yield invalid(f"{field}.successThreshold", probe["successThreshold"], "must be 1")


def _check_handler(
    field: str, handler: Json, known: tuple[str, ...], grace_period_s: int | None
) -> Causes:
    """The action of a probe or hook: exactly one."""
    stated = [key for key in known if handler.get(key) is not None]
    for key in stated[:1]:
        yield from _check_action(f"{field}.{key}", key, handler[key], grace_period_s)
    for key in stated[1:]:
        yield forbidden(f"{field}.{key}", ONE_HANDLER)
    if not stated:
        yield required(field, NO_HANDLER)


def _check_action(field: str, key: str, action: Json, grace_period_s: int | None) -> Causes:
    match key:
        case "exec":
            yield from check_fields(field, "core.v1.ExecAction", action, "command")
        case "httpGet":
            yield from _check_get(field, action)
        case "tcpSocket":
            yield from check_port(f"{field}.port", action["port"])
        case "grpc":
            yield from check_fields(field, "core.v1.GRPCAction", action, "port")
        case _:
            pause_s = action.get("seconds", 0)
            if grace_period_s is not None and not 0 <= pause_s <= grace_period_s:
                why = (
                    "must be non-negative and less than terminationGracePeriodSeconds "
                    f"({grace_period_s})"
                )
                yield invalid(field, pause_s, why)


def _check_get(field: str, action: Json) -> Causes:
    yield from check_fields(field, "core.v1.HTTPGetAction", action, "path")
    yield from check_port(f"{field}.port", action["port"])
    yield from check_fields(field, "core.v1.HTTPGetAction", action, "scheme")
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        if not _HEADER.fullmatch(name):
            yield invalid(f"{field}.httpHeaders", name, _HEADER_RULE)
