"""Decides whether a history is linearizable: whether a single store could have given its answers.

A history is linearizable if each operation can be given one instant between its call and its
return such that a store that performs the operations at these instants, one at a time, gives the
same answers (Herlihy and Wing, "Linearizability", 1990). The store here is a map from keys to
objects with a value and a version; keys do not influence each other, so that each key is checked
alone (their theorem 1, locality). What keys share, the counter of versions, is checked by
`version_problems`.

The search is that of Wing and Gong ("Testing and verifying concurrent objects", 1993). Take any
operation that was called before every unordered operation returned: it may be next. Ask the model
whether its answer fits the current state; if so, go on from the next state, and otherwise, or when
this leads nowhere, try another. As Lowe ("Testing for linearizability", 2017) adds, the pair of
(operations ordered so far, state) is remembered: reached again in another order, it cannot lead
anywhere new. An operation without an answer may be next as well, but does not have to be in the
order at all.

Example, of one key with clients A and B::

    A: |--- create x -> ok 7 ---|
    B:        |--- read -> not found ---|
    B:                                    |--- read -> ok 7 x ---|

The first read was called before the create returned, so that it may be ordered before it:
`read, create, read` explains the history. If the first read had been called after the create
returned, no order would: it would be stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from tests.linearizability.history import (
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


@dataclass(frozen=True, slots=True)
class Register:
    """The state of one key: its value (None: no object), and the version of the last write.

    A write without an answer has a version that is not known yet: it is above `version`, and
    `exact` is False until an operation tells which one it is.
    """

    value: str | None = None
    version: int = 0
    exact: bool = True

    def is_at(self, version: int | None) -> bool:
        """Return whether the object may have this version."""
        if version is None:
            return True
        return version == self.version if self.exact else version > self.version


def next_states(state: Register, operation: Operation) -> Iterator[Register]:
    """Yield the state after `operation` in `state`; none if its answer cannot come from there."""
    answer = operation.answer
    if answer is None:
        yield from _written(state, operation, Answer(OK))
    elif answer.outcome != OK:
        if _is_refused(state, operation, answer.outcome):
            yield state
    elif operation.kind != READ:
        yield from _written(state, operation, answer)
    elif answer.value is not None and answer.value == state.value and state.is_at(answer.version):
        yield Register(state.value, answer.version or 0)


def _is_refused(state: Register, operation: Operation, outcome: str) -> bool:
    """Return whether `operation` may end with this refusal in `state`, which stays the same."""
    if outcome == NOT_FOUND:
        return state.value is None and operation.kind != CREATE
    if state.value is None:
        return False
    if outcome == EXISTS:
        return operation.kind == CREATE
    expected = operation.expected
    return expected is not None and not (state.exact and state.version == expected)


def _written(state: Register, operation: Operation, answer: Answer) -> Iterator[Register]:
    """Yield the state after a write that succeeded with `answer`."""
    if operation.kind == CREATE:
        possible = state.value is None
    else:
        possible = state.value is not None and state.is_at(operation.expected)
    if not possible or operation.kind == READ:
        return
    least = state.version if operation.expected is None else max(state.version, operation.expected)
    value = None if operation.kind == DELETE else operation.value
    if answer.version is None:
        yield Register(value, least, exact=False)
    elif answer.version > least:
        yield Register(value, answer.version)


@dataclass(frozen=True, slots=True)
class Violation:
    """A key whose operations no order explains, with the best that was found.

    `ordered` is the longest explained order, `state` the state after it, and `stuck` are the
    operations that might have been next, none of which the state can answer as recorded.
    """

    key: str
    ordered: tuple[Operation, ...]
    state: Register
    stuck: tuple[Operation, ...]

    def __str__(self) -> str:
        last = "\n".join(f"  {one}" for one in self.ordered[-8:])
        stuck = "\n".join(f"  {one}" for one in self.stuck)
        return (
            f"{self.key}: after\n{last}\nit is {self.state}, from which nothing explains\n{stuck}"
        )


def violations(history: Sequence[Operation]) -> list[Violation]:
    """Return one violation for each key that is not linearizable."""
    by_key = sorted(history, key=attrgetter("key"))
    found = (_violation(key, list(ones)) for key, ones in groupby(by_key, attrgetter("key")))
    return [one for one in found if one is not None]


def _violation(key: str, operations: list[Operation]) -> Violation | None:
    """Search for an order of the operations of one key, depth first; None if there is one.

    `path` is the order so far. Invariant: `ordered` has a bit for each operation in it, and
    `choices[i]` are the ways on from the state after the first i of them that are untried.
    """
    operations = sorted(operations, key=attrgetter("called"))
    must = sum(1 << at for at, one in enumerate(operations) if one.answer is not None)
    state, ordered = Register(), 0
    seen = {(ordered, state)}
    path: list[tuple[int, Register]] = []
    choices = [_choices(operations, ordered, state)]
    longest: list[tuple[int, Register]] = []
    while ordered & must != must:
        step = next(choices[-1], None)
        if step is None:
            choices.pop()
            if not path:
                return _described(key, operations, longest)
            at, _ = path.pop()
            ordered ^= 1 << at
            continue
        at, state = step
        if (ordered | 1 << at, state) in seen:
            continue
        ordered |= 1 << at
        seen.add((ordered, state))
        path.append(step)
        if len(path) > len(longest):
            longest = list(path)
        choices.append(_choices(operations, ordered, state))
    return None


def _choices(
    operations: Sequence[Operation], ordered: int, state: Register
) -> Iterator[tuple[int, Register]]:
    """Yield each operation that may be next, as its place, with a state after it.

    Operations without an answer come last: most histories need few of them.
    """
    may = _next_places(operations, ordered)
    for at in sorted(may, key=lambda at: operations[at].answer is None):
        for after in next_states(state, operations[at]):
            yield at, after


def _next_places(operations: Sequence[Operation], ordered: int) -> list[int]:
    """Return the indexes of the unordered operations called before any unordered one returned.

    An operation without an answer does not limit the operations after it, because it may never
    have happened. But it cannot happen after its return.
    """
    found: list[int] = []
    first_return: int | None = None
    # Places are in the order of calls, so the last bit is the operation that was called last.
    latest = operations[ordered.bit_length() - 1].called if ordered else 0
    at = ((~ordered) & (ordered + 1)).bit_length() - 1  # the first that is not ordered
    while at < len(operations):
        one = operations[at]
        if first_return is not None and one.called > first_return:
            break
        if not ordered >> at & 1 and (one.answer is not None or one.returned >= latest):
            found.append(at)
            if one.answer is not None:
                first_return = min(one.returned, first_return or one.returned)
        at += 1
    return found


def _described(
    key: str, operations: Sequence[Operation], longest: Sequence[tuple[int, Register]]
) -> Violation:
    ordered = sum(1 << at for at, _ in longest)
    return Violation(
        key,
        tuple(operations[at] for at, _ in longest),
        longest[-1][1] if longest else Register(),
        tuple(operations[at] for at in _next_places(operations, ordered)),
    )


def version_problems(history: Sequence[Operation]) -> list[str]:
    """Return the violations by the versions of all keys together.

    The store has one counter: no two writes have the same version, and a write that was called
    after another one was answered has the higher version.
    """
    writes = _acknowledged(history)
    versions = [_version(one) for one in writes]
    found = [f"{one} was given twice" for one in sorted(set(versions)) if versions.count(one) > 1]
    answered = sorted(writes, key=attrgetter("returned"))
    highest, at = 0, 0
    for one in sorted(writes, key=attrgetter("called")):
        while at < len(answered) and answered[at].returned < one.called:
            highest = max(highest, _version(answered[at]))
            at += 1
        if _version(one) <= highest:
            found.append(f"{one} comes after version {highest}")
    return found


def listing_problems(listings: Sequence[Listing], history: Sequence[Operation]) -> list[str]:
    """Return the violations by lists: each must show all keys at its stated version."""
    writes = _acknowledged(history)
    found: list[str] = []
    for listing in listings:
        found += [
            f"{key} of {version} in a list of {listing.version}"
            for key, version in listing.items.items()
            if version > listing.version
        ]
        found += [
            f"{one} is missing in a list of {listing.version}"
            for one in writes
            if listing.items.get(one.key, listing.version) < _version(one) <= listing.version
        ]
    return found


def _acknowledged(history: Sequence[Operation]) -> list[Operation]:
    """Return the writes that were answered with the version that they wrote."""
    writes = (one for one in history if one.kind in (CREATE, UPDATE))
    return [one for one in writes if one.answer is not None and one.answer.version is not None]


def _version(operation: Operation) -> int:
    assert operation.answer is not None
    return operation.answer.version or 0
