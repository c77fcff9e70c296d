"""Pods that are created only after pending pods have a node, such as the next pods of a rollout.

There are two cases. A StatefulSet with the policy OrderedReady creates its missing pods one after
another. A rollout replaces its old pods only while enough new pods are ready. In both cases, new
nodes for the pending pods alone would leave other pods pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice

from msgspec import Struct
from msgspec.structs import replace

from fairlead.apiserver.kind import STATEFUL_SET
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.whatif.next_steps.new_nodes import fits, free_room
from fairlead.whatif.next_steps.node_kinds import NodeAdmission
from fairlead.whatif.next_steps.step_context import StepContext
from fairlead.whatif.next_steps.volume_reach import VolumeReach
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.run_outcome import PodEnd


class LaterPod(Struct, frozen=True):
    """A pod that will be created later, and the pod `old` that it replaces.

    `pod` has the requests and the reason of a pending pod of the same workload, because the pods of
    a workload need the same room. If the replaced pod is gone, `old` is None.
    """

    pod: PodEnd
    old: PodEnd | None = None


def later_pods(pending: Iterable[PodEnd], context: StepContext) -> list[LaterPod]:
    """Return the pods that are created later, for each workload with a `pending` pod."""
    rows = {one.workload: one for one in context.answer.effect.workloads}
    found: list[LaterPod] = []
    for ref, pod in {pod.workload: pod for pod in pending}.items():
        row = rows.get(ref)
        if row is not None and row.missing and ref.kind == STATEFUL_SET.kind:
            found += (LaterPod(one) for one in _missing_members(pod, row, context))
        if row is not None and row.outdated:
            found += _next_of_rollout(pod, row, context)
    return found


def _missing_members(
    pending: PodEnd, row: WorkloadEffect, context: StepContext
) -> Iterator[PodEnd]:
    """Yield the pods that a StatefulSet lacks; each has its own name, and so its own volumes."""
    known = context.answer.changed.pods
    first = 0
    if owner := context.workloads({row.workload}).get(row.workload):
        first = (owner.value["spec"].get("ordinals") or {}).get("start") or 0
    members = (f"{row.workload.name}-{ordinal}" for ordinal in count(first))
    absent = (name for name in members if f"{pending.namespace}/{name}" not in known)
    yield from (replace(pending, name=name) for name in islice(absent, row.missing))


def _next_of_rollout(
    pending: PodEnd, row: WorkloadEffect, context: StepContext
) -> Iterator[LaterPod]:
    """Yield the pods that replace pods of an old revision in the rest of a rollout.

    `row` describes the workload of the rollout. A StatefulSet replaces its pods in reverse order. A
    new pod of a StatefulSet has the name, and so the volumes, of the old pod.
    """
    pods = [
        pod
        for pod in context.answer.changed.pods.values()
        if pod.workload == row.workload and not (pod.is_completed or pod.is_terminating)
    ]
    new = [pod for pod in pods if pod.revision == pending.revision]
    old = [pod for pod in pods if pod.revision != pending.revision and pod.node]
    old.sort(key=lambda pod: (-(ordinal_of(row.workload.name, pod.name) or 0), pod.name))
    left = max(0, row.readiness.wanted - len(new) - row.missing)
    for pod in old[: min(left, row.outdated)]:
        name = pod.name if row.workload.kind == STATEFUL_SET.kind else pending.name
        yield LaterPod(replace(pending, name=name), pod)


def without_room(
    later: Sequence[LaterPod], reach: VolumeReach, admission: NodeAdmission, context: StepContext
) -> list[PodEnd]:
    """Return the pods of `later` for which the present nodes have no room.

    Each pod is placed on the first node that admits the pod and has room for its requests. If the
    pod replaces an old pod, the room of the old pod counts as free. This is an estimate that uses
    only requests.
    """
    if not later:
        return []
    nodes = [node for node in context.answer.changed.nodes if node.is_schedulable]
    free = {node.name: free_room(node) for node in nodes}
    refs = {one.pod.workload for one in later}
    admitting = {ref: [node for node in nodes if admission.admits(node, ref)] for ref in refs}
    found: list[PodEnd] = []
    for one in later:
        if one.old is not None and one.old.node in free:
            free[one.old.node].update({**one.old.requests, "pods": 1})
        need = {**one.pod.requests, "pods": 1}
        place = next(
            (
                room
                for node in admitting[one.pod.workload]
                if fits(need, room := free[node.name]) and reach.reaches(one.pod, node)
            ),
            None,
        )
        if place is None:
            found.append(one.pod)
        else:
            place.subtract(need)
    return found
