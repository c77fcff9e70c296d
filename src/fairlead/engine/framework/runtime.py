"""Framework: the plugins of one profile, called for one node at a time.

This module serves dry runs and nodes with nominated pods; `engine.framework.plan` evaluates whole
tables. If a plugin raises an exception, the result is an ERROR status that names the plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, Protocol, TypeVar, cast

from fairlead.engine.core.status import SKIP, Code, Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import (
    BindPlugin,
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
)
from fairlead.engine.framework.plugin_order import PluginOrder
from fairlead.engine.framework.points import (
    FilterPoint,
    crashed,
    filter_point,
    first_rejection,
    score_point,
)
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.trial import Trial, trial
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.fork import fork
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

Answer = TypeVar("Answer")
_NOT_REJECTING: Final = (Code.SUCCESS, Code.SKIP)


class Handle(Protocol):
    """The read access to the engine that a plugin's factory gets."""

    @property
    def cluster(self) -> Cluster:
        """The state of the cluster; plugins must not change it."""
        ...

    @property
    def nominator(self) -> Nominator:
        """The nominated pods, grouped by node."""
        ...

    @property
    def waiting_pods(self) -> WaitingPods:
        """The placed pods that Permit plugins hold; plugins may allow or reject these pods."""
        ...

    def trial(self, state: CycleState, pod: PodInfo) -> AbstractContextManager[Trial]:
        """Start a trial, which can move other pods hypothetically and run the Filters for `pod`."""
        ...


class Framework:
    """The plugins of `profile` at each extension point, in configured order."""

    def __init__(
        self, profile: Profile, plugins: Sequence[tuple[Plugin, int]], handle: Handle
    ) -> None:
        """Build the list of plugins for each extension point.

        `plugins` are (plugin, score weight) pairs.
        Raises PointError if the plugins that the profile enables at an extension point are invalid.
        """
        self.profile = profile
        self.cluster = handle.cluster
        self.nominator = handle.nominator
        table = handle.cluster.table
        order = self._order = PluginOrder(profile, plugins)
        at = order.at  # its plugins implement the Protocol of the point
        self.pre_enqueue = cast("list[PreEnqueuePlugin]", at("PreEnqueue"))
        self.queue_sort = cast("QueueSortPlugin", order.queue_sort())
        self.pre_filters = cast("list[PreFilterPlugin]", at("PreFilter"))
        self._extensions = [p for p in self.pre_filters if isinstance(p, PreFilterExtensions)]
        self.filters = [filter_point(p, table) for p in at("Filter")]
        self.post_filters = self._post_filters()
        self.scorers = [score_point(p, weight, table) for p, weight in order.scorers()]
        self.pre_scorers = {p.name: p for p in cast("list[PreScorePlugin]", at("PreScore"))}
        self.reserve = cast("list[ReservePlugin]", at("Reserve"))
        self.permit = cast("list[PermitPlugin]", at("Permit"))
        self.pre_bind = cast("list[PreBindPlugin]", at("PreBind"))
        self.bind = cast("list[BindPlugin]", at("Bind"))
        self.post_bind = cast("list[PostBindPlugin]", at("PostBind"))
        self._by_name: dict[str, Plugin] = {plugin.name: plugin for plugin, _ in plugins}

    def add_post_filter(self, plugin: PostFilterPlugin) -> None:
        """Insert `plugin`, which is built after the framework, at its place in the profile."""
        self._order.add(plugin)
        self.post_filters = self._post_filters()
        self._by_name[plugin.name] = plugin

    def _post_filters(self) -> list[PostFilterPlugin]:
        return cast("list[PostFilterPlugin]", self._order.at("PostFilter"))

    def weights(self) -> dict[str, int]:
        """Return the weights of the Score plugins, keyed by plugin name."""
        return {point.name: point.weight for point in self.scorers}

    def filter_names(self, among: Collection[str]) -> list[str]:
        """Return the names in `among` that are Filter plugins, in configured order."""
        return [point.name for point in self.filters if point.name in among]

    def score_names(self, among: Collection[str]) -> list[str]:
        """Return the names in `among` that are Score plugins, in configured order."""
        return [point.name for point in self.scorers if point.name in among]

    def find(self, name: str) -> Plugin | None:
        """Return the plugin `name`; None if the profile does not have it."""
        return self._by_name.get(name)

    # --- whole pod -------------------------------------------------------------------------

    def run_pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Run PreEnqueue; return the first rejection, None if the pod may be queued."""
        for plugin in self.pre_enqueue:
            try:
                status = plugin.pre_enqueue(pod)
            except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
                status = crashed(plugin, cause)
            if status is not None and not status.is_success:
                return status.by(plugin.name)
        return None

    def run_pre_filter(
        self, state: CycleState, pod: PodInfo, plugin: PreFilterPlugin
    ) -> PreFilterResult | Status | None:
        """Run one PreFilter plugin; if the plugin returns SKIP, record this in `state`.

        Returns a Status if the plugin rejects the pod or fails. Returns a PreFilterResult if the
        plugin limits the nodes. Otherwise, returns None.
        """
        try:
            answer = plugin.pre_filter(state, pod)
        except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
            return crashed(plugin, cause)
        if answer is SKIP:  # by far the most frequent result of plugins that are not cached
            state.skipped_filters[plugin.name] = None
            return None
        if not isinstance(answer, Status):
            return answer
        if answer.code is Code.SKIP:
            state.skipped_filters[plugin.name] = None
        return None if answer.code in _NOT_REJECTING else answer.by(plugin.name)

    def run_pre_score(
        self, state: CycleState, pod: PodInfo, name: str, rows: object
    ) -> Status | None:
        """Run one PreScore plugin; if the plugin returns SKIP, record this in `state`.

        Returns the error that fails the cycle, or None. Any status except success and SKIP is an
        error (framework.go: RunPreScorePlugins).
        """
        plugin = self.pre_scorers.get(name)
        if plugin is None:
            return None
        answer = attempt(plugin, partial(plugin.pre_score, state, pod, rows))  # type: ignore[arg-type]
        if answer is None or answer.is_success:
            return None
        if answer.code is Code.SKIP:
            state.skipped_scores[name] = None
            return None
        text = f'running PreScore plugin "{name}": {answer.message}'
        return Status(Code.ERROR, (text,), name)

    # --- one node --------------------------------------------------------------------------

    def trial(self, state: CycleState, pod: PodInfo) -> AbstractContextManager[Trial]:
        """Start a trial with this profile's plugins (`engine.framework.trial`)."""
        return trial(self, self.cluster.table, state, pod)

    def run_filters(
        self,
        state: CycleState,
        pod: PodInfo,
        node: NodeInfo,
        points: Sequence[FilterPoint] | None = None,
    ) -> Status | None:
        """Return the first rejection of `pod` on `node`; None if the pod fits.

        If `points` is given, only these Filters run.
        upstream: framework/runtime/framework.go: RunFilterPlugins
        """
        skipped = state.skipped_filters
        chosen = self.filters if points is None else points
        if skipped:
            chosen = [point for point in chosen if point.name not in skipped]
        return first_rejection(chosen, state, pod, node)

    def run_filters_with_nominated(
        self, state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Run the Filters on `node`, both with and without the pods nominated to the node.

        Returns the first rejection; None if the pod fits in both cases. The nominated pods might
        never be bound. So `pod` must also fit without them. For example, `pod` is rejected if only
        a nominated pod satisfies its affinity.

        upstream: RunFilterPluginsWithNominatedPods
        """
        rivals = self.nominator.competing_pods_on(node.name, pod)
        if rivals:
            status = self._run_filters_with_pods(rivals, state, pod, node)
            if status is not None:
                return status
        return self.run_filters(state, pod, node)

    def _run_filters_with_pods(
        self, rivals: Sequence[PodInfo], state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Status | None:
        supposed = state.clone()
        with fork(self.cluster.table) as hypothesis:
            for rival in rivals:
                if rival.id not in node.pods:
                    hypothesis.add_pod(node, rival)
                    failure = self.run_add_pod(supposed, pod, rival, node)
                    if failure is not None:
                        return failure
            return self.run_filters(supposed, pod, node)

    def moved_pod_trackers(self, state: CycleState) -> list[PreFilterExtensions]:
        """Return the plugins that `run_add_pod` and `run_remove_pod` call.

        Plugins that returned SKIP in this cycle are left out.
        """
        skipped = state.skipped_filters
        return [plugin for plugin in self._extensions if plugin.name not in skipped]

    def run_add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Update the PreFilter data in `state` as if `added` were on `node`.

        Returns an ERROR status if a plugin failed; `state` must not be used after that.
        """
        for plugin in self._extensions:
            if plugin.name not in state.skipped_filters:
                try:
                    plugin.add_pod(state, pod, added, node)
                except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
                    return crashed(plugin, cause)
        return None

    def run_remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Update the PreFilter data in `state` as if `removed` were no longer on `node`.

        Returns an ERROR status if a plugin failed; `state` must not be used after that.
        """
        for plugin in self._extensions:
            if plugin.name not in state.skipped_filters:
                try:
                    plugin.remove_pod(state, pod, removed, node)
                except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
                    return crashed(plugin, cause)
        return None


def attempt(plugin: Plugin, call: Callable[[], Answer]) -> Answer | Status:
    """Return the result of `call`; if it raises, return an ERROR status that names `plugin`."""
    try:
        return call()
    except Exception as cause:  # noqa: BLE001 - a broken plugin must not stop the scheduler
        return crashed(plugin, cause)
