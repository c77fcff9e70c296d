"""Limits on the size of workloads and queue hierarchies, checked before a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead.api.objects import Deployment, Node, Pod, ReplicaSet, StatefulSet
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

PODS_PER_WORKLOAD_MAX: Final = 1_000_000
QUEUES_ABOVE_MAX: Final = 100

_COUNTS: Final = ("replicas", "parallelism", "completions")


def refuse_excess(manifests: Iterable[Manifest]) -> None:
    """Raise InputError for workloads with too many pods and for queues nested too deeply."""
    manifests = samples(manifests)
    _refuse_deep_queues({one.ref.name: one for one in manifests if one.ref.kind == "Queue"})
    for manifest in manifests:
        if isinstance(manifest.view, Pod | Node):
            continue
        spec = _counted(manifest)
        if not isinstance(spec, dict):
            continue
        for field in _COUNTS:
            count = spec.get(field)
            if isinstance(count, int | float) and count > PODS_PER_WORKLOAD_MAX:
                problem = f"{count} is more than {PODS_PER_WORKLOAD_MAX}"
                raise manifest.refuse(problem, field=f"spec.{field}")


def _counted(manifest: Manifest) -> Any:
    """Return the `spec` of an object as JSON.

    For a Deployment, ReplicaSet or StatefulSet in typed form, return only the field `replicas`.
    """
    if isinstance(manifest.view, Deployment | ReplicaSet | StatefulSet):
        return {"replicas": manifest.view.spec.replicas}
    return manifest.value.get("spec")


def _refuse_deep_queues(queues: Mapping[str, Manifest]) -> None:
    parents = {name: _parent(queue) for name, queue in queues.items()}
    for name, queue in queues.items():
        line, above = {name}, parents[name]
        while above in queues and above not in line:  # a cycle ends the loop
            line.add(above)
            above = parents[above]
            if len(line) > QUEUES_ABOVE_MAX:
                problem = f"has more than {QUEUES_ABOVE_MAX} queues above it"
                raise queue.refuse(problem, field="spec.parent")


def _parent(queue: Manifest) -> str:
    spec = queue.value.get("spec")
    parent = spec.get("parent") if isinstance(spec, dict) else None
    return parent if isinstance(parent, str) else ""
