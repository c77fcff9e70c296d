"""Explains preemptions that had begun when the dump was taken: who waits, and who must leave.

A preemption is visible in two places. The scheduler writes the node to `status.nominatedNodeName`
of the preemptor. Each victim gets the condition DisruptionTarget. The preemptor waits until the
victims are gone.

upstream: framework/preemption/executor.go: prepareCandidate
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.api.pods.facts import is_terminating
from fairlead.api.text.name_list import listed
from fairlead.engine.scheduling.preemption.policy import is_preempted
from fairlead.engine.state.pod_info import PodInfo


def awaited_victims(preemptor: PodInfo, pods: Iterable[PodInfo]) -> list[PodInfo]:
    """Return the terminating victims, among `pods`, for which the pending `preemptor` waits.

    The victims are on the nominated node of `preemptor`; if there is no nominated node, the result
    is empty.
    """
    node = preemptor.pod.status.nominated_node_name
    if not node or preemptor.pod.spec.node_name:
        return []
    return [
        pod
        for pod in pods
        if pod.pod.spec.node_name == node
        and pod.priority < preemptor.priority
        and is_terminating(pod.pod)
        and is_preempted(pod)
    ]


def waiting_note(preemptor: PodInfo, victims: Sequence[PodInfo]) -> str:
    """Return a note that `preemptor` waits for `victims`, the result of `awaited_victims`."""
    names = listed(sorted(pod.key for pod in victims))
    until = max(pod.pod.metadata.deletion_timestamp for pod in victims)
    ends = "its grace period ends" if len(victims) == 1 else "their grace periods end"
    its = "pod" if len(victims) == 1 else "pods"
    return (
        f"The scheduler has preempted {len(victims):,} {its} of lower priority for this pod on its "
        f"nominated node {preemptor.pod.status.nominated_node_name}: {names}. This pod waits for "
        f"the end of the preempted {its}; {ends} by {until}."
    )


def victim_note(victim: PodInfo, pods: Iterable[PodInfo]) -> str:
    """Return a note that the terminating `victim` was preempted, and by which of `pods`.

    Return "" if `victim` is not terminating, or if no scheduler preempted `victim`.
    """
    if not is_terminating(victim.pod) or not is_preempted(victim):
        return ""
    node = victim.pod.spec.node_name
    preemptors = [
        f"{pod.key} (priority {pod.priority:,})"
        for pod in sorted(pods, key=lambda pod: (-pod.priority, pod.key))
        if pod.pod.status.nominated_node_name == node
        and not pod.pod.spec.node_name
        and pod.priority > victim.priority
    ]
    by = listed(preemptors)
    if not preemptors:
        by = "a pod of higher priority, which is no longer nominated to its node"
    elif len(preemptors) == 1:
        by += ", which is nominated to its node"
    else:
        by = f"one of the pods that are nominated to its node: {by}"
    return f"The scheduler has preempted this pod for {by}."
