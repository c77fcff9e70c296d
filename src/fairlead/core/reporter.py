"""Reporter: the port through which every decision leaves a record.

Decision code reports facts as values; logging, metrics, explanation, reports and tests are
reporters. A reporter only listens: nothing it does may change a decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from fairlead.core.command import ObjectRef
from fairlead.core.instant import Instant


@dataclass(frozen=True, slots=True)
class PodPlaced:
    """A scheduling cycle chose `node`.

    `via` is "nominated", "single" or "score"; `feasible` counts the nodes that fit (1 where the
    others were not looked at), `equals` those among which the tie-break chose.
    """

    pod: ObjectRef
    node: str
    at: Instant
    via: str
    feasible: int
    equals: int


@dataclass(frozen=True, slots=True)
class PodUnschedulable:
    """A scheduling cycle found no node; `message` is the FailedScheduling text."""

    pod: ObjectRef
    at: Instant
    message: str
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodPreempting:
    """A preemptor chose `node` and gives up `victims` there.

    `rule` is the name of the ordered rule of pick_one_node that left one candidate ("only
    candidate" when there was just one), `equals` how many were left when no rule decided.
    """

    pod: ObjectRef
    node: str
    victims: tuple[ObjectRef, ...]
    pdb_violations: int
    rule: str
    candidates: int
    equals: int
    at: Instant


@dataclass(frozen=True, slots=True)
class PodEvicted:
    """A controller evicted a pod from `node` for the reason `why`."""

    pod: ObjectRef
    node: str
    why: str
    at: Instant


Record = PodPlaced | PodUnschedulable | PodPreempting | PodEvicted


class Reporter(Protocol):
    """Whoever wants to know."""

    def report(self, record: Record) -> None:
        """Take note of `record`."""
        ...


class SilentReporter:
    """Nobody wants to know."""

    def report(self, record: Record) -> None:
        """Forget `record`."""
