"""What an action is."""

from __future__ import annotations

from typing import Protocol

from fairlead.engine.batch.session.session import Session


class Action(Protocol):
    """One pass over the session's jobs."""

    @property
    def name(self) -> str:
        """The name by which configuration refers to it."""
        ...

    def execute(self, session: Session) -> None:
        """Do what the action is for."""
        ...
