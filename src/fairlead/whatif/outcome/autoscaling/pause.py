"""Times in which Cluster Autoscaler stops because of too many unready nodes, with notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from fairlead.engine.core.instant import Instant
from fairlead.whatif.input.duration import for_readers


class Pause(Struct, frozen=True):
    """A time in which Cluster Autoscaler adds and removes no nodes.

    The autoscaler stops if more than `tolerated` nodes and more than `percentage` % of all nodes
    are not ready.
    """

    since: Instant
    until: Instant | None  # None if the time lasts to the end of the run
    unready: int  # the highest number of nodes that were not ready at the same time
    nodes: int  # the number of all nodes at that time
    tolerated: int
    percentage: float


def pause_notes(pauses: Iterable[Pause], start: Instant) -> Iterator[str]:
    """Yield a note for each of `pauses`; the times in the notes count from `start`."""
    for one in pauses:
        begin = for_readers(one.since - start)
        end = "the end" if one.until is None else for_readers(one.until - start)
        yield (
            f"From {begin} to {end}, Cluster Autoscaler adds and removes no nodes, because "
            f"{one.unready:,} of {one.nodes:,} nodes are not ready. It stops if more than "
            f"{one.tolerated:,} nodes (--ok-total-unready-count) and more than {one.percentage:g}% "
            "of all nodes (--max-total-unready-percentage) are not ready."
        )
