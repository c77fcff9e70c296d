"""read_answer: decodes an extender's answer, or raises the reason why the call failed.

upstream: pkg/scheduler/extender.go: send, Filter, Prioritize, convertToVictims
"""

from __future__ import annotations

from typing import Final, TypeVar

from fairlead.api.extender import ProtocolError, decode
from fairlead.engine.core.stimulus import CommandFailed
from fairlead.engine.scheduling.extender.consultation import Answer
from fairlead.engine.scheduling.extender.extender import ExtenderCalls

HTTP_OK: Final = 200
Message = TypeVar("Message")


class ExtenderError(Exception):
    """An extender failed; `str()` is the text for the pod's failure message."""


def read_answer(asker: ExtenderCalls, answer: Answer, form: type[Message]) -> Message:
    """Return `answer` of the extender `asker`, decoded as the type `form`. Raises ExtenderError."""
    if isinstance(answer, CommandFailed):
        raise ExtenderError(answer.message)
    url = answer.command.url
    if answer.status != HTTP_OK:
        verb = url.removeprefix(asker.extender.address(""))
        raise ExtenderError(f"failed {verb} with extender at URL {url}, code {answer.status}")
    try:
        return decode(answer.body, form)
    except ProtocolError as cause:
        raise ExtenderError(str(cause)) from None
