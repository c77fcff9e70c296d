"""The extension points, as small Protocols (kube-scheduler/framework/interface.go).

A plugin is a class with a `name` and the methods of its extension points. For each pod, the
scheduler calls the extension points in this order:

    PreEnqueue (each time before the pod enters the queue) · QueueSort
    PreFilter → Filter → PostFilter (only if no node is left)
    PreScore → Score → normalisation
    Reserve → Permit → PreBind → Bind → PostBind

Filter and Score have two forms. The form for one node is `filter(state, pod, node)` and
`score(...)`. The form over columns is `filter_columns(state, pod, table, rows)` and
`score_columns(...)`. For each of `rows`, the form over columns must give the same result as the
form for one node. A plugin needs only one form. The form for one node is faster for single rows,
and the form over columns is faster for whole tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.engine.core.command import (
    Bind,
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.core.status import Status
from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.diagnosis import Diagnosis
from fairlead.engine.framework.waiting_pods import Wait
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SCORE_MAX = 100


class Locality(Enum):
    """The data on which the result of a Filter or Score depends, in addition to the pod.

    NODE: only the Node object. ROW: also the pods on that node. CLUSTER: anything. Results of NODE
    and ROW plugins are cached. These plugins may therefore read only the pod's `Shape`, the part of
    its spec that scheduling reads. A plugin sets its attribute `locality`; the default is CLUSTER.
    """

    NODE = "node"
    ROW = "row"
    CLUSTER = "cluster"


class Normalization(Enum):
    """The rule that scales the raw scores of the feasible nodes to 0..100.

    NONE: scores are already in this range. SCALED: 100 × raw ÷ max, or 0 if max is 0. REVERSED: 100
    minus the SCALED score. A plugin with any other rule implements `normalize_scores`.
    upstream: helper/normalize_score.go
    """

    NONE = "none"
    SCALED = "scaled"
    REVERSED = "reversed"


class Verdicts(Struct, frozen=True):
    """Filter results for a sequence of rows.

    `codes[i]` belongs to the i-th row. `codes[i]` is 0 if the pod fits the node at this row.
    Otherwise `statuses[codes[i]]` is the rejection. `statuses[0]` is not used.
    """

    codes: npt.NDArray[np.int32]
    statuses: Sequence[Status]


class PreFilterResult(Struct, frozen=True):
    """A PreFilter result that limits the nodes to `node_names` (sorted; None: no limit)."""

    node_names: tuple[str, ...] | None = None


class Plugin(Protocol):
    """The attributes that all plugins have."""

    @property
    def name(self) -> str:
        """The plugin's name in configuration and messages."""
        ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """A plugin that can keep a pod out of the queue."""

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Return None if the pod may enter the queue, else a rejection."""
        ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """A plugin that orders the active queue."""

    def sort_key(self, pod: PodInfo, timestamp: int) -> tuple[int, ...]:
        """Return the sort key of `pod` in the queue; the pod with the smallest key comes first.

        `timestamp` is the time at which the pod entered the queue (ns).
        """
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """A plugin that examines the pod once per scheduling cycle."""

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        """Return None to allow all nodes; a PreFilterResult limits the pod to some nodes.

        Return SKIP if the Filter of the plugin need not run. Any other Status rejects the pod, and
        the cycle ends.
        """
        ...


@runtime_checkable
class ShapeRelevance(Plugin, Protocol):
    """A plugin that can tell from the `Shape` of a pod whether it skips the pod."""

    def concerns(self, shape: Shape) -> bool:
        """Return False if both PreFilter and PreScore would return SKIP for a pod of `shape`.

        If the result is False, these methods are not called.
        """
        ...


@runtime_checkable
class PreFilterExtensions(Plugin, Protocol):
    """A PreFilter plugin that updates its data when pods are added or removed hypothetically."""

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        """Update the data in `state` as if `added` were on `node`."""
        ...

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        """Update the data in `state` as if `removed` were no longer on `node`."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """A plugin that decides whether a pod fits a node."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return None if the pod fits the node, else a rejection."""
        ...


@runtime_checkable
class ColumnFilterPlugin(Plugin, Protocol):
    """A plugin that decides in one call which of many nodes a pod fits."""

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the verdict on each of `rows`, in the order of `rows`."""
        ...


class Shortlist(Protocol):
    """The preemption candidates that extenders may filter before a PostFilter chooses a node."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The candidate nodes with their victims."""
        ...

    def choose(self, candidates: Sequence[Candidate] | Status) -> PostFilterResult:
        """Choose one of `candidates`, which the extenders have kept.

        If an extender failed, `candidates` is its error, and the result has this error as status.
        """
        ...


class PostFilterResult(Struct, frozen=True):
    """The result of a PostFilter.

    The fields `rule`, `candidates` and `equals` say how the node was chosen (see `PodPreempting`).
    """

    status: Status  # SUCCESS if the PostFilter makes room for the pod
    # The node on which the PostFilter makes room; "" clears an earlier nomination, and None keeps
    # it.
    nominated_node: str | None = None
    victims: tuple[PodInfo, ...] = ()  # the pods to remove, the least important last
    # The number of victims whose removal violates a disruption budget; None if it is not known.
    pdb_violations: int | None = 0
    rule: str = ""
    candidates: int = 0
    equals: int = 1
    # If set, no node is chosen yet, and `status` is the only other meaningful field.
    shortlist: Shortlist | None = None
    commands: tuple[PreparationCommand, ...] = ()  # sent even if `status` is not SUCCESS


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """A plugin that tries to make room for a pod if no node fits.

    After the first success, no further PostFilter plugin is called.
    """

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """Try to make room for `pod`; `diagnosis` has the rejection of each node."""
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """A plugin that examines the pod and the feasible nodes once, before scoring."""

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Return None to go on, or SKIP if Score need not run; an ERROR fails the cycle."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """A plugin that scores a node; higher is better."""

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the raw score of the node."""
        ...


@runtime_checkable
class ColumnScorePlugin(Plugin, Protocol):
    """A plugin that scores many nodes together."""

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return one raw score for each of `rows`, in the order of `rows`."""
        ...


@runtime_checkable
class ScoreRelevance(Protocol):
    """A Score plugin that can tell in advance whether it gives all nodes the same score."""

    def scores_alike(self, pod: PodInfo) -> bool:
        """Return True if the plugin would skip `pod`, or would give all nodes the same score."""
        ...


@runtime_checkable
class ScoreEpoch(Protocol):
    """A Score plugin of Locality NODE whose scores also depend on the set of all nodes."""

    def epoch(self) -> object:
        """Return a value; when it changes, the cached scores of all nodes are computed again."""
        ...


@runtime_checkable
class ScoreNormalizer(Protocol):
    """A Score plugin with its own normalisation."""

    def normalize_scores(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        """Scale the raw scores of the feasible nodes to 0..100."""
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """A plugin that records a placement before the pod is bound."""

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Record the placement of `pod` on `node`; `unreserve` reverts it.

        If a Reserve plugin rejects the placement, `unreserve` of all Reserve plugins is called.
        """
        ...

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Revert `reserve`; do nothing if `reserve` was not called."""
        ...


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """A plugin that can delay or reject the binding of a placed pod."""

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status | Wait | None:
        """Return None to allow the binding, `Wait` to hold the pod for now, or a rejection.

        A held pod waits until the plugin calls `WaitingPods.allow`.
        """
        ...


# upstream: volume_binding.go polls every second, at most for bindTimeoutSeconds (default: 600)
PREPARATION_INTERVAL: Final = seconds(1)
PREPARATION_TIMEOUT: Final = seconds(600)
PreparationCommand = CreateObject | DeleteObject | PatchObject | PatchStatus | RecordEvent


@runtime_checkable
class Releaser(ReservePlugin, Protocol):
    """A Reserve plugin that can revert its writes to the API for a pod that was not bound."""

    def release_commands(
        self, state: CycleState, pod: PodInfo, node: str
    ) -> Sequence[PreparationCommand]:
        """Return the commands that revert the writes of PreBind; called before `unreserve`."""
        ...


class Preparation(Struct, frozen=True):
    """A PreBind result: commands to perform before the pod can be bound.

    All `commands` are sent together. All except RecordEvent must succeed. Then the plugin's
    `is_prepared` is called every `interval` (ns) until it returns something other than WAIT. When
    `timeout` (ns) has passed since the last command succeeded, the calls end, and the placement
    fails with the message `on_timeout`. If another pod preempts the pod, the placement fails with
    the message `on_cancel`.
    """

    commands: tuple[PreparationCommand, ...]
    interval: DurationNs = PREPARATION_INTERVAL
    timeout: DurationNs = PREPARATION_TIMEOUT
    on_timeout: str = "context deadline exceeded"
    on_cancel: str = "context canceled"


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """A plugin that prepares the binding, for example by writing volume bindings."""

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | Preparation | None:
        """Return None to go on, a Preparation, or a rejection, which reverts the placement."""
        ...


@runtime_checkable
class Preparer(PreBindPlugin, Protocol):
    """A PreBind plugin whose preparations take time."""

    def is_prepared(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Return None if the pod may be bound, WAIT to be called again, or a rejection."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """A plugin that provides the command that binds a pod."""

    def bind(self, pod: PodInfo, node: str) -> Bind | None:
        """Return the command that binds `pod` to `node`.

        If the result is None, the next Bind plugin is called.
        """
        ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """A plugin that acts after every successful binding."""

    def post_bind(self, pod: PodInfo, node: str) -> None:
        """React to the binding of `pod` to `node`."""
        ...
