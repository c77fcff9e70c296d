"""Concurrent clients of a running `fairlead up`, which record their requests and the answers.

Each client draws its requests from a seed. How the requests of several clients interleave is up to
the machine, so that a violation is reported with the history that shows it.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random  # noqa: TID251 - random numbers from the test's seed
from time import perf_counter_ns

from tests.linearizability.history import (
    CONFLICT,
    CREATE,
    DELETE,
    EXISTS,
    NOT_FOUND,
    OK,
    READ,
    UPDATE,
    Answer,
    Listing,
    Operation,
)
from tests.up_process import BROKEN, Connection

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PREFIX = "key-"
KINDS = (READ, READ, CREATE, CREATE, UPDATE, UPDATE, UPDATE, UPDATE, DELETE)
LIST = "list"
PADDINGS = (0, 0, 0, 0, 0, 0, 200, 200, 2_000, 40_000)
"""Bytes beside the value; large bodies take another way through the server."""

_SUCCESSES = {200: OK, 201: OK, 404: NOT_FOUND}
_UNANSWERED = -1


@dataclass
class Recording:
    """The operations that the clients of all rounds recorded."""

    history: list[Operation] = field(default_factory=list)
    listings: list[Listing] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    """The last version of each key that a client was told, to insist on."""

    def end_round(self) -> None:
        """State that the process has ended: unanswered requests took effect before, or never."""
        now = perf_counter_ns()
        self.history = [
            replace(one, returned=now) if one.returned == _UNANSWERED else one
            for one in self.history
        ]


class Client:
    """One client with one connection at a time, and requests drawn from its seed."""

    def __init__(self, recording, config, number, seed, keys):
        self.recording = recording
        self.config = config
        self.number = number
        self.chance = Random(f"{seed}/{number}")
        self.name = f"{number}/{seed}"
        self.keys = [f"{PREFIX}{at}" for at in range(keys)]
        self.writes = 0

    def run(self, requests, answered):
        """Send `requests` requests, or until the process ends; `answered` counts the responses.

        After one request in forty, the client disconnects immediately, and connects again.
        """
        left = iter(range(requests))
        with suppress(*BROKEN):
            while True:
                with Connection(self.config) as connection:
                    for _ in left:
                        if self.chance.random() < 1 / 40:
                            self._hang_up(connection)
                            break
                        self._any_request(connection)
                        answered.release()
                    else:
                        return

    def read_all(self, connection):
        """Read each key and the list."""
        for key in self.keys:
            self._request(connection, self._operation(READ, key))
        self._list(connection)

    def _any_request(self, connection):
        kind = self.chance.choice((*KINDS, LIST))
        if kind == LIST:
            self._list(connection)
        else:
            self._request(connection, self._operation(kind, self.chance.choice(self.keys)))

    def _hang_up(self, connection):
        kind = self.chance.choice((CREATE, UPDATE, UPDATE, DELETE))
        operation = self._operation(kind, self.chance.choice(self.keys))
        self.recording.history.append(operation)
        connection.send(*self._request_parts(operation))

    def _operation(self, kind, key):
        """Return an operation whose call time is now."""
        value = expected = None
        if kind in (CREATE, UPDATE):
            self.writes += 1
            value = f"{self.name}/{self.writes}"
        if kind in (UPDATE, DELETE) and self.chance.random() < 0.7:
            expected = self.recording.known.get(key)
        return Operation(self.number, kind, key, perf_counter_ns(), _UNANSWERED, value, expected)

    def _request_parts(self, operation):
        """Return the method, path and body of an operation; an update is a PUT or a merge patch."""
        path = f"{CONFIG_MAPS}/{operation.key}"
        meta = {"name": operation.key}
        if operation.expected is not None:
            meta["resourceVersion"] = str(operation.expected)
        padding = "x" * self.chance.choice(PADDINGS)
        body = {"metadata": meta, "data": {"value": operation.value, "padding": padding}}
        match operation.kind:
            case "create":
                return "POST", CONFIG_MAPS, body
            case "update":
                return self.chance.choice(("PUT", "PATCH")), path, body
            case "delete":
                insisted = {"resourceVersion": str(operation.expected)}
                return "DELETE", path, {"preconditions": insisted} if operation.expected else None
            case _:
                return "GET", path, None

    def _request(self, connection, operation):
        history = self.recording.history
        try:
            status, body = connection.ask(*self._request_parts(operation))
        except BROKEN:
            history.append(operation)
            raise
        answer = _answer(operation, status, body)
        history.append(replace(operation, returned=perf_counter_ns(), answer=answer))
        if answer.version is not None:
            self.recording.known[operation.key] = answer.version

    def _list(self, connection):
        """Read all keys with one list; a list without a response is not recorded."""
        called = perf_counter_ns()
        status, body = connection.ask("GET", CONFIG_MAPS)
        returned = perf_counter_ns()
        assert status == 200, body
        items = {item["metadata"]["name"]: item for item in body["items"]}
        for key in self.keys:
            found = items.get(key)
            answer = Answer(NOT_FOUND) if found is None else _read(found)
            self.recording.history.append(
                Operation(self.number, READ, key, called, returned, answer=answer)
            )
        versions = {key: _version(items[key]) for key in self.keys if key in items}
        self.recording.listings.append(Listing(_version(body), versions))


def _answer(operation, status, body):
    if status == 409:
        return Answer(EXISTS if body["reason"] == "AlreadyExists" else CONFLICT)
    assert status in _SUCCESSES, body
    outcome = _SUCCESSES[status]
    if outcome != OK or operation.kind == DELETE:
        return Answer(outcome)
    return _read(body) if operation.kind == READ else Answer(OK, _version(body))


def _read(obj):
    return Answer(OK, _version(obj), obj["data"]["value"])


def _version(obj):
    return int(obj["metadata"]["resourceVersion"])


def start_clients(pool, recording, config, *, clients, requests, seed, keys):
    """Start clients in threads of `pool`; return their futures and a semaphore of responses."""
    answered = threading.Semaphore(0)
    made = [Client(recording, config, number, seed, keys) for number in range(clients)]
    return [pool.submit(one.run, requests, answered) for one in made], answered
