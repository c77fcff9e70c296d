"""JoinedNodes: NodeClaims and Nodes, joined by provider id and updated after each change.

Few changes require a new list. After most changes, only one node is joined again:

    a NodeClaim or Node was added or removed, or its provider id changed -> the whole list
    a NodeClaim or Node has changed in another way                       -> this node
    a nomination of a node has begun or ended                            -> this node
    a node has been marked for deletion or unmarked                      -> this node

Invariant: after `current(now)`, the list equals a list that is built from scratch at `now`. An
entry stays the same object until a part of it changes.

upstream: pkg/controllers/state/cluster.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fairlead.api.objects import Node
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode
from fairlead.engine.core.instant import DurationNs, Instant

# The default of KarpenterOptions.nomination.
NOMINATION_NS: Final[DurationNs] = 20 * NANOSECONDS_PER_SECOND


class JoinedNodes:
    """The list of StateNodes: each is a NodeClaim, a Node, or both joined.

    `marked` contains the keys of the nodes that are marked for deletion. `nominated_until` maps the
    key of each nominated node to the end of its nomination. The key of a node is its provider id,
    or its name if it has no provider id.
    """

    def __init__(
        self, claims: Mapping[str, NodeClaim], nodes: Mapping[str, Node], nomination: DurationNs
    ) -> None:
        """Start with `claims` and `nodes`, which the caller may change later.

        The caller must report each change with the methods below. A nomination of a node lasts
        `nomination` ns.
        """
        self._claims = claims
        self._nodes = nodes
        self._nomination = nomination
        self.marked: set[str] = set()
        self.nominated_until: dict[str, Instant] = {}
        self._first_end: Instant | None = None  # the time at which the next nomination ends
        self._held: set[str] = set()
        self._known: dict[str, StateNode] = {}
        self._list: list[StateNode] = []
        self._names: list[tuple[str | None, str | None]] = []  # NodeClaim, Node per entry
        self._positions: dict[str, list[int]] = {}
        self._is_built = False
        self._stale: set[str] = set()

    # --- changes -------------------------------------------------------------------------------

    def claim_put(self, claim: NodeClaim, old: NodeClaim | None) -> None:
        """Record a new version of a NodeClaim; `old` is the previous version."""
        key = claim.status.provider_id
        if old is None or old.status.provider_id != key:
            self._is_built = False
        else:
            self._stale.add(key)

    def node_put(self, node: Node, old: Node | None) -> None:
        """Record a new version of a Node; `old` is the previous version."""
        if old is None or old.spec.provider_id != node.spec.provider_id:
            self._is_built = False
        else:
            self._stale.add(node.spec.provider_id or node.metadata.name)

    def claim_removed(self, claim: NodeClaim) -> None:
        """Record that a NodeClaim was removed, and remove its mark for deletion."""
        self.marked.discard(claim.status.provider_id or claim.name)
        self._is_built = False

    def node_removed(self) -> None:
        """Record that a Node was removed."""
        self._is_built = False

    def mark(self, keys: Iterable[str]) -> None:
        """Mark nodes for deletion."""
        self.marked.update(keys)
        self._stale.update(keys)

    def unmark(self, keys: Iterable[str]) -> None:
        """Remove the mark for deletion from nodes."""
        self.marked.difference_update(keys)
        self._stale.update(keys)

    def nominate(self, key: str, now: Instant) -> None:
        """Protect a node from disruption for one nomination window."""
        until = self.nominated_until[key] = now + self._nomination
        self._stale.add(key)
        self._first_end = until if self._first_end is None else min(self._first_end, until)

    def hold_nominations(self, keys: Iterable[str]) -> None:
        """Keep the nodes in `keys` nominated at least until `release_nominations` is called."""
        self._held.update(keys)
        self._stale.update(self._held)

    def release_nominations(self, renewed: Instant) -> bool:
        """Set an end to the nominations that `hold_nominations` has prolonged.

        These nominations end one nomination window after `renewed`. Returns whether there were such
        nominations.
        """
        held, self._held = self._held, set()
        for key in held:
            self.nominate(key, renewed)
        return bool(held)

    # --- the list ------------------------------------------------------------------------------

    def current(self, now: Instant) -> list[StateNode]:
        """Return every Node, and every NodeClaim with a provider id, joined by provider id."""
        if self._first_end is not None and self._first_end <= now:
            self._end_nominations(now)
        if not self._is_built:
            self._build()
        elif self._stale:
            for key in self._stale:
                for position in self._positions.get(key, ()):
                    self._list[position] = self._joined(*self._names[position])
        self._stale.clear()
        return list(self._list)

    def _end_nominations(self, now: Instant) -> None:
        ended = [key for key, until in self.nominated_until.items() if until <= now]
        for key in ended:
            del self.nominated_until[key]
        self._stale.update(ended)
        self._first_end = min(self.nominated_until.values(), default=None)

    def _build(self) -> None:
        by_provider = {
            node.spec.provider_id: name
            for name, node in self._nodes.items()
            if node.spec.provider_id
        }
        names: list[tuple[str | None, str | None]] = []
        claimed: set[str] = set()
        for name, claim in self._claims.items():
            node_name = by_provider.get(claim.status.provider_id)
            if node_name is not None:
                claimed.add(node_name)
            if claim.status.provider_id:
                names.append((name, node_name))
        names += [(None, name) for name in self._nodes if name not in claimed]
        self._names = names
        self._list = [self._joined(*one) for one in names]
        self._known = {node.key: node for node in self._list}
        self._positions = {}
        for position, node in enumerate(self._list):
            self._positions.setdefault(node.key, []).append(position)
        self._is_built = True

    def _joined(self, claim_name: str | None, node_name: str | None) -> StateNode:
        """Return the StateNode of the NodeClaim `claim_name` and the Node `node_name`.

        One of the names may be None. Later calls return the same StateNode as long as its fields
        would have the same values.
        """
        claim = None if claim_name is None else self._claims[claim_name]
        node = None if node_name is None else self._nodes[node_name]
        bare = StateNode(claim, node)
        key = bare.key
        nominated = key in self._held or key in self.nominated_until
        marked = key in self.marked
        known = self._known.get(key)
        if (
            known is not None
            and known.claim is claim
            and known.node is node
            and (known.marked, known.nominated) == (marked, nominated)
        ):
            return known
        found = self._known[key] = StateNode(claim, node, marked, nominated)
        return found
