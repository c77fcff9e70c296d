"""Consultation: a generator that makes a decision and can call extenders.

The generator yields groups of calls. The calls of one group may run in parallel. For each group,
the generator receives the answers in the order of the calls. The return value of the generator is
the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from fairlead.engine.core.command import CallExtender
from fairlead.engine.core.stimulus import CallOutcome

Result = TypeVar("Result")
Questions = tuple[CallExtender, ...]
Responses = tuple[CallOutcome, ...]
Consultation = Generator[Questions, Responses, Result]


def run_consultation(
    consultation: Consultation[Result], call: Callable[[CallExtender], CallOutcome] | None = None
) -> Result:
    """Run `consultation` to its end and return its result; `call` performs each call.

    If `call` is None, the consultation must not make any calls.
    """
    try:
        questions = next(consultation)
        while True:
            assert call is not None, questions
            questions = consultation.send(tuple(map(call, questions)))
    except StopIteration as end:
        result: Result = end.value
        return result
