"""Replays one case: sends its requests in order and compares each response.

A watch starts at its step, stays open during the following steps, and is compared at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.conformance.api.comparison import response, watch_events
from fairlead.conformance.api.comparison.agreement import Agreement
from fairlead.conformance.api.exchange import Exchange, NotReplayableError
from fairlead.conformance.api.placeholder import PlaceholderValues
from fairlead.conformance.api.replay.validators import Validators
from fairlead.conformance.api.transport import Transport, Watching
from fairlead.conformance.comparison import Mismatch

_MANAGED = "04-patch"  # The cases of this theme test managed fields.
_UNPACKED = ("06-kubectl", "07-clients")  # Recorded by a proxy that decompressed bodies.
_STRUCTURE = "07-clients"  # Its recordings depend on unknown initial objects.
_DEFAULT_USER = "admin"
_LATE_MS = 20


class _Open(Struct, frozen=True):
    """An open watch of the case; this watch replays the recorded `exchange`."""

    number: int
    exchange: Exchange
    watching: Watching


def mismatches(
    case: Json, transport: Transport, kept: Validators | None = None
) -> Iterator[Mismatch]:
    """Replay `case`; yield the first mismatch of each step that has one.

    The mismatches are in the order of the steps, except that those of watches come last.

    `kept` contains the ETags of earlier cases. Steps whose request body was not recorded are
    skipped. A mismatch with the path NOT_SERVED means that the server does not support the request.
    """
    bindings = PlaceholderValues()
    theme = case.get("theme")
    agreement = Agreement(
        bindings,
        managed_fields=theme == _MANAGED,
        encodings=theme not in _UNPACKED,
        versions=not transport.may_run_controllers,
        structure=theme == _STRUCTURE,
        holds=transport.holds,
    )
    default = case.get("user", _DEFAULT_USER)
    open_watches, kept = [], kept or Validators()
    for number, step in enumerate(case["steps"]):
        exchange = Exchange(step)
        try:
            request = exchange.request(bindings, default)
        except NotReplayableError:
            continue
        transport.reach(exchange.at_ms)
        request = kept.translated(request, exchange, transport)
        if exchange.is_watch:
            open_watches.append(_Open(number, exchange, transport.watch(request)))
            continue
        got = transport.ask(request)
        kept.remember(request, got)
        found = response.mismatch(exchange, got, agreement)
        if found is not None:
            yield _at(number, exchange, found)
    for watch in open_watches:
        transport.reach(_last_shown(watch.exchange))
        found = _of_watch(watch, agreement)
        if found is not None:
            yield _at(watch.number, watch.exchange, found)


def _last_shown(exchange: Exchange) -> int:
    """Return when to end the watch that `exchange` recorded, in ms since the case began.

    The watch ends _LATE_MS after its last recorded event, or after its request if it has no events.
    """
    events = exchange.answer.get("events") or [{}]
    return exchange.at_ms + int(events[-1].get("at_ms", 0)) + _LATE_MS


def _of_watch(watch: _Open, agreement: Agreement) -> Mismatch | None:
    recorded = watch.exchange.answer
    ends = recorded.get("end") == "server-closed"
    end = watch.watching.finish(len(recorded.get("events", ())), until_end=ends)
    refused = response.mismatch(watch.exchange, end.answer, agreement)
    if agreement.structure:
        return refused
    return refused or watch_events.mismatch(recorded, end, agreement)


def _at(number: int, exchange: Exchange, found: Mismatch) -> Mismatch:
    if found.path == response.NOT_SERVED:
        return found
    request = exchange.step["request"]
    where = f"steps[{number}] {request['method']} {request['path']}"
    return Mismatch(f"{where}: {found.path}", found.expected, found.found)
