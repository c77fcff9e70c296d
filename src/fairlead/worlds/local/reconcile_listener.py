"""ReconcileListener: runs the API server's own reconcilers after controllers change Services.

The server runs them after each request, but controllers' changes come without a request.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.apiserver.kind import SERVICE
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import StoredChange
from fairlead.engine.core.instant import Instant


class ReconcileListener:
    """A StoreListener."""

    def __init__(self, reconcile: Callable[[Instant], None]) -> None:
        """`reconcile` performs the writes that are due."""
        self._reconcile = reconcile

    def see(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See StoreListener."""
        if change.kind is SERVICE:
            self._reconcile(now)
