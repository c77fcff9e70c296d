"""WatchList: what is known of every node, from its objects and from earlier passes.

What is remembered of a node's health survives the node, as upstream's map does: a node that comes
back under its name inherits when it was heard of last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairlead.api.lease import Renewals
from fairlead.api.objects import Node
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.beat import Beat
from fairlead.engine.nodelifecycle.node_health import NodeHealth, caught_up


@dataclass(slots=True)
class Watched:
    """One name: its newest Node (None: there is none) and how its lease is renewed.

    `registered` is the Node with which a pass first found it; `health` is as of the pass at
    `through`.
    """

    through: Instant
    node: Node | None = None
    renewals: Renewals | None = None
    registered: Node | None = None
    health: NodeHealth | None = None


class WatchList:
    """By the names of nodes."""

    def __init__(self, passes: Beat) -> None:
        """Start knowing nothing."""
        self._passes = passes
        self._watched: dict[str, Watched] = {}

    def __getitem__(self, name: str) -> Watched:
        """What is known under `name`; nothing at first."""
        watched = self._watched.get(name)
        if watched is None:
            begin = self._passes.first - self._passes.period
            watched = self._watched[name] = Watched(begin)
        return watched

    def find(self, name: str) -> Node | None:
        """The newest version of the node, None if there is none."""
        watched = self._watched.get(name)
        return None if watched is None else watched.node

    def health_of(self, name: str) -> NodeHealth | None:
        """What is remembered of the node's health, None if no pass has seen it."""
        watched = self._watched.get(name)
        return None if watched is None else watched.health

    def existing(self) -> Iterator[tuple[str, Watched, Node]]:
        """The nodes there are, in order of their names."""
        for name in sorted(self._watched):
            watched = self._watched[name]
            if watched.node is not None:
                yield name, watched, watched.node

    def catch_up(self, name: str, last_pass: Instant) -> Watched:
        """Take in what the passes up to `last_pass` would have noticed of regular renewals."""
        watched = self[name]
        if last_pass > watched.through:
            watched.health = caught_up(watched.health, watched.renewals, last_pass, self._passes)
            watched.through = last_pass
        return watched
