"""The event loop of live tests, which ends only after its connections are closed."""

from __future__ import annotations

import asyncio
import selectors


async def connections_closed(selector, left):
    """Wait until at most `left` files are registered with the `selector` of the running loop."""
    async with asyncio.timeout(60):
        while len(selector.get_map()) > left:  # noqa: ASYNC110 - the selector reports no change
            await asyncio.sleep(0.01)


def run_until_closed(coroutine):
    """Return the result of `coroutine`, after the connections of its loop are closed.

    asyncio.run does not wait for them: a cancelled request of aiohttp does not close its TLS
    connection before the server confirms this.
    """
    selector = selectors.DefaultSelector()

    async def run():
        own = len(selector.get_map())  # the loop's pipe to itself
        result = await coroutine
        for task in (left := asyncio.all_tasks() - {asyncio.current_task()}):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await connections_closed(selector, own)
        return result

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        return runner.run(run())
