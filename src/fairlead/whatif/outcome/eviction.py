"""Evictions: the reasons that need special treatment, and loops of evictions.

In a loop, pods are evicted, replaced, and evicted again for the same reason. For example, if a pod
tolerates a NoExecute taint for a limited time, it is evicted after that time. Its replacement may
be placed on the tainted node again and be evicted again, without end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.api.text.count import counted
from fairlead.engine.core.reporter import (
    KARPENTER_DEADLINE,
    KARPENTER_DRAIN,
    SCALE_DOWN,
)
from fairlead.engine.workloads.drain.controller import WHY as DRAINED
from fairlead.whatif.outcome.run_outcome import Evicted, Recurrence
from fairlead.whatif.outcome.workload import WorkloadRef

EVICTED_BY_CLIENT: Final = "eviction API"
"""The reason of evictions that clients of a running cluster request, such as kubectl drain."""
# Evictions with these reasons use the eviction API, which asks the disruption budgets.
EVICTION_API_REASONS: Final = (DRAINED, SCALE_DOWN, KARPENTER_DRAIN, EVICTED_BY_CLIENT)
# With these reasons, the node is healthy or leaves the cluster, so the replacements of its pods
# run elsewhere.
NODE_REMOVAL_REASONS: Final = (*EVICTION_API_REASONS, KARPENTER_DEADLINE)
EVICTIONS_MAX: Final = 3
"""A loop has more than this number of evictions of a pod and its replacements for one reason."""


def eviction_loops(evicted: Iterable[Evicted]) -> Iterator[Recurrence]:
    """Yield a Recurrence for each workload and reason of an eviction loop.

    A loop starts when a pod has been evicted more than EVICTIONS_MAX times for the same reason.
    Evictions for one of NODE_REMOVAL_REASONS do not count. `evicted` is ordered by time; a
    replacement has the key of the pod that it replaces.
    """
    chains: dict[tuple[WorkloadRef, str], dict[str, list[Evicted]]] = {}
    for one in evicted:
        if one.why not in NODE_REMOVAL_REASONS:
            pods = chains.setdefault((one.pod.workload, one.reason), defaultdict(list))
            pods[one.pod.key].append(one)
    for (workload, reason), pods in chains.items():
        loops = [chain for chain in pods.values() if len(chain) > EVICTIONS_MAX]
        if loops:
            count = sum(map(len, loops))
            which = counted(len(loops), "pod")
            message = (
                f"{which} of {workload} evicted and replaced {count:,} times for the same reason: "
                f"{reason}"
            )
            yield Recurrence("evictions", message, min(chain[EVICTIONS_MAX].at for chain in loops))
