"""InProcessExtender: an extender that answers without a network, sometimes wrongly.

Its correct answers depend only on the request. The extender keeps every node, and scores nodes by a
hash of their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from zlib import crc32

from fairlead.api.extender import PRIORITY_MAX, FilterResult, HostPriority, encode
from fairlead.engine.core.command import CallExtender, ExtenderVerb
from fairlead.engine.core.stimulus import ExtenderAnswered
from fairlead.engine.scheduling.extender.extender import Extender

CONFIGURATION: Final = Extender(
    url_prefix="http://extender.invalid",
    filter_verb="filter",
    prioritize_verb="prioritize",
    node_cache_capable=True,
)
_EVERY: Final = 25  # calls


class InProcessExtender:
    """Answers calls; one answer in 25 is wrong until `is_calm` returns true.

    A wrong answer contains an error, has another HTTP status, or is not JSON.
    """

    def __init__(self, tally: Counter[str], is_calm: Callable[[], bool]) -> None:
        """`tally` counts the answers that this extender has falsified."""
        self._tally = tally
        self._is_calm = is_calm
        self._calls = 0

    def call(self, call: CallExtender, body: bytes) -> ExtenderAnswered:
        """Return an answer to `call`; the class docstring says which answers are wrong."""
        del body  # the names of the nodes are in the call
        self._calls += 1
        if self._calls % _EVERY == 0 and not self._is_calm():
            self._tally["extender wrong answers"] += 1
            return _wrong(call, self._calls // _EVERY)
        if call.verb is ExtenderVerb.FILTER:
            return _answer(call, encode(FilterResult(node_names=call.nodes)))
        scores = [
            HostPriority(name, crc32(name.encode()) % (PRIORITY_MAX + 1)) for name in call.nodes
        ]
        return _answer(call, encode(scores))


def _wrong(call: CallExtender, number: int) -> ExtenderAnswered:
    match number % 3:
        case 0:
            return _answer(call, encode(FilterResult(error="out of order")))
        case 1:
            return ExtenderAnswered(call, HTTPStatus.SERVICE_UNAVAILABLE, b"busy")
        case _:
            return _answer(call, b"{")


def _answer(call: CallExtender, body: bytes) -> ExtenderAnswered:
    return ExtenderAnswered(call, HTTPStatus.OK, body)
