"""The properties that must hold in every run, and the error for a run that breaks one of them."""

from __future__ import annotations

from enum import StrEnum


class Law(StrEnum):
    """A property that is checked; the value is a sentence that states it."""

    NO_CRASH = "no controller raises an exception"
    NO_LIVELOCK = "the number of commands at one instant is limited"
    ROOM = "no node is over-committed by a scheduler"
    BOUND_ONCE = "no pod is bound twice"
    LOWER_VICTIM = "no victim has the priority of its preemptor or a higher one"
    WHOLE_GANG = "no session leaves a gang partly bound"
    TOLERATION = "no pod is evicted before its tolerations expire"
    ZONE_RATE = "no zone loses nodes faster than its eviction rate"
    REASON = "every refusal has a reason"
    STATE = "the engine's incremental state equals the state computed anew"
    HISTORY = "stored objects change only in legal ways"
    ADMITTED = "no pod of a controller bypasses a required webhook"
    NODE_BUDGET = "no NodePool loses more nodes at once than its budgets allow"
    DO_NOT_DISRUPT = "no protected pod is disrupted"
    POOL_LIMIT = "no NodePool grows past its limits"
    QUOTA = "no quota is exceeded by an accepted pod"
    SETTLES = "a cluster without faults settles"
    RUNS = "every pod that can run is bound"
    NOT_STUCK = "no object is stuck"
    DETERMINISM = "the same seed gives the same commands"


class LawBrokenError(Exception):
    """Raised if a law does not hold; `message` contains the evidence."""

    def __init__(self, law: Law, message: str) -> None:
        super().__init__(f"{law}: {message}")
        self.law = law
        self.message = message
