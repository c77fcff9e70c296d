"""Histories of concurrent clients: their requests, the times, and the answers.

Instants are integers of one clock, in any unit: only their order counts. A request that was never
answered (the process was killed, or the client gave up) has no `answer`. It either took effect
before `returned`, when the process had certainly ended, or never.
"""

from __future__ import annotations

from dataclasses import dataclass

CREATE, READ, UPDATE, DELETE = "create", "read", "update", "delete"

OK, EXISTS, CONFLICT, NOT_FOUND = "ok", "exists", "conflict", "not found"


@dataclass(frozen=True, slots=True)
class Answer:
    """The response of the server.

    `version` is the object's resourceVersion after a write or at a read, and `value` is the value
    that a read returned. A deletion has neither.
    """

    outcome: str
    version: int | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One request for one key, from the instant of its sending to that of its response.

    `value` is what a create or update writes. `expected` is the resourceVersion that an update or
    deletion requires, None without a precondition.
    """

    client: int
    kind: str
    key: str
    called: int
    returned: int
    value: str | None = None
    expected: int | None = None
    answer: Answer | None = None

    def __str__(self) -> str:
        condition = "" if self.expected is None else f" if {self.expected}"
        answer = self.answer
        said = (
            "no answer" if answer is None else f"{answer.outcome} {answer.version} {answer.value}"
        )
        return (
            f"[{self.called}, {self.returned}] client {self.client}: "
            f"{self.kind} {self.key} {self.value}{condition} -> {said}"
        )


@dataclass(frozen=True, slots=True)
class Listing:
    """The result of one list: its resourceVersion, and the version of each listed key."""

    version: int
    items: dict[str, int]
