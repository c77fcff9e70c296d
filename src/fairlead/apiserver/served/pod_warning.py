"""What to say about the spec of a pod, or of a template, that will surprise.

upstream: pkg/api/pod/warnings.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.quantity import NANOS_PER_UNIT, parse_quantity

Json = dict[str, Any]
Warnings = Iterator[str]

# upstream: pkg/api/node/util.go:deprecatedNodeLabels
_OLD_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
}
_OLD_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
}
_MATCHES_NOTHING: Final = "a null labelSelector results in matching no pod"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def template_warnings(field: str, spec: Json) -> Warnings:
    """Everything about a spec that stands at `field`, in upstream's order."""
    for key in spec.get("nodeSelector") or ():
        if key in _OLD_LABELS:
            yield f"{field}.nodeSelector[{key}]: {_OLD_LABELS[key]}"
    yield from _spread_warnings(field, spec)
    for place, volume in enumerate(spec.get("volumes") or ()):
        for key, why in _OLD_VOLUMES.items():
            if volume.get(key) is not None:
                yield f"{field}.volumes[{place}].{key}: {why}"
    yield from _repeated(f"{field}.hostAliases", spec.get("hostAliases") or [], "ip")
    for place, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{field}.imagePullSecrets[{place}].name: invalid empty name ""'
    for key in ("initContainers", "containers"):
        for place, container in enumerate(spec.get(key) or ()):
            yield from _container_warnings(f"{field}.{key}[{place}]", container)
    yield from _affinity_warnings(f"{field}.affinity", spec.get("affinity") or {})


def _spread_warnings(field: str, spec: Json) -> Warnings:
    for place, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        where = f"{field}.topologySpreadConstraints[{place}]"
        key = constraint.get("topologyKey", "")
        if key in _OLD_LABELS:
            yield f"{where}.topologyKey: {key} is {_OLD_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: {_MATCHES_NOTHING}"


def _repeated(field: str, items: list[Json], key: str) -> Warnings:
    seen: dict[str, None] = {}
    for place, item in enumerate(items):
        value = item.get(key, "")
        if value in seen:
            yield f'{field}[{place}].{key}: duplicate {key} "{value}"'
        seen[value] = None


def _container_warnings(field: str, container: Json) -> Warnings:
    resources = container.get("resources") or {}
    for part in ("limits", "requests"):
        for name in ("memory", "ephemeral-storage"):
            text = (resources.get(part) or {}).get(name)
            if text is not None and parse_quantity(text).nano % NANOS_PER_UNIT:
                why = f'fractional byte value "{text}" is invalid, must be an integer'
                yield f"{field}.resources.{part}[{name}]: {why}"
    names: dict[str, None] = {}
    for place, variable in enumerate(container.get("env") or ()):
        name = variable.get("name", "")
        if name in names:
            hides = f'hides previous definition of "{name}", which may be dropped when using apply'
            yield f"{field}.env[{place}]: {hides}"
        names[name] = None
    yield from _port_warnings(f"{field}.ports", container.get("ports") or [])


def _port_warnings(field: str, ports: list[Json]) -> Warnings:
    seen: dict[tuple[Any, ...], int] = {}
    for place, port in enumerate(ports):
        key = tuple(port.get(part) for part in ("containerPort", "protocol", "hostPort", "hostIP"))
        if key in seen:
            yield f"{field}[{place}]: duplicate port definition with {field}[{seen[key]}]"
        seen.setdefault(key, place)


def _affinity_warnings(field: str, affinity: Json) -> Warnings:
    for part in ("podAffinity", "podAntiAffinity"):
        company = affinity.get(part) or {}
        for place, term in enumerate(company.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{field}.{part}.{_REQUIRED}[{place}].labelSelector: {_MATCHES_NOTHING}"
        for place, weighted in enumerate(company.get(_PREFERRED) or ()):
            if weighted["podAffinityTerm"].get("labelSelector") is None:
                where = f"{field}.{part}.{_PREFERRED}[{place}].podAffinityTerm.labelSelector"
                yield f"{where}: {_MATCHES_NOTHING}"
