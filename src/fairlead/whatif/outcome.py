"""Outcome: what came of one run, as values; nothing in it depends on how long the run took.

Pods are spoken of under their original's name: a pod that replaces an evicted one bears that
one's name here, so that a move is seen as a move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.engine.core.instant import DurationNs, Instant, to_seconds
from fairlead.whatif.jobs import NO_JOBS, JobsOutcome
from fairlead.whatif.outage_outcome import DrainTurn, OutageOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEnd:
    """A pod that exists when the run ends.

    `node` is "" while it waits; `reason` says why it does, `since` from when on. `started_at` is
    when it began to run, None when it does not. `requests` are cpu in milli, all else in units.
    """

    namespace: str
    name: str
    node: str = ""
    phase: str = ""
    priority: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    since: Instant = 0
    started_at: Instant | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_completed(self) -> bool:
        """Whether it ran to its end."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_placed(self) -> bool:
        """Whether it has a node, and is not over."""
        return self.node != "" and not self.is_completed

    @property
    def is_pending(self) -> bool:
        """Whether it waits for a node."""
        return self.node == "" and not self.is_completed


@dataclass(frozen=True, slots=True, kw_only=True)
class Displaced:
    """Which pod had to leave which node, and when."""

    pod: PodEnd
    node: str
    at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempted(Displaced):
    """`by` is the preemptor; `rule` chose the node among `candidates`."""

    by: str
    by_priority: int
    rule: str
    candidates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted(Displaced):
    """`why` is the controller's reason; `tolerated_s` for how long the pod tolerated a taint."""

    why: str
    tolerated_s: int | None = None

    @property
    def reason(self) -> str:
        """Both in one, for people."""
        if self.tolerated_s is None:
            return self.why
        return f"{self.why} ({self.tolerated_s} s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PdbBreach:
    """A pod was displaced although its PodDisruptionBudget allowed no disruption."""

    pdb: str
    pod: str
    by: str
    at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEnd:
    """A node at the end, with the pods on it."""

    name: str
    zone: str
    unschedulable: bool
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    pods: tuple[PodEnd, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """One resource over all nodes: offered, asked for at the start and at the end."""

    resource: str
    allocatable: int
    requested_before: int
    requested: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Undrained:
    """A pod whose eviction is asked for and was refused to the end, and why."""

    pod: PodEnd
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A scripted event that found nothing to act on, and why."""

    what: str
    at: Instant
    why: str


@dataclass(frozen=True, slots=True)
class Complaint:
    """What first kept a controller from creating what it should, in its event's words."""

    subject: str
    message: str


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Something that goes round in circles: `kind` is "cycle", "starving" or "wasted"."""

    kind: str
    message: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Sample:
    """Counts of one priority from an instant on; displacements are counted from the start."""

    at: Instant
    priority: int
    pending: int
    running: int
    preempted: int
    evicted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All of it; pods by their key, everything else in order of time, then name.

    `outage` is None where no node went quiet, `drains` are those in turn.
    """

    started_at: Instant
    ended_at: Instant
    settled: bool
    pods: Mapping[str, PodEnd]
    preempted: tuple[Preempted, ...]
    evicted: tuple[Evicted, ...]
    pdb_breaches: tuple[PdbBreach, ...]
    undrained: tuple[Undrained, ...]
    skipped: tuple[Skipped, ...]
    complaints: tuple[Complaint, ...]
    recurrences: tuple[Recurrence, ...]
    nodes: tuple[NodeEnd, ...]
    allocations: tuple[Allocation, ...]
    priority_names: Mapping[int, str]
    samples: tuple[Sample, ...]
    choices_among_equals: int
    jobs: JobsOutcome = NO_JOBS
    outage: OutageOutcome | None = None
    drains: tuple[DrainTurn, ...] = ()

    @property
    def virtual_seconds(self) -> float:
        """How long the run was, in its own time."""
        return to_seconds(self.ended_at - self.started_at)

    @property
    def node_names(self) -> frozenset[str]:
        """The nodes that exist at the end, and "" for no node."""
        return frozenset(["", *(node.name for node in self.nodes)])

    def after_start(self, instant: Instant) -> DurationNs:
        """How long after the start `instant` is."""
        return instant - self.started_at

    def placed(self) -> list[PodEnd]:
        """The pods that have a node, by name."""
        return [pod for pod in self.pods.values() if pod.is_placed]

    def pending(self) -> list[PodEnd]:
        """The pods that wait for one, by name."""
        return [pod for pod in self.pods.values() if pod.is_pending]
