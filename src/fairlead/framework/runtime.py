"""Framework: the plugins of one profile, and how they are asked one by one.

Whole-table questions are answered by `fairlead.framework.plan`; this file asks about single nodes
(dry runs, nominated nodes, nodes with nominated pods) and holds what both need. An exception in a
plugin becomes an ERROR status naming the plugin, never a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from fairlead.core.status import SKIP, Code, Status, error
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.interface import (
    BindPlugin,
    ColumnFilterPlugin,
    ColumnScorePlugin,
    FilterPlugin,
    Locality,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from fairlead.framework.nominator import Nominator
from fairlead.framework.profile import Profile
from fairlead.state.cluster import Cluster
from fairlead.state.fork import fork
from fairlead.state.node_info import NodeInfo
from fairlead.state.node_table import NodeTable
from fairlead.state.pod_info import PodInfo

Answer = TypeVar("Answer")
AnyFilter = FilterPlugin | ColumnFilterPlugin
AnyScore = ScorePlugin | ColumnScorePlugin


class Handle(Protocol):
    """What a plugin's factory is given beside its arguments: beliefs to read, nothing to do."""

    @property
    def cluster(self) -> Cluster:
        """The state; plugins only read it."""
        ...

    @property
    def nominator(self) -> Nominator:
        """Who was promised which node."""
        ...


def locality_of(plugin: object) -> Locality:
    """What the plugin's answers depend on; CLUSTER unless it says otherwise."""
    found = getattr(plugin, "locality", Locality.CLUSTER)
    assert isinstance(found, Locality)
    return found


class Framework:
    """The plugins of `profile`, by extension point, in configured order."""

    def __init__(
        self, profile: Profile, plugins: Sequence[tuple[Plugin, int]], handle: Handle
    ) -> None:
        """`plugins` are the built plugins with their score weights."""
        self.profile = profile
        self.cluster = handle.cluster
        self.nominator = handle.nominator
        named = [plugin for plugin, _ in plugins]
        self.weights = {plugin.name: weight for plugin, weight in plugins}
        self.pre_enqueue = [p for p in named if isinstance(p, PreEnqueuePlugin)]
        self.queue_sort = next(p for p in named if isinstance(p, QueueSortPlugin))
        self.pre_filters = [p for p in named if isinstance(p, PreFilterPlugin)]
        self.filters: list[AnyFilter] = [
            p for p in named if isinstance(p, FilterPlugin | ColumnFilterPlugin)
        ]
        self.post_filters = [p for p in named if isinstance(p, PostFilterPlugin)]
        self.scorers: list[AnyScore] = [
            p
            for p in named
            if isinstance(p, ScorePlugin | ColumnScorePlugin) and self.weights[p.name]
        ]
        self.pre_scorers = [p for p in self.scorers if isinstance(p, PreScorePlugin)]
        self.reserve = [p for p in named if isinstance(p, ReservePlugin)]
        self.permit = [p for p in named if isinstance(p, PermitPlugin)]
        self.pre_bind = [p for p in named if isinstance(p, PreBindPlugin)]
        self.bind = [p for p in named if isinstance(p, BindPlugin)]
        self.post_bind = [p for p in named if isinstance(p, PostBindPlugin)]

    # --- whole pod -------------------------------------------------------------------------

    def run_pre_enqueue(self, pod: PodInfo) -> Status | None:
        """The first rejection, None when the pod may be queued."""
        for plugin in self.pre_enqueue:
            status = attempt(plugin, partial(plugin.pre_enqueue, pod))
            if status is not None:
                return status.by(plugin.name)
        return None

    def run_pre_filter(
        self, state: CycleState, pod: PodInfo, plugin: PreFilterPlugin
    ) -> PreFilterResult | Status | None:
        """One plugin's PreFilter; SKIP is noted in `state`, a rejection is attributed."""
        answer = attempt(plugin, partial(plugin.pre_filter, state, pod))
        if answer is SKIP:
            state.skipped_filters[plugin.name] = None
            return None
        if isinstance(answer, Status):
            return answer.by(plugin.name)
        return answer

    # --- one node --------------------------------------------------------------------------

    def run_filters(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """The first rejection of `pod` on `node`, None where it fits.

        upstream: framework/runtime/framework.go: RunFilterPlugins
        """
        skipped = state.skipped_filters
        table = self.cluster.table
        for plugin in self.filters:
            if plugin.name not in skipped:
                status = filter_one(plugin, state, pod, node, table)
                if status is not None:
                    return status
        return None

    def run_filters_with_nominated(
        self, state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Status | None:
        """As `run_filters`, with the room promised to others taken; must pass with and without.

        Without, because what is promised may never arrive, and affinity to it must not count.
        upstream: RunFilterPluginsWithNominatedPods
        """
        rivals = self.nominator.rivals_on(node.name, pod)
        if rivals:
            supposed = state.clone()
            with fork(self.cluster.table) as hypothesis:
                for rival in rivals:
                    if rival.key not in node.pods:
                        hypothesis.add_pod(node, rival)
                        self.run_add_pod(supposed, pod, rival, node)
                status = self.run_filters(supposed, pod, node)
            if status is not None:
                return status
        return self.run_filters(state, pod, node)

    def run_add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> None:
        """Tell the PreFilter findings in `state` that `added` is on `node`."""
        for plugin in self.pre_filters:
            if isinstance(plugin, PreFilterExtensions) and plugin.name not in state.skipped_filters:
                plugin.add_pod(state, pod, added, node)

    def run_remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> None:
        """Tell the PreFilter findings in `state` that `removed` left `node`."""
        for plugin in self.pre_filters:
            if isinstance(plugin, PreFilterExtensions) and plugin.name not in state.skipped_filters:
                plugin.remove_pod(state, pod, removed, node)


def filter_one(
    plugin: AnyFilter, state: CycleState, pod: PodInfo, node: NodeInfo, table: NodeTable
) -> Status | None:
    """One plugin's verdict on one node, attributed; None where the pod fits."""
    try:
        if isinstance(plugin, FilterPlugin):
            status = plugin.filter(state, pod, node)
        else:
            verdicts = plugin.filter_columns(state, pod, table, np.array([node.row]))
            code = int(verdicts.codes[0])
            status = verdicts.statuses[code] if code else None
    except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
        return crashed(plugin, cause)
    if status is None or status.code is Code.SUCCESS:
        return None
    return status if status.plugin else status.by(plugin.name)


def score_one(
    plugin: AnyScore, state: CycleState, pod: PodInfo, node: NodeInfo, table: NodeTable
) -> int:
    """One plugin's raw score of one node."""
    if isinstance(plugin, ScorePlugin):
        return plugin.score(state, pod, node)
    return int(plugin.score_columns(state, pod, table, np.array([node.row]))[0])


def crashed(plugin: Plugin, cause: Exception) -> Status:
    """The ERROR status of a plugin that raised, naming it."""
    reason = f"plugin {plugin.name!r} failed: {type(cause).__name__}: {cause}"
    return error(reason).by(plugin.name)


def attempt(plugin: Plugin, ask: Callable[[], Answer]) -> Answer | Status:
    """Ask, turning an exception of the plugin into an ERROR status that names it."""
    try:
        return ask()
    except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
        return crashed(plugin, cause)
