"""ReportData: everything that the HTML report shows, as plain dictionaries.

Quantities are integers in base units: CPU in thousandths of a core, memory and storage in bytes,
all other resources as Kubernetes counts them. Times are seconds of virtual time since the start of
the run. Pods are written `namespace/name`. Only `kind` and `title` are required: the page shows
missing parts as "none".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, Required, TypedDict

from fairlead.api.json import Json
from fairlead.whatif.report.autoscaling_section import AutoscalingSection
from fairlead.whatif.report.next_step_row import NextStepRow
from fairlead.whatif.report.outage_section import DrainRow, OutageSection
from fairlead.whatif.report.queue_section import QueueSection, WaitingGroupRow

PodRow = tuple[str, int, Mapping[str, int]]
"""A pod on a node: name, priority, requests by resource."""


class Summary(TypedDict, total=False):
    """The key figures: numbers of pods, unless the field name says otherwise (such as `nodes`)."""

    nodes: int
    pods: int
    placed: int
    pending: int
    preempted: int
    evicted: int
    completed: int
    choices_among_equals: int


class ResourceRow(TypedDict):
    """The total of one resource on the nodes that are ready and not cordoned.

    `unit` is "milli" (shown divided by 1,000), "bytes" or "" (a count). `before` and
    `allocatable_before` are the amounts requested and allocatable in the run without the change.
    """

    name: str
    unit: str
    allocatable: int
    requested: int
    before: NotRequired[int]
    allocatable_before: NotRequired[int]


class PriorityName(TypedDict):
    """The display name of a priority, usually its PriorityClass."""

    priority: int
    name: str


class Series(TypedDict, total=False):
    """The counts of pods of one priority, one value for each time in `Timeline.t_s`.

    `preempted` and `evicted` are running totals. The `running` pods have a node that works, and the
    `down` pods have a node that does not work.
    """

    priority: Required[int]
    pending: Sequence[int]
    running: Sequence[int]
    down: Sequence[int]
    preempted: Sequence[int]
    evicted: Sequence[int]


class Timeline(TypedDict):
    """Time series of pod counts. `t_s` is ascending; a count holds until the next time."""

    t_s: Sequence[float]
    series: Sequence[Series]


class NodeRow(TypedDict, total=False):
    """A node at the end of the run with its pods; `zone` is "" if the node has no zone."""

    name: Required[str]
    zone: str
    labels: Mapping[str, str]
    unschedulable: bool
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    pods: Sequence[PodRow]


class PreemptionRow(TypedDict, total=False):
    """One victim of a preemption, with the rule that chose the node among `candidates` nodes.

    `to` is the victim's node at the end of the run. If the victim has no node, `to` is a word that
    says why, such as `pending`.
    """

    t_s: float
    victim: Required[str]
    victim_priority: int
    node: str
    to: str
    by: str
    by_priority: int
    rule: str
    candidates: int


class EvictionRow(TypedDict, total=False):
    """A pod evicted from `node`, with the reason.

    `to` is the pod's node at the end of the run. If the pod has no node, `to` is a word that says
    why, such as `pending`.
    """

    t_s: float
    pod: Required[str]
    node: str
    to: str
    why: str


class PendingRow(TypedDict, total=False):
    """A pod that waits at the end: the start of its wait, and its last FailedScheduling message."""

    pod: Required[str]
    priority: int
    since_s: float
    reason: str


class PlacementRow(TypedDict):
    """The arrival of a pod on `node`, or the end of the pod on `node`.

    If `arrives` is False, the pod completed or was deleted.
    """

    t_s: float
    node: str
    pod: PodRow
    arrives: bool


class NodeStatusRow(TypedDict):
    """The state of `node` from `t_s` until its next row.

    `serving` means that the node is Ready and its kubelet runs.
    """

    t_s: float
    node: str
    exists: bool
    serving: bool
    unschedulable: bool


class HistoryRows(TypedDict, total=False):
    """The changes over time of the nodes and of the pods on them, ordered by time.

    The fields are those of `ClusterHistory`.
    """

    placements: Sequence[PlacementRow]
    statuses: Sequence[NodeStatusRow]
    deleted: Sequence[NodeRow]
    out_of_service: Sequence[str]


MovedRow = TypedDict("MovedRow", {"pod": str, "from": str, "to": str, "how": str})
"""A pod that runs on a different node than in the run without the change.

`how` is `displaced`, or `Move.how`.
"""


class PdbBreachRow(TypedDict, total=False):
    """A disruption that a PodDisruptionBudget did not allow; `by` names its cause."""

    pdb: Required[str]
    t_s: float
    pod: str
    by: str


class ReportData(TypedDict, total=False):
    """Everything that the page shows.

    The field `verdict` and all fields below it are as in the JSON of the result (docs/json.md),
    unless a comment says otherwise.
    """

    kind: Required[Literal["simulate", "whatif", "live"]]
    title: Required[str]
    subtitle: str
    seed: int
    started_at: str  # the instant of virtual second 0, as text
    virtual_seconds: float
    wall_seconds: float
    # `Difference.recovered_after`; absent or None if it is unknown.
    all_running_after_s: float | None
    summary: Summary
    summary_before: Summary  # only a what-if: the key figures of the run without the change
    resources: Sequence[ResourceRow]
    priorities: Sequence[PriorityName]
    timeline: Timeline
    nodes: Sequence[NodeRow]
    # Only a what-if: the nodes at the end of the run without the change.
    nodes_before: Sequence[NodeRow]
    history: HistoryRows | None  # None if the history was too large to keep
    history_before: HistoryRows | None  # None if that history was too large to keep
    owners: Mapping[str, str]  # {pod in one of the lists: its workload}
    preemptions: Sequence[PreemptionRow]
    evictions: Sequence[EvictionRow]
    pending: Sequence[PendingRow]
    moved: Sequence[MovedRow]
    returned: Sequence[Json]
    pdb_breaches: Sequence[PdbBreachRow]
    queues: QueueSection | None
    waiting_groups: Sequence[WaitingGroupRow]
    outage: OutageSection | None  # absent or None if no node failed
    autoscaling: AutoscalingSection | None  # absent or None if no autoscaler acted
    node_cost: str  # `WhatIfAnswer.node_cost`
    drains: Sequence[DrainRow]  # the rolling drains
    verdict: Sequence[Json]
    rest_after_s: float | None  # the time at which the cluster was at rest
    untouched_workloads: int
    group_by: str
    under_way: Sequence[Json]
    workloads: Sequence[Json]
    node_pools: Sequence[Json]
    budgets: Sequence[Json]
    fail_on: Sequence[Json]
    packing: Sequence[Json]
    certainty: Sequence[Json]
    start_times: Sequence[Json]
    drain_refused: Sequence[Json]
    drain_flags: Sequence[Json]
    undrained: Sequence[Json]
    waited: Sequence[Json]
    # The waits of pods for a node, by workload. Empty if an autoscaler acted, because `autoscaling`
    # has the waits then. Also empty if no pod waited long (`RunOutcome.has_long_waits`). A what-if
    # has no `waits`.
    waits: Sequence[Json]
    gone: Sequence[Json]
    not_created: Sequence[Json]
    placed: Sequence[Json]
    completed: Sequence[Json]
    updated: Sequence[Json]
    removed: Sequence[Json]
    deleted_claims: Sequence[Json]
    refused_workloads: Sequence[Json]
    skipped: Sequence[Json]
    errors: Sequence[Json]
    recurrences: Sequence[Json]
    notes: Sequence[str]
    next_steps: Sequence[NextStepRow]  # in addition, with links to parts of the report
    # Only on the page of a running cluster (`kind` "live"): the permanent workloads that have pods,
    # but none on a node in service.
    without_pods: Sequence[str]
    # Only on the page of a running cluster: the number of displaced pods that are gone or
    # terminating, and whose replacements have nodes.
    replaced: int
