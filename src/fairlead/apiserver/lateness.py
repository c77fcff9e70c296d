"""How late the server itself follows up on what clients write.

A server follows up at once. One that is compared with recordings is as late as the recorded one,
whose controllers hear of a change a few milliseconds after the client has its answer.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """In ns, each after what comes before it; with 0 there is nothing to see between."""

    accepted: int = 0
    established: int = 0
    ending: int = 0
    ended: int = 0
    flow_status: int = 0
    service_status: int = 0

    def slowed(self, times: int) -> Lateness:
        """The same, but so many times as late."""
        return Lateness(**{each.name: times * getattr(self, each.name) for each in fields(self)})


AT_ONCE: Final = Lateness()
