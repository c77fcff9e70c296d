"""Next steps for pods that are pending because only some nodes can use their volumes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Pod, Toleration
from fairlead.api.pods.volumes import all_claims, named_claims
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STATEFUL_SET
from fairlead.whatif.next_steps.step_context import ELSEWHERE, StepContext
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest, entries_of
from fairlead.whatif.snapshot.samples import matching_pods
from fairlead.whatif.snapshot.volume_place import (
    Place,
    PlacedVolume,
    PlaceFinder,
    PlaceNode,
    placed_volumes,
)

_NAMED_MAX: Final = 3
_LASTS: Final = "1h"


class _UsedVolume(Struct, frozen=True):
    """A volume, the keys of the pending pods that use it, and the tolerations of these pods."""

    placed: PlacedVolume
    pods: set[str]
    tolerations: set[tuple[Toleration, ...]]


def name_volumes(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if in which the failed nodes that volumes need come back.

    Volumes that the same nodes can use share a sentence in `context.causes`. The sentence names the
    volumes and these nodes. The what-if is not tried, because a simulation of a long outage takes
    as long as the user's what-if. Nothing is yielded if the user's what-if ends the failure
    already.
    """
    answer = context.answer
    finder = PlaceFinder(map(_place_node, answer.changed.nodes))
    by_place: dict[Place, list[_UsedVolume]] = {}
    for one in _used_volumes(context):
        if place := finder.find(one.placed.selector, one.tolerations):
            by_place.setdefault(place, []).append(one)
    change, failed = answer.change, context.failed_nodes()
    has_groups = answer.changed.autoscaling is not None
    # The place of the most volumes comes first. Local volumes have a place on each node.
    ordered = sorted(by_place.items(), key=lambda one: (-len(one[1]), one[0].words()))
    for place, used in ordered[:_NAMED_MAX]:
        may_get_group = has_groups and failed.isdisjoint(place.nodes)
        where = place.words(is_plural=len(used) > 1)
        need = _needs(used, place, may_get_group=may_get_group)
        context.causes.append(f"{_subject(used)} {where}; {need}.")
    if rest := sum(len(used) for _, used in ordered[_NAMED_MAX:]):
        context.causes.append(
            f"{counted(rest, 'other volume')} that pending pods need can be used only elsewhere."
        )
    waiting = sum(
        len(used)
        for place, used in by_place.items()
        if not (place.is_open or failed.isdisjoint(place.nodes))
    )
    if waiting and not (change.lasts or change.failures.flap):
        which = f"{counted(waiting, 'volume')} {'needs' if waiting == 1 else 'need'}"
        yield NextStep(
            f"ask what happens if the failed nodes, which {which}, come back after an hour",
            f"--for {_LASTS}",
        )


def _place_node(node: NodeEnd) -> PlaceNode:
    return PlaceNode(node.name, node.labels, node.is_ready, node.unschedulable, node.taints)


def _subject(used: Sequence[_UsedVolume]) -> str:
    if len(used) == 1:
        return f"Volume {used[0].placed.volume} of claim {used[0].placed.claim}"
    names = listed([one.placed.volume for one in used], _NAMED_MAX)
    return f"{counted(len(used), 'volume')} ({names})"


def _needs(used: Sequence[_UsedVolume], place: Place, *, may_get_group: bool) -> str:
    """Return a clause that says what the pods of `used` need.

    The clause names several options, such as a copy of the data elsewhere. If `may_get_group` is
    set, one of the options is a new node group.
    """
    pods = len({pod for one in used for pod in one.pods})
    whose = "its" if len(used) == 1 else "their"
    which = f"{whose} pod needs" if pods == 1 else f"{whose} {pods:,} pods need"
    copy = "a volume elsewhere with a copy of the data"
    if not place.nodes:
        group = " or a node group there" if may_get_group else ""
        return f"without one{group}, {which} {copy}"
    such = "room there" if place.is_open else "such a node"
    if may_get_group:
        such = f"{such}, or a node group there,"
    return f"{which} {such} or {copy}"


def _used_volumes(context: StepContext) -> list[_UsedVolume]:
    """Return the volumes of pending pods that only some nodes reach, sorted by name.

    Only pods that are pending because of such a volume count (ELSEWHERE).
    """
    pending = [pod for pod in context.answer.difference.pending if ELSEWHERE in pod.reason]
    volumes = Inventory(
        one
        for one in entries_of(context.manifests)
        if isinstance(one, Manifest) and one.kind in (PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM)
    )
    found: dict[str, _UsedVolume] = {}
    for pod, claims, keys in _claims(pending, context.manifests):
        for placed in placed_volumes(pod.metadata.namespace, claims, volumes):
            one = found.setdefault(placed.volume, _UsedVolume(placed, set(), set()))
            one.pods.update(keys)
            one.tolerations.add(pod.spec.tolerations)
    return [found[name] for name in sorted(found)]


def _claims(
    pending: Iterable[PodEnd], manifests: Sequence[Manifest]
) -> Iterator[tuple[Pod, Iterable[str], Collection[str]]]:
    """Yield (a pod of the snapshot, its claims, keys of the `pending` pods with the same claims).

    A pending pod of the snapshot has its own claims. A pod of a StatefulSet has the name, and so
    the claims, of the pod that it replaces. Every other replacement has the claims that a pod of
    its workload names. The claim of an ephemeral volume belongs to one pod, so a replacement gets a
    new claim.
    """
    own: dict[str, PodEnd] = {}
    alike: dict[WorkloadRef, set[str]] = defaultdict(set)
    for pod in pending:
        if pod.is_initial or pod.workload.kind == STATEFUL_SET.kind:
            own[pod.key] = pod
        else:
            alike[pod.workload].add(pod.key)
    workloads = {*alike, *(pod.workload for pod in own.values())}
    # Most replicas name equal claims.
    seen = set[tuple[WorkloadRef, tuple[str, ...], tuple[Toleration, ...]]]()

    def may_be_pending(pod: Pod) -> bool:
        return any(all_claims(pod)) and workload_of(pod) in workloads

    for one in matching_pods(manifests, may_be_pending):
        key, workload = one.pod.key, workload_of(one.pod)
        if key in own:
            claims = all_claims if own[key].is_initial else named_claims
            yield one.pod, claims(one.pod), {key}
        named = tuple(named_claims(one.pod))
        if workload in alike and (group := (workload, named, one.pod.spec.tolerations)) not in seen:
            seen.add(group)
            yield one.pod, named, alike[workload]
