"""Consultation: a generator that makes a decision and can call extenders.

It yields groups of calls that may run in parallel. For each group it receives the answers in the
order of the calls. Its return value is the decision.
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


def run_consultation(
    consultation: Consultation[Result], ask: Callable[[CallExtender], Answer] | None = None
) -> Result:
    """Run `consultation` to its end and return its result; `ask` performs each call.

    If `ask` is None, the consultation must not make any calls.
    """
    try:
        questions = next(consultation)
        while True:
            assert ask is not None, questions
            questions = consultation.send(tuple(map(ask, questions)))
    except StopIteration as end:
        result: Result = end.value
        return result
