"""PendingDecision: runs the generator of a scheduling cycle until the cycle has decided.

    begin ──▶ calling ──all answered──▶ calling again ──▶ … ──▶ decided
       └──────────────────────────────────────────────────────────┘

A cycle that calls no extender decides immediately.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from fairlead.engine.core.command import CallExtender, Command
from fairlead.engine.scheduling.extender.consultation import Answer, Consultation

Decided = TypeVar("Decided")


class PendingDecision(Generic[Decided]):
    """Runs the `consultation` of one cycle; `decision` is None until the cycle has decided."""

    __slots__ = ("_answers", "_asked", "_consultation", "decision")

    def __init__(self, consultation: Consultation[Decided]) -> None:
        """Store `consultation`; `begin` starts it."""
        self._consultation = consultation
        self._asked: tuple[CallExtender, ...] = ()
        self._answers: dict[int, Answer] = {}  # keyed by index among the calls
        self.decision: Decided | None = None

    def begin(self) -> Sequence[Command]:
        """Start the cycle; return its first extender calls, () if it decides without calls."""
        try:
            self._asked = next(self._consultation)
        except StopIteration as end:
            self.decision = end.value
            return ()
        return self._asked

    def answer(self, answer: Answer) -> Sequence[Command] | None:
        """Store an answer; after the last one, continue the cycle and return its next calls.

        Returns () while calls are open or if the cycle has decided, and None if `answer` belongs to
        no open call. Two cycles may send equal calls, so answers are matched by the identity of the
        command.
        """
        place = next((i for i, call in enumerate(self._asked) if call is answer.command), None)
        if place is None:
            return None
        self._answers[place] = answer
        if len(self._answers) < len(self._asked):
            return ()
        answers = tuple(self._answers[i] for i in range(len(self._asked)))
        self._asked, self._answers = (), {}
        try:
            self._asked = self._consultation.send(answers)
        except StopIteration as end:
            self.decision = end.value
        return self._asked
