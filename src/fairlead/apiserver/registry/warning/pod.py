"""Warnings about a pod or a pod template.

upstream: pkg/api/pod/warnings.go:warningsForPodSpecAndMeta, pkg/api/node/util.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.quantity import NANOS_PER_UNIT, parse_quantity

# --- comparisons ---------------------------------------------------------------------------------

# Paths and ports are compared pairwise, as in upstream. Comparing tens of thousands of them would
# take hours here. Real pods have few paths and ports, and clients get only the first kilobytes of
# warnings.

COMPARISONS_MAX: Final = 50_000


class ComparisonBudget(Struct):
    """The number of comparisons that one check of a pod may still make."""

    left: int = COMPARISONS_MAX

    def spend(self, comparisons: int) -> bool:
        """Subtract `comparisons` from `left`; return whether `left` is still positive."""
        self.left = max(self.left - comparisons, 0)
        return self.left > 0


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
    """Yield all warnings about a pod or pod template, in upstream's order.

    Each field path begins with `prefix`, which is "" for a pod and ends with a dot otherwise.
    """
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
    """Yield warnings about deprecated node labels in a node selector term."""
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
    """Return the warning about the deprecated volume type `key` of a pod or PersistentVolume."""
    name, deprecated, gone = OLD_VOLUMES[key]
    end = f", non-functional in {gone}" if gone else ""
    return f"{field}.{name}: deprecated in {deprecated}{end}"


def claim_warnings(field: str, spec: Json) -> Warnings:
    """Yield warnings about fractions of a byte in a claim's resources."""
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


# --- containers ----------------------------------------------------------------------------------

# upstream: pkg/api/pod/warnings.go:warningsForPodSpecAndMeta


_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_CONTAINER_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_PORT: Final = ("name", "hostPort", "containerPort", "protocol", "hostIP")


def container_warnings(prefix: str, spec: Json, notes: Json) -> Warnings:
    """Yield warnings about each container, then about all ports.

    `notes` are the annotations of the pod.
    """
    own = spec.get("securityContext") or {}
    for field, container in _all(prefix, spec):
        context, name = container.get("securityContext") or {}, container.get("name", "")
        key = f"{_CONTAINER_SECCOMP}{name}"
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
    """Return the warning about the seccomp annotation `key`, which no longer has any effect."""
    why = 'non-functional in v1.27+; use the \\"seccompProfile\\" field instead'
    return f"{prefix}metadata.annotations[{key}]: {why}"


def fraction(field: str, text: Any) -> Warnings:
    """Yield a warning if the quantity `text` contains a fraction of a byte."""
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
    """Return how two definitions of a container port conflict, such as "duplicate".

    Return "" if they do not conflict.
    """
    ips = [one.get("hostIP") or "" for one in (port, other)]
    numbers = [one.get("hostPort") or 0 for one in (port, other)]
    if ips[0] == ips[1] and numbers[0] == numbers[1]:
        return "duplicate"
    if not all(numbers):
        return "overlapping"
    return "dangerously ambiguous" if numbers[0] == numbers[1] and not all(ips) else ""


# --- volume paths --------------------------------------------------------------------------------

# upstream: pkg/api/pod/warnings.go:warningsForOverlappingVirtualPaths


# Volume sources with files: field, name in warnings, and the field with the source's name.
_SOURCES: Final = (
    ("configMap", "ConfigMap", "name"),
    ("secret", "Secret", "secretName"),
    ("downwardAPI", "DownwardAPI", ""),
)


def path_warnings(volumes: list[Json]) -> Warnings:
    """Yield warnings about equal or nested file paths within a volume."""
    budget = ComparisonBudget()
    for volume in volumes:
        name = volume.get("name", "")
        for key, sort, named in _SOURCES:
            items = (volume.get(key) or {}).get("items")
            if items:
                who = f' "{volume[key].get(named, "")}"' if named else ""
                source_name = f'volume "{name}" ({sort}{who})'
                yield from _overlaps(_paths(items), source_name, budget)
        if volume.get("projected") is not None:
            yield from _projected(name, volume["projected"].get("sources") or [], budget)


def _projected(volume: str, sources: list[Json], budget: ComparisonBudget) -> Warnings:
    paths: list[str] = []
    source_name, before = "", dict[str, None]()
    for source in sources:
        if not any(value is not None for value in source.values()):
            yield f'volume "{volume}" (Projected) has no sources provided'
            continue
        # A source without files reuses the previous source's paths, as in upstream.
        paths, source_name = _projection(volume, source) or (paths, source_name)
        if not paths or not budget.left:
            continue
        yield from _overlaps(paths, source_name, budget)
        own = dict.fromkeys(paths)
        yield from _overlaps(sorted([*own, *before]), source_name, budget)
        before |= own


def _projection(volume: str, source: Json) -> tuple[list[str], str] | None:
    for key, sort, named in _SOURCES:
        found = source.get(key)
        if found is not None and found.get("items"):
            who = f' "{found.get("name", "")}"' if named else ""
            return _paths(found["items"]), f'volume "{volume}" (Projected {sort}{who})'
    if source.get("serviceAccountToken") is not None:
        path = source["serviceAccountToken"].get("path", "")
        return [path], f'volume "{volume}" (Projected ServiceAccountToken)'
    bundle = source.get("clusterTrustBundle")
    if bundle is not None:
        who = bundle.get("name") or bundle.get("signerName") or ""
        source_name = f'volume "{volume}" (Projected ClusterTrustBundle "{who}")'
        return [bundle.get("path", "")], source_name
    return None


def _paths(items: list[Json]) -> list[str]:
    return [item.get("path", "") for item in items]


def _overlaps(paths: list[str], source_name: str, budget: ComparisonBudget) -> Warnings:
    paths = [path.rstrip("/") for path in paths]
    if _are_apart(paths):
        return
    seen: dict[str, None] = {}
    for path in paths:
        if not budget.spend(len(seen)):
            return
        other = next((one for one in seen if _is_overlap(one, path)), None)
        if other is not None:
            yield f'{source_name}: overlapping paths: "{path}" with "{other}"'
        seen[path] = None


def _are_apart(paths: list[str]) -> bool:
    """Return whether no path in `paths` is a prefix of another path.

    Only neighbours in sorted order are compared. If a path is a prefix of other paths, the next
    path in this order is one of them.
    """
    ordered = sorted(filter(None, paths))
    return not any(map(str.startswith, ordered[1:], ordered))


def _is_overlap(one: str, other: str) -> bool:
    if not one or not other:
        return False
    return f"{one}/".startswith(other) or f"{other}/".startswith(one)
