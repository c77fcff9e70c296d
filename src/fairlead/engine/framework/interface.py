"""The extension points, as small Protocols (kube-scheduler/framework/interface.go).

A plugin is a class with a `name` and the methods of the extension points it takes part in; the
runtime finds out which by looking. Within a cycle they are asked in this order:

    PreEnqueue (once, before queueing) · QueueSort
    PreFilter → Filter → PostFilter (only if no node is left)
    PreScore → Score → normalisation
    Reserve → Permit → PreBind → Bind → PostBind

Filter and Score come in two forms. Per node: `filter(state, pod, node)`, `score(...)`. Over
columns: `filter_columns(state, pod, table, rows)`, `score_columns(...)`, which must give the same
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

from fairlead.engine.core.command import Bind, CreateObject, DeleteObject, PatchObject, PatchStatus
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

SCORE_MAX = 100


class Locality(Enum):
    """What a Filter or Score answer depends on beside the pod's shape; decides what is cached.

    NODE: the Node object alone. ROW: also the pods on that node. CLUSTER: anything; the plugin is
    asked anew in every cycle. A plugin says so in its attribute `locality`; CLUSTER is assumed of
    those that do not. NODE and ROW plugins may look at nothing of the pod but its shape.
    """

    NODE = "node"
    ROW = "row"
    CLUSTER = "cluster"


class Normalization(Enum):
    """How raw scores over the feasible nodes become 0..100 (helper/normalize_score.go).

    NONE: they already are. SCALED: 100 × raw ÷ max, 0 where max is 0. REVERSED: 100 minus that,
    100 where max is 0. A plugin with any other rule has `normalize_scores`.
    """

    NONE = "none"
    SCALED = "scaled"
    REVERSED = "reversed"


class Verdicts(Struct, frozen=True):
    """Filter answers for many rows: `codes[i]` is 0 where row i fits, else an index.

    `statuses[code]` is the rejection; `statuses[0]` is never looked at.
    """

    codes: npt.NDArray[np.int32]
    statuses: Sequence[Status]


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """A PreFilter answer that restricts the nodes to `node_names` (sorted; None = no limit)."""

    node_names: tuple[str, ...] | None = None


class Plugin(Protocol):
    """What every plugin has."""

    @property
    def name(self) -> str:
        """The name by which configuration and messages refer to it."""
        ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """May keep a pod out of the queue."""

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """None to let the pod in."""
        ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue."""

    def sort_key(self, pod: PodInfo, timestamp: int) -> tuple[int, ...]:
        """Smaller is served first; `timestamp` is when the pod entered the queue (ns)."""
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Looks at the pod once per cycle."""

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        """SKIP when the plugin's Filter need not be asked; a rejection ends the cycle."""
        ...


@runtime_checkable
class ShapeRelevance(Plugin, Protocol):
    """A plugin that can tell from a pod's shape that it would skip every pod of it."""

    def concerns(self, shape: Shape) -> bool:
        """False if PreFilter and PreScore would answer SKIP; then neither is asked."""
        ...


@runtime_checkable
class PreFilterExtensions(Plugin, Protocol):
    """Keeps a PreFilter's findings true while a dry run moves pods."""

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> None:
        """`added` is supposed to be on `node`."""
        ...

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> None:
        """`removed` is supposed to be gone from `node`."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Says whether a pod fits a node."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """None where the pod fits."""
        ...


@runtime_checkable
class ColumnFilterPlugin(Plugin, Protocol):
    """Says on which of many nodes a pod fits."""

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """One code per entry of `rows`."""
        ...


class Shortlist(Protocol):
    """What a PostFilter leaves for extenders to look through before it decides."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The nodes with whoever would have to leave them."""
        ...

    def choose(self, candidates: Sequence[Candidate] | Status) -> PostFilterResult:
        """The decision among `candidates`, which may be others; or after an extender failed."""
        ...


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What a PostFilter found.

    `status` SUCCESS means room will be made. `nominated_node` is the node that will have it, ""
    to take an earlier nomination back, None to leave it as it is. `victims` must go first, least
    important last; `pdb_violations` of them breach a budget; `rule`, `candidates` and `equals` say
    how the node was picked. With a `shortlist` nothing is picked yet, and only SUCCESS counts.
    `commands` are sent whatever comes of the pod.
    """

    status: Status
    nominated_node: str | None = None
    victims: tuple[PodInfo, ...] = ()
    pdb_violations: int = 0
    rule: str = ""
    candidates: int = 0
    equals: int = 1
    shortlist: Shortlist | None = None
    commands: tuple[PatchStatus, ...] = ()


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Tries to make room when no node fits; the first that succeeds ends the search."""

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """`diagnosis` says why each node was rejected."""
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Looks at pod and feasible nodes once before scoring."""

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """SKIP when the plugin's Score need not be asked; an ERROR fails the cycle."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Says how good a node is; higher is better."""

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The raw score."""
        ...


@runtime_checkable
class ColumnScorePlugin(Plugin, Protocol):
    """Says how good many nodes are."""

    def score_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Scores:
        """One raw score per entry of `rows`."""
        ...


@runtime_checkable
class ScoreRelevance(Protocol):
    """A Score plugin that can tell in advance when it makes no difference."""

    def scores_alike(self, pod: PodInfo) -> bool:
        """Whether every node is sure to get the same score, or the plugin to be skipped."""
        ...


@runtime_checkable
class ScoreEpoch(Protocol):
    """A Score plugin of Locality NODE whose answers also depend on the nodes as a whole."""

    def epoch(self) -> object:
        """Another value than before when scores of nodes that did not change may differ."""
        ...


@runtime_checkable
class ScoreNormalizer(Protocol):
    """A Score plugin with its own normalisation."""

    def normalize_scores(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        """0..100 per feasible node, from the raw scores of the feasible nodes."""
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Takes note of a placement before it is bound."""

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """A rejection undoes the placement. Undone by `unreserve`."""
        ...

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """The exact inverse of `reserve`; also called where `reserve` was not reached."""
        ...


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """The last word before binding."""

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status | Wait | None:
        """None to go on, `Wait` to be asked for `allow` first; a rejection undoes the placement."""
        ...


PreparationCommand = CreateObject | DeleteObject | PatchObject | PatchStatus


@dataclass(frozen=True, slots=True)
class Preparation:
    """A PreBind answer: the world must do something before the pod can be bound.

    `commands` are sent at once, and each must succeed; then the plugin's `is_prepared` is asked
    every `interval` until it agrees, for at most `timeout` (both ns), after which the placement
    fails with `on_timeout`.
    """

    commands: tuple[PreparationCommand, ...]
    interval: DurationNs
    timeout: DurationNs
    on_timeout: str = "context deadline exceeded"


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Prepares the node for the pod."""

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | Preparation | None:
        """None to go on; a rejection undoes the placement."""
        ...


@runtime_checkable
class Preparer(PreBindPlugin, Protocol):
    """A PreBind plugin whose preparations take time."""

    def is_prepared(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """None when the pod may be bound, a WAIT status to be asked again; else a rejection."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Says how a pod is bound."""

    def bind(self, pod: PodInfo, node: str) -> Bind | None:
        """The command that binds `pod` to `node`, None to leave it to the next Bind plugin."""
        ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Is told of every successful binding."""

    def post_bind(self, pod: PodInfo, node: str) -> None:
        """Nothing can be refused any more."""
        ...
