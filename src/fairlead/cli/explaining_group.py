"""What `fairlead explain podgroup/…` prints."""

from __future__ import annotations

from rich.console import Console

from fairlead.api.resource_amount import amount_text
from fairlead.cli.jobs_summary import amounts_text
from fairlead.cli.terminal import print_line, print_table
from fairlead.engine.batch.explanation.explanation import GroupExplanation, Obstacle
from fairlead.engine.batch.queue_share import QueueStanding
from fairlead.whatif.duration import for_readers
from fairlead.whatif.explaining_group import ExplainedGroup


def print_group(explained: ExplainedGroup, console: Console) -> None:
    """The whole explanation as text."""
    found = explained.found
    print_line(console, f"{found.title}: {_members(found)}", "bold")
    print_line(console, _obstacle(found))
    if found.queue is not None:
        _print_queue(console, found.queue)
    _print_nodes(console, found)
    if found.obstacle is not Obstacle.NOTHING:
        print_line(console, _start(explained))
    for remedy in found.remedies:
        print_line(console, f"What would let it start: {remedy}")


def _members(found: GroupExplanation) -> str:
    parts = [
        f"needs {found.min_member} of its {found.members} members",
        f"{found.ready} on nodes",
    ]
    if found.promised:
        parts.append(f"{found.promised} promised room")
    if found.placeable:
        parts.append(f"{found.placeable} more could start now")
    return ", ".join(parts)


def _obstacle(found: GroupExplanation) -> str:
    if found.obstacle is Obstacle.NOTHING:
        return "Nothing holds it back: it runs, or starts with the next session."
    member = f" ({found.member}: {found.summary})" if found.summary else ""
    return f"What holds it back: {found.obstacle}{member}"


def _print_queue(console: Console, queue: QueueStanding) -> None:
    cells = (
        queue.name,
        str(queue.weight),
        amounts_text({name: round(amount) for name, amount in queue.deserved.items()}),
        amounts_text(queue.allocated),
        amounts_text(queue.request),
        f"{queue.share:.2f}",
        "yes" if queue.is_overused else "no",
    )
    columns = ("queue", "weight", "deserved", "allocated", "asked for", "share", "has its share")
    print_table(console, "its queue", columns, [cells], numbers=("weight", "share"))


def _print_nodes(console: Console, found: GroupExplanation) -> None:
    rows = [
        (
            fact.node,
            fact.reason,
            ", ".join(f"{amount_text(name, n)} {name}" for name, n in fact.lacking.items()),
        )
        for fact in found.nodes
    ]
    title = f"nodes that cannot take {found.member}, nearest misses first"
    print_table(console, title, ("node", "because", "lacks"), rows)


def _start(explained: ExplainedGroup) -> str:
    begins = explained.found.starts_at
    if begins is None:
        return "When it may start is not known: nobody said how long what runs will take."
    after = for_readers(begins - explained.at)
    return f"It may start after {after}, if nothing else is started in its place."
