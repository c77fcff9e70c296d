"""Warnings about the containers of a pod.

upstream: pkg/api/pod/warnings.go:warningsForPodSpecAndMeta
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.quantity import NANOS_PER_UNIT, parse_quantity
from fairlead.apiserver.registry.warning.comparison_budget import ComparisonBudget

Warnings = Iterator[str]

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_PORT: Final = ("name", "hostPort", "containerPort", "protocol", "hostIP")


def container_warnings(prefix: str, spec: Json, notes: Json) -> Warnings:
    """Warns about each container, then about all ports; `notes` are the pod's annotations."""
    own = spec.get("securityContext") or {}
    for field, container in _all(prefix, spec):
        context, name = container.get("securityContext") or {}, container.get("name", "")
        key = f"{_SECCOMP}{name}"
        if context.get("seccompProfile") is None and key in notes:
            yield old_seccomp(prefix, key)
        key = f"{_APP_ARMOR}{name}"
        has_profile = any(one.get("appArmorProfile") is not None for one in (own, context))
        if not has_profile and key in notes:
            why = 'deprecated since v1.30; use the "appArmorProfile" field instead'
            yield f"{prefix}metadata.annotations[{key}]: {why}"
        yield from _fractions(f"{field}.resources", container.get("resources") or {})
        yield from _hidden(f"{field}.env", container.get("env") or [])
    yield from _ports(prefix, spec)


def old_seccomp(prefix: str, key: str) -> str:
    """The warning about a seccomp annotation, which has no effect any more."""
    why = 'non-functional in v1.27+; use the \\"seccompProfile\\" field instead'
    return f"{prefix}metadata.annotations[{key}]: {why}"


def fraction(field: str, text: Any) -> Warnings:
    """Warns about a quantity with a fraction of a byte."""
    if text is not None and parse_quantity(text).nano % NANOS_PER_UNIT:
        yield f'{field}: fractional byte value "{text}" is invalid, must be an integer'


def _all(prefix: str, spec: Json) -> Iterator[tuple[str, Json]]:
    for key in _CONTAINERS:
        for index, container in enumerate(spec.get(key) or ()):
            yield f"{prefix}spec.{key}[{index}]", container


def _fractions(field: str, resources: Json) -> Warnings:
    for name in ("memory", "ephemeral-storage"):
        for part in ("limits", "requests"):
            yield from fraction(f"{field}.{part}[{name}]", (resources.get(part) or {}).get(name))


def _hidden(field: str, variables: list[Json]) -> Warnings:
    names: dict[str, None] = {}
    for index, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value") or ""
        reference = f"$({name})"
        is_bad = variable.get("valueFrom") is not None or value == reference
        if name in names and (is_bad or reference not in value):
            hides = f'hides previous definition of "{name}", which may be dropped when using apply'
            yield f"{field}[{index}]: {hides}"
        names[name] = None


def _ports(prefix: str, spec: Json) -> Warnings:
    budget = ComparisonBudget()
    seen: dict[tuple[Any, Any], list[tuple[str, Json]]] = {}
    for path, container in _all(prefix, spec):
        for index, port in enumerate(container.get("ports") or ()):
            field = f"{path}.ports[{index}]"
            if port.get("hostIP") and not port.get("hostPort"):
                yield f"{field}: hostIP set without hostPort: {_shown(port)}"
            others = seen.setdefault((port.get("containerPort"), port.get("protocol")), [])
            if not budget.spend(len(others)):
                return
            for other_field, other in others:
                how = _clash(port, other)
                if how:
                    yield f"{field}: {how} port definition with {other_field}"
            others.append((field, port))


def _shown(port: Json) -> str:
    fields = (f"{name[:1].upper()}{name[1:]}:{port.get(name) or _zero(name)}" for name in _PORT)
    return f"{{{' '.join(fields)}}}"


def _zero(name: str) -> str:
    return "0" if name in ("hostPort", "containerPort") else ""


def _clash(port: Json, other: Json) -> str:
    """How two definitions of the same container port conflict, "" if they do not."""
    ips = [one.get("hostIP") or "" for one in (port, other)]
    numbers = [one.get("hostPort") or 0 for one in (port, other)]
    if ips[0] == ips[1] and numbers[0] == numbers[1]:
        return "duplicate"
    if not all(numbers):
        return "overlapping"
    return "dangerously ambiguous" if numbers[0] == numbers[1] and not all(ips) else ""
