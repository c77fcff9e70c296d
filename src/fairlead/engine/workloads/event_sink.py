"""EventSink: where controllers send events that only API clients read.

Events that explain a failure (FailedCreate) are always recorded, because reports of a simulation
show them. Events about every created, deleted or scaled object go through a sink.
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
        """Return the events themselves, which are commands."""
        return list(events)


class NoEvents:
    """A sink that drops all events, used if no client reads them."""

    def record(self, *events: RecordEvent) -> list[Command]:
        """Return no commands."""
        return []
