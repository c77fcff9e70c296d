"""ExtenderCaller: calls the extenders of a scheduler configuration."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from typing import Protocol

from fairlead.api.extender import BindingResult, ProtocolError, decode
from fairlead.engine.core.command import CallExtender
from fairlead.engine.core.stimulus import CallOutcome, CommandFailed, FailureReason
from fairlead.engine.scheduling.extender.extender import Extender


class ExtenderCaller(Protocol):
    """Calls the extenders of a configuration."""

    def call(self, call: CallExtender, body: bytes) -> CallOutcome:
        """Send `body` to the extender and return its response.

        Returns CommandFailed if there is no response.
        """
        ...


class NoExtenders:
    """Fails every call; used if no extenders are configured."""

    def call(self, call: CallExtender, body: bytes) -> CallOutcome:
        """Return CommandFailed for `call`."""
        return CommandFailed(call, FailureReason.INTERNAL_ERROR, "no extender can be reached here")


def reaching(extenders: Sequence[Extender]) -> AbstractContextManager[ExtenderCaller]:
    """Return a context manager that yields an ExtenderCaller, which calls `extenders` over HTTP.

    The connections are closed at the end of the context. If `extenders` is empty, every call fails.
    """
    if not extenders:
        return nullcontext(NoExtenders())
    # Imported only if there are extenders, because loading aiohttp takes time.
    from fairlead.worlds.extender.client import HttpExtenders  # noqa: PLC0415

    return HttpExtenders(extenders)


def has_bound(answer: CallOutcome) -> bool:
    """Return whether an extender's response to bind reports success."""
    if isinstance(answer, CommandFailed) or answer.status != HTTPStatus.OK:
        return False
    try:
        return not decode(answer.body, BindingResult).error
    except ProtocolError:
        return False
