"""Warnings about a pod or a pod template.

upstream: pkg/api/pod/warnings.go:warningsForPodSpecAndMeta, pkg/api/node/util.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.warning.container import container_warnings, fraction, old_seccomp
from fairlead.apiserver.registry.warning.volume_path import path_warnings

Warnings = Iterator[str]

# upstream: pkg/api/node/util.go:deprecatedNodeLabels
OLD_LABELS: Final = {
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
_OLD_NOTES: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
    "security.alpha.kubernetes.io/unsafe-sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
}
# Removed and deprecated volume types, with their names in warnings.
OLD_VOLUMES: Final = {
    "photonPersistentDisk": ("photonPersistentDisk", "v1.11", "v1.16+"),
    "gitRepo": ("gitRepo", "v1.11", ""),
    "scaleIO": ("scaleIO", "v1.16", "v1.22+"),
    "flocker": ("flocker", "v1.22", "v1.25+"),
    "storageos": ("storageOS", "v1.22", "v1.25+"),
    "quobyte": ("quobyte", "v1.22", "v1.25+"),
    "glusterfs": ("glusterfs", "v1.25", "v1.26+"),
    "cephfs": ("cephfs", "v1.28", "v1.31+"),
    "rbd": ("rbd", "v1.28", "v1.31+"),
}
_NOTED_VOLUMES: Final = frozenset((*OLD_VOLUMES, "ephemeral"))
_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
_MATCHES_NOTHING: Final = "a null labelSelector results in matching no pod"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def template_warnings(prefix: str, template: Json) -> Warnings:
    """All warnings about a pod or a template at path `prefix`, in upstream's order."""
    spec = template.get("spec") or {}
    notes = (template.get("metadata") or {}).get("annotations") or {}
    field = f"{prefix}spec"
    yield from _node_label_warnings(field, spec)
    for key, why in _OLD_NOTES.items():
        if key in notes:
            yield f"{prefix}metadata.annotations[{key}]: {why}"
    for place, volume in enumerate(spec.get("volumes") or ()):
        yield from _volume_warnings(f"{field}.volumes[{place}]", volume)
    yield from path_warnings(spec.get("volumes") or [])
    yield from _repeated(f"{field}.hostAliases", spec.get("hostAliases") or [], "ip")
    secrets = spec.get("imagePullSecrets") or []
    yield from _repeated(f"{field}.imagePullSecrets", secrets, "name")
    for place, secret in enumerate(secrets):
        if not secret.get("name"):
            yield f'{field}.imagePullSecrets[{place}].name: invalid empty name ""'
    for name in ("memory", "ephemeral-storage"):
        yield from fraction(f"{field}.overhead[{name}]", (spec.get("overhead") or {}).get(name))
    context = spec.get("securityContext") or {}
    if context.get("seccompProfile") is None and _SECCOMP in notes:
        yield old_seccomp(prefix, _SECCOMP)
    yield from container_warnings(prefix, spec, notes)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{field}.terminationGracePeriodSeconds: {why}"
    yield from _affinity_warnings(f"{field}.affinity", spec.get("affinity") or {})


def term_warnings(field: str, term: Json) -> Warnings:
    """Warns about deprecated node labels in a node selector term."""
    for place, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key", "")
        if key in OLD_LABELS:
            yield f"{field}.matchExpressions[{place}].key: {key} is {OLD_LABELS[key]}"


def _node_label_warnings(field: str, spec: Json) -> Warnings:
    for key in spec.get("nodeSelector") or ():
        if key in OLD_LABELS:
            yield f"{field}.nodeSelector[{key}]: {OLD_LABELS[key]}"
    nodes, where = (spec.get("affinity") or {}).get("nodeAffinity") or {}, f"{field}.affinity"
    for place, term in enumerate((nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        at = f"{where}.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[{place}]"
        yield from term_warnings(at, term)
    for place, weighted in enumerate(nodes.get(_PREFERRED) or ()):
        at = f"{where}.nodeAffinity.{_PREFERRED}[{place}].preference"
        yield from term_warnings(at, weighted.get("preference") or {})
    yield from _spread_warnings(field, spec)


def _spread_warnings(field: str, spec: Json) -> Warnings:
    for place, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        where = f"{field}.topologySpreadConstraints[{place}]"
        key = constraint.get("topologyKey", "")
        if key in OLD_LABELS:
            yield f"{where}.topologyKey: {key} is {OLD_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: {_MATCHES_NOTHING}"


def _volume_warnings(field: str, volume: Json) -> Warnings:
    if volume.keys().isdisjoint(_NOTED_VOLUMES):
        return
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}
    for key in OLD_VOLUMES:
        if key == "cephfs":
            where = f"{field}.ephemeral.volumeClaimTemplate.spec"
            yield from claim_warnings(where, claim.get("spec") or {})
        if volume.get(key) is not None:
            yield old_volume(field, key)


def old_volume(field: str, key: str) -> str:
    """The warning about a deprecated volume type, in a pod or a PersistentVolume."""
    name, deprecated, gone = OLD_VOLUMES[key]
    end = f", non-functional in {gone}" if gone else ""
    return f"{field}.{name}: deprecated in {deprecated}{end}"


def claim_warnings(field: str, spec: Json) -> Warnings:
    """Warns about fractions of a byte in a claim's resources."""
    resources = spec.get("resources") or {}
    for part in ("requests", "limits"):
        text = (resources.get(part) or {}).get("storage")
        yield from fraction(f"{field}.resources.{part}[storage]", text)


def _repeated(field: str, items: list[Json], key: str) -> Warnings:
    seen: dict[str, None] = {}
    for place, item in enumerate(items):
        value = item.get(key, "")
        if value in seen:
            yield f'{field}[{place}].{key}: duplicate {key} "{value}"'
        seen[value] = None


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
