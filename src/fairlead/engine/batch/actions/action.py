"""Action: the Protocol that every action implements."""

from __future__ import annotations

from typing import Protocol

from fairlead.engine.batch.session.session import Session


class Action(Protocol):
    """One pass over the jobs of a session."""

    @property
    def name(self) -> str:
        """The name of the action in the configuration."""
        ...

    def execute(self, session: Session) -> None:
        """Run the action on `session`."""
        ...
