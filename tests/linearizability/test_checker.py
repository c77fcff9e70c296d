"""The checker accepts the answers of a correct store, and finds each kind of wrong answer."""

from __future__ import annotations

from random import Random  # noqa: TID251 - random numbers from the test's seed

import pytest
from tests.linearizability.checker import listing_problems, version_problems, violations
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

NEVER = 1_000


def op(called, returned, kind, value=None, expected=None, answer=None):
    """Return an operation on the key `k`; `answer` is an outcome, or (outcome, version, value)."""
    said = Answer(*((answer,) if isinstance(answer, str) else answer)) if answer else None
    return Operation(1, kind, "k", called, returned, value, expected, said)


MADE = op(0, 1, CREATE, "a", answer=(OK, 5))


def sees(called, returned, value, version):
    return op(called, returned, READ, answer=(OK, version, value))


GOOD = {
    "a read during a write sees the old value": (
        MADE,
        op(2, 9, UPDATE, "b", 5, (OK, 6)),
        sees(3, 4, "a", 5),
        sees(5, 8, "b", 6),
    ),
    "an update that was never answered has happened": (
        MADE,
        op(2, 4, UPDATE, "b", 5),
        sees(5, 6, "b", 9),
    ),
    "an update that was never answered has not happened": (
        MADE,
        op(2, 4, UPDATE, "b", 5),
        sees(5, 6, "a", 5),
    ),
    "a deletion that was never answered comes between two reads": (
        MADE,
        op(2, 9, DELETE),
        sees(3, 4, "a", 5),
        op(5, 6, READ, answer=NOT_FOUND),
    ),
    "two creations: one succeeds": (
        op(0, 9, CREATE, "a", answer=(OK, 5)),
        op(1, 8, CREATE, "b", answer=EXISTS),
    ),
    "of two updates of one version one succeeds": (
        MADE,
        op(2, 9, UPDATE, "b", 5, (OK, 6)),
        op(2, 9, UPDATE, "c", 5, CONFLICT),
    ),
    "an object made again has a higher version": (
        MADE,
        op(2, 3, DELETE, answer=OK),
        op(4, 5, UPDATE, "b", answer=NOT_FOUND),
        op(6, 7, CREATE, "c", answer=(OK, 8)),
    ),
    "an update succeeds on a version whose own write was never answered": (
        MADE,
        op(2, 3, UPDATE, "b"),
        op(4, 5, UPDATE, "c", 7, (OK, 8)),
    ),
}

BAD = {
    "an acknowledged creation is lost": (MADE, op(2, 3, READ, answer=NOT_FOUND)),
    "an acknowledged update is lost": (
        MADE,
        op(2, 3, UPDATE, "b", 5, (OK, 6)),
        op(4, 5, UPDATE, "c", 5, (OK, 7)),
    ),
    "a read is stale": (MADE, op(2, 3, UPDATE, "b", answer=(OK, 6)), sees(4, 5, "a", 5)),
    "reads go back": (
        MADE,
        op(2, 9, UPDATE, "b", answer=(OK, 6)),
        sees(3, 4, "b", 6),
        sees(5, 6, "a", 5),
    ),
    "an update that was never answered happens and is undone": (
        MADE,
        op(2, 4, UPDATE, "b"),
        sees(5, 6, "b", 6),
        sees(7, 8, "a", 5),
    ),
    "an update happens after the process has ended": (
        MADE,
        op(2, 4, UPDATE, "b"),
        sees(5, 6, "a", 5),
        sees(7, 8, "b", 6),
    ),
    "a deleted object is there again": (MADE, op(2, 3, DELETE, answer=OK), sees(4, 5, "a", 5)),
    "two updates of one version succeed": (
        MADE,
        op(2, 9, UPDATE, "b", 5, (OK, 6)),
        op(2, 9, UPDATE, "c", 5, (OK, 7)),
    ),
    "two creations succeed": (
        op(0, 9, CREATE, "a", answer=(OK, 5)),
        op(0, 9, CREATE, "b", answer=(OK, 6)),
    ),
    "an update of the current version is refused": (MADE, op(2, 3, UPDATE, "b", 5, CONFLICT)),
    "an update that insists on nothing is refused": (
        MADE,
        op(2, 3, UPDATE, "b", answer=CONFLICT),
    ),
    "a creation is refused although there is nothing": (op(0, 1, CREATE, "a", answer=EXISTS),),
    "an object made again has the version of its predecessor": (
        MADE,
        op(2, 3, DELETE, answer=OK),
        op(4, 5, CREATE, "b", answer=(OK, 5)),
    ),
    "a read finds a value that was never written": (MADE, sees(2, 3, "z", 5)),
    "a deletion of another version succeeds": (MADE, op(2, 3, DELETE, None, 4, OK)),
}


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD.keys())
def test_a_history_with_a_valid_order_is_linearizable(history):
    assert not violations(history)


@pytest.mark.parametrize("history", BAD.values(), ids=BAD.keys())
def test_a_history_without_a_valid_order_is_not_linearizable(history):
    (found,) = violations(history)
    assert found.key == "k"
    assert found.stuck
    assert str(found.stuck[-1]) in str(found)


def test_all_resource_versions_come_from_one_counter():
    other = Operation(2, CREATE, "other", 2, 3, "x", None, Answer(OK, 4))
    assert version_problems([MADE, other]) == [f"{other} comes after version 5"]
    twice = Operation(2, CREATE, "other", 0, 3, "x", None, Answer(OK, 5))
    assert version_problems([MADE, twice]) == ["5 was given twice"]


def test_a_list_shows_the_objects_of_one_instant():
    changed = op(2, 3, UPDATE, "b", answer=(OK, 6))
    history = [MADE, changed]
    assert not listing_problems([Listing(5, {"k": 5}), Listing(6, {"k": 6})], history)
    assert listing_problems([Listing(5, {"k": 6})], history) == ["k of 6 in a list of 5"]
    missing = f"{changed} is missing in a list of 7"
    assert listing_problems([Listing(7, {"k": 5})], history) == [missing]


class Store:
    """A correct store, or one in which `defect` makes some writes or reads wrong."""

    def __init__(self, chance, defect=""):
        self.chance = chance
        self.defect = defect
        self.version = 0
        self.objects = {}
        self.old = {}

    def perform(self, kind, key, value, expected):
        there = self.objects.get(key)
        if kind == READ:
            if self.defect == "stale" and key in self.old and self.chance.random() < 0.2:
                return Answer(OK, *self.old[key])
            return Answer(OK, *there) if there else Answer(NOT_FOUND)
        if kind == CREATE and there:
            return Answer(EXISTS)
        if kind != CREATE and not there:
            return Answer(NOT_FOUND)
        if there and expected not in (None, there[0]):
            return Answer(CONFLICT)
        self.version += 1
        if there:
            self.old[key] = there
        if self.defect == "lost" and self.chance.random() < 0.1:
            return Answer(OK, None if kind == DELETE else self.version)
        if kind == DELETE:
            del self.objects[key]
            return Answer(OK)
        self.objects[key] = (self.version, value)
        return Answer(OK, self.version)


def recorded(seed, defect="", operations=400, clients=5):
    """Return the history of random clients of a store, which acts between call and return."""
    chance = Random(seed)
    store, history = Store(chance, defect), []
    busy = {}
    now = 0
    while len(history) < operations:
        now += 1
        client = chance.randrange(clients)
        if client not in busy:
            kind = chance.choice((CREATE, READ, READ, UPDATE, UPDATE, UPDATE, DELETE))
            key, expected = chance.choice("xyz"), None
            if kind in (UPDATE, DELETE) and chance.random() < 0.7:
                expected = store.objects.get(key, (store.version,))[0]
            busy[client] = [kind, key, f"{client}-{now}", expected, now, None]
            continue
        kind, key, value, expected, called, answer = busy[client]
        lost = chance.random() < 0.05
        if answer is None and not (lost and chance.random() < 0.5):
            answer = busy[client][5] = store.perform(kind, key, value, expected)
            if not lost:
                continue
        del busy[client]
        said = None if lost else answer
        history.append(Operation(client, kind, key, called, now, value, expected, said))
    return history


@pytest.mark.parametrize("seed", range(5))
def test_a_correct_store_is_linearizable(seed):
    history = recorded(seed)
    assert not violations(history)
    assert not version_problems(history)


@pytest.mark.parametrize("defect", ["stale", "lost"])
def test_a_store_with_a_defect_is_not_linearizable(defect):
    assert all(violations(recorded(seed, defect)) for seed in range(3))
