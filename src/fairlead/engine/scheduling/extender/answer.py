"""read_answer: decodes the answer of an extender; raises ExtenderError if the call failed.

upstream: pkg/scheduler/extender.go: send, Filter, Prioritize, convertToVictims
"""

from __future__ import annotations

from typing import Final, TypeVar

from fairlead.api.extender import ProtocolError, decode
from fairlead.engine.core.stimulus import CallOutcome, CommandFailed
from fairlead.engine.scheduling.extender.extender import ExtenderCalls

HTTP_OK: Final = 200
Message = TypeVar("Message")


class ExtenderError(Exception):
    """Raised if a call to an extender failed; the text becomes part of the failure message."""


def read_answer(calls: ExtenderCalls, answer: CallOutcome, form: type[Message]) -> Message:
    """Return `answer`, an extender's answer to a call, decoded to the type `form`.

    `calls` is the ExtenderCalls that built the call.

    Raises ExtenderError if the call failed or the answer is invalid.
    """
    if isinstance(answer, CommandFailed):
        raise ExtenderError(answer.message)
    url = answer.command.url
    if answer.status != HTTP_OK:
        verb = url.removeprefix(calls.extender.address(""))
        raise ExtenderError(f"failed {verb} with extender at URL {url}, code {answer.status}")
    try:
        return decode(answer.body, form)
    except ProtocolError as cause:
        raise ExtenderError(str(cause)) from None
