"""Replaying one case: its requests in order, each answer against the recorded one.

A watch begins where it stands in the case, goes on beside the steps after it, and is compared
when they are through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairlead.api.json import Json
from fairlead.conformance.api.comparison import response, watch_events
from fairlead.conformance.api.comparison.agreement import Agreement
from fairlead.conformance.api.comparison.placeholder import Bindings
from fairlead.conformance.api.replay.exchange import Exchange, NotReplayableError
from fairlead.conformance.api.replay.transport import Transport, Watching
from fairlead.conformance.api.replay.validators import Validators
from fairlead.conformance.comparison import Mismatch

_MANAGED = "04-patch"
_UNPACKED = ("06-kubectl", "07-clients")  # recorded by a proxy that unpacked bodies
_STRUCTURE = "07-clients"
_DEFAULT_USER = "admin"
_LATE_MS = 20


@dataclass(frozen=True, slots=True)
class _Open:
    """A watch that goes on."""

    number: int
    exchange: Exchange
    watching: Watching


def differences(
    case: Json, transport: Transport, kept: Validators | None = None
) -> Iterator[Mismatch]:
    """The first difference of each step that differs, in order; watches last.

    `kept` is what a client knows from earlier cases. One whose path is NOT_SERVED is about what
    the server says that it does not do.
    """
    bindings = Bindings()
    theme = case.get("theme")
    agreement = Agreement(
        bindings,
        managed_fields=theme == _MANAGED,
        encodings=theme not in _UNPACKED,
        versions=not transport.acts_by_itself,
        structure=theme == _STRUCTURE,
        holds=transport.holds,
    )
    default = case.get("user", _DEFAULT_USER)
    open_watches, kept = [], kept or Validators()
    for number, step in enumerate(case["steps"]):
        exchange = Exchange(step)
        try:
            asking = exchange.asking(bindings, default)
        except NotReplayableError:
            continue
        transport.reach(exchange.at_ms)
        asking = kept.translated(asking, exchange, transport)
        if exchange.is_watch:
            open_watches.append(_Open(number, exchange, transport.watch(asking)))
            continue
        got = transport.ask(asking)
        kept.remember(asking, got)
        found = response.difference(exchange, got, agreement)
        if found is not None:
            yield _at(number, exchange, found)
    for watch in open_watches:
        transport.reach(_last_shown(watch.exchange))
        found = _of_watch(watch, agreement)
        if found is not None:
            yield _at(watch.number, watch.exchange, found)


def _last_shown(exchange: Exchange) -> int:
    """When the last event of a watch was recorded, in ms of its case."""
    events = exchange.answer.get("events") or [{}]
    return exchange.at_ms + int(events[-1].get("at_ms", 0)) + _LATE_MS


def _of_watch(watch: _Open, agreement: Agreement) -> Mismatch | None:
    recorded = watch.exchange.answer
    ends = recorded.get("end") == "server-closed"
    end = watch.watching.finish(len(recorded.get("events", ())), until_end=ends)
    refused = response.difference(watch.exchange, end.answer, agreement)
    if agreement.structure:
        return refused
    return refused or watch_events.difference(recorded, end, agreement)


def _at(number: int, exchange: Exchange, found: Mismatch) -> Mismatch:
    if found.path == response.NOT_SERVED:
        return found
    request = exchange.step["request"]
    where = f"steps[{number}] {request['method']} {request['path']}"
    return Mismatch(f"{where}: {found.path}", found.expected, found.found)
