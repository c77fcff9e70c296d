"""From profiles to what serves them: the one place where plugins are put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from fairlead.core.tie_break import TieBreak
from fairlead.framework.interface import Plugin
from fairlead.framework.nominator import Nominator
from fairlead.framework.profile import Profile
from fairlead.framework.runtime import Framework
from fairlead.framework.waiting_pods import WaitingPods
from fairlead.plugins.registry import IN_TREE, Factory
from fairlead.scheduling.plan_cache import PlanCache
from fairlead.scheduling.preemption.default_preemption import DefaultPreemption
from fairlead.scheduling.preemption.dry_run import DryRuns
from fairlead.state.cluster import Cluster


class ProfileError(ValueError):
    """A profile that cannot be served; says which plugin and why."""


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What plugins may read (`fairlead.framework.runtime.Handle`)."""

    cluster: Cluster
    nominator: Nominator
    waiting_pods: WaitingPods = field(default_factory=WaitingPods)


@dataclass(frozen=True, slots=True)
class Served:
    """One profile, ready to schedule."""

    framework: Framework
    plans: PlanCache
    preemption: DefaultPreemption | None


def serve(
    profile: Profile,
    beliefs: Beliefs,
    tie_break: TieBreak,
    out_of_tree: Mapping[str, Factory] | None = None,
) -> Served:
    """Build the plugins of `profile`. Raises ProfileError for unknown names and bad arguments."""
    registry = {**IN_TREE, **(out_of_tree or {})}
    plugins = [
        (_build(name, registry, profile, beliefs), weight)
        for name, weight in profile.plugins
        if name != DefaultPreemption.name
    ]
    framework = Framework(profile, plugins, beliefs)
    plans = PlanCache(framework)
    preemption = None
    if any(name == DefaultPreemption.name for name, _ in profile.plugins):
        preemption = DefaultPreemption(DryRuns(plans), tie_break)
        framework.add_post_filter(preemption)
    return Served(framework, plans, preemption)


def _build(
    name: str, registry: Mapping[str, Factory], profile: Profile, beliefs: Beliefs
) -> Plugin:
    factory = registry.get(name)
    if factory is None:
        known = ", ".join(sorted([*registry, DefaultPreemption.name]))
        raise ProfileError(f"profile {profile.scheduler_name}: no plugin {name!r}; known: {known}")
    try:
        return factory(beliefs, profile.args.get(name, {}))
    except (ValueError, msgspec.ValidationError) as cause:
        raise ProfileError(
            f"profile {profile.scheduler_name}: pluginConfig {name}: {cause}"
        ) from None
