"""PendingDecision: runs the generator of a scheduling cycle until the cycle has decided.

    begin ──▶ calling ──all answered──▶ calling again ──▶ … ──▶ decided
       └──────────────────────────────────────────────────────────┘

A cycle that calls no extender decides immediately.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from fairlead.engine.core.command import CallExtender, Command
from fairlead.engine.core.stimulus import CallOutcome
from fairlead.engine.scheduling.extender.consultation import Consultation

Decided = TypeVar("Decided")


class PendingDecision(Struct, Generic[Decided], eq=False):
    """Runs the `consultation` of one cycle; `decision` is None until the cycle has decided.

    `calls` are the calls whose responses the cycle waits for. `responses` contains the responses
    that have arrived; the key is the index of the call in `calls`.
    """

    consultation: Consultation[Decided]
    decision: Decided | None = None
    calls: tuple[CallExtender, ...] = ()
    responses: dict[int, CallOutcome] = {}

    def begin(self) -> Sequence[Command]:
        """Start the cycle; return its first extender calls, () if it decides without calls."""
        try:
            self.calls = next(self.consultation)
        except StopIteration as end:
            self.decision = end.value
            return ()
        return self.calls

    def answer(self, answer: CallOutcome) -> Sequence[Command] | None:
        """Store an answer; after the last one, continue the cycle and return its next calls.

        Returns () if other answers are still missing, or if the cycle has decided. Returns None if
        `answer` belongs to none of `calls`. Calls are compared by identity, because two cycles may
        send equal calls.
        """
        place = next((i for i, call in enumerate(self.calls) if call is answer.command), None)
        if place is None:
            return None
        self.responses[place] = answer
        if len(self.responses) < len(self.calls):
            return ()
        responses = tuple(self.responses[i] for i in range(len(self.calls)))
        self.calls, self.responses = (), {}
        try:
            self.calls = self.consultation.send(responses)
        except StopIteration as end:
            self.decision = end.value
        return self.calls
