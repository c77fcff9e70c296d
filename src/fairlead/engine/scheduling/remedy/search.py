"""find_remedy: searches for the smallest change that makes a pod fit a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from fairlead.engine.core.status import Code, Status
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.scheduling.remedy.change import Remedy, RemedyChange, deleting
from fairlead.engine.scheduling.remedy.proposals import proposals
from fairlead.engine.scheduling.remedy.trial import as_changed, verdict_after, with_changes
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

# Limits on the proposals per rejection, and on the changes in sequence.
_TRIED_MAX: Final = 256
_CHAIN_MAX: Final = 3


def find_remedy(
    framework: Framework,
    pod: PodInfo,
    node: NodeInfo,
    status: Status,
    *,
    keeps: Callable[[PodInfo], bool] = lambda _: False,
) -> Remedy | None:
    """Return changes that make `pod` fit `node`, which rejects it with `status`.

    No change deletes a pod for which `keeps` returns True. By default, any pod may be deleted.

    The result is a single change if one is enough. Otherwise the first change that satisfies the
    rejecting plugin is kept, and the search continues with the next rejection. Returns None if the
    search finds no remedy.
    """
    chain: list[RemedyChange] = []
    rejection: Status | None = status
    while rejection is not None and len(chain) < _CHAIN_MAX:
        step = _next_step(framework, pod, node.name, rejection, chain, keeps)
        if step is None:
            return None
        change, rejection = step
        chain.append(change)
    return Remedy(tuple(chain)) if rejection is None else None


def _next_step(
    framework: Framework,
    pod: PodInfo,
    name: str,
    status: Status,
    chain: list[RemedyChange],
    keeps: Callable[[PodInfo], bool],
) -> tuple[RemedyChange, Status | None] | None:
    """Return (change, None) for the first change that makes the pod fit.

    Otherwise returns (change, next rejection) for the first change that satisfies the plugin that
    gave `status`. Returns None if there is no such change.
    """
    past: tuple[RemedyChange, Status | None] | None = None
    for change in _proposed(framework, pod, name, status, chain, keeps):
        verdict = verdict_after(framework, pod, name, [*chain, change])
        if verdict is None:
            return change, None
        if past is None and _is_progress(status, verdict):
            past = change, verdict
    return past


def _is_progress(before: Status, after: Status) -> bool:
    """Return whether another plugin now rejects the pod, or removing pods can now help."""
    resolvable = after.code is not Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return after.plugin != before.plugin or (
        before.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE and resolvable
    )


def _proposed(
    framework: Framework,
    pod: PodInfo,
    name: str,
    status: Status,
    chain: list[RemedyChange],
    keeps: Callable[[PodInfo], bool],
) -> list[RemedyChange]:
    """Return the changes to try after the changes in `chain` are applied."""
    cluster = framework.cluster
    with with_changes(cluster, chain):
        node = cluster.table.find(name)
        if node is None:
            return []
        changed = as_changed(cluster, pod, chain)
        found = proposals(framework, changed, node, status)
        return list(islice(_without_deleting(keeps, found), _TRIED_MAX))


def _without_deleting(
    keeps: Callable[[PodInfo], bool], changes: Iterator[RemedyChange]
) -> Iterator[RemedyChange]:
    """Yield `changes` without the deletion of pods that `keeps` names.

    If a change deletes other pods too, yield the deletion of the others.
    """
    for change in changes:
        others = [pod for pod in change.without if not keeps(pod)]
        if len(others) == len(change.without):
            yield change
        elif len(others) > 1:  # single pods have their own proposals
            yield deleting(others)
