"""EventList: the events that a simulated run records, kept in memory for reports."""

from __future__ import annotations

from collections import deque
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.engine.core.command import RecordEvent
from fairlead.engine.core.instant import Instant

# upstream: pkg/apis/core/validation/events.go:NoteLengthLimit
NOTE_BYTES_MAX: Final = 1024
ELLIPSIS: Final = " ..."


class RecordedEvent(Struct, frozen=True):
    """An event and the time of its recording. The note of the event is cut to the API's limit."""

    at: Instant
    event: RecordEvent


class EventList:
    """The newest recorded events, oldest first."""

    def __init__(self, events_max: int | None = None) -> None:
        """Start empty. `events_max` limits the list to the newest events; None means no limit."""
        self._events: deque[RecordedEvent] = deque(maxlen=events_max)

    def record(self, event: RecordEvent, now: Instant) -> None:
        """Append `event`, recorded at `now`, with its note cut to the API's limit."""
        if self._events.maxlen == 0:
            return
        self._events.append(RecordedEvent(now, replace(event, note=cut_note(event.note))))

    def to_list(self) -> list[RecordedEvent]:
        """Return the kept events, oldest first."""
        return list(self._events)

    def __len__(self) -> int:
        """Return the number of kept events."""
        return len(self._events)


def cut_note(note: str) -> str:
    """Return `note` cut to the API's limit of 1024 bytes; a cut note ends in ` ...`."""
    # upstream: pkg/scheduler/schedule_one.go:truncateMessage
    encoded = note.encode()
    if len(encoded) <= NOTE_BYTES_MAX:
        return note
    return encoded[: NOTE_BYTES_MAX - len(ELLIPSIS)].decode(errors="ignore") + ELLIPSIS
