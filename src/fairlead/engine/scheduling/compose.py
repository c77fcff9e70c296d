"""compose: builds the plugins, framework and preemption of each profile.

build    build each plugin of the profile, in order, from its arguments
check    check that a user's plugin has valid methods, and wrap it to catch its exceptions
meter    wrap each plugin to measure its durations, if a meter is given
wire     build the framework, the plan cache, the preemption policy and DefaultPreemption
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.engine.core.reporter import Reporter, SilentReporter
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.extension_point import Kind
from fairlead.engine.framework.fault import PluginFault
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import PointError, Profile
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.framework.trial import Trial
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.plugins.registry import IN_TREE, Factory
from fairlead.engine.scheduling.equivalence_cache.repeated_failure import RepeatedFailures
from fairlead.engine.scheduling.equivalence_cache.repeated_placement import RepeatedPlacements
from fairlead.engine.scheduling.extender.extender import Extender
from fairlead.engine.scheduling.node_sample import NodeRotation
from fairlead.engine.scheduling.preemption.args import DefaultPreemptionArgs
from fairlead.engine.scheduling.preemption.default_preemption import DefaultPreemption
from fairlead.engine.scheduling.preemption.policy import PreemptionPolicy, policy_of
from fairlead.engine.scheduling.version import V1_36, SchedulerVersion
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo


class ProfileError(ValueError):
    """Raised if a profile is invalid; the message names the plugin and the reason."""


class PluginHandle(Struct):
    """The data that plugins may read: the cluster, nominations and waiting pods.

    Failures of plugins are reported to `reporter`. `framework` is None until all plugins are built.
    """

    cluster: Cluster
    nominator: Nominator
    waiting_pods: WaitingPods = field(default_factory=WaitingPods)
    reporter: Reporter = field(default_factory=SilentReporter)
    framework: Framework | None = None

    def trial(self, state: CycleState, pod: PodInfo) -> AbstractContextManager[Trial]:
        """Start a trial (`engine.framework.trial`).

        Raises AssertionError if not all plugins are built yet.
        """
        assert self.framework is not None, "a trial calls plugins, which are not built yet"
        return self.framework.trial(state, pod)


class BuiltProfile(Struct, frozen=True):
    """The framework, caches and settings with which one profile schedules its pods.

    Both caches, `failures` and `placements`, are None if the profile has extenders or limits the
    search for nodes. In such a profile, pods with equal keys may get different decisions.
    """

    framework: Framework
    plans: PlanCache
    preemption: DefaultPreemption | None = None
    extenders: tuple[Extender, ...] = ()
    sampling: Callable[[Feasibility], None] | None = None
    # Whether failure messages include the reasons of PostFilter plugins.
    names_preemption: bool = True
    meter: Meter | None = None
    failures: RepeatedFailures | None = None  # the failures of pods, keyed by `equivalence_key`
    # The common parts of successful cycles, keyed by `EqualPods.key`.
    placements: RepeatedPlacements | None = None
    # Whether decisions depend only on the pod and the state of the cluster. This is the case if all
    # plugins are in-tree, and the profile has neither extenders nor a limited search.
    is_stateless: bool = False
    # Receives the ignored failures of calls to extenders.
    reporter: Reporter = field(default_factory=SilentReporter)

    @property
    def may_preempt(self) -> bool:
        """Whether a PostFilter plugin may preempt pods.

        DynamicResources does not count, because it only releases claims.
        """
        return any(plugin.name != "DynamicResources" for plugin in self.framework.post_filters)


class Shared(Struct, frozen=True):
    """The settings that all profiles of a scheduler share."""

    extenders: tuple[Extender, ...] = ()
    rotation: NodeRotation | None = None
    version: SchedulerVersion = V1_36

    def sampling(self, profile: Profile) -> Callable[[Feasibility], None] | None:
        """Return the function that limits the search for nodes; None if all nodes are evaluated."""
        if profile.node_percentage is None or self.rotation is None:
            return None
        return partial(self.rotation.narrow, percentage=profile.node_percentage)


def build_profile(
    profile: Profile,
    handle: PluginHandle,
    tie_break: TieBreak,
    out_of_tree: Mapping[str, Factory] | None = None,
    meter: Meter | None = None,
    shared: Shared | None = None,
) -> BuiltProfile:
    """Build everything that scheduling with `profile` needs; `meter` measures plugin durations.

    `out_of_tree` maps the names of users' plugins to their factories.

    Raises ProfileError for unknown plugin names, invalid arguments and invalid plugins.
    """
    shared = shared or Shared()
    handle = replace(handle)  # because each profile has its own trials
    factories = {**shared.version.factories, **(out_of_tree or {})}
    making = _PluginBuilder(profile, handle, factories, frozenset(out_of_tree or ()), meter)
    plugins = [
        (making.plugin(name), weight)
        for name, weight in profile.all_plugins
        if name != DefaultPreemption.name
    ]
    framework = handle.framework = making.framework(plugins)
    plans = PlanCache(framework)
    preemption = None
    if any(name == DefaultPreemption.name for name, _ in profile.all_plugins):
        policy = making.policy([plugin for plugin, _ in plugins], shared.version.preemption)
        preemption = making.preemption(plans, tie_break, policy, shared)
    sampling = shared.sampling(profile)
    is_special = bool(shared.extenders) or sampling is not None
    return BuiltProfile(
        framework,
        plans,
        preemption,
        shared.extenders,
        sampling,
        shared.version.names_preemption,
        meter,
        None if is_special else RepeatedFailures(framework),
        None if is_special else RepeatedPlacements(plans),
        is_stateless=not (is_special or out_of_tree),
        reporter=handle.reporter,
    )


class _PluginBuilder(Struct, frozen=True):
    """Builds the plugins of one profile."""

    profile: Profile
    handle: PluginHandle
    factories: Mapping[str, Factory]
    out_of_tree: frozenset[str]
    meter: Meter | None

    def plugin(self, name: str) -> Plugin:
        """Build and check the plugin `name`. Raises ProfileError if it is unknown or invalid."""
        plugin = self._built(name)
        if name not in self.out_of_tree:
            return self.metered(plugin)
        # Most schedulers have no such plugin, and these imports take half the time of a short run.
        from fairlead.engine.framework.user_plugin.guard import guarded  # noqa: PLC0415
        from fairlead.engine.framework.user_plugin.plugin_check import problem_of  # noqa: PLC0415

        problem = problem_of(plugin)
        if not problem and plugin.name != name:
            problem = f"has the attribute name {plugin.name!r}; the two must be equal"
        if problem:
            raise self._error(f"plugin {name}: {problem}")
        return guarded(self.metered(plugin), self.handle.reporter)

    def _built(self, name: str) -> Plugin:
        factory = self.factories.get(name) or IN_TREE.get(name)
        if factory is None:
            names = sorted({*IN_TREE, *self.factories, DefaultPreemption.name})
            raise self._error(f"no plugin {name!r}; known: {', '.join(names)}")
        try:
            return factory(self.handle, self.profile.args.get(name, {}))
        except (ValueError, msgspec.ValidationError) as cause:
            raise self._error(f"pluginConfig {name}: {cause}") from None

    def preemption(
        self, plans: PlanCache, tie_break: TieBreak, policy: PreemptionPolicy, shared: Shared
    ) -> DefaultPreemption | None:
        """Add the profile's DefaultPreemption, if any, to the framework; return it, else None."""
        framework, name = plans.framework, DefaultPreemption.name
        try:
            args = msgspec.convert(dict(self.profile.args.get(name, {})), DefaultPreemptionArgs)
        except (ValueError, msgspec.ValidationError) as cause:
            raise self._error(f"pluginConfig {name}: {cause}") from None
        consults = any(extender.preempt_verb for extender in shared.extenders)
        made = DefaultPreemption(plans, tie_break, policy, args, consults=consults)
        framework.add_post_filter(self.metered(made))
        return made if any(plugin.name == name for plugin in framework.post_filters) else None

    def metered(self, plugin: Kind) -> Kind:
        """Wrap `plugin` to measure its durations; return it unchanged if there is no meter."""
        return plugin if self.meter is None else self.meter.measured(plugin)

    def framework(self, plugins: list[tuple[Plugin, int]]) -> Framework:
        """Build the framework with `plugins`, which are (plugin, weight) pairs.

        Raises ProfileError if the plugins at an extension point are invalid (see PointError), or if
        there is no Bind plugin.
        """
        try:
            found = Framework(self.profile, plugins, self.handle)
        except PointError as cause:
            raise self._error(str(cause)) from None
        if not found.bind:
            raise self._error("at least one bind plugin is needed")
        return found

    def policy(self, plugins: list[Plugin], default: PreemptionPolicy) -> PreemptionPolicy:
        """Return the preemption policy `default` with the changes that `plugins` define.

        Raises ProfileError if a plugin fails.
        """
        try:
            return policy_of(plugins, default)
        except PluginFault as fault:
            raise self._error(str(fault)) from None

    def _error(self, problem: str) -> ProfileError:
        return ProfileError(f"profile {self.profile.scheduler_name}: {problem}")
