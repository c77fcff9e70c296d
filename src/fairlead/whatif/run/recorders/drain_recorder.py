"""DrainRecorder: records the progress of rolling drains, read from annotations of nodes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from fairlead.api.objects import Node
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.node_annotation import DONE, DRAIN, REQUESTED, is_in_turn
from fairlead.whatif.outcome.outage import DrainProgress
from fairlead.whatif.outcome.run_outcome import Undrained


class _Drain(Struct):
    begun_at: Instant | None = None
    empty_at: Instant | None = None
    back_at: Instant | None = None


class DrainRecorder(Struct):
    """Records the progress of each rolling drain.

    `observe` must be called with every version of every node.
    """

    # {node: drain}, in the order of the requests
    _drains: dict[str, _Drain] = field(default_factory=dict)

    def observe(self, node: Node, now: Instant) -> None:
        """Record the stage of the rolling drain of `node`, read from the annotations of `node`."""
        name = node.metadata.name
        drain = self._drains.get(name)
        if not is_in_turn(node):
            if drain is not None and drain.back_at is None:
                drain.back_at = now
            return
        if drain is None or drain.back_at is not None:
            drain = self._drains[name] = _Drain()
        stage = node.metadata.annotations.get(DRAIN)
        if stage == REQUESTED and drain.begun_at is None:
            drain.begun_at = now
        elif stage == DONE and drain.empty_at is None:
            drain.empty_at = now

    def progress(self, undrained: Sequence[Undrained]) -> list[DrainProgress]:
        """Return the progress of all drains.

        `undrained` are the pods that are still on drained nodes at the end.
        """
        return [
            DrainProgress(
                node=name,
                begun_at=drain.begun_at,
                empty_at=drain.empty_at,
                back_at=drain.back_at,
                held_up_by=tuple(
                    f"{one.pod.key}: {one.why}" for one in undrained if one.pod.node == name
                ),
            )
            for name, drain in self._drains.items()
        ]
