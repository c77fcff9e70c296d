"""Prints the explanation of a PodGroup."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from fairlead.api.quantity import amount_text
from fairlead.api.text.name_list import listed
from fairlead.cli.output.console.terminal import print_line, print_table
from fairlead.cli.output.summary.jobs import amounts_text
from fairlead.engine.batch.explanation.explanation import GroupExplanation, NodeFact, Obstacle
from fairlead.engine.batch.queue_usage import QueueUsage
from fairlead.whatif.explain.group import ExplainedGroup
from fairlead.whatif.explain.group_text import members_text, obstacle_text, remedy_texts
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.deserved_amount import borrowed_amounts, deserved_amounts

# The end of running pods removes none of these obstacles, so no start time is estimated.
_WITHOUT_ESTIMATE: Final = (
    Obstacle.NOTHING,
    Obstacle.NEXT_SESSION,
    Obstacle.NO_GROUP,
    Obstacle.NO_QUEUE,
    Obstacle.NO_PODS_YET,
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
    print_line(console, f"{found.title}: {members_text(found)}", "bold")
    print_line(console, obstacle_text(found))
    for why in found.no_evictions:
        print_line(console, why)
    if found.queue is not None:
        _print_queue(console, found.queue)
    _print_nodes(console, found)
    has_estimate = found.obstacle not in _WITHOUT_ESTIMATE and not found.has_minimum
    if has_estimate and not has_start_times:
        print_line(console, _start(explained))
    for remedy in remedy_texts(found):
        print_line(console, remedy)
    for note in (*explained.failures, *explained.notes):
        print_line(console, f"Note: {note}", "yellow")


def _print_queue(console: Console, queue: QueueUsage) -> None:
    cells = (
        queue.name,
        str(queue.weight),
        amounts_text(deserved_amounts(queue.deserved)),
        amounts_text(queue.allocated),
        amounts_text(queue.request),
        f"{queue.share:.2f}",
        _overused(queue),
    )
    columns = ("queue", "weight", "deserved", "allocated", "requested", "share", "overused")
    print_table(console, "its queue", columns, [cells], numbers=("weight", "share"))


def _overused(queue: QueueUsage) -> str:
    """Return "yes" if the queue is overused, else a text that begins with "no".

    A queue is overused if it has its deserved amount of every resource. If it has more than its
    deserved amount of only some resources, the text names these resources.
    """
    if queue.is_overused:
        return "yes"
    above = [name.rpartition("/")[2] for name in borrowed_amounts(queue)]
    return f"no (above its share of {listed(above)})" if above else "no"


def _print_nodes(console: Console, found: GroupExplanation) -> None:
    rows = [
        (
            fact.node,
            _reason(fact),
            ", ".join(f"{amount_text(name, n)} {name}" for name, n in fact.lacking.items()),
        )
        for fact in found.nodes
    ]
    title = f"nodes on which {found.member} does not fit, smallest shortage first"
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
