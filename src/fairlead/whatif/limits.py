"""How much of anything Fairlead takes on; beyond it the answer is a refusal, not an endless run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.whatif.manifest import Manifest

PODS_PER_WORKLOAD_MAX: Final = 1_000_000

_COUNTS: Final = ("replicas", "parallelism", "completions")


def refuse_excess(found: Iterable[Manifest]) -> None:
    """Raise InputError for a workload of more pods than can be run."""
    for manifest in found:
        spec = manifest.value.get("spec")
        if not isinstance(spec, dict):
            continue
        for field in _COUNTS:
            count = spec.get(field)
            if isinstance(count, int | float) and count > PODS_PER_WORKLOAD_MAX:
                problem = f"{count} is more than {PODS_PER_WORKLOAD_MAX}"
                raise manifest.refuse(problem, field=f"spec.{field}")
