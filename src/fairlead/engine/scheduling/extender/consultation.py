"""Consultation: a decision that may stop to ask extenders.

A generator: it yields questions that may be asked side by side, is sent their answers in the same
order, and returns what it came to.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from fairlead.engine.core.command import CallExtender
from fairlead.engine.core.stimulus import CommandFailed, ExtenderAnswered

Result = TypeVar("Result")
Answer = ExtenderAnswered | CommandFailed
Questions = tuple[CallExtender, ...]
Answers = tuple[Answer, ...]
Consultation = Generator[Questions, Answers, Result]


def settle(
    consultation: Consultation[Result], ask: Callable[[CallExtender], Answer] | None = None
) -> Result:
    """What `consultation` comes to when `ask` answers at once; without it, nothing may be asked."""
    try:
        questions = next(consultation)
        while True:
            assert ask is not None, questions
            questions = consultation.send(tuple(map(ask, questions)))
    except StopIteration as end:
        result: Result = end.value
        return result
