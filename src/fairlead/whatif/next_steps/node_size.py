"""Notes about pending pods that are larger than every node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.json import text
from fairlead.api.quantity import amount_text
from fairlead.apiserver.kind import DEVICE_CLASS
from fairlead.engine.plugins.node_resources.fit import INSUFFICIENT
from fairlead.whatif.next_steps.step_context import StepContext
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.scheduling_message import reasons_of
from fairlead.whatif.snapshot.samples import samples

_NAMED_MAX: Final = 2  # workloads with a note of their own


def name_sizes(context: StepContext) -> Iterator[NextStep]:
    """Add notes to `context.causes` about pending pods that no node could run; yield no step.

    Such a pod requests more than the largest node offers, even if this node runs only static pods
    and pods of DaemonSets. Only nodes whose labels and taints admit the pod count. A copy of a
    present node would therefore not help the pod. There are no notes if an autoscaler acts, because
    it may add larger nodes.
    """
    answer = context.answer
    if answer.changed.autoscaling is not None:
        return
    provided = {
        text(one.value, "spec", "extendedResourceName")
        for one in samples(context.manifests)
        if one.kind is DEVICE_CLASS
    }
    nodes = answer.changed.nodes
    least = _least(one.empty_room for one in nodes)
    first = {
        pod.workload: pod
        for pod in answer.difference.pending
        if not pod.belongs_to_node
        and any(amount > least.get(name, 0) for name, amount in pod.requests.items())
    }
    if not first:  # each node is large enough for each pod
        return
    # Imported here, because most pending pods are not too large.
    from fairlead.whatif.next_steps.node_kinds import NodeAdmission  # noqa: PLC0415

    admission = NodeAdmission(first, context)
    found = []
    for ref, pod in first.items():
        admitting = [one for one in nodes if admission.admits(one, ref)]
        which = "" if len(admitting) == len(nodes) else " that admits them"
        if problem := next(_problems(pod, admitting, which, provided), ""):
            found.append(f"Pods of {ref} are pending because {problem}")
    context.causes.extend(found[:_NAMED_MAX])
    yield from ()


def _least(rooms: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    """Return the smallest amount of each resource in `rooms`; 0 if one of `rooms` lacks it."""
    found: dict[str, int] | None = None
    for room in rooms:
        known = room if found is None else found
        found = {name: min(amount, room.get(name, 0)) for name, amount in known.items()}
    return found or {}


def _problems(
    pod: PodEnd, nodes: Sequence[NodeEnd], which: str, provided: Collection[str]
) -> Iterator[str]:
    """Yield a clause for each resource of which `pod` requests more than any of `nodes` has.

    `which` follows the word "node" in the clause and says which nodes are meant. The resources
    `provided` are left out: the devices of a DeviceClass provide them, so nodes may have no
    allocatable amount of them.
    """
    for name, amount in pod.requests.items():
        is_short = f"{INSUFFICIENT} {name}" in reasons_of(pod.reason)
        if not is_short or name in provided or not nodes:
            continue
        largest = max(one.allocatable.get(name, 0) for one in nodes)
        empty = max(one.empty_room.get(name, 0) for one in nodes)
        if not largest:
            yield f"they request {name}, which no node{which} has."
        elif amount > empty:
            beside = "" if amount > largest else " beside the pods of DaemonSets and static pods"
            most = amount_text(name, largest if amount > largest else empty)
            yield (
                f"no node{which} is large enough: a pod requests "
                f"{amount_text(name, amount)} {name}, and "
                f"the largest has {most}{beside}."
            )
