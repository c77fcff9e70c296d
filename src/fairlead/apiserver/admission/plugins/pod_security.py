"""PodSecurity: what a namespace's labels ask of its pods, and of what makes pods.

`enforce` refuses pods, `warn` tells whoever writes a pod or a workload; `audit` would write to an
audit log. Workloads are never refused: the pods they make are.

upstream: pod-security-admission/admission/admission.go
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked, Circumstances, Operation
from fairlead.apiserver.admission.plugins.pod_security_standards import CHECKS, objections
from fairlead.apiserver.error import Cause, forbidden, invalid
from fairlead.apiserver.kind import NAMESPACE, POD, Kind
from fairlead.apiserver.storage.storage import Storage

PREFIX: Final = "pod-security.kubernetes.io/"
# Where a workload's pods are described.
_TEMPLATES: Final = {
    "replicationcontrollers": ("spec", "template", "spec"),
    "podtemplates": ("template", "spec"),
    "replicasets.apps": ("spec", "template", "spec"),
    "deployments.apps": ("spec", "template", "spec"),
    "statefulsets.apps": ("spec", "template", "spec"),
    "daemonsets.apps": ("spec", "template", "spec"),
    "jobs.batch": ("spec", "template", "spec"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template", "spec"),
}
_MODES: Final = ("enforce", "audit", "warn")
_VERSION: Final = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")
_CHECKED_PARTS: Final = ("", "ephemeralcontainers")


@dataclass(frozen=True, slots=True)
class _Level:
    """What is asked for, in which version of the standards."""

    name: str
    version: str

    def __str__(self) -> str:
        """As messages have it."""
        return f'PodSecurity "{self.name}:{self.version}"'


class PodSecurity:
    """The admission plugin."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Refuse pods that their namespace does not want (ApiError 403), and warn of others."""
        kind, obj = asked.kind, asked.obj
        if asked.operation not in (Operation.CREATE, Operation.UPDATE):
            return obj
        if kind is NAMESPACE:
            _require_levels(obj)
            _warn_of_pods(obj, storage, asked.about)
        elif asked.about.subresource in _CHECKED_PARTS:
            spec = _pod_spec(kind, obj)
            if spec is not None:
                _check(kind, obj, spec, storage, asked.about)
        return obj


def _check(kind: Kind, obj: Json, spec: Json, storage: Storage, about: Circumstances) -> None:
    meta = obj["metadata"]
    namespace = storage.find(NAMESPACE, "", meta.get("namespace", ""))
    if namespace is None:
        return
    if kind is POD and about.old is not None and spec == about.old.get("spec"):
        return
    level = _level(namespace, "enforce")
    found = objections(level.name, spec)
    if kind is POD and found:
        why = f"violates {level}: {_told(found)}"
        raise forbidden(kind, meta.get("namespace", ""), meta["name"], why)
    level = _level(namespace, "warn")
    found = objections(level.name, spec)
    if found:
        about.write.warn(f"would violate {level}: {_told(found)}")


def _require_levels(namespace: Json) -> None:
    """Refuse a namespace whose labels name no level. Raises ApiError 422."""
    labels = namespace["metadata"].get("labels") or {}
    causes = []
    for mode in _MODES:
        level = labels.get(f"{PREFIX}{mode}", "privileged")
        if level not in CHECKS:
            message = f'Invalid value: "{level}": must be one of {", ".join(CHECKS)}'
            field = f"metadata.labels[{PREFIX}{mode}]"
            causes.append(Cause("FieldValueInvalid", message, field))
        version = labels.get(f"{PREFIX}{mode}-version", "latest")
        if not _VERSION.fullmatch(version):
            message = f'Invalid value: "{version}": must be "latest" or "v1.x"'
            field = f"metadata.labels[{PREFIX}{mode}-version]"
            causes.append(Cause("FieldValueInvalid", message, field))
    if causes:
        raise invalid(NAMESPACE, "", namespace["metadata"].get("name", ""), tuple(causes))


def _warn_of_pods(namespace: Json, storage: Storage, about: Circumstances) -> None:
    """Say which pods would not be let in under a new level."""
    if about.old is None or about.subresource:
        return
    level = _level(namespace, "enforce")
    if level == _level(about.old, "enforce"):
        return
    name = namespace["metadata"]["name"]
    pods: dict[str, list[str]] = {}
    for pod in storage.items(POD, name):
        reasons = ", ".join(reason for reason, _ in objections(level.name, pod["spec"]))
        if reasons:
            pods.setdefault(reasons, []).append(pod["metadata"]["name"])
    if pods:
        asked = f'"{level.name}:{level.version}"'
        about.write.warn(
            f'existing pods in namespace "{name}" violate the new PodSecurity enforce level {asked}'
        )
    for reasons, names in sorted(pods.items(), key=lambda entry: entry[1][0]):
        more = len(names) - 1
        others = f" (and {more} other pod{'s' if more > 1 else ''})" if more else ""
        about.write.warn(f"{names[0]}{others}: {reasons}")


def _level(namespace: Json, mode: str) -> _Level:
    labels = namespace["metadata"].get("labels") or {}
    # Whoever sets only what is enforced wants to be warned of that, too.
    mode = mode if f"{PREFIX}{mode}" in labels else "enforce"
    name = labels.get(f"{PREFIX}{mode}", "privileged")
    version = labels.get(f"{PREFIX}{mode}-version", "latest")
    return _Level(name if name in CHECKS else "restricted", version)


def _pod_spec(kind: Kind, obj: Json) -> Json | None:
    path = ("spec",) if kind is POD else _TEMPLATES.get(kind.resource)
    if path is None:
        return None
    for name in path:
        obj = obj.get(name) or {}
    return obj


def _told(found: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{reason} ({details})" for reason, details in found)
