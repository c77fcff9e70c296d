"""How much of anything Fairlead takes on; beyond it the answer is a refusal, not an endless run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fairlead.whatif.manifest import Manifest

PODS_PER_WORKLOAD_MAX: Final = 1_000_000
QUEUES_ABOVE_MAX: Final = 100

_COUNTS: Final = ("replicas", "parallelism", "completions")


def refuse_excess(found: Iterable[Manifest]) -> None:
    """Raise InputError for a workload of more pods, or queues of more levels, than can be run."""
    found = tuple(found)
    _refuse_deep_queues({one.ref.name: one for one in found if one.ref.kind == "Queue"})
    for manifest in found:
        spec = manifest.value.get("spec")
        if not isinstance(spec, dict):
            continue
        for field in _COUNTS:
            count = spec.get(field)
            if isinstance(count, int | float) and count > PODS_PER_WORKLOAD_MAX:
                problem = f"{count} is more than {PODS_PER_WORKLOAD_MAX}"
                raise manifest.refuse(problem, field=f"spec.{field}")


def _refuse_deep_queues(queues: Mapping[str, Manifest]) -> None:
    parents = {name: _parent(queue) for name, queue in queues.items()}
    for name, queue in queues.items():
        line, above = {name}, parents[name]
        while above in queues and above not in line:  # a circle has no top, and ends there
            line.add(above)
            above = parents[above]
            if len(line) > QUEUES_ABOVE_MAX:
                problem = f"has more than {QUEUES_ABOVE_MAX} queues above it"
                raise queue.refuse(problem, field="spec.parent")


def _parent(queue: Manifest) -> str:
    spec = queue.value.get("spec")
    parent = spec.get("parent") if isinstance(spec, dict) else None
    return parent if isinstance(parent, str) else ""
