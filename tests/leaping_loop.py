"""An event loop in virtual time, for tests without sockets, processes and threads."""

from __future__ import annotations

import asyncio


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer when nothing else is ready."""

    now_s = 0.0

    def time(self):
        """Return the virtual time in seconds."""
        return self.now_s

    def _run_once(self):
        if not self._ready and self._scheduled:
            self.now_s = max(self.now_s, self._scheduled[0].when())
        super()._run_once()


def run_leaping(coroutine):
    """Return the result of `coroutine` in a new loop, as asyncio.run does.

    However slow the machine is, work that is ready is done before time passes.
    """
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        return runner.run(coroutine)
