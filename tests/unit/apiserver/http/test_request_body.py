"""The memory of all request bodies is bounded."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.apiserver.http import request_body
from fairlead.apiserver.http.request_body import (
    BodyBudget,
    BodyTooLongError,
    ClientGone,
    TooManyBodiesError,
    read_body,
)


@pytest.fixture
def budget(monkeypatch):
    monkeypatch.setattr(request_body, "USER_BYTES_MAX", 10)
    monkeypatch.setattr(request_body, "TOTAL_BYTES_MAX", 15)
    return BodyBudget()


def test_the_bodies_of_one_user_are_bounded(budget):
    with budget.request_of("alice") as first, budget.request_of("alice") as second:
        first(6)
        second(4)
        with pytest.raises(TooManyBodiesError):
            second(1)


def test_the_bodies_of_all_users_are_bounded(budget):
    with budget.request_of("alice") as one, budget.request_of("bob") as other:
        one(10)
        other(5)
        with pytest.raises(TooManyBodiesError):
            other(1)


def test_a_finished_request_releases_its_memory(budget):
    for _ in range(3):
        with budget.request_of("alice") as count:
            count(10)


def test_a_refused_request_releases_its_memory(budget):
    with pytest.raises(TooManyBodiesError), budget.request_of("alice") as count:
        count(11)
    with budget.request_of("alice") as count:
        count(10)


@pytest.mark.parametrize("end", ["too long", "disconnect", "too slow"])
def test_every_end_of_a_body_is_counted(end):
    messages = [{"type": "http.request", "body": b"12345", "more_body": True}]
    if end != "too slow":
        kind = "http.request" if end == "too long" else "http.disconnect"
        messages.append({"type": kind, "body": b"678901"})
    counted = []

    async def read():
        incoming = asyncio.Queue()
        for message in messages:
            incoming.put_nowait(message)
        await read_body({}, incoming.get, bytes_max=10, seconds_max=0.01, count=counted.append)

    with pytest.raises((BodyTooLongError, ClientGone, TimeoutError)):
        asyncio.run(read())
    assert sum(counted) == (11 if end == "too long" else 5)
