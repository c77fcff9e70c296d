"""A local cluster answers concurrent clients like a single store, also when it is killed."""

from __future__ import annotations

import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from tests.linearizability.checker import listing_problems, version_problems, violations
from tests.linearizability.clients import Client, Recording, start_clients
from tests.linearizability.history import CONFLICT, EXISTS, NOT_FOUND
from tests.up_process import Connection, up

CLIENTS = 5
KEYS = 4
ENDLESS = 1_000_000


def recorded(home, *, seed, kills, answers, last):
    """Return the history of clients of a cluster that is killed repeatedly.

    There are `kills` rounds of `answers` responses, each ended by kill -9. Then comes one round of
    `last` requests per client that ends normally, in which everything is read.
    """
    recording = Recording()
    options = (
        *("--nodes", "0", "--data-dir", str(home)),
        *("--kubeconfig", str(home.with_name("kubeconfig"))),
    )
    with ThreadPoolExecutor(CLIENTS) as pool:
        for number in range(kills + 1):
            killed = number < kills
            ending = signal.SIGKILL if killed else signal.SIGTERM
            with up(*options, ending=ending) as config:
                read_all(recording, config, number)
                clients, answered = start_clients(
                    pool,
                    recording,
                    config,
                    clients=CLIENTS,
                    requests=ENDLESS if killed else last,
                    seed=f"{seed}/{number}",
                    keys=KEYS,
                )
                wait_for_answers(answered, answers if killed else 0, clients)
                if not killed:
                    finish(clients)
                    read_all(recording, config, number)
            finish(clients)
            recording.end_round()
    return recording


def read_all(recording, config, number):
    with Connection(config) as connection:
        Client(recording, config, CLIENTS, number, KEYS).read_all(connection)


def wait_for_answers(answered, number, clients):
    for _ in range(number):
        while not answered.acquire(timeout=60):
            finish(one for one in clients if one.done())  # raises the exception of a client


def finish(clients):
    for client in clients:
        client.result(60)


def check(recording):
    """Return the violations in the history, as text."""
    assert not [str(one) for one in violations(recording.history)]
    assert not version_problems(recording.history)
    assert not listing_problems(recording.listings, recording.history)


def expect_contention(recording):
    """Check that the history is significant: requests were concurrent, and some had no response."""
    answers = Counter(one.answer and one.answer.outcome for one in recording.history)
    assert min(answers[said] for said in (CONFLICT, EXISTS, NOT_FOUND, None)) > 0, answers
    by_call = sorted(recording.history, key=lambda one: one.called)
    met = sum(one.returned > two.called and one.key == two.key for one, two in pairwise(by_call))
    assert met > len(by_call) / 50


@pytest.mark.long
def test_histories_of_concurrent_clients_are_linearizable_across_a_kill_9(tmp_path):
    recording = recorded(tmp_path / "home", seed=1, kills=1, answers=300, last=40)
    expect_contention(recording)
    check(recording)


@pytest.mark.long
def test_histories_of_concurrent_clients_are_linearizable_across_many_kills(tmp_path):
    recording = recorded(tmp_path / "home", seed=2, kills=10, answers=500, last=100)
    expect_contention(recording)
    check(recording)
