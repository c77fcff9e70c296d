"""Builds the OutageOutcome of a run from its Recorder."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from fairlead.engine.core.instant import Instant
from fairlead.whatif.outcome.outage import (
    AffectedPodSample,
    AffectedPodState,
    LostPod,
    NodeHistory,
    OutageOutcome,
    OutagePreemption,
)
from fairlead.whatif.outcome.run_outcome import PodEnd, Preempted
from fairlead.whatif.outcome.workload import WorkloadReadiness, WorkloadRef
from fairlead.whatif.run.recorders.outage_recorder import FailedNode, OutageRecorder
from fairlead.whatif.run.recorders.recorder import Recorder
from fairlead.whatif.run.recorders.sample import samples_since


def outage_outcome(
    recorder: Recorder,
    start: Instant,
    ends: Mapping[str, PodEnd],
    workloads: Mapping[WorkloadRef, WorkloadReadiness],
) -> OutageOutcome | None:
    """Return the outcome of the failed nodes; None if no node failed.

    `ends` maps keys to the pods at the end. A replacement has the key of the pod that it replaces.
    `workloads` are the workloads whose pods changed. `start` is the start of the outcome: times in
    texts count from `start`, and the first states of the zones are their states at `start`.
    """
    outage = recorder.outage
    if not outage.failed_nodes:
        return None
    # Imported only if it is needed: most runs have no failed nodes.
    from fairlead.whatif.outcome.misconception import misconceptions  # noqa: PLC0415
    from fairlead.whatif.run.lost_pod import lost_pods  # noqa: PLC0415

    affected = outage.affected.values()
    back = [pod for pod in affected if pod.state is AffectedPodState.UP]
    with_node = [pod for pod in back if not pod.is_replaced]
    returns = [pod.back_at for pod in with_node if pod.back_at is not None]
    evictions = sorted(one.at for node in outage.failed_nodes.values() for one in node.evictions)
    lost = tuple(lost_pods(outage, ends, workloads, recorder.errors, start))
    outcome = OutageOutcome(
        concerned=len(outage.affected),
        evicted=sum(pod.evicted_at is not None for pod in affected),
        first_eviction_at=evictions[0] if evictions else None,
        last_eviction_at=evictions[-1] if evictions else None,
        first_back_at=outage.first_back_at,
        last_back_at=outage.last_back_at,
        last_return_at=max(returns, default=None),
        replaced=sum(pod.is_replaced for pod in back),
        back_with_node=len(with_node),
        late_with_node=sum(pod.is_late for pod in with_node),
        last_with_node=sum(pod.is_late and not pod.was_back for pod in with_node),
        nodes=tuple(_histories(outage)),
        lost=lost,
        preempted=tuple(_preemptions(outage, recorder.preempted)),
        taints=tuple(outage.taints),
        zones=tuple(samples_since(outage.zones, start, lambda one: one.zone)),
        node_samples=tuple(samples_since(outage.node_samples, start, lambda one: one.zone)),
        pod_samples=tuple(_pod_samples(outage, lost)),
    )
    breaches = recorder.budgets.breaches
    found = misconceptions(outcome, outage.config, breaches, start)
    return replace(outcome, misconceptions=tuple(found))


def _pod_samples(recorder: OutageRecorder, lost: Iterable[LostPod]) -> Iterator[AffectedPodSample]:
    """Yield the recorder's samples of the affected pods, with corrected numbers of down pods.

    The recorder counts each ended pod as down, because only the end of the run shows whether the
    pod's workload still needs the pod. The corrected numbers leave out the pods that the workload
    does not need.
    """
    unneeded = (recorder.affected[one.pod].ended_at for one in lost if not one.cause.is_loss)
    ends = sorted(at for at in unneeded if at is not None)
    samples = {one.at: one for one in recorder.pod_samples}
    latest: AffectedPodSample | None = None
    for at in sorted({*samples, *ends}):
        latest = samples.get(at, latest)
        if latest is not None:
            yield replace(latest, at=at, down=latest.down - bisect_right(ends, at))


def _preemptions(
    recorder: OutageRecorder, preempted: Iterable[Preempted]
) -> Iterator[OutagePreemption]:
    for one in preempted:
        by = recorder.affected.get(one.by)
        # Before its node failed, the pod itself may have preempted others.
        if by is not None and one.at >= by.since:
            yield OutagePreemption(
                at=one.at,
                pod=one.pod.key,
                priority=one.pod.priority,
                node=one.node,
                by=one.by,
            )


def _histories(recorder: OutageRecorder) -> list[NodeHistory]:
    failed = recorder.failed_nodes
    names = sorted(failed, key=lambda name: (failed[name].failure.quiet_at, name))
    return [_history(name, failed[name]) for name in names]


def _history(name: str, node: FailedNode) -> NodeHistory:
    first = node.evictions[0] if node.evictions else None
    return NodeHistory(
        node=name,
        zone=node.zone,
        quiet_at=node.failure.quiet_at,
        unready_at=node.failure.unready_at,
        tainted_at=node.failure.tainted_at,
        first_eviction_at=first.at if first else None,
        first_eviction_why=first.why if first else "",
        last_eviction_at=node.evictions[-1].at if node.evictions else None,
        back_at=node.back_at,
        returns=node.returns,
        pods=len(node.pods),
        evicted=len(node.evicted),
    )
