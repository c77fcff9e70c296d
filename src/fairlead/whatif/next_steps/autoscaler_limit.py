"""Next steps for pods that get no node because of a limit of the autoscaler: a higher limit."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import mapping
from fairlead.api.quantity import rounded_text
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import joined, listed
from fairlead.apiserver.kind import NODE
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.state.statenode import amounts
from fairlead.engine.autoscaling.reached_limit import ReachedLimit
from fairlead.whatif.next_steps.new_nodes import NewNodes, new_nodes_for
from fairlead.whatif.next_steps.step_context import StepContext, is_named
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.autoscaling.node_group import AutoscalingOutcome
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.snapshot.manifest import Manifest, entries_of
from fairlead.whatif.snapshot.samples import samples

_POOL: Final = NodePool.__name__
_GROUP: Final = "node group"  # the kind of a limit on the size of a group
_MORE: Final = 1_000_000  # a NodePool with this limit, in whole units, is in practice unlimited


def raise_limits(context: StepContext, autoscaling: AutoscalingOutcome) -> Iterator[NextStep]:
    """Yield a what-if that raises the limit that keeps the most pods pending.

    `autoscaling` is the outcome of the run with the change. Each what-if is tried, and yielded only
    if fewer pods are pending. The limits of a NodePool of the dump are raised by an edit. In the
    first trial, the limits are too high to have an effect, so the trial shows how much the NodePool
    uses. The second trial has these amounts as limits.

    A change cannot set the limits of Cluster Autoscaler. So the what-if adds the nodes that the
    autoscaler would add, which are copies of nodes of the group.
    """
    pending = [one for one in context.answer.difference.pending if one.key in autoscaling.limits]
    counts = Counter(limit for pod in pending for limit in autoscaling.limits[pod.key])
    if not counts:
        return
    [(limit, _)] = counts.most_common(1)
    # Pods that are pending without the change, too, would use new nodes first.
    waiting = context.answer.changed.pending
    pods = [pod for pod in waiting if limit in autoscaling.limits.get(pod.key, ())]
    if limit.kind == _POOL:
        yield from _raised_pool(limit.name, context)
    elif context.answer.change.add_nodes is None:
        yield from _raised_maximum(limit, pods, autoscaling, context)


def _raised_pool(name: str, context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if with higher limits of the NodePool `name`, if the dump has this NodePool."""
    change = context.answer.change
    limits = _limits_of(name, context)
    if not limits or is_named(name, change.set):
        return
    free = context.with_edits(*_edits(name, dict.fromkeys(limits, f"{_MORE}Gi")))
    if free is None or free.changed.autoscaling is None:
        return
    used = free.changed.autoscaling.limited_use.get(name, {})
    higher = {
        one: rounded_text(one, used[one])
        for one, limit in limits.items()
        if used.get(one, 0) > limit
    }
    tried = context.with_edits(*_edits(name, higher)) if higher else None
    if tried is None or not _helps(tried, context):
        return
    words = listed([f"{one} {amount}" for one, amount in higher.items()])
    yield NextStep(
        f"ask again with higher limits of NodePool {name} ({words}){_rest(tried)}",
        shlex.join(word for edit in _edits(name, higher) for word in ("--set", edit)),
    )


def _limits_of(name: str, context: StepContext) -> dict[str, int]:
    """Return the limits of the NodePool `name`; {} if the dump lacks the NodePool or its limits."""
    for one in entries_of(context.manifests):
        if isinstance(one, Manifest) and one.kind.kind == _POOL and one.ref.name == name:
            return amounts(mapping(one.value, "spec", "limits"))
    return {}


def _edits(name: str, limits: Mapping[str, str]) -> list[str]:
    """Return the edits, values of --set, that set `limits` of the NodePool `name`."""
    return [f"nodepool/{name}:spec.limits[{one}]={amount}" for one, amount in limits.items()]


class _Proposal(Struct, frozen=True):
    """New nodes that a higher limit would allow.

    `nodes` are all new nodes, including copies of those that the autoscaler added. `counts` maps
    each group to the number of nodes that the autoscaler did not add because of its limits.
    """

    nodes: NewNodes
    counts: Mapping[str, int]


def _raised_maximum(
    limit: ReachedLimit,
    pods: Sequence[PodEnd],
    autoscaling: AutoscalingOutcome,
    context: StepContext,
) -> Iterator[NextStep]:
    """Yield a what-if with the nodes for `pods` that a higher `limit` would allow.

    `limit` is the limit of a node group, or a limit for all nodes, such as --max-nodes-total. The
    step names each limit that the new nodes exceed. In a trial, the new nodes count against the
    limits. So the new nodes include nodes that the autoscaler added in the run with the change. If
    `limit` is about all nodes, these are the added nodes of all groups. If `limit` is about a
    group, these are the added nodes of the groups that get new nodes.

    The proposals are tried one after another until no pod is pending. The step has the new nodes of
    the proposal with the fewest pending pods.
    """
    answer, found = context.answer, []
    for proposal in _proposals(limit, pods, autoscaling, context):
        higher = list(_higher_limits(proposal.counts, autoscaling, len(answer.changed.nodes)))
        if not higher:
            continue
        more = proposal.nodes
        tried = context.ask(replace(answer.change, add_nodes=more.count, like=more.like))
        if tried is None or not _helps(tried, context):
            continue
        pending = len(tried.difference.pending)
        step = NextStep(
            f"raise {joined(higher)}, and ask again with {more.words}{_rest(tried)}",
            shlex.join(more.options),
        )
        found.append((pending, step))
        if not pending:
            break
    if found:
        yield min(found, key=lambda one: one[0])[1]


def _proposals(
    limit: ReachedLimit,
    pods: Sequence[PodEnd],
    autoscaling: AutoscalingOutcome,
    context: StepContext,
) -> Iterator[_Proposal]:
    """Yield new nodes for `pods`.

    If `limit` is the limit of a group, the first proposal has nodes of this group only. The second
    proposal has nodes of all groups that have reached their maximum. Several groups may be
    necessary if each has its own zone, and the pods are spread over zones. If `limit` is about all
    nodes, there is only one proposal.
    """
    answer = context.answer
    # Nodes that the autoscaler added cannot be copied, because the dump does not contain them.
    known = {one.ref.name for one in samples(context.manifests) if one.kind is NODE}
    known -= context.nodes_not_to_copy()
    nodes = {
        group: [one for one in answer.changed.nodes if one.name in members & known]
        for group, members in autoscaling.members.items()
    }
    added = {one.group: one.added for one in autoscaling.groups}
    without = answer.without.nodes
    if limit.kind != _GROUP:
        more = new_nodes_for(pods, chain.from_iterable(nodes.values()), without)
        if more is not None:
            group_of = {one.name: group for group, own in nodes.items() for one in own}
            copies = Counter({more.like: more.count})
            for group, number in added.items():
                own = [] if group == group_of[more.like] else nodes.get(group, [])
                copies[own[0].name if own else more.like] += number
            yield _Proposal(_new_nodes(copies), {group_of[more.like]: more.count})
        return
    more = new_nodes_for(pods, nodes.get(limit.name, ()), without, suit=True)
    if more is not None:
        count = more.count + added[limit.name]
        yield _Proposal(replace(more, count=count), {limit.name: more.count})
    waiting: dict[str, list[PodEnd]] = {}
    for pod in pods:
        for one in autoscaling.limits[pod.key]:
            if one.kind == _GROUP:
                waiting.setdefault(one.name, []).append(pod)
    likes = {
        group: found
        for group, own in waiting.items()
        if (found := new_nodes_for(own, nodes.get(group, ()), without, suit=True)) is not None
    }
    if len(likes) > 1:
        share = -(-max(one.count for one in likes.values()) // len(likes))
        copies = Counter({one.like: share + added[group] for group, one in likes.items()})
        yield _Proposal(_new_nodes(copies), dict.fromkeys(likes, share))


def _new_nodes(copies: Mapping[str, int]) -> NewNodes:
    """Return new nodes: `copies` maps each node of the dump to the number of its copies."""
    used = {name: number for name, number in copies.items() if number}
    is_equal = len(set(used.values())) == 1
    words = (name if number == 1 else f"{name}:{number}" for name, number in used.items())
    return NewNodes(sum(used.values()), ",".join(used if is_equal else words))


def _higher_limits(
    counts: Mapping[str, int], autoscaling: AutoscalingOutcome, nodes: int
) -> Iterator[str]:
    """Yield a text for each limit that new nodes exceed, with the limit that allows these nodes.

    `counts` maps each group to the number of its new nodes. `nodes` is the number of all nodes at
    the end of the run. A group or a cluster may already have more nodes, cores or memory than its
    limit.
    """
    limits = [("--max-nodes-total", autoscaling.nodes_max or None, nodes, sum(counts.values()))]
    by_name = {one.group: one for one in autoscaling.groups}
    for group, count in counts.items():
        found = by_name[group]
        limits.append((f"the maximum of {_GROUP} {group}", found.maximum, found.after, count))
    for name, most, present, count in limits:
        if most is not None and present + count > most:
            yield f"{name} from {most:,} to {counted(present + count, 'node')}"
    for one in autoscaling.totals:
        more = sum(count * one.of_new_node.get(group, 0) for group, count in counts.items())
        if more and one.present + more > one.maximum:
            yield f"{one.flag} from {one.in_unit(one.maximum):,} to {one.words(one.present + more)}"


def _helps(tried: Effect, context: StepContext) -> bool:
    """Return whether fewer pods are pending in the trial `tried`."""
    return len(tried.difference.pending) < len(context.answer.difference.pending)


def _rest(tried: Effect) -> str:
    """Return a clause that says how many pods are still pending in the trial `tried`."""
    still = len(tried.difference.pending)
    verb = "stays" if still < 2 else "stay"
    pods = f"{still:,} {'pod' if still == 1 else 'pods'}" if still else "no pod"
    return f"; {pods} then {verb} pending"
