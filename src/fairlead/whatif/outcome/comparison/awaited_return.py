"""AwaitedReturn: a pod of a StatefulSet that runs again only when its failed node has returned.

A StatefulSet creates a pod again only after the kubelet has confirmed the deletion of the old pod.
The kubelet of a failed node confirms it when the node returns.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from fairlead.apiserver.kind import STATEFUL_SET
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.outcome.comparison.difference import Difference
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome


class AwaitedReturn(Struct, frozen=True):
    """A displaced pod that started again only when its failed `node` had returned.

    `pod` is its state at the end of the run. `missed` is the time from its eviction to its start.
    """

    pod: PodEnd
    node: str
    missed: DurationNs


def awaited_returns(changed: RunOutcome, found: Difference) -> Iterator[AwaitedReturn]:
    """Yield the pods of StatefulSets that were evicted from nodes, and awaited their return.

    `found` are the differences of the run `changed` from the run without the change.
    """
    if changed.outage is None:
        return
    back_at = {one.node: one.back_at for one in changed.outage.nodes}
    left = {one.pod.key: one for one in found.evicted if one.pod.workload.kind == STATEFUL_SET.kind}
    for key, one in left.items():
        pod, back = changed.pods.get(key), back_at.get(one.node)
        if pod is None or pod.started_at is None or back is None or pod.started_at < back:
            continue
        yield AwaitedReturn(pod, one.node, pod.started_at - one.at)
