"""Prints the explanation of a PodGroup."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from fairlead.api.quantity import amount_text
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.cli.output.console.terminal import print_line, print_table
from fairlead.cli.output.summary.jobs import amounts_text
from fairlead.engine.batch.explanation.explanation import GroupExplanation, NodeFact, Obstacle
from fairlead.engine.batch.queue_usage import QueueUsage
from fairlead.whatif.explain.group import ExplainedGroup
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.deserved_amount import deserved_amounts

# The end of running pods removes none of these obstacles, so no start time is estimated.
_WITHOUT_ESTIMATE: Final = (
    Obstacle.NOTHING,
    Obstacle.NEXT_SESSION,
    Obstacle.NO_GROUP,
    Obstacle.NO_QUEUE,
    Obstacle.TOO_FEW_MEMBERS,
    Obstacle.OTHERS_FIRST,
    Obstacle.REFUSED,
    Obstacle.VICTIMS,
)

_LIMITED_BY_QUEUES: Final = (
    Obstacle.NOT_LET_IN,
    Obstacle.QUEUE_HAS_ITS_SHARE,
    Obstacle.QUEUE_IS_FULL,
)


def print_group(
    explained: ExplainedGroup, console: Console, *, has_start_times: bool = False
) -> None:
    """Print the explanation `explained` of a PodGroup.

    If `has_start_times` is set, leave out the estimated start, because the caller prints simulated
    start times after the explanation.
    """
    found = explained.found
    print_line(console, f"{found.title}: {_members(found)}", "bold")
    print_line(console, _obstacle(found))
    for why in found.no_evictions:
        print_line(console, why)
    if found.queue is not None:
        _print_queue(console, found.queue)
    _print_nodes(console, found)
    has_estimate = found.obstacle not in _WITHOUT_ESTIMATE and not found.has_minimum
    if has_estimate and not has_start_times:
        print_line(console, _start(explained))
    what = "The next member" if found.has_minimum else "It"
    for remedy in found.remedies:
        print_line(console, f"{what} would start with: {remedy}")
    for note in (*explained.failures, *explained.notes):
        print_line(console, f"Note: {note}", "yellow")


def _members(found: GroupExplanation) -> str:
    if found.obstacle is Obstacle.NO_GROUP:
        pods = "1 pod names" if found.members == 1 else f"{found.members} pods name"
        return f"{pods} this PodGroup, which does not exist"
    needs = f"needs {found.min_member} of its {counted(found.members, 'member')}"
    if found.min_member > found.members:
        needs = f"needs {counted(found.min_member, 'member')} and has {found.members}"
    on_nodes = "1 is on a node" if found.ready == 1 else f"{found.ready} are on nodes"
    parts = [needs, on_nodes]
    if found.promised:
        parts.append(f"{found.promised} {'is' if found.promised == 1 else 'are'} pipelined")
    if found.placeable:
        parts.append(f"nodes have room for {found.placeable} more")
    return ", ".join(parts)


def _obstacle(found: GroupExplanation) -> str:
    if found.obstacle is Obstacle.NOTHING:
        return "Not blocked: it runs."
    if found.obstacle is Obstacle.NEXT_SESSION:
        if found.ready >= found.min_member:
            return "Not blocked: it runs, and its next members start with the next session."
        return "Not blocked: it starts with the next session."
    if found.victims:
        return _evictions(found)
    who = f"{found.member}: " if found.member else ""
    member = f" ({who}{found.summary})" if found.summary else ""
    if found.has_minimum:
        group = "runs" if found.ready >= found.min_member else "starts with the next session"
        return f"The group {group}, but its next member is blocked: {found.obstacle}{member}"
    return f"Blocked: {found.obstacle}{member}"


def _evictions(found: GroupExplanation) -> str:
    victims = listed(found.victims)
    who = "it" if not found.has_minimum else "its next members"
    pods = counted(len(found.victims), "pod")
    return (
        f"Not blocked: the next session evicts {pods} for {who} (action {found.rule}): {victims}. "
        "The room is free when they have stopped."
    )


def _print_queue(console: Console, queue: QueueUsage) -> None:
    cells = (
        queue.name,
        str(queue.weight),
        amounts_text(deserved_amounts(queue.deserved)),
        amounts_text(queue.allocated),
        amounts_text(queue.request),
        f"{queue.share:.2f}",
        "yes" if queue.is_overused else "no",
    )
    columns = ("queue", "weight", "deserved", "allocated", "requested", "share", "overused")
    print_table(console, "its queue", columns, [cells], numbers=("weight", "share"))


def _print_nodes(console: Console, found: GroupExplanation) -> None:
    rows = [
        (
            fact.node,
            _reason(fact),
            ", ".join(f"{amount_text(name, n)} {name}" for name, n in fact.lacking.items()),
        )
        for fact in found.nodes
    ]
    title = f"nodes that {found.member} does not fit, smallest shortage first"
    print_table(console, title, ("node", "because", "lacks"), rows)
    if found.nodes_left_out:
        print_line(console, f"... and {found.nodes_left_out:,} more", "dim")


def _reason(fact: NodeFact) -> str:
    if not fact.members:
        return fact.reason
    fitting = "member that fits" if fact.members == 1 else f"{fact.members} members that fit"
    return f"{fact.reason} (after the {fitting} here)"


def _start(explained: ExplainedGroup) -> str:
    found, begins = explained.found, explained.found.starts_at
    if begins is None and found.obstacle in _LIMITED_BY_QUEUES:
        return "Its start is unknown: it depends on the shares and limits of the queues."
    if found.is_too_large:
        return "It does not fit even after all running pods have ended."
    if found.obstacle is Obstacle.LEAVING and begins is not None and begins <= explained.at:
        return "It may start when these pods have stopped, unless other jobs start first."
    if found.lacks_other:
        return "Its start is unknown: it lacks more than the resources that its pods request."
    if begins is None:
        return "Its start is unknown: the running pods declare no run time."
    after = for_readers(begins - explained.at)
    return f"It may start after {after}, unless other jobs start first."
