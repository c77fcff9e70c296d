"""Next steps for pods that get no node because of a limit of the autoscaler: a higher limit."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from fairlead.api.json import mapping
from fairlead.api.quantity import rounded_text
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import joined, listed
from fairlead.apiserver.kind import NODE
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.state.statenode import amounts
from fairlead.engine.autoscaling.reached_limit import ReachedLimit
from fairlead.whatif.next_steps.new_nodes import new_nodes_for
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


def _raised_maximum(
    limit: ReachedLimit,
    pods: Sequence[PodEnd],
    autoscaling: AutoscalingOutcome,
    context: StepContext,
) -> Iterator[NextStep]:
    """Yield a what-if with the nodes for `pods` that a higher `limit` would allow.

    `limit` is the limit of a node group, or a limit for all nodes, such as --max-nodes-total. The
    step names each limit that the new nodes exceed. In the trial, the new nodes count against the
    limits. So the new nodes include the nodes that the autoscaler added in the run with the change.
    """
    answer = context.answer
    groups = [limit.name] if limit.kind == _GROUP else [one.group for one in autoscaling.groups]
    group_of = {node: group for group in groups for node in autoscaling.members.get(group, ())}
    # Nodes that the autoscaler added cannot be copied, because the dump does not contain them.
    known = {one.ref.name for one in samples(context.manifests) if one.kind is NODE}
    nodes = [one for one in answer.changed.nodes if one.name in group_of and one.name in known]
    more = new_nodes_for(pods, nodes, answer.without.nodes)
    if more is None:
        return
    found = _higher_limits(group_of[more.like], more.count, autoscaling, len(answer.changed.nodes))
    if not (higher := list(found)):
        return
    added = sum(one.added for one in autoscaling.groups if one.group in groups)
    more = replace(more, count=more.count + added)
    tried = context.ask(replace(answer.change, add_nodes=more.count, like=more.like))
    if tried is None or not _helps(tried, context):
        return
    yield NextStep(
        f"raise {joined(higher)}, and ask again with {more.words}{_rest(tried)}",
        shlex.join(more.options),
    )


def _higher_limits(
    group: str, count: int, autoscaling: AutoscalingOutcome, nodes: int
) -> Iterator[str]:
    """Yield each limit that `count` more nodes of `group` exceed, and the limit that allows them.

    `nodes` is the number of all nodes at the end of the run. A group or a cluster may already have
    more nodes, cores or memory than its limit.
    """
    [found] = [one for one in autoscaling.groups if one.group == group]
    limits = (
        ("--max-nodes-total", autoscaling.nodes_max or None, nodes),
        (f"the maximum of {_GROUP} {group}", found.maximum, found.after),
    )
    for name, most, present in limits:
        if most is not None and present + count > most:
            yield f"{name} from {most:,} to {counted(present + count, 'node')}"
    for one in autoscaling.totals:
        if one.exceeded_by(group, count):
            needed = one.present + count * one.of_new_node[group]
            yield f"{one.flag} from {one.in_unit(one.maximum):,} to {one.words(needed)}"


def _helps(tried: Effect, context: StepContext) -> bool:
    """Return whether fewer pods are pending in the trial `tried`."""
    return len(tried.difference.pending) < len(context.answer.difference.pending)


def _rest(tried: Effect) -> str:
    """Return a clause that says how many pods are still pending in the trial `tried`."""
    still = len(tried.difference.pending)
    verb = "stays" if still < 2 else "stay"
    pods = f"{still:,} {'pod' if still == 1 else 'pods'}" if still else "no pod"
    return f"; {pods} then {verb} pending"
