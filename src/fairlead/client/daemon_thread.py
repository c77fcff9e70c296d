"""Runs calls in threads that do not keep the process alive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar, cast

Result = TypeVar("Result")


async def in_daemon_thread(call: Callable[[], Result]) -> Result:
    """Call `call` in a thread that does not keep the process alive, and return its result.

    The process can end even if `call` never returns, for example because a server does not respond.
    Raises what `call` raises.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Result] = loop.create_future()

    def end(result: Result | None, failure: BaseException | None) -> None:
        if ended.done():
            return
        if failure is not None:
            ended.set_exception(failure)
        else:
            ended.set_result(cast("Result", result))

    def run() -> None:
        result, failure = None, None
        try:
            result = call()
        except BaseException as cause:  # noqa: BLE001 - passed to the caller
            failure = cause
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(end, result, failure)

    Thread(target=run, daemon=True).start()
    return await ended
