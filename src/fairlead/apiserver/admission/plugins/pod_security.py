"""PodSecurity: enforces the Pod Security Standards that a namespace's labels select.

Pods that violate the `enforce` level are refused. Pods and workloads that violate the `warn` level
cause a warning. Fairlead ignores the `audit` level.

upstream: pod-security-admission/admission/admission.go
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import ClassVar, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.plugins.pod_security_standards import LEVELS, NEWEST, violations
from fairlead.apiserver.error import Cause, forbidden, invalid
from fairlead.apiserver.kind import NAMESPACE, POD, Kind
from fairlead.apiserver.schema.model import Schema, Type, schema_of
from fairlead.apiserver.storage.storage import Storage

PREFIX: Final = "pod-security.kubernetes.io/"
_POD_SPEC: Final = "core.v1.PodSpec"
_MODES: Final = ("enforce", "audit", "warn")
_VERSION: Final = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")
_VIOLATED: Final = re.compile(r'violates PodSecurity "[^"]*"')
_CHECKED_PARTS: Final = ("", "ephemeralcontainers")
_CHECKED_OPERATIONS: Final = (Operation.CREATE, Operation.UPDATE)


class _Level(Struct, frozen=True):
    """A level of the Pod Security Standards, and the version of the standards."""

    name: str
    version: str

    @property
    def minor(self) -> int:
        """The minor version of the standards; `NEWEST` for "latest" and invalid versions."""
        found = _VERSION.fullmatch(self.version)
        return min(int(found[1]), NEWEST) if found is not None and found[1] else NEWEST

    def __str__(self) -> str:
        return f'PodSecurity "{self.name}:{self.version}"'


class PodSecurity:
    """The admission plugin `PodSecurity`."""

    CHECKS_ONLY: ClassVar[bool] = True

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse pods that violate the `enforce` level; warn about objects that violate `warn`.

        When a namespace gets a new `enforce` level, also warn about existing pods that violate it.
        Raises ApiError 403 if the pod is refused. Raises ApiError 422 if a Namespace has an invalid
        level or version label.
        """
        kind, obj = attributes.kind, attributes.obj
        if attributes.operation not in _CHECKED_OPERATIONS:
            return obj
        if kind is NAMESPACE:
            _require_levels(obj)
            _warn_of_pods(obj, storage, attributes)
        elif attributes.subresource in _CHECKED_PARTS:
            spec = _pod_spec(kind, obj)
            if spec is not None:
                _check(kind, obj, spec, storage, attributes)
        return obj


def _check(
    kind: Kind, obj: Json, spec: Json, storage: Storage, attributes: AdmissionAttributes
) -> None:
    meta = obj["metadata"]
    namespace = storage.find(NAMESPACE, "", meta.get("namespace", ""))
    if namespace is None:
        return
    if kind is POD and attributes.old is not None and spec == attributes.old.get("spec"):
        return
    level = _level(namespace, "enforce")
    violations_found = violations(level.name, level.minor, spec)
    if kind is POD and violations_found:
        reason = f"violates {level}: {_violations_text(violations_found)}"
        raise forbidden(kind, meta.get("namespace", ""), meta["name"], reason)
    level = _level(namespace, "warn")
    violations_found = violations(level.name, level.minor, spec)
    if violations_found:
        attributes.write.warn(f"would violate {level}: {_violations_text(violations_found)}")


def violated_level(message: str) -> str:
    """Return the part of a refusal that names the violated level; "" for other messages.

    The rest of the refusal names containers of the pod.
    """
    found = _VIOLATED.match(message)
    return "" if found is None else found[0]


def _require_levels(namespace: Json) -> None:
    """Refuse a namespace that has an invalid level or version label. Raises ApiError 422."""
    labels = namespace["metadata"].get("labels") or {}
    causes = []
    for mode in _MODES:
        level = labels.get(f"{PREFIX}{mode}", "privileged")
        if level not in LEVELS:
            message = f'Invalid value: "{level}": must be one of {", ".join(LEVELS)}'
            field = f"metadata.labels[{PREFIX}{mode}]"
            causes.append(Cause("FieldValueInvalid", message, field))
        version = labels.get(f"{PREFIX}{mode}-version", "latest")
        if not _VERSION.fullmatch(version):
            message = f'Invalid value: "{version}": must be "latest" or "v1.x"'
            field = f"metadata.labels[{PREFIX}{mode}-version]"
            causes.append(Cause("FieldValueInvalid", message, field))
    if causes:
        raise invalid(NAMESPACE, "", namespace["metadata"].get("name", ""), tuple(causes))


def _warn_of_pods(namespace: Json, storage: Storage, attributes: AdmissionAttributes) -> None:
    """Warn the client about existing pods that violate a newly enforced level."""
    if attributes.old is None or attributes.subresource:
        return
    level = _level(namespace, "enforce")
    if level == _level(attributes.old, "enforce"):
        return
    name = namespace["metadata"]["name"]
    pods: dict[str, list[str]] = {}
    for pod in storage.items(POD, name):
        reasons = ", ".join(
            reason for reason, _ in violations(level.name, level.minor, pod["spec"])
        )
        if reasons:
            pods.setdefault(reasons, []).append(pod["metadata"]["name"])
    if pods:
        enforced = f'"{level.name}:{level.version}"'
        attributes.write.warn(
            f'existing pods in namespace "{name}" violate the new PodSecurity enforce level '
            f"{enforced}"
        )
    for reasons, names in sorted(pods.items(), key=lambda entry: entry[1][0]):
        more = len(names) - 1
        others = f" (and {more} other pod{'s' if more > 1 else ''})" if more else ""
        attributes.write.warn(f"{names[0]}{others}: {reasons}")


def _level(namespace: Json, mode: str) -> _Level:
    labels = namespace["metadata"].get("labels") or {}
    # A mode without a level label uses the enforced level. If it has no version label either, it
    # uses the enforced version.
    of_level = mode if f"{PREFIX}{mode}" in labels else "enforce"
    name = labels.get(f"{PREFIX}{of_level}", "privileged")
    of_version = mode if f"{PREFIX}{mode}-version" in labels else of_level
    version = labels.get(f"{PREFIX}{of_version}-version", "latest")
    return _Level(name if name in LEVELS else "restricted", version)


def _pod_spec(kind: Kind, obj: Json) -> Json | None:
    path = None if kind.is_custom else _pod_spec_path(kind)
    if path is None:
        return None
    for name in path:
        obj = obj.get(name) or {}
    return obj


@cache
def _pod_spec_path(kind: Kind) -> tuple[str, ...] | None:
    """Return the path of the pod spec in objects of `kind`; None if they contain no pod spec."""
    # upstream: k8s.io/pod-security-admission/admission/admission.go:DefaultPodSpecExtractor
    seen: set[str] = set()

    def find(schema: Schema | None) -> tuple[str, ...] | None:
        if schema is None or schema.type is not Type.OBJECT or schema.definition in seen:
            return None
        seen.add(schema.definition)
        if schema.long_name == _POD_SPEC:
            return ()
        for name, field in schema.fields.items():
            path = find(field.schema)
            if path is not None:
                return (name, *path)
        return None

    return find(schema_of(kind.stored_as, kind.kind))


def _violations_text(violations_found: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{reason} ({details})" for reason, details in violations_found)
