"""The extension points, as small Protocols (kube-scheduler/framework/interface.go).

A plugin is a class with a `name` and the methods of its extension points; the runtime detects them.
One scheduling cycle calls them in this order:

    PreEnqueue (once, before queueing) · QueueSort
    PreFilter → Filter → PostFilter (only if no node is left)
    PreScore → Score → normalisation
    Reserve → Permit → PreBind → Bind → PostBind

Filter and Score come in two forms. Per node: `filter(state, pod, node)`, `score(...)`. Over
columns: `filter_columns(state, pod, table, rows)`, `score_columns(...)`, which must return the same
answers for all `rows` at once. A plugin needs one of the two; built-in plugins have both, because
single rows are cheaper per node and whole tables cheaper over columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

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
from fairlead.engine.core.instant import DurationNs
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
    """What a Filter or Score result depends on besides the pod's shape; decides what is cached.

    NODE: the Node object alone. ROW: also the pods on that node. CLUSTER: anything; the plugin is
    called in every cycle. A plugin sets its attribute `locality`; the default is CLUSTER. NODE and
    ROW plugins must read nothing of the pod but its shape.
    """

    NODE = "node"
    ROW = "row"
    CLUSTER = "cluster"


class Normalization(Enum):
    """How raw scores of the feasible nodes become 0..100 (helper/normalize_score.go).

    NONE: they already are. SCALED: 100 × raw ÷ max, 0 if max is 0. REVERSED: 100 minus that,
    100 if max is 0. A plugin with any other rule implements `normalize_scores`.
    """

    NONE = "none"
    SCALED = "scaled"
    REVERSED = "reversed"


class Verdicts(Struct, frozen=True):
    """Filter results for many rows: `codes[i]` is 0 if row i fits, else an index in `statuses`.

    `statuses[0]` is never read.
    """

    codes: npt.NDArray[np.int32]
    statuses: Sequence[Status]


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """A PreFilter result that limits the nodes to `node_names` (sorted; None: no limit)."""

    node_names: tuple[str, ...] | None = None


class Plugin(Protocol):
    """The attributes that all plugins have."""

    @property
    def name(self) -> str:
        """The name used in configuration and messages."""
        ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Can keep a pod out of the queue."""

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Return None to let the pod into the queue, else the rejection."""
        ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue."""

    def sort_key(self, pod: PodInfo, timestamp: int) -> tuple[int, ...]:
        """Return the key by which the queue is ordered, the smallest first.

        `timestamp` is when the pod entered the queue (ns).
        """
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Examines the pod once per cycle."""

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        """Return SKIP if the plugin's Filter need not run; a rejection ends the cycle."""
        ...


@runtime_checkable
class ShapeRelevance(Plugin, Protocol):
    """A plugin that can tell from the shape of a pod that it skips the pod."""

    def concerns(self, shape: Shape) -> bool:
        """Return False if PreFilter and PreScore would return SKIP for `shape`.

        If it returns False, neither is called.
        """
        ...


@runtime_checkable
class PreFilterExtensions(Plugin, Protocol):
    """Keeps a PreFilter's data correct while a dry run moves pods."""

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        """Update the data as if `added` were on `node`."""
        ...

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        """Update the data as if `removed` were no longer on `node`."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Decides whether a pod fits a node."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return None if the pod fits, else the rejection."""
        ...


@runtime_checkable
class ColumnFilterPlugin(Plugin, Protocol):
    """Decides for many nodes at once whether a pod fits."""

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return one code per entry of `rows`."""
        ...


class Shortlist(Protocol):
    """Preemption candidates that a PostFilter passes to the extenders before it chooses one."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The candidate nodes with their victims."""
        ...

    def choose(self, candidates: Sequence[Candidate] | Status) -> PostFilterResult:
        """Return the result of choosing among `candidates`, or the error if an extender failed."""
        ...


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The result of a PostFilter.

    `status` SUCCESS means that the PostFilter makes room for the pod. `nominated_node` is the node
    where it does so; "" clears an earlier nomination, None leaves it unchanged. `victims` are the
    pods to remove, least important last; `pdb_violations` counts those that violate a budget;
    `rule`, `candidates` and `equals` describe how the node was picked. If `shortlist` is set, no
    node is picked yet and only the code SUCCESS is meaningful. `commands` are sent with every
    status.
    """

    status: Status
    nominated_node: str | None = None
    victims: tuple[PodInfo, ...] = ()
    pdb_violations: int = 0
    rule: str = ""
    candidates: int = 0
    equals: int = 1
    shortlist: Shortlist | None = None
    commands: tuple[PreparationCommand, ...] = ()


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Tries to make room if no node fits; the first plugin that succeeds ends the search."""

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """Make room for `pod`; return the result. `diagnosis` has the rejection of each node."""
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Examines the pod and the feasible nodes once before scoring."""

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Return SKIP if the plugin's Score need not run; an ERROR fails the cycle."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Rates a node; higher is better."""

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the raw score."""
        ...


@runtime_checkable
class ColumnScorePlugin(Plugin, Protocol):
    """Rates many nodes at once."""

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """Return one raw score per entry of `rows`."""
        ...


@runtime_checkable
class ScoreRelevance(Protocol):
    """A Score plugin that can tell in advance that it gives all nodes the same score."""

    def scores_alike(self, pod: PodInfo) -> bool:
        """Return True if the plugin would give every node the same score or return SKIP."""
        ...


@runtime_checkable
class ScoreEpoch(Protocol):
    """A Score plugin of Locality NODE whose scores also depend on the set of all nodes."""

    def epoch(self) -> object:
        """Return a value that changes whenever the score of an unchanged node may change."""
        ...


@runtime_checkable
class ScoreNormalizer(Protocol):
    """A Score plugin with its own normalisation."""

    def normalize_scores(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        """Return the raw scores of the feasible nodes, normalised to 0..100."""
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Records a placement before the pod is bound."""

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Record the placement; `unreserve` reverts it.

        A rejecting plugin must undo its own changes.
        """
        ...

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Revert `reserve`; also called if `reserve` was not reached."""
        ...


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """Can delay or reject the binding of a placed pod."""

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status | Wait | None:
        """Return None to go on, `Wait` to hold the pod until `allow`, or a rejection.

        A rejection undoes the placement.
        """
        ...


PreparationCommand = CreateObject | DeleteObject | PatchObject | PatchStatus | RecordEvent


@dataclass(frozen=True, slots=True)
class Preparation:
    """A PreBind result: commands to perform before the pod can be bound.

    `commands` are sent at once, and each must succeed, except events. Then the plugin's
    `is_prepared` is called every `interval` until it returns None, for at most `timeout` (both ns),
    after which the placement fails with `on_timeout`.
    """

    commands: tuple[PreparationCommand, ...]
    interval: DurationNs
    timeout: DurationNs
    on_timeout: str = "context deadline exceeded"


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Prepares the node for the pod."""

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | Preparation | None:
        """Return None to go on, or a Preparation; a rejection undoes the placement."""
        ...


@runtime_checkable
class Preparer(PreBindPlugin, Protocol):
    """A PreBind plugin whose preparations take time."""

    def is_prepared(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Return None if the pod may be bound, WAIT to be called again, else a rejection."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Provides the command that binds a pod."""

    def bind(self, pod: PodInfo, node: str) -> Bind | None:
        """Return the command that binds `pod` to `node`; None leaves it to the next Bind plugin."""
        ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Acts after every successful binding."""

    def post_bind(self, pod: PodInfo, node: str) -> None:
        """React to the binding; it cannot be rejected any more."""
        ...
