"""Recreates PriorityClasses that a dump references but does not contain.

Admission resolves the priority class of a replacement pod anew. A dump of nodes and pods has no
PriorityClasses, but each pod has the resolved priority in its spec, so the class is recreated from
it. A pod whose priority came without a class gets a class of its own, because its replacement would
lose the priority otherwise.

upstream: plugin/pkg/admission/priority/admission.go, pkg/apis/scheduling/types.go
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import Pod, PodSpec, PriorityClass

USER_VALUE_MAX: Final = 1_000_000_000
SYSTEM_PREFIX: Final = "system-"
STAND_IN_PREFIX: Final = "fairlead-priority-"
NEVER: Final = "Never"


def class_name(spec: PodSpec) -> str:
    """The class from which a pod like this gets its priority; "" if it needs none."""
    if spec.priority_class_name or not spec.priority:
        return spec.priority_class_name
    sign = "minus-" if spec.priority < 0 else ""
    policy = "-never" if spec.preemption_policy == NEVER else ""
    return f"{STAND_IN_PREFIX}{sign}{abs(spec.priority)}{policy}"


def missing_classes(pods: Iterable[Pod], known: Iterable[PriorityClass]) -> list[Json]:
    """Manifests of the classes that `pods` reference and `known` lacks, by name.

    If pods of one class disagree, the newest pod is right: it was admitted last.
    """
    present = {one.metadata.name for one in known}
    latest: dict[str, Pod] = {}
    for pod in pods:
        name = class_name(pod.spec)
        if name and name not in present and _can_tell(name, pod.spec):
            latest[name] = max(latest.get(name, pod), pod, key=_age)
    return [_manifest(name, latest[name].spec) for name in sorted(latest)]


def _can_tell(name: str, spec: PodSpec) -> bool:
    """Whether the pod has the resolved value of its class, within the range for users."""
    is_system = name.startswith(SYSTEM_PREFIX)
    return spec.priority is not None and spec.priority <= USER_VALUE_MAX and not is_system


def _age(pod: Pod) -> tuple[str, str]:
    return (pod.metadata.creation_timestamp, pod.key)


def _manifest(name: str, spec: PodSpec) -> Json:
    manifest: Json = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": spec.priority,
    }
    if spec.preemption_policy:
        manifest["preemptionPolicy"] = spec.preemption_policy
    return manifest
