"""Builds the plugins, actions and node filters of a batch configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from msgspec import Struct

from fairlead.engine.batch.actions.action import Action
from fairlead.engine.batch.actions.allocate import Allocate
from fairlead.engine.batch.actions.backfill import Backfill
from fairlead.engine.batch.actions.enqueue import Enqueue
from fairlead.engine.batch.actions.preempt import Preempt
from fairlead.engine.batch.actions.reclaim import Reclaim
from fairlead.engine.batch.configuration_file import BatchConfig, BatchConfigurationError
from fairlead.engine.batch.defect import Defect
from fairlead.engine.batch.extension import Extensions
from fairlead.engine.batch.info.job_table import JobTable
from fairlead.engine.batch.info.request import RequestTable
from fairlead.engine.batch.nodes.job_affinity import AffinityOfJobs
from fairlead.engine.batch.nodes.node_choice import NodeChoice
from fairlead.engine.batch.nodes.preparations import Preparations
from fairlead.engine.batch.nodes.room import Room, RoomView, RuleSums
from fairlead.engine.batch.nodes.room_fit import FUTURE, LEAVING, NOW, NodePresence, RoomFit, Source
from fairlead.engine.batch.plugin_guard import guarded_action, guarded_plugin
from fairlead.engine.batch.plugins.registry import PLUGINS, Factory, PluginContext
from fairlead.engine.batch.session.plugin import BatchPlugin, NodePrioritizers, Predicate
from fairlead.engine.batch.session.session import ChoicesByView, NodeChoices, Policy
from fairlead.engine.batch.session.tier import NODE_ORDER, PREDICATE, PluginOption, Tiers
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.core.reporter import Reporter, SilentReporter
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.fault import PluginFault, fault_of
from fairlead.engine.framework.interface import Locality
from fairlead.engine.framework.interface import Plugin as SchedulerPlugin
from fairlead.engine.framework.points import locality_of
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.framework.trial import Trial
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.plugins.priority_sort import PrioritySort
from fairlead.engine.plugins.release_1_16.requested import Sums
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo

_LOCALITIES = (Locality.NODE, Locality.ROW, Locality.CLUSTER)
ACTIONS: Final[Mapping[str, Action]] = {
    action.name: action for action in (Allocate(), Backfill(), Enqueue(), Preempt(), Reclaim())
}
# The advice for each plugin of Volcano that Fairlead lacks.
_INSTEAD: Final = {
    "capacity": " (replace it by proportion, which here also reads spec.deserved, spec.guarantee, "
    "spec.capability and spec.parent of Queues)"
}


class _PluginHandle:
    """The handle of the scheduler plugins: gives them read access to the cluster.

    Implements `engine.framework.runtime.Handle`.
    """

    def __init__(self, cluster: Cluster, sums: Sums) -> None:
        self.cluster = cluster
        self.sums = sums
        self.nominator = Nominator()
        self.waiting_pods = WaitingPods()
        self.framework: Framework | None = None

    def trial(self, state: CycleState, pod: PodInfo) -> AbstractContextManager[Trial]:
        assert self.framework is not None, "called before the plugins are built"
        return self.framework.trial(state, pod)


class Composition(Struct, frozen=True):
    """The plugins and actions of a batch configuration, built for one cluster."""

    policy: Policy
    jobs: JobTable
    actions: tuple[Action, ...]


def compose(
    config: BatchConfig,
    cluster: Cluster,
    extensions: Extensions | None = None,
    reporter: Reporter | None = None,
) -> Composition:
    """Return the plugins and actions of `config`, built for `cluster`.

    `extensions`, if given, replaces `config.extensions`. `reporter` receives the failures of
    extensions. Raises BatchConfigurationError if an action or plugin is unknown or cannot be built.
    """
    extensions, reporter = extensions or config.extensions, reporter or SilentReporter()
    own = {name: guarded_action(one, reporter) for name, one in extensions.actions.items()}
    actions = _actions(config, {**ACTIONS, **own})
    plugins = _plugins(config, extensions, reporter)
    rules = config.rules
    requests = RequestTable(rules.requests, rules.slack, cluster.table.resources)
    jobs = JobTable(cluster, config.ownership, requests)
    room = Room(cluster)
    try:
        choices = _choices(config, plugins, cluster, jobs, room)
    except PluginFault as fault:
        raise BatchConfigurationError(str(fault)) from None
    policy = Policy(
        tiers=Tiers(config.tiers, plugins),
        rules=rules,
        defects=config.defects,
        choices=choices,
        preparations=Preparations(choices.shared.ignoring_resources, jobs),
        room=room,
        actions=config.actions,
        starvation_bound=_nanoseconds(config.starvation_bound_s),
        broken_gang_grace=_nanoseconds(config.broken_gang_grace_s),
    )
    return Composition(policy, jobs, actions)


def _nanoseconds(duration_s: float | None) -> DurationNs | None:
    return None if duration_s is None else seconds(duration_s)


def _actions(config: BatchConfig, known: Mapping[str, Action]) -> tuple[Action, ...]:
    for name in config.actions:
        if name not in known:
            raise BatchConfigurationError(f"actions: no action {name!r}; {_known(known)}")
    return tuple(known[name] for name in config.actions)


def _plugins(
    config: BatchConfig, extensions: Extensions, reporter: Reporter
) -> dict[str, BatchPlugin]:
    built: dict[str, BatchPlugin] = {}
    own = {name: _guarding(name, make, reporter) for name, make in extensions.plugins.items()}
    known = {**PLUGINS, **own}
    for i, tier in enumerate(config.tiers):
        for option in tier:
            if option.name not in known:
                instead = _INSTEAD.get(option.name, "")
                raise BatchConfigurationError(
                    f"tiers[{i}].plugins: no plugin {option.name!r}{instead}; {_known(known)}"
                )
            context = PluginContext(config.rules, config.defects, option.arguments)
            try:
                built[option.name] = known[option.name](context)
            except PluginFault as fault:
                raise BatchConfigurationError(f"tiers[{i}].plugins: {fault}") from None
    return built


def _guarding(name: str, make: Factory, reporter: Reporter) -> Factory:
    """Return a factory that calls `make` and wraps the returned plugin with `guarded_plugin`.

    The factory raises PluginFault if `make` fails.
    """

    def build(context: PluginContext) -> BatchPlugin:
        try:
            plugin = make(context)
        except KeyboardInterrupt:
            raise  # the user has interrupted the program
        except BaseException as cause:
            raise fault_of(name, "its constructor", cause) from cause
        return guarded_plugin(plugin, reporter)

    return build


def _known(names: Mapping[str, object]) -> str:
    return f"known: {', '.join(sorted(names))}"


# --- nodes ---------------------------------------------------------------------------------


def _choices(
    config: BatchConfig,
    plugins: Mapping[str, BatchPlugin],
    cluster: Cluster,
    jobs: JobTable,
    room: Room,
) -> ChoicesByView:
    def choice(view: RoomView, *sources: Source) -> NodeChoice:
        handle = _PluginHandle(cluster, RuleSums(room, jobs.requests))
        fit = [RoomFit(room, view, jobs.requests, sources)] if sources else []
        filters = _filters(config, plugins, handle, jobs)
        unscored: list[SchedulerPlugin] = [NodePresence(room), *fit, *filters]
        # Cacheable filters first. All filters run, so their order does not change the result.
        unscored.sort(key=lambda plugin: _LOCALITIES.index(locality_of(plugin)))
        named: list[tuple[SchedulerPlugin, int]] = [(PrioritySort(), 0)]
        named += [(plugin, 0) for plugin in unscored]
        named += _scorers(config, plugins, handle)
        handle.framework = Framework(Profile("batch", ()), named, handle)
        return NodeChoice(handle.framework)

    shared, whole = room.shared, room.whole
    leaving = LEAVING if config.defects.has(Defect.EVICT_IGNORES_IDLE) else FUTURE
    ignoring_resources = choice(shared)
    return ChoicesByView(
        shared=NodeChoices(
            now=choice(shared, NOW),
            later=choice(shared, leaving),
            either=choice(shared, NOW, leaving),
            ignoring_resources=ignoring_resources,
        ),
        whole=NodeChoices(
            now=choice(whole, NOW),
            later=choice(whole, leaving),
            either=choice(whole, NOW, leaving),
            ignoring_resources=ignoring_resources,
        ),
    )


def _filters(
    config: BatchConfig,
    plugins: Mapping[str, BatchPlugin],
    handle: _PluginHandle,
    jobs: JobTable,
) -> list[SchedulerPlugin]:
    found: list[SchedulerPlugin] = []
    for option in _options(config, PREDICATE):
        plugin = plugins[option.name]
        if isinstance(plugin, Predicate):
            found += plugin.predicates(handle)
    if not config.defects.has(Defect.AFFINITY_FOREIGN_POD):
        return found
    narrow = AffinityOfJobs(jobs, handle.cluster)
    return [narrow if plugin.name == AffinityOfJobs.name else plugin for plugin in found]


def _scorers(
    config: BatchConfig,
    plugins: Mapping[str, BatchPlugin],
    handle: _PluginHandle,
) -> list[tuple[SchedulerPlugin, int]]:
    found: list[tuple[SchedulerPlugin, int]] = []
    for option in _options(config, NODE_ORDER):
        plugin = plugins[option.name]
        if isinstance(plugin, NodePrioritizers):
            found += plugin.node_prioritizers(handle)
    return found


def _options(config: BatchConfig, switch: str) -> Sequence[PluginOption]:
    return [option for tier in config.tiers for option in tier if option.allows(switch)]
