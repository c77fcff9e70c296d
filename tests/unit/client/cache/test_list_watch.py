"""ListWatch: the I/O of a reflector."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from fairlead.client.api_resource import ApiResource
from fairlead.client.cache.list_watch import ListWatch
from fairlead.client.cache.recovery import Recovery
from fairlead.client.cache.reflector import PauseUntil, Reflector
from fairlead.client.connection import ConnectionConfig
from fairlead.client.error import RequestError
from fairlead.client.rest_client import ApiAnswer

PODS = ApiResource("v1", "Pod", "pods", is_namespaced=True)
NO_ANSWER = "https://x: no answer for 0 seconds"
FIRST = (
    b'{"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": '
    b'{"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}}}'
)


class Server:
    """Streams one list, then keeps a watch open without events."""

    config = ConnectionConfig(name="test", server="https://x")

    def __init__(self):
        self.watches = 0
        self.is_watched = asyncio.Event()

    async def stream(self, path, query, seconds_max):
        self.watches += 1
        yield []
        if self.watches == 1:
            yield [FIRST]
            return
        self.is_watched.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize(("open_seconds", "problem"), [(0, ""), (3600, "cannot connect")])
def test_an_idle_watch_that_stays_open_ends_a_problem(open_seconds, problem):
    async def reported():
        server, reflector = Server(), Reflector(PODS, lambda: 0.0)
        reports = []
        watching = ListWatch(
            reflector,
            server,
            lambda _: reports.append(reflector.problem),
            lambda: 0,
            open_seconds=open_seconds,
        )
        task = asyncio.ensure_future(watching.run())
        await server.is_watched.wait()
        reflector.problem = "cannot connect"
        reports.append(reflector.problem)
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        return reports[-1]

    assert asyncio.run(reported()) == problem


class Closing(Server):
    """Streams one list, then ends each watch at once."""

    async def stream(self, path, query, seconds_max):
        self.watches += 1
        yield []
        if self.watches == 1:
            yield [FIRST]
        await asyncio.sleep(0)


def test_a_watch_that_ends_at_once_is_not_repeated_at_once():
    """A proxy may end every response that does not deliver data."""

    async def watches():
        server, reflector = Closing(), Reflector(PODS, lambda: 0.0)
        watching = ListWatch(reflector, server, lambda _: None, lambda: 0)
        task = asyncio.ensure_future(watching.run())
        for _ in range(100):
            await asyncio.sleep(0)
        task.cancel()
        return server.watches

    assert asyncio.run(watches()) == 2


class Hanging(Server):
    """Accepts connections, but answers no list."""

    def __init__(self, refusal=None):
        super().__init__()
        self.refusal = refusal

    async def stream(self, path, query, seconds_max):
        if self.refusal is not None:
            raise self.refusal
        yield []
        self.is_watched.set()
        await asyncio.Event().wait()

    async def exchange(self, request, seconds_max):
        self.is_watched.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("refusal", [None, RequestError("https://x", 422, "", "no streams")])
@pytest.mark.parametrize(("slow_seconds", "problem"), [(0, NO_ANSWER), (3600, "")])
def test_a_list_without_an_answer_is_a_problem_before_it_fails(refusal, slow_seconds, problem):
    """The request of a list may take a minute, and the first failure is not reported."""

    async def reported():
        server, reflector = Hanging(refusal), Reflector(PODS, lambda: 0.0)
        reports = []
        watching = ListWatch(
            reflector,
            server,
            lambda _: reports.append(reflector.problem),
            lambda: 0,
            slow_seconds=slow_seconds,
        )
        task = asyncio.ensure_future(watching.run())
        await server.is_watched.wait()
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        return reports

    assert max(asyncio.run(reported()), default="") == problem


class Overloaded(Server):
    """Streams one list, then refuses each watch with Retry-After."""

    async def stream(self, path, query, seconds_max):
        self.watches += 1
        if self.watches > 1:
            self.is_watched.set()
            raise RequestError("https://x", 429, "", "too many requests", 17.0)
        yield [FIRST]


def test_the_retry_after_of_a_refused_watch_delays_the_next_one():
    async def next_action():
        server, reflector = Overloaded(), Reflector(PODS, lambda: 0.0)
        watching = ListWatch(reflector, server, lambda _: None, lambda: 0)
        task = asyncio.ensure_future(watching.run())
        await server.is_watched.wait()
        await asyncio.sleep(0)
        task.cancel()
        return reflector.next_action(0)

    assert asyncio.run(next_action()) == PauseUntil(17_000_000_000)


def test_a_watch_without_an_event_is_no_problem():
    reflector = Reflector(PODS, lambda: 0.0)
    reflector.next_action(0)
    reflector.watched(FIRST, 0)
    reflector.list_is_slow(NO_ANSWER)
    assert reflector.problem == ""


class Restored(Server):
    """Refuses all requests until `is_back` is set; the sixth refusal sets it."""

    def __init__(self, refusal):
        super().__init__()
        self.is_back = False
        self.refusal = refusal
        self.refused = 0

    def refuses(self):
        if not self.is_back:
            self.refused += 1
            self.is_back = self.refused == 6
            return True
        return False

    async def stream(self, path, query, seconds_max):
        if self.refuses():
            raise self.refusal
        yield [FIRST]
        await asyncio.Event().wait()

    async def exchange(self, request, seconds_max):
        if self.refuses():
            return ApiAnswer(self.refusal.code, b"", self.refusal.retry_after_s)
        return ApiAnswer(200, b'{"kind": "PodList", "metadata": {"resourceVersion": "7"}}')


@pytest.mark.parametrize(
    ("refusal", "is_early"),
    [
        (RequestError("https://x", 0, "", "cannot connect"), True),
        (RequestError("https://x", 503, "", "no backend"), True),
        (RequestError("https://x", 429, "", "too many requests", 17.0), False),
    ],
)
def test_a_server_that_answers_one_list_watch_ends_the_pauses_of_the_others(refusal, is_early):
    """After an outage, a pause takes up to a minute; here, the pauses of `slow` take days."""

    async def synced():
        server, recovery, has_synced = Restored(refusal), Recovery(), asyncio.Event()
        quick, slow = Reflector(PODS, lambda: 0.0), Reflector(PODS, lambda: 1e6)
        times = count(step=10**12)  # for `quick`, each pause has ended when it begins

        def on_updates(_):
            if quick.has_synced:
                has_synced.set()

        watching = (
            ListWatch(slow, server, on_updates, lambda: 0, recovery=recovery),
            ListWatch(quick, server, on_updates, lambda: next(times), recovery=recovery),
        )
        tasks = [asyncio.ensure_future(one.run()) for one in watching]
        async with asyncio.timeout(20):
            await has_synced.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        return slow.has_synced

    assert asyncio.run(synced()) == is_early


class Answers:
    """Streams a list, and then answers each request with a list of lines from `answers`.

    A watch without lines is accepted, and breaks. After `answers`, watches get a bookmark.
    """

    config = ConnectionConfig(name="test", server="https://x")

    def __init__(self, *answers):
        self.answers = [[FIRST], *answers]
        self.requests = 0

    def next_answer(self):
        self.requests += 1
        return self.answers[self.requests - 1] if self.requests <= len(self.answers) else None

    async def stream(self, path, query, seconds_max):
        answer = self.next_answer()
        await asyncio.sleep(0)
        yield []
        if answer is None:
            yield [FIRST]
            await asyncio.Event().wait()
        for line in answer:
            yield [line]
        if not answer:
            raise RequestError("https://x", 0, "", "connection reset")

    async def exchange(self, request, seconds_max):
        await asyncio.sleep(0)
        return ApiAnswer(200, b"".join(self.next_answer() or [b"{}"]))


@pytest.mark.parametrize("first", [[], [b"<html>"]])
@pytest.mark.parametrize("others", [[], [b"<html>"]])
@pytest.mark.parametrize(("count_of_others", "ends_pause"), [(200, False), (3, True)])
def test_only_a_usable_answer_ends_the_pauses_of_others(first, others, count_of_others, ends_pause):
    """If an accepted watch ended them, a server that breaks all watches would get no rest."""

    async def requests():
        recovery, times = Recovery(), count(step=10**12)
        slow, quick = Answers(first), Answers(*[others] * count_of_others)
        tasks = [
            asyncio.ensure_future(ListWatch(reflector, server, lambda _: None, clock,
                                            recovery=recovery).run())
            for reflector, server, clock in (
                (Reflector(PODS, lambda: 1e6), slow, lambda: 0),
                (Reflector(PODS, lambda: 0.0), quick, lambda: next(times)),
            )
        ]  # fmt: skip
        for _ in range(200):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        return slow.requests, quick.requests

    ours, theirs = asyncio.run(requests())
    assert (ours, theirs > 4) == (2 + ends_pause, True)
