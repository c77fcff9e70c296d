"""Exchanges the names of two pods of one workload if the change only swaps their states.

A displaced pod goes to the end of the scheduler's queue. A pending pod of its workload may then get
a node first, and the displaced pod is pending instead. The workload has the same number of running
pods as without the change. If no names were exchanged, the answer would report that the displaced
pod is pending because of the change. So the two pods exchange their names:

    without the change   web-1 on a     web-2 pending
    with the change      web-1 pending  web-2 on b
    as reported          web-1 on b     web-2 pending
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Final

from msgspec.structs import replace

from fairlead.apiserver.kind import DEPLOYMENT, JOB, REPLICA_SET, REPLICATION_CONTROLLER
from fairlead.engine.workloads.job.progress import INDEX
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
from fairlead.whatif.outcome.workload import ROLLOUT

# Pods of a StatefulSet are not interchangeable, because each has an identity. Pods of a DaemonSet
# are not either, because each belongs to a node.
_INTERCHANGEABLE: Final = frozenset(
    (ROLLOUT, *(one.kind for one in (DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, JOB)))
)


def with_exchanged_names(
    without: RunOutcome, changed: RunOutcome, keys: Iterable[str]
) -> RunOutcome:
    """Return `changed` after pairs of interchangeable pods have exchanged their names.

    One pod of each pair is pending only in the run `changed`, and the other pod is pending only in
    the run `without`. `keys` contains the key of each pod that changed during one of the runs.
    """
    waiting: dict[Hashable, list[PodEnd]] = defaultdict(list)
    placed: dict[Hashable, list[PodEnd]] = defaultdict(list)
    for key in keys:
        before, after = without.pods.get(key), changed.pods.get(key)
        if before is None or after is None or not _is_interchangeable(before):
            continue
        if before.is_placed and after.is_pending:
            waiting[_identity(before)].append(after)
        elif before.is_pending and after.is_placed and not after.is_terminating:
            placed[_identity(before)].append(after)
    pairs = [
        pair
        for identity, pods in waiting.items()
        for pair in zip(pods, placed.get(identity, ()), strict=False)
    ]
    if not pairs:
        return changed
    renamed = {
        one.key: replace(one, name=other.name)
        for pair in pairs
        for one, other in (pair, pair[::-1])
    }
    pods = {one.key: one for one in (renamed.get(pod.key, pod) for pod in changed.pods.values())}
    nodes = tuple(
        replace(node, pods=tuple(renamed.get(pod.key, pod) for pod in node.pods))
        if any(pod.key in renamed for pod in node.pods)
        else node
        for node in changed.nodes
    )
    return replace(changed, pods=dict(sorted(pods.items())), nodes=nodes)


def _is_interchangeable(pod: PodEnd) -> bool:
    return pod.workload.kind in _INTERCHANGEABLE and INDEX not in pod.labels


def _identity(pod: PodEnd) -> Hashable:
    """Return the properties that interchangeable pods share."""
    return pod.workload, pod.revision, pod.priority, *sorted(pod.requests.items())
