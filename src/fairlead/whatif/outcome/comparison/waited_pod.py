"""WaitedPod: a pod that waited long for a node because of the change.

AwaitedReturn: a pod that waited for the return of its failed node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from fairlead.apiserver.kind import STATEFUL_SET
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.outcome.autoscaling.waiting_time import WAITED_MIN
from fairlead.whatif.outcome.comparison.difference import Difference
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome


class WaitedPod(Struct, frozen=True):
    """A pod that waited for a node; `pod.reason` is the last FailedScheduling message.

    `pod.node` is "" if the pod was deleted before it got a node.
    """

    pod: PodEnd
    waited: DurationNs


class AwaitedReturn(Struct, frozen=True):
    """A pod of a StatefulSet that started again only when its failed `node` had returned.

    A StatefulSet creates a pod again only after the kubelet has confirmed the deletion of the old
    pod. The kubelet of a failed node confirms the deletion when the node returns.

    `pod` is the state of the new pod at the end of the run. `missed` is the time from the eviction
    of the old pod to the start of the new one.
    """

    pod: PodEnd
    node: str
    missed: DurationNs


def waited_pods(
    without: RunOutcome, changed: RunOutcome, found: Difference
) -> tuple[WaitedPod, ...]:
    """Return the pods that waited for WAITED_MIN or longer because of the change, longest first.

    For a time, no node could take such a pod. At the end of the run `changed`, the pod has a node,
    has completed, or was deleted, for example by a scale-down. The pod is displaced, moved or new,
    or it waits at least WAITED_MIN longer than in the run `without`. If a pod waited several times,
    its last wait counts.
    """
    last, known = _last_waits(changed), _last_waits(without)
    deleted = {
        one.pod.key: one.pod
        for one in changed.deleted_after_wait
        if one.pod.key not in changed.pods
    }
    concerned = [pod.key for pod in (*found.displaced, *found.placed)]
    concerned += [one.pod.key for one in found.moved]
    concerned += [key for key, wait in last.items() if wait - known.get(key, wait) >= WAITED_MIN]
    completed = {pod.key: pod for pod in found.completed}
    waited = [
        WaitedPod(pod, last[key])
        for key in dict.fromkeys((*concerned, *completed))
        if last.get(key, 0) >= WAITED_MIN
        and (pod := completed.get(key) or changed.pods.get(key) or deleted.get(key)) is not None
        and (pod.is_placed or pod.is_completed or key in deleted)
        and pod.reason
    ]
    return tuple(sorted(waited, key=lambda one: (-one.waited, one.pod.key)))


def only_waited(waited: Iterable[WaitedPod], found: Difference) -> list[WaitedPod]:
    """Return the pods in `waited` that are not displaced, moved or new according to `found`."""
    known = {pod.key for pod in (*found.displaced, *found.placed, *found.elsewhere)}
    return [one for one in waited if one.pod.key not in known]


def _last_waits(run: RunOutcome) -> dict[str, DurationNs]:
    """Return {pod key: duration of the last wait that ended}.

    A wait ends when the pod gets a node, or is deleted without one.
    """
    waits = {one.pod: one.until - one.since for one in run.waits if one.until is not None}
    for one in run.deleted_after_wait:
        if not one.pod.node:
            waits[one.pod.key] = one.at - max(one.pod.since, run.started_at)
    return waits


def awaited_returns(changed: RunOutcome, found: Difference) -> Iterator[AwaitedReturn]:
    """Yield the pods of StatefulSets that were evicted from nodes, and awaited the nodes' return.

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
