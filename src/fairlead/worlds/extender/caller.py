"""ExtenderCaller: the port through which a world asks extenders."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from typing import Protocol

from fairlead.api.extender import BindingResult, ProtocolError, decode
from fairlead.engine.core.command import CallExtender
from fairlead.engine.core.stimulus import CommandFailed, ExtenderAnswered, FailureReason
from fairlead.engine.scheduling.extender.extender import Extender

Answer = ExtenderAnswered | CommandFailed


class ExtenderCaller(Protocol):
    """Whoever can reach the extenders of the configuration."""

    def call(self, call: CallExtender, body: bytes) -> Answer:
        """What the extender says to `body`; a CommandFailed if it says nothing in time."""
        ...


class NoExtenders:
    """Nobody can be reached."""

    def call(self, call: CallExtender, body: bytes) -> Answer:
        """A refusal."""
        return CommandFailed(call, FailureReason.INTERNAL_ERROR, "no extender can be reached here")


def reaching(extenders: Sequence[Extender]) -> AbstractContextManager[ExtenderCaller]:
    """Whoever reaches `extenders` over HTTP; connections are closed at the end of the context."""
    if not extenders:
        return nullcontext(NoExtenders())
    # Only who has extenders pays for the library that reaches them.
    from fairlead.worlds.extender.client import HttpExtenders  # noqa: PLC0415

    return HttpExtenders(extenders)


def has_bound(answer: Answer) -> bool:
    """Whether an extender that was asked to bind says that it did."""
    if isinstance(answer, CommandFailed) or answer.status != HTTPStatus.OK:
        return False
    try:
        return not decode(answer.body, BindingResult).error
    except ProtocolError:
        return False
