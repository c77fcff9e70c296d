"""The kubectl commands that carry out a plan of drains.

kubectl drain drains its nodes one after another. To drain several nodes at a time, xargs starts
several processes. As soon as one process ends, the next begins, as in the simulation. kubectl drain
evicts the pods of a node in no fixed order. So pods that must leave first need a command of their
own.

upstream: kubectl/pkg/cmd/drain/drain.go: RunDrain
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairlead.api.text.name_list import listed
from fairlead.whatif.change.kubectl_drain import DrainFlag
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.planner.node_drain.drain_planner import PlannedDrain
from fairlead.whatif.planner.node_drain.drain_run import DrainRun
from fairlead.whatif.snapshot.node_pool import KARPENTER_POOL, managed_pool


def drain_steps(
    nodes: Sequence[str],
    drains: Iterable[PlannedDrain],
    to_cordon: Sequence[str],
    needed: Sequence[DrainFlag],
    run: DrainRun | None,
) -> Iterator[NextStep]:
    """Yield the steps that cordon `to_cordon`, and then drain `nodes` in the given order.

    The drains have the pace of `run`. `to_cordon` are the `nodes` that are not cordoned yet. If
    `nodes` is only one node, no step cordons it, because kubectl drain does. `needed` are the flags
    that kubectl needs. `drains` are the drains of the plan. If some pods of a node must be placed
    first, a separate command evicts them (`PlannedDrain.first_commands`). This command comes after
    the drains of all earlier nodes, and directly before the drain of its node.

    Yield nothing if `run` is None or has notes about images. Also yield nothing if the nodes
    return, because kubectl cannot know when the next drain may begin.
    """
    if run is None or run.image_notes or run.pace.away is not None:
        return
    flags = [one.flag for one in needed]
    if len(nodes) > 1 and to_cordon:
        command = shlex.join(("kubectl", "cordon", *to_cordon))
        words = "cordon the node" if len(to_cordon) == 1 else "cordon the nodes"
        yield NextStep(words, command=command, makes_change=True)
    in_order = {one.node: one for one in drains if one.first_commands}
    group: list[str] = []
    for node in nodes:
        if node in in_order:
            yield from _drained(group, flags, run)
            yield from _first_evictions(in_order[node])
            group = []
        group.append(node)
    yield from _drained(group, flags, run)


def _first_evictions(drain: PlannedDrain) -> Iterator[NextStep]:
    """Yield the steps that evict the pods that must be placed before the other pods of the node."""
    for owner, command in zip(drain.first, drain.first_commands, strict=True):
        words = f"evict the pods of {owner} on {drain.node} first"
        yield NextStep(words, command=command, makes_change=True)


def _drained(nodes: Sequence[str], flags: Sequence[str], run: DrainRun) -> Iterator[NextStep]:
    """Yield the step that drains `nodes`, if there are any, at the pace of `run`."""
    if not nodes:
        return
    at_once = min(run.pace.max_unavailable, len(nodes))
    command = shlex.join(("kubectl", "drain", *nodes, *flags))
    words = "drain the nodes" if len(nodes) > 1 else "drain the node"
    if at_once > 1:
        drain = shlex.join(("xargs", "-n", "1", "-P", str(at_once), "kubectl", "drain", *flags))
        command = f"{shlex.join(('echo', *nodes))} | {drain}"
        words += f", {at_once} at a time"
    yield NextStep(words, command=command, makes_change=True)


def delete_step(nodes: Mapping[str, Mapping[str, str]]) -> NextStep:
    """Return the step that deletes the drained nodes; `nodes` maps their names to their labels.

    The group of a node, such as a managed node group of EKS, replaces a machine unless its desired
    size is lowered. Karpenter removes the machine of a deleted node itself (upstream: karpenter
    pkg/controllers/node/termination/controller.go).
    """
    pools = [managed_pool(labels) for labels in nodes.values()]
    groups = Counter(pool[1] for pool in pools if pool is not None and pool[0] != KARPENTER_POOL)
    several = len(nodes) > 1
    what = "nodes" if several else "node"
    machines = "their machines" if several else "its machine"
    words = f"delete the {what}, and remove {machines}"
    if groups:
        sizes = listed([f"{name} by {count:,}" for name, count in sorted(groups.items())])
        whose = "its node group" if len(groups) == 1 and not several else "each node group"
        words = (
            f"delete the {what}, remove {machines}, and lower the desired size of {whose} "
            f"({sizes}), which otherwise starts a new machine"
        )
    elif all(pools):
        words = f"delete the {what}; Karpenter then removes {machines}"
    command = shlex.join(("kubectl", "delete", "node", *nodes))
    return NextStep(words, command=command, makes_change=True)
