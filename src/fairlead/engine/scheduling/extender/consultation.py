"""Consultation: a generator that makes a decision and may call extenders to do so.

It yields calls that may run in parallel, receives their answers in the same order, and returns its
result.
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
    """Run `consultation` to its result; `ask` answers its calls.

    If `ask` is None, the consultation must make no calls.
    """
    try:
        questions = next(consultation)
        while True:
            assert ask is not None, questions
            questions = consultation.send(tuple(map(ask, questions)))
    except StopIteration as end:
        result: Result = end.value
        return result
