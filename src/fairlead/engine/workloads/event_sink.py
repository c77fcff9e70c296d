"""EventSink: records or drops the controllers' events that only API clients read.

Events about every created, deleted or scaled object go through a sink. Events that explain a
failure (FailedCreate) are always recorded, because reports of a simulation show them.
"""

from __future__ import annotations

from typing import Protocol

from fairlead.engine.core.command import Command, RecordEvent


class EventSink(Protocol):
    """Decides which events controllers record."""

    def record(self, *events: RecordEvent) -> list[Command]:
        """Return the commands that record `events`."""
        ...


class Events:
    """A sink that records every event."""

    def record(self, *events: RecordEvent) -> list[Command]:
        """Return `events` unchanged: an event is itself the command that records it."""
        return list(events)


class NoEvents:
    """A sink that drops all events, used if no client reads them."""

    def record(self, *events: RecordEvent) -> list[Command]:
        """Return no commands."""
        return []
