"""Listening: an engine whose inputs and outputs a test can read; and uids of a fixed form."""

from __future__ import annotations

from itertools import count

from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import RecordEvent
from fairlead.worlds.simulation.world import command_line

START = parse_timestamp("2030-01-01T00:00:00Z")


class NamedIds:
    """Ids that do not depend on the order in which objects are created."""

    def __init__(self):
        self._suffixes = count(1)

    def new_uid(self, kind, namespace, name):
        return f"{kind.resource}-{namespace}-{name}"

    def new_suffix(self):
        return f"{next(self._suffixes):05}"


class Listening:
    """An engine whose stimuli and commands (except events) are recorded."""

    def __init__(self, engine):
        self.engine = engine
        self.received = []
        self.issued = []

    @property
    def controllers(self):
        return self.engine.controllers

    def handle(self, stimulus, now):
        self.received.append((stimulus, now))
        return self._noted(self.engine.handle(stimulus, now), now)

    def next_deadline(self):
        return self.engine.next_deadline()

    def handle_deadline(self, now):
        return self._noted(self.engine.handle_deadline(now), now)

    def _noted(self, issued, now):
        self.issued += [(one, now) for one in issued if not isinstance(one.command, RecordEvent)]
        return issued

    @property
    def lines(self):
        """Return the command and component of all commands, sorted."""
        return sorted(
            f"{one.issuer.component.value} {command_line(one.command, now - START)}"
            for one, now in self.issued
        )
