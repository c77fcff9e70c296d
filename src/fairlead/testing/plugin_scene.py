"""PluginScene: a small cluster for tests of scheduler plugins.

    scene = PluginScene(Spread, nodes=[make_node("a"), make_node("b")])
    scene.add(make_pod("web-0", node="a"))
    scene.schedule(make_pod("web-1"))                    # "b", or "" if no node fits
    scene.evaluate(make_pod("web-2")).verdicts["a"]      # why not

The plugins run at the position that the option `--plugin` gives them. The plugins are checked, and
their exceptions are handled, as in a run. A scene calls the methods that choose a node, from
`pre_filter` to `normalize_scores`, and `post_filter`. `evaluate` also calls `pre_enqueue`. A scene
does not call the methods that run after the choice of a node (`reserve`, `permit`, `pre_bind`, …).
A test can call these methods itself, on the instance in `scene.plugins`. A test can also call these
methods on `scene.profile.framework.find(NAME)`, which checks the results as in a run.

A run caches the results of plugins with the locality NODE or ROW. If a plugin declares the wrong
locality, cached results are out of date. So for each pod, a scene calls these plugins again, and
raises AssertionError if the results differ from the cached results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from fairlead.api.objects import ApiObject, Pod
from fairlead.engine.core.reporter import Record
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.interface import Plugin, PostFilterResult
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.framework.plan.shape_plan import ShapePlan
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.framework.user_plugin.plugin_factory import Factory, factory_of, with_plugin
from fairlead.engine.plugins.registry import IN_TREE
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.cycle import schedule_one
from fairlead.engine.scheduling.decision import Failure, Placement
from fairlead.engine.scheduling.evaluation import Evaluation, evaluate
from fairlead.engine.scheduling.extender.consultation import run_consultation
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo


class PluginScene:
    """A cluster and one scheduler profile, for testing plugins without an API server.

    `plugins` maps names to the instances of the given plugin classes. `cluster` is the scheduler's
    state, and `nominator` holds the nominated nodes of pods. `profile` is the scheduler profile
    with its plugins. `reports` contains the scheduler's reports.
    """

    def __init__(
        self,
        *plugins: type,
        nodes: Iterable[ApiObject] = (),
        args: Mapping[str, Mapping[str, Any]] | None = None,
        profile: Profile | None = None,
        seed: int = 0,
    ) -> None:
        """Build the cluster with `nodes`, and the scheduler with `profile` and `plugins` (classes).

        `args` maps plugin names to their arguments. A plugin that `profile` does not name runs
        after the plugins that `profile` names. `seed` decides between nodes with equal scores.
        Raises ValueError (or its subclass ProfileError) if a plugin cannot be used, or has the same
        name as another plugin. Also raises ValueError if `args` names a plugin that the scene does
        not have.
        """
        self.plugins: dict[str, Any] = {}
        self.cluster = Cluster()
        self.nominator = Nominator()
        self.reports: list[Record] = []
        profile = profile or Profile()
        profile = replace(profile, args={**profile.args, **(args or {})})
        factories: dict[str, Factory] = {}
        for plugin in plugins:
            name = _name(plugin)
            if name in factories:
                raise ValueError(f"plugin {name!r} is given twice")
            factories[name] = self._keeping(name, factory_of(plugin))
            if name not in dict(profile.all_plugins):
                profile = with_plugin(profile, name, plugin, 1)
        unknown = [name for name in args or {} if name not in dict(profile.all_plugins)]
        if unknown:
            raise ValueError(f"args: the scene has no plugin {unknown[0]!r}")
        handle = PluginHandle(self.cluster, self.nominator, reporter=self)
        self._tie_break = TieBreak(seed)
        self.profile = build_profile(profile, handle, self._tie_break, factories)
        self.add(*nodes)

    def _keeping(self, name: str, factory: Factory) -> Factory:
        """Return a factory that calls `factory` and stores the result in `plugins[name]`."""

        def make(handle: Handle, args: Mapping[str, Any]) -> Plugin:
            made = self.plugins[name] = factory(handle, args)
            return made

        return make

    def report(self, record: Record) -> None:
        """Append `record` to `reports`; the scene is its own Reporter."""
        self.reports.append(record)

    def add(self, *objects: ApiObject) -> None:
        """Add objects to the cluster, or replace the objects of the same name."""
        for one in objects:
            self.cluster.apply(ObjectChanged(one))

    def remove(self, *objects: ApiObject) -> None:
        """Remove objects from the cluster."""
        for one in objects:
            self.cluster.apply(ObjectDeleted(one))

    def nominate(self, pod: Pod, node: str) -> None:
        """Nominate `node` for `pod`, as after a preemption."""
        self.nominator.nominate(self.info(pod), node)

    def schedule(self, pod: Pod) -> str:
        """Schedule `pod`; return the name of its node, or "" if no node fits.

        If a node fits, the pod is assumed on it. `permit` cannot reject the pod, because a scene
        does not call `permit`. Raises RuntimeError if the cycle fails with an error. Raises
        AssertionError if a plugin declares the wrong locality.
        """
        decision = self.decide(pod)
        if isinstance(decision, Failure):
            if decision.is_error:
                raise RuntimeError(decision.message)
            return ""
        self.cluster.assume(self.info(pod), decision.node.name)
        return decision.node.name

    def decide(self, pod: Pod) -> Placement | Failure:
        """Choose a node for `pod`; return the result without placing the pod.

        Raises AssertionError if a plugin declares the wrong locality.
        """
        info = self.info(pod)
        decision = run_consultation(schedule_one(self.profile, info, self._tie_break))
        self._check_localities(info)
        return decision

    def _check_localities(self, pod: PodInfo) -> None:
        """Compare the cached results for `pod` with new results of the same plugins."""
        used = self.profile.plans.plan_for(pod)
        suspects = [name for name in self.plugins if name in used.split.local_names]
        if not suspects:
            return
        new = PlanCache(self.profile.framework).plan_for(pod)
        for node in self.cluster.table.nodes():
            before, after = _local_result(used, node), _local_result(new, node)
            if before != after:
                raise AssertionError(
                    f"the locality of plugin {' or '.join(suspects)} is wrong: for pod {pod.key}, "
                    f"the cached result for node {node.name} is {before}, but the plugin now "
                    f"returns {after}. With NODE, a result must depend only on the Node and on "
                    "pod.shape, with ROW also on the pods on the node; otherwise use CLUSTER."
                )

    def make_room(self, pod: Pod) -> PostFilterResult | None:
        """Return the result of the PostFilter plugins for `pod`.

        Returns None if the pod fits on a node, or if no PostFilter plugin returned a result.
        """
        decision = self.decide(pod)
        return decision.post_filter_result if isinstance(decision, Failure) else None

    def evaluate(self, pod: Pod) -> Evaluation:
        """Return the verdict and the scores of every node for `pod`."""
        return evaluate(self.profile, self.info(pod))

    def info(self, pod: Pod) -> PodInfo:
        """Return `pod` in the form in which plugins receive it."""
        return PodInfo(pod, self.cluster.shapes.shape_of(pod))


def _local_result(plan: ShapePlan, node: NodeInfo) -> str:
    """Return a text with the result for `node` of the plugins with the locality NODE or ROW."""
    at = plan.position(node.row)
    if at is None:
        return "excluded"
    if code := int(plan.codes[at]):
        status = plan.statuses[code]
        return f"rejected ({status.message})"
    scores = {name: int(raw[at]) for name, raw in plan.static.raw_scores.items()}
    normalized = "".join(f", {name} {score}" for name, score in scores.items() if score)
    return f"score {int(plan.total[at])}{normalized}"


def _name(plugin: type) -> str:
    """Return the name of `plugin`.

    Raises ValueError if `plugin` has no name, or if a built-in plugin has the same name.
    """
    name = getattr(plugin, "name", None)
    if not isinstance(name, str):
        raise ValueError(f"{plugin.__name__} has no name")  # noqa: TRY004 - bad input, one line
    if name in IN_TREE:
        raise ValueError(f"{plugin.__name__} has the name {name}, which is a built-in plugin")
    return name
