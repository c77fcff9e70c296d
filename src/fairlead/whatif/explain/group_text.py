"""The sentences of the explanation of a PodGroup."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.batch.explanation.explanation import GroupExplanation, Obstacle


def members_text(found: GroupExplanation) -> str:
    """Return how many members the group needs and has, as a clause."""
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


def obstacle_text(found: GroupExplanation) -> str:
    """Return what blocks the group, or that nothing does."""
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


def group_sentences(found: GroupExplanation) -> Iterator[str]:
    """Yield sentences about the group that say what blocks it, and what would let it start."""
    yield f"Its group {found.title} {members_text(found)}."
    yield _with_full_stop(obstacle_text(found))
    yield from found.no_evictions
    for remedy in remedy_texts(found):
        yield _with_full_stop(remedy)


def _with_full_stop(text: str) -> str:
    text = f"{text[:-2]})" if text.endswith(".)") else text
    return text if text.endswith(".") else f"{text}."


def remedy_texts(found: GroupExplanation) -> Iterator[str]:
    """Yield a sentence without a full stop for each change with which the group would start."""
    what = "the next member" if found.has_minimum else "it"
    for remedy in found.remedies:
        yield f"What would let {what} start: {remedy}"
