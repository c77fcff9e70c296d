"""ListWatch: does the I/O of a Reflector."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Final, NoReturn

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND
from fairlead.client.cache.recovery import Recovery
from fairlead.client.cache.reflector import ObjectUpdate, OpenWatch, PauseUntil, ReadPage, Reflector
from fairlead.client.error import TOO_LONG, RequestError, may_be_temporary
from fairlead.client.rest_client import ApiRequest, RestClient

# A watch that lasts this much longer than its timeoutSeconds has a half-open connection.
GRACE_SECONDS: Final = 5
LIST_SECONDS_MAX: Final = 60
# If the server has accepted a watch and kept it open for this long, the resource is readable.
OPEN_SECONDS: Final = 2.0
# A watch that ends within this time and without any line counts as failed. Otherwise it would be
# repeated without a pause. upstream: client-go/tools/cache/reflector.go: handleAnyWatch
SHORT_WATCH_NS: Final = NANOSECONDS_PER_SECOND // 2

# A list request that the server has not answered for this long is reported as a problem. The
# request goes on: the server may need longer for a page of large objects.
SLOW_SECONDS: Final = 20.0

OnUpdates = Callable[[list[ObjectUpdate]], None]


class ListWatch:
    """Keeps one Reflector up to date by sending the requests that the Reflector returns."""

    def __init__(  # noqa: PLR0913 - the parties of a list-watch, and settings for tests
        self,
        reflector: Reflector,
        client: RestClient,
        on_updates: OnUpdates,
        clock: Callable[[], int],
        *,
        recovery: Recovery | None = None,
        open_seconds: float = OPEN_SECONDS,
        slow_seconds: float = SLOW_SECONDS,
    ) -> None:
        """Prepare to send the requests of `reflector` with `client`.

        `on_updates` receives the changes in each page of a list, and in each part of a watch when
        the part arrives. `on_updates` receives an empty list if the reflector's state may have
        changed although no object has changed. This happens before a pause, at the end of a watch,
        when a watch has been open for `open_seconds`, and when a list request has had no answer for
        `slow_seconds`. `clock` returns the time in ns. The ListWatches that share `recovery` end
        their pauses when one of them can read its resource again.
        """
        self._reflector = reflector
        self._client = client
        self._on_updates = on_updates
        self._clock = clock
        self._recovery = Recovery() if recovery is None else recovery
        # Whether the last request failed, perhaps because the server is unavailable.
        self._is_cut_off = False
        self._open_seconds, self._slow_seconds = open_seconds, slow_seconds
        self._path = reflector.resource.collection()

    async def run(self) -> NoReturn:
        """List and watch until cancelled; failed requests are repeated after a pause.

        Raises ConnectionConfigError if the credentials or TLS settings cannot be used.
        """
        reflector, clock = self._reflector, self._clock
        while True:
            match reflector.next_action(clock()):
                case PauseUntil(instant):
                    self._on_updates([])
                    await self._pause(max(0, instant - clock()) / NANOSECONDS_PER_SECOND)
                case ReadPage(query):
                    request = ApiRequest("GET", self._path, query=query)
                    with self._slow_timer():
                        answer = await self._client.exchange(request, LIST_SECONDS_MAX)
                    if answer.is_success:
                        updates = reflector.listed(answer.body, clock())
                        self._note_answer()
                        self._on_updates(updates)
                    else:
                        problem = f"{self._client.config.server}: {answer.message}"
                        self._failed(answer.status, answer.retry_after_s, problem, answer.reason)
                case OpenWatch() as watch:
                    try:
                        with self._slow_timer() as timer:
                            await self._watch(watch, timer)
                    except RequestError as refusal:
                        wait_s, problem = refusal.retry_after_s, str(refusal)
                        self._failed(refusal.code, wait_s, problem, refusal.reason)

    def _failed(self, code: int, retry_after_s: float, problem: str, reason: str) -> None:
        """Record a failed request; the parameters are those of `Reflector.failed` and a reason."""
        repeats = reason == TOO_LONG
        # If the server itself demands a pause, the pause must not end early.
        self._is_cut_off = may_be_temporary(code) and not repeats and not retry_after_s
        self._reflector.failed(code, self._clock(), retry_after_s, problem, repeats=repeats)

    def _note_answer(self) -> None:
        """Record whether the answer shows that the resource can be read again.

        An accepted watch alone does not show this. A server may accept watches and break them. If
        each accepted watch ended the pauses of the other ListWatches, such a server would get
        requests without pauses.
        """
        if self._reflector.is_failing:  # perhaps something else answered in place of the server
            self._is_cut_off = True
        elif self._is_cut_off:
            self._is_cut_off = False
            self._recovery.report()

    async def _pause(self, seconds: float) -> None:
        """Wait for `seconds`, or less if another ListWatch can read its resource again."""
        if not self._is_cut_off:
            await asyncio.sleep(seconds)
        elif await self._recovery.wait(seconds):
            self._reflector.end_pause(self._clock())

    async def _watch(self, watch: OpenWatch, slow_timer: asyncio.TimerHandle) -> None:
        """Process the lines of one watch until the watch ends; the first lines cancel `slow_timer`.

        Raises RequestError if the watch fails.
        """
        lasts = watch.seconds + GRACE_SECONDS
        began, is_empty = self._clock(), True
        stays_open: asyncio.TimerHandle | None = None
        try:
            async with aclosing(self._client.stream(self._path, watch.query, lasts)) as chunks:
                async for lines in chunks:
                    if stays_open is None:
                        loop = asyncio.get_running_loop()
                        stays_open = loop.call_later(self._open_seconds, self._stayed_open)
                    if lines:
                        is_empty = False
                        slow_timer.cancel()
                    updates: list[ObjectUpdate] = []
                    for line in lines:
                        found = self._reflector.watched(line, self._clock())
                        if found is None:
                            self._note_answer()
                            self._on_updates(updates)
                            return
                        updates += found
                    if lines:
                        self._note_answer()
                    self._on_updates(updates)
        finally:
            if stays_open is not None:
                stays_open.cancel()
        now = self._clock()
        if is_empty and now < began + SHORT_WATCH_NS:
            problem = f"{self._client.config.server}: the server ended the watch at once"
            self._reflector.failed(0, now, problem=problem)
        else:
            self._reflector.ended(now)
        self._note_answer()
        self._on_updates([])

    @contextmanager
    def _slow_timer(self) -> Iterator[asyncio.TimerHandle]:
        """Yield a timer that reports a slow list; the end of the `with` block cancels the timer."""
        timer = asyncio.get_running_loop().call_later(self._slow_seconds, self._list_is_slow)
        try:
            yield timer
        finally:
            timer.cancel()

    def _list_is_slow(self) -> None:
        seconds, server = round(self._slow_seconds), self._client.config.server
        self._reflector.list_is_slow(f"{server}: no answer for {seconds} seconds")
        self._on_updates([])

    def _stayed_open(self) -> None:
        self._reflector.stayed_open()
        self._note_answer()
        self._on_updates([])
