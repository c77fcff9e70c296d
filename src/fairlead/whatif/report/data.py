"""What a report is made of, as plain dictionaries.

Quantities are integers in base units: cpu in thousandths of a core, memory and storage in bytes,
everything else as Kubernetes counts it. Times are seconds of virtual time since the start of the
run. Pods are written `namespace/name`. Only `kind` and `title` must be there: what is absent is
shown as "none", never as an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, Required, TypedDict

from fairlead.whatif.report.outage_data import Outage, TurnTaken

Pod = tuple[str, int, Mapping[str, int]]
"""A pod on a node: name, priority, requests by resource."""


class Summary(TypedDict, total=False):
    """The key figures, in pods unless the name says otherwise."""

    nodes: int
    pods: int
    placed: int
    pending: int
    preempted: int
    evicted: int
    completed: int
    choices_among_equals: int


class Resource(TypedDict):
    """The cluster's total of one resource.

    `unit` is "milli" (shown divided by 1,000), "bytes" or "" (a count); `before` is what was
    requested in the run without the change.
    """

    name: str
    unit: str
    allocatable: int
    requested: int
    before: NotRequired[int]


class PriorityName(TypedDict):
    """What to call a priority, usually its PriorityClass."""

    priority: int
    name: str


class Series(TypedDict, total=False):
    """One priority's counts at `Timeline.t_s`; `preempted` and `evicted` count up from zero."""

    priority: Required[int]
    pending: Sequence[int]
    running: Sequence[int]
    preempted: Sequence[int]
    evicted: Sequence[int]


class Timeline(TypedDict):
    """Counts over virtual time; a value holds until the next sample. `t_s` ascends."""

    t_s: Sequence[float]
    series: Sequence[Series]


class Node(TypedDict, total=False):
    """A node at the end of the run with the pods then on it; `zone` is "" where it has none."""

    name: Required[str]
    zone: str
    unschedulable: bool
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    pods: Sequence[Pod]


class Preemption(TypedDict, total=False):
    """One victim of a preemption, with the rule that chose the node among `candidates` nodes."""

    t_s: float
    victim: Required[str]
    victim_priority: int
    node: str
    by: str
    by_priority: int
    rule: str
    candidates: int


class Eviction(TypedDict, total=False):
    """A pod evicted from `node`, and why."""

    t_s: float
    pod: Required[str]
    node: str
    why: str


class PendingPod(TypedDict, total=False):
    """A pod waiting at the end: since when, and the last FailedScheduling message."""

    pod: Required[str]
    priority: int
    since_s: float
    reason: str


Moved = TypedDict("Moved", {"pod": str, "from": str, "to": str})
"""A pod that runs elsewhere than in the run without the change."""


class PdbBreach(TypedDict, total=False):
    """A disruption that a PodDisruptionBudget did not allow; `by` is who caused it."""

    pdb: Required[str]
    t_s: float
    pod: str
    by: str


class QueueLine(TypedDict):
    """One queue's part of the cluster at `QueueData.t_s`, and what it deserves, in percent."""

    queue: str
    weight: int
    held: Sequence[float]
    deserved: Sequence[float]


class QueueData(TypedDict, total=False):
    """The queues of whole jobs over virtual time; a value holds until the next.

    `resource` is the one of which there is least for all. `gangs` are figures of whole jobs.
    """

    resource: Required[str]
    t_s: Required[Sequence[float]]
    lines: Required[Sequence[QueueLine]]
    gangs: Mapping[str, float]


class WaitingGroup(TypedDict, total=False):
    """A group that waits at the end; `starts_s` is when it may start, None if nobody knows."""

    group: Required[str]
    queue: str
    ready: str
    why: str
    starts_s: float | None


class ReportData(TypedDict, total=False):
    """Everything the page shows.

    `summary_before` holds the key figures of the run without the change (what-if only);
    `started_at` is the instant of virtual second 0, as text; `all_running_after_s` is when the
    last displaced pod ran again, absent or None while one still waits. `outage` is absent or None
    where no node went quiet, `drains` are those in turn.
    """

    kind: Required[Literal["simulate", "whatif"]]
    title: Required[str]
    subtitle: str
    seed: int
    started_at: str
    virtual_seconds: float
    wall_seconds: float
    all_running_after_s: float | None
    summary: Summary
    summary_before: Summary
    resources: Sequence[Resource]
    priorities: Sequence[PriorityName]
    timeline: Timeline
    nodes: Sequence[Node]
    preemptions: Sequence[Preemption]
    evictions: Sequence[Eviction]
    pending: Sequence[PendingPod]
    moved: Sequence[Moved]
    pdb_breaches: Sequence[PdbBreach]
    queues: QueueData | None
    waiting_groups: Sequence[WaitingGroup]
    outage: Outage | None
    drains: Sequence[TurnTaken]
