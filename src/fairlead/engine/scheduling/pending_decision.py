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
from fairlead.engine.scheduling.extender.consultation import Answer, Consultation

Decided = TypeVar("Decided")


class PendingDecision(Struct, Generic[Decided], eq=False):
    """Runs the `consultation` of one cycle; `decision` is None until the cycle has decided.

    `asked` are the calls whose answers the cycle waits for. `answers` maps the index of a call in
    `asked` to its answer, if the answer has arrived.
    """

    consultation: Consultation[Decided]
    decision: Decided | None = None
    asked: tuple[CallExtender, ...] = ()
    answers: dict[int, Answer] = {}

    def begin(self) -> Sequence[Command]:
        """Start the cycle; return its first extender calls, () if it decides without calls."""
        try:
            self.asked = next(self.consultation)
        except StopIteration as end:
            self.decision = end.value
            return ()
        return self.asked

    def answer(self, answer: Answer) -> Sequence[Command] | None:
        """Store an answer; after the last one, continue the cycle and return its next calls.

        Returns () while calls are open or if the cycle has decided, and None if `answer` belongs to
        no open call. Two cycles may send equal calls, so answers are matched by the identity of the
        command.
        """
        place = next((i for i, call in enumerate(self.asked) if call is answer.command), None)
        if place is None:
            return None
        self.answers[place] = answer
        if len(self.answers) < len(self.asked):
            return ()
        answers = tuple(self.answers[i] for i in range(len(self.asked)))
        self.asked, self.answers = (), {}
        try:
            self.asked = self.consultation.send(answers)
        except StopIteration as end:
            self.decision = end.value
        return self.asked
