"""Next steps for pods that are pending because only some nodes can use their volumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.volumes import all_claims
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import STATEFUL_SET
from fairlead.whatif.next_steps.step_context import ELSEWHERE, StepContext
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.samples import matching_pods
from fairlead.whatif.snapshot.volume_place import VolumePlace, places_of

_NAMED_MAX: Final = 3
_LASTS: Final = "1h"


def name_volumes(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if in which the failed nodes that volumes need come back.

    A sentence for each place is added to `context.causes`. It names the volumes, and the nodes that
    can use them. The what-if is not tried, because a simulation of a long outage takes as long as
    the question. Nothing is yielded if the question ends the failure already.
    """
    answer = context.answer
    pending = [pod for pod in answer.difference.pending if ELSEWHERE in pod.reason]
    nodes = {node.name: node.labels for node in answer.changed.nodes}
    usable = {
        node.name for node in answer.changed.nodes if node.is_schedulable and not node.is_tainted
    }
    by_place: dict[str, list[VolumePlace]] = {}
    for place in _places(pending, context):
        if where := place.words(nodes, usable, is_plural=True):
            by_place.setdefault(where, []).append(place)
    change, failed = answer.change, context.failed_nodes()
    has_groups = answer.changed.autoscaling is not None
    # The place of the most volumes comes first. Local volumes have a place on each node.
    ordered = sorted(by_place.items(), key=lambda one: (-len(one[1]), one[0]))
    for where, places in ordered[:_NAMED_MAX]:
        found = places[0].nodes(nodes)
        is_one = len(places) == 1
        what = f"{_subject(places)} {places[0].words(nodes, usable) if is_one else where}"
        whose = "its pod needs" if is_one else "their pods need"
        such = "room there" if usable.intersection(found) else "such a node"
        if has_groups and not failed.intersection(found):
            such = f"{such}, or a node group there,"
        context.causes.append(
            f"{what}; {whose} {such} or a volume elsewhere with a copy of the data."
        )
    if rest := sum(len(places) for _, places in ordered[_NAMED_MAX:]):
        context.causes.append(
            f"{counted(rest, 'other volume')} that pending pods need can be used only elsewhere."
        )
    needed = {name for places in by_place.values() for one in places for name in one.nodes(nodes)}
    if needed & failed and not (change.lasts or change.failures.flap):
        count = sum(map(len, by_place.values()))
        which = f"{counted(count, 'volume')} {'needs' if count == 1 else 'need'}"
        yield NextStep(
            f"ask what happens if the failed nodes, which {which}, come back after an hour",
            f"--for {_LASTS}",
        )


def _subject(places: Sequence[VolumePlace]) -> str:
    if len(places) == 1:
        return f"Volume {places[0].volume} of claim {places[0].claim}"
    names = listed([one.volume for one in places], _NAMED_MAX)
    return f"{counted(len(places), 'volume')} ({names})"


def _places(pending: Iterable[PodEnd], context: StepContext) -> list[VolumePlace]:
    """Return the places of the volumes of the `pending` pods, each volume once.

    A replacement has the claims of the pods of its workload in the snapshot. A pod of a StatefulSet
    has claims of its own, and its name is that of the pod that it replaces.
    """
    pending = list(pending)
    keys, workloads = {pod.key for pod in pending}, {pod.workload for pod in pending}

    def is_alike(pod: Pod) -> bool:
        if not any(all_claims(pod)):
            return False
        workload = workload_of(pod)
        is_own = pod.key in keys
        return is_own or (workload in workloads and workload.kind != STATEFUL_SET.kind)

    inventory = Inventory(context.manifests)
    found = {
        place.volume: place
        for one in matching_pods(context.manifests, is_alike)
        for place in places_of(one.pod, inventory)
    }
    return [found[name] for name in sorted(found)]
