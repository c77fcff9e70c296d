"""Next steps for pods that lack room, or lacked it for a time: what-ifs with new nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.whatif.change.new_node import models_of
from fairlead.whatif.next_steps.new_nodes import (
    NewNodes,
    are_alike,
    lacks_labels,
    least_by_sum,
    may_use_new_node,
    new_nodes_for,
    node_to_copy,
)
from fairlead.whatif.next_steps.nodes_of_zones import may_need_other_zones, nodes_by_zone
from fairlead.whatif.next_steps.step_context import StepContext
from fairlead.whatif.next_steps.topology_spread import held_by_failed_zones
from fairlead.whatif.next_steps.tried_nodes import added_nodes, best_nodes
from fairlead.whatif.next_steps.volume_reach import VolumeReach
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.waited_pod import WaitedPod
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd

# New nodes are seldom worth their price, or too late, for pods that wait less.
WAIT_MIN: Final[DurationNs] = seconds(3600)

_OTHER_FAILURES: Final = (
    "With more new nodes, --fail-fraction would select other nodes. To ask about new nodes, name "
    "the failed nodes with --fail-node instead of --fail-fraction."
)


def add_nodes(context: StepContext) -> Iterator[NextStep]:
    """Yield what-ifs with new nodes.

    If pods fit only copies of the node that they left, copies of this node are suggested. The
    copies have room for these pods, and for pods of the same workloads that are evicted or created
    later. If possible, the copies also have room for the other pods that lack room.

    No copy is suggested for a pod whose volumes the copy would not reach. If the user's what-if
    drains nodes, a rolling drain is suggested for such pods.

    New nodes are suggested only if a trial shows that they reduce the number of waiting pods. In
    four cases, nodes of several zones are tried (`nodes_of_zones`):

    - Other pods keep pods off nodes, and may keep them off the new nodes, too.
    - There are several zones, and rules or volumes may keep the pods off one of them.
    - A spread constraint keeps pods off nodes.
    - The scheduler configuration has rules of its own (`has_own_rules`).

    If the user's what-if adds nodes already, more copies of the same node are tried. Nothing is
    suggested if an autoscaler acts, because new nodes of its groups would count against its limits.
    Nothing is suggested either if other nodes would fail because of the new nodes; a note then says
    so.
    """
    answer = context.answer
    if answer.changed.autoscaling is not None:
        return
    change, pending, nodes = answer.change, _lacking_nodes(context), _copyable_nodes(context)
    if change.failures.fail_fraction and (change.add_nodes is not None or not nodes):
        if any(map(may_use_new_node, pending)):
            context.notes.append(_OTHER_FAILURES)
    elif change.add_nodes is not None:
        yield from _more_nodes(context, pending, nodes, change.add_nodes)
    else:
        yield from _first_nodes(context, pending, nodes)


def shorten_waits(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if with new nodes for pods that waited for room, but have a node at the end.

    At least one of the pods must have waited for WAIT_MIN. The new nodes are tried. The what-if is
    yielded only if fewer pods wait for room with the new nodes, and no pod is pending at the end.
    Pods with a negative priority do not count if other pods waited, too.
    Nothing is yielded if pods are pending without the new nodes, because `add_nodes` is about these
    pods. Nothing is yielded either if the user's what-if adds nodes, or if an autoscaler acts.
    """
    answer, change = context.answer, context.answer.change
    waited = _counted_waits(answer.effect)
    if all(one.waited < WAIT_MIN for one in waited):
        return
    is_pending = bool(answer.difference.pending or answer.difference.not_created)
    if is_pending or change.add_nodes is not None or answer.changed.autoscaling is not None:
        return
    short = [one.pod for one in waited if may_use_new_node(one.pod)]
    reach = VolumeReach(context, short)
    reached, nodes = reach.most_reached(short, _copyable_nodes(context))
    left = {one.pod.key: one.node for one in answer.difference.evicted}
    origins = {left[pod.key] for pod in reached if pod.key in left}
    more = new_nodes_for(reached, nodes, answer.without.nodes, left=origins)
    if more is None:
        return
    tried = context.ask(replace(change, add_nodes=more.count, like=more.like))
    if tried is None or tried.difference.pending:
        return
    counts_all = waited[0].pod.has_negative_priority
    still = sum(counts_all or not one.pod.has_negative_priority for one in tried.waited)
    if still >= len(waited):
        return
    who = f"{counted(still, 'pod')} instead of {len(waited):,}" if still else "no pod"
    verb = "waits" if still < 2 else "wait"
    yield added_nodes("ask again with", more, rest=f"; {who} then {verb} long for a node")


def _counted_waits(effect: Effect) -> list[WaitedPod]:
    """Return the pods that waited, except pods with a negative priority.

    If all pods that waited have a negative priority, the result contains all of them.
    """
    others = [one for one in effect.waited if not one.pod.has_negative_priority]
    return others or [*effect.waited]


def _copyable_nodes(context: StepContext) -> list[NodeEnd]:
    """Return the nodes that the user's what-if can copy, in their state at the end of the run.

    Nodes that the change creates are left out, because the snapshot does not contain them. Nodes
    are left out, too, if the failures of the what-if would affect or depend on their copies.
    """
    suitable = {one.name for one in context.answer.without.nodes} - context.nodes_not_to_copy()
    return [one for one in context.answer.changed.nodes if one.name in suitable]


class _Waiting(Struct, frozen=True):
    """The pods for which new nodes are suggested.

    The pods `covered` get copies of `old_node`, because some of them left this node and fit only
    copies of it. If there is no such node, `old_node` is None and `covered` is empty. The pods
    `short` lack room. `left` maps the keys of evicted pods to the nodes that they left, and `reach`
    knows the volumes of all these pods.
    """

    covered: list[PodEnd]
    short: list[PodEnd]
    old_node: NodeEnd | None
    left: Mapping[str, str]
    reach: VolumeReach


def _first_nodes(
    context: StepContext, pending: Sequence[PodEnd], nodes: Sequence[NodeEnd]
) -> Iterator[NextStep]:
    """Yield what-ifs in which the `pending` pods get new nodes, which are copies of `nodes`."""
    kept, later, reach = _further_pods(pending, context)
    by_name = {node.name: node for node in nodes}
    evicted = context.answer.difference.evicted
    left = {one.pod.key: one.node for one in evicted if one.node in by_name}
    moved = [pod for pod in pending if pod.key in left]
    movable = [pod for pod in moved if reach.reaches(pod, by_name[left[pod.key]])]
    movable_keys = {pod.key for pod in movable}
    old_node = node_to_copy(movable, left, nodes)
    covered: list[PodEnd] = []
    if old_node is not None:
        covered += _taken_by_copies(old_node, movable, left, reach)
        here = [*(pod for pod in kept if pod.node == old_node.name), *later]
        covered += [pod for pod in here if reach.reaches(pod, old_node)]
    keys, workloads = {pod.key for pod in covered}, {pod.workload for pod in covered}
    short = [
        pod
        for pod in pending
        if pod.key not in keys
        and (
            may_use_new_node(pod)
            or (pod.key in movable_keys and (pod.workload in workloads or lacks_labels(pod)))
        )
    ]
    lacking = {pod.workload for pod in short} | workloads
    short += [pod for pod in (*kept, *later) if pod.workload in lacking and pod.key not in keys]
    if unreached := reach.unreached(short, nodes):
        context.notes.append(_no_copy_reaches(unreached, context))
    yield from _nodes_for(_Waiting(covered, short, old_node, left, reach), nodes, context)
    change = context.answer.change
    if len(movable) < len(moved) and change.drain and change.max_unavailable is None:
        yield NextStep(
            "ask again with drained nodes that return; pods have volumes that are local to them",
            "--max-unavailable 1 --for 10m",
        )


def _no_copy_reaches(pods: Sequence[PodEnd], context: StepContext) -> str:
    """Return a note that new nodes do not help `pods`, because of their volumes."""
    whose = f"the volumes of {pods[0].key}"
    if len(pods) > 1:
        workloads = listed([str(ref) for ref in sorted({pod.workload for pod in pods})])
        whose = f"the volumes of {len(pods):,} pending pods of {workloads}"
    which = "outside the failed zones" if context.nodes_not_to_copy() else "like the present ones"
    return f"New nodes {which} cannot use {whose}."


def _nodes_for(
    waiting: _Waiting, nodes: Sequence[NodeEnd], context: StepContext
) -> Iterator[NextStep]:
    """Yield what-ifs with copies of `nodes` for the pods that are `waiting`.

    If copies of one node are not enough, one what-if has copies of several nodes. In all other
    cases, one what-if has the copies of the old node, and another what-if has new nodes for the
    other pods.
    """
    several = _of_several_places(waiting, nodes, context)
    if several is not None:
        yield from best_nodes([several], 0, context)
        return
    copies, covered, short = _shared_copies(waiting, context)
    short, nodes = waiting.reach.most_reached(short, nodes)
    origins = {waiting.left[pod.key] for pod in short if pod.key in waiting.left}
    several = _of_several_kinds(copies, short, nodes, context, left=origins)
    if several is not None:
        yield from best_nodes([several], 0, context)
        return
    yield from _copies_of(copies, covered, context)
    yield from _room_for(short, nodes, context, left=origins)


def _shared_copies(
    waiting: _Waiting, context: StepContext
) -> tuple[NewNodes | None, list[PodEnd], list[PodEnd]]:
    """Return (copies of the old node, the pods for which they have room, the other pods).

    If possible, the copies have room for all pods whose volumes they reach. Otherwise, they have
    room only for the pods `covered`. If there is no old node, or if no copy is suitable, the copies
    are None.
    """
    covered, short, old_node = waiting.covered, waiting.short, waiting.old_node
    if old_node is None:
        return None, covered, short
    known = context.answer.without.nodes
    near = [pod for pod in short if waiting.reach.reaches(pod, old_node)]
    copies = new_nodes_for([*covered, *near], [old_node], known)
    if copies is None or old_node.is_tainted:
        return new_nodes_for(covered, [old_node], known), covered, short
    far = [pod for pod in short if not waiting.reach.reaches(pod, old_node)]
    return copies, [*covered, *near], far


def _further_pods(
    pending: Sequence[PodEnd], context: StepContext
) -> tuple[list[PodEnd], list[PodEnd], VolumeReach]:
    """Return (kept, later, reach) for the workloads of the `pending` pods.

    The pods `kept` block a drain. The pods `later` are created when the `pending` pods have a node,
    and find no room on the present nodes. `reach` knows the volumes of all these pods.
    """
    # Imported here, because most questions leave no pod pending.
    from fairlead.whatif.next_steps.later_pod import later_pods, without_room  # noqa: PLC0415
    from fairlead.whatif.next_steps.node_kinds import NodeAdmission  # noqa: PLC0415

    waiting = {pod.workload for pod in pending}
    kept = [one.pod for one in context.answer.changed.blocking if one.pod.workload in waiting]
    later = [
        one.pod for one in context.answer.difference.not_created if one.pod.workload in waiting
    ]
    created = later_pods(pending, context)
    reach = VolumeReach(context, (*pending, *kept, *later, *(one.pod for one in created)))
    if created:
        admission = NodeAdmission({one.pod.workload for one in created}, context)
        later += without_room(created, reach, admission, context)
    return kept, later, reach


def _of_several_places(
    waiting: _Waiting, nodes: Sequence[NodeEnd], context: StepContext
) -> NewNodes | None:
    """Return copies of several of `nodes` if volumes of the `waiting` pods need them; else None.

    For example, the volumes are in several zones.
    """
    pods, left, reach = [*waiting.covered, *waiting.short], waiting.left, waiting.reach
    if not reach.needs_several_places(pods, nodes):
        return None
    from fairlead.whatif.next_steps.node_kinds import (  # noqa: PLC0415 - rarely needed
        kinds_for,
        mixed,
        nodes_of_kinds,
    )

    kinds = kinds_for(pods, nodes, context, reach)
    origins = {left[pod.key] for pod in pods if pod.key in left}
    counts = nodes_of_kinds(kinds, context.answer.without.nodes, origins)
    return mixed(counts) if counts else None


def _of_several_kinds(
    copies: NewNodes | None,
    short: Sequence[PodEnd],
    nodes: Sequence[NodeEnd],
    context: StepContext,
    *,
    left: Collection[str],
) -> NewNodes | None:
    """Return copies of several nodes, if copies of one of `nodes` are not enough; else None.

    `short` are the pods that lack room, and `left` are the nodes that some of them left. `copies`
    are the new nodes for other pods.
    """
    if not short or (copies is None and len({pod.workload for pod in short}) < 2):
        return None
    # Imported here, because in most questions one workload lacks room.
    from fairlead.whatif.next_steps.node_kinds import (  # noqa: PLC0415
        kinds_for,
        mixed,
        nodes_of_kinds,
    )

    kinds = kinds_for(short, nodes, context)
    if copies is None and len(kinds) < 2:
        return None
    counts = nodes_of_kinds(kinds, context.answer.without.nodes, left)
    if copies is not None:
        counts[copies.like] += copies.count
    return mixed(counts) if len(counts) > 1 else None


def _copies_of(
    more: NewNodes | None, pods: Collection[PodEnd], context: StepContext
) -> Iterator[NextStep]:
    """Yield a what-if with the new nodes `more`, which have room for `pods`, if they help."""
    if more is not None:
        yield from best_nodes([_bounded(more, pods, context)], 0, context)


def _bounded(more: NewNodes, pods: Iterable[PodEnd], context: StepContext) -> NewNodes:
    """Return `more`, copies of one node, with a lower bound of the copies that `pods` need."""
    like = next(node for node in context.answer.changed.nodes if node.name == more.like)
    pending = {pod.key for pod in context.answer.difference.pending}
    short = [pod for pod in pods if pod.key in pending]
    return replace(more, least=least_by_sum(short, like, context.answer.changed.nodes))


def _room_for(
    short: Collection[PodEnd],
    nodes: Sequence[NodeEnd],
    context: StepContext,
    *,
    left: Collection[str],
) -> Iterator[NextStep]:
    """Yield a what-if with new nodes for the pods that lack room (`short`), if new nodes help.

    `left` are the nodes that some of these pods left. If other pods, rules or a spread constraint
    may keep these pods off the new nodes, new nodes of up to TRIES_MAX zones are tried, and the
    best are suggested. Otherwise, only the nodes that seem best are tried.
    """
    more, nodes = _admitted_nodes_for(short, nodes, context, left)
    candidates, together = [] if more is None else [more], None
    if may_need_other_zones(short, context):
        candidates, together = nodes_by_zone(more, short, nodes, context)
    candidates = [_bounded(one, short, context) for one in candidates]
    yield from best_nodes(candidates, 0, context, together)


def _admitted_nodes_for(
    short: Collection[PodEnd],
    nodes: Sequence[NodeEnd],
    context: StepContext,
    left: Collection[str],
) -> tuple[NewNodes | None, Sequence[NodeEnd]]:
    """Return (new nodes for the pods `short`, the nodes in `nodes` that admit these pods).

    If no node is suitable, the new nodes are None. If different pods need different nodes, the
    result contains all `nodes`. `left` are the nodes that some of the pods left.
    """
    if not short:
        return None, nodes
    from fairlead.whatif.next_steps.node_kinds import kinds_for  # noqa: PLC0415 - see `_of_several_kinds`

    known, kinds = context.answer.without.nodes, kinds_for(list(short), nodes, context)
    if len(kinds) > 1:
        return new_nodes_for(short, nodes, known, left=left), nodes
    return kinds[0].new_nodes(known, left), kinds[0].nodes


def _taken_by_copies(
    node: NodeEnd, movable: Sequence[PodEnd], left: Mapping[str, str], reach: VolumeReach
) -> Iterator[PodEnd]:
    """Yield the pods of `movable` that copies of `node` can take.

    The result contains all pods that left `node`. The result also contains other pods of the same
    workloads, if a copy of `node` reaches their volumes. `left` maps the key of each pod to the
    node that it left.
    """
    alike = {pod.workload for pod in movable if left[pod.key] == node.name}
    for pod in movable:
        if left[pod.key] == node.name or (pod.workload in alike and reach.reaches(pod, node)):
            yield pod


def _more_nodes(
    context: StepContext, pending: Sequence[PodEnd], nodes: Sequence[NodeEnd], added: int
) -> Iterator[NextStep]:
    """Yield a what-if that adds more nodes for the `pending` pods than the user's what-if does.

    `added` is the number of nodes that the user's what-if adds. `nodes` are the nodes that can be
    copied. More copies of the same nodes are preferred, in the same ratio if each of them admits
    all of the pods. If these nodes admit only some of the pods, copies of other nodes are added for
    the other pods. Pods that fit only copies of the node that they left get copies of this node.
    """
    change, known = context.answer.change, context.answer.without.nodes
    by_name = {node.name: node for node in nodes}
    evicted = context.answer.difference.evicted
    left = {one.pod.key: one.node for one in evicted if one.node in by_name}
    short = [
        pod for pod in pending if may_use_new_node(pod) or (pod.key in left and lacks_labels(pod))
    ]
    keys = {pod.key for pod in short}
    moved = [pod for pod in pending if pod.key in left and pod.key not in keys]
    old_node = node_to_copy(moved, left, nodes)
    if change.instance_type or not (short or old_node):
        return
    kept, later, reach = _further_pods(short, context)
    short += [*kept, *later]
    # Imported here, because most questions add no nodes, or enough of them.
    from fairlead.whatif.next_steps.node_kinds import admit_all, kinds_for  # noqa: PLC0415

    likes = models_of(change.like)
    counts = Counter[str]()
    for kind in kinds_for(short, nodes, context, reach):
        same = [one for one in kind.nodes if one.name in likes]
        more = replace(kind, nodes=same).new_nodes(known) or kind.new_nodes(known)
        if more is not None:
            counts[more.like] += more.count
    if old_node is not None:
        moved = list(_taken_by_copies(old_node, moved, left, reach))
        alike = [by_name[name] for name in likes if name in by_name]
        alike = [one for one in alike if are_alike(one, old_node)]
        more = new_nodes_for(moved, alike, known) or new_nodes_for(moved, [old_node], known)
        if more is not None:
            counts[more.like] += more.count
            short += moved
    named = [one for one in nodes if one.name in likes]
    is_enough = counts.keys() <= {*likes} and len(counts) == 1
    present = NewNodes(added, change.like)
    if is_enough and (len({*likes}) == 1 or admit_all(named, short, context)):
        more = NewNodes(counts.total(), change.like)
        _, together = nodes_by_zone(None, short, nodes, context)
        further = None if together is None else _beside(present, together.copies)
        yield from best_nodes([more], added, context, further)
    elif counts:
        yield from best_nodes([_beside(present, counts)], added, context)


def _beside(present: NewNodes, more: Mapping[str, int]) -> NewNodes:
    """Return the new nodes `more` (number of copies of each node), beside the new nodes `present`.

    The result counts only `more`, but its `like` also names the nodes `present`.
    """
    from fairlead.whatif.next_steps.node_kinds import mixed  # noqa: PLC0415 - see `_more_nodes`

    total = mixed(Counter(present.copies) + Counter(more))
    return NewNodes(total.count - present.count, total.like)


def _lacking_nodes(context: StepContext) -> list[PodEnd]:
    """Return the pending pods that a new node may help.

    Pods that have a node but wait for a volume are left out. Pods that topology spread keeps
    pending because of failed zones are left out, too. If the nodes have room for N members of the
    first waiting gang, N of its members are left out. Members of other gangs are kept, because the
    same room may be counted for several gangs.
    """
    answer = context.answer
    pending = [pod for pod in answer.difference.pending if not pod.awaits_volume_detachment]
    held = held_by_failed_zones(pending, context)
    pending = [pod for pod in pending if pod.workload not in held]
    by_key = {pod.key: pod for pod in pending}
    for gang in answer.changed.jobs.waiting:
        blocked = by_key.get(gang.member)
        if blocked is not None:
            others = [pod for pod in pending if pod.workload == blocked.workload]
            others = [pod for pod in others if pod is not blocked][: gang.placeable]
            left_out = {pod.key for pod in others}
            return [pod for pod in pending if pod.key not in left_out]
    return pending
