"""Deliberation: a scheduling cycle's decision in the making.

    begin ──▶ asking ──all answered──▶ asking again ──▶ … ──▶ decided
       └────────────────────────────────────────────────────────┘

A cycle that asks nobody is decided at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.engine.core.command import CallExtender, Command
from fairlead.engine.scheduling.cycle import Decision
from fairlead.engine.scheduling.extender.consultation import Answer, Consultation


class Deliberation:
    """`decision` is None while extenders are being asked."""

    def __init__(self, consultation: Consultation[Decision]) -> None:
        """Nothing has happened yet."""
        self._consultation = consultation
        self._asked: tuple[CallExtender, ...] = ()
        self._answers: dict[int, Answer] = {}  # by place among the questions
        self.decision: Decision | None = None

    def begin(self) -> Sequence[Command]:
        """Decide as far as possible without asking; the questions."""
        try:
            self._asked = next(self._consultation)
        except StopIteration as end:
            self.decision = end.value
            return ()
        return self._asked

    def answer(self, answer: Answer) -> Sequence[Command] | None:
        """Go on once all questions are answered; None if the answer is to nothing asked here.

        Two cycles may ask the same, so answers are told apart by the command itself.
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
