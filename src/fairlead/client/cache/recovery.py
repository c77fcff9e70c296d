"""Recovery: ends the pauses of several ListWatches when their API server answers again.

After a long outage, each ListWatch pauses for up to a minute before its next request. The first
ListWatch that can read its resource again tells the other ListWatches. In client-go, each reflector
waits for the end of its own pause.
"""

from __future__ import annotations

import asyncio


class Recovery:
    """Tells the ListWatches of one API server that this server answers again."""

    def __init__(self) -> None:
        """Create a recovery that no ListWatch waits for yet."""
        self._happened = asyncio.Event()

    def report(self) -> None:
        """End all waits, because a resource can be read again after a failure."""
        self._happened.set()
        self._happened = asyncio.Event()

    async def wait(self, seconds_max: float) -> bool:
        """Wait for the next report; return False if there is none within `seconds_max`."""
        happened = self._happened
        try:
            async with asyncio.timeout(seconds_max):
                await happened.wait()
        except TimeoutError:
            return False
        return True
