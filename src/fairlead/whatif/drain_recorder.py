"""DrainRecorder: follows nodes that are drained in turn, by what their annotations say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fairlead.api.objects import Node
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.annotation import DONE, DRAIN, REQUESTED, is_in_turn
from fairlead.whatif.outage_outcome import DrainTurn
from fairlead.whatif.outcome import Undrained


@dataclass(slots=True)
class _Turn:
    begun_at: Instant | None = None
    empty_at: Instant | None = None
    back_at: Instant | None = None


@dataclass(slots=True)
class DrainRecorder:
    """Told of every version of every node."""

    _turns: dict[str, _Turn] = field(default_factory=dict)  # by node, in the order of asking

    def see(self, node: Node, now: Instant) -> None:
        """Take note of how far `node` is."""
        name = node.metadata.name
        turn = self._turns.get(name)
        if not is_in_turn(node):
            if turn is not None and turn.back_at is None:
                turn.back_at = now
            return
        if turn is None or turn.back_at is not None:
            turn = self._turns[name] = _Turn()
        stage = node.metadata.annotations.get(DRAIN)
        if stage == REQUESTED and turn.begun_at is None:
            turn.begun_at = now
        elif stage == DONE and turn.empty_at is None:
            turn.empty_at = now

    def turns(self, undrained: Sequence[Undrained]) -> list[DrainTurn]:
        """All of them; `undrained` are the pods whose evictions were refused to the end."""
        return [
            DrainTurn(
                node=name,
                begun_at=turn.begun_at,
                empty_at=turn.empty_at,
                back_at=turn.back_at,
                held_up_by=tuple(
                    f"{one.pod.key}: {one.why}" for one in undrained if one.pod.node == name
                ),
            )
            for name, turn in self._turns.items()
        ]
