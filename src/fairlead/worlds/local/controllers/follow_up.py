"""Follow-ups: what the API server itself has to write after others than its clients have written.

After a request it does so at once; here it hears of Services that controllers let go or make.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.apiserver.kind import SERVICE
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import StoredChange
from fairlead.engine.core.instant import Instant


class FollowUps:
    """An Attendant; `follow_up` lets the server write what is due."""

    def __init__(self, follow_up: Callable[[Instant], None]) -> None:
        """Nothing has happened."""
        self._follow_up = follow_up

    def attend(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See Attendant."""
        if change.kind is SERVICE:
            self._follow_up(now)
