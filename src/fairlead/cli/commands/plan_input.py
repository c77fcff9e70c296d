"""PlanInput: the input of a planning command, read from a snapshot and from common options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from fairlead.api.objects import Node, Pod, ResourceList
from fairlead.apiserver.kind import NODE, POD, STATEFUL_SET
from fairlead.cli.options.connection import ConnectionOptions, snapshot_of
from fairlead.cli.options.plan import PresentOptions
from fairlead.cli.options.pod_time import NO_POD_TIMES, PodTimeOptions
from fairlead.cli.options.release import ReleaseOptions
from fairlead.cli.output.console.progress_bar import ProgressBar
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions, with_scheduler_arguments
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    ADDS_NODES,
    NO_AUTOSCALING,
    AutoscaleOptions,
    unsimulated_in_plan,
)
from fairlead.whatif.configuration.autoscaling.instance_type_file import (
    StatedType,
    read_instance_types,
)
from fairlead.whatif.configuration.autoscaling.karpenter.config import node_pools
from fairlead.whatif.configuration.kwok_stage import read_stages
from fairlead.whatif.configuration.release import ReleaseChoice, Releases, read_release
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.configuration.stored_configuration import chosen_configuration
from fairlead.whatif.configuration.user_plugin import UserPlugins
from fairlead.whatif.input.strict_form import field_duration
from fairlead.whatif.outcome.image_platform import ImagePlatforms
from fairlead.whatif.planner.baseline import baseline_experiment, read_baseline
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.missing_pod import (
    preempted_for_good,
    refusal_notes,
    with_missing_pods,
)
from fairlead.whatif.planner.new_pod import PodFile
from fairlead.whatif.planner.node_drain.autoscaler_rule import (
    AutoscalerRules,
    IgnoredRule,
    installed_rules,
)
from fairlead.whatif.planner.node_drain.drain_plan import DrainPlan
from fairlead.whatif.planner.node_drain.drain_planner import DrainPlanner
from fairlead.whatif.planner.node_drain.drain_run import DrainRun
from fairlead.whatif.planner.plan_note import error_notes, rules_notes, with_simulation
from fairlead.whatif.planner.pool_limit import group_size_lines, limit_lines
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.run_note import unchecked_notes
from fairlead.whatif.snapshot.due_cron_job import due_cron_job_notes
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest, Manifests, entries_of
from fairlead.whatif.snapshot.node_pool import name_of_node
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.whatif.snapshot.unready_pod import unready_note, unready_pods
from fairlead.whatif.snapshot.unsimulated_controller import NO_LOST_PODS


@dataclass(frozen=True, slots=True)
class PlanInput:
    """The snapshot of a planning command, and the values of its common options.

    `model` is the cluster of the snapshot, in which the command places pods. `input_notes` are the
    notes about the input. `startup` and `stages` are the time of --startup-time and the Stages of
    --kwok-stages.
    """

    snapshot: Snapshot
    inventory: Inventory
    model: ClusterModel
    scheduler: SchedulerConfig
    release: ReleaseChoice
    seed: int
    input_notes: tuple[str, ...]
    startup: DurationNs | None = None
    stages: tuple[Manifest, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes about the input, and about the placements in `model` so far."""
        return (
            *error_notes(self.model.errors),
            *rules_notes(self.model),
            *self.input_notes,
            *unchecked_notes(self.model.unchecked, self.snapshot.manifests),
        )

    def notes_with(self, runs: Sequence[DrainRun], experiment: Experiment) -> tuple[str, ...]:
        """Return `notes` and the notes of `experiment`; `runs` are its simulations of drains.

        A run has notes about the rules that it did not apply. These notes are similar for all runs.
        Therefore the result contains these notes of only one run.
        """
        rules = next((run.rule_notes for run in runs if run.rule_notes), ())
        notes = with_simulation(self.notes) if runs else self.notes
        return (*notes, *rules, *experiment.notes)

    def idle_autoscaler(self, effect: str) -> tuple[str, ...]:
        """Return notes about autoscalers that are not simulated; see `unsimulated_in_plan`."""
        return unsimulated_in_plan(self.snapshot.manifests, effect)

    def notes_of(self, plan: DrainPlan, experiment: Experiment | None = None) -> tuple[str, ...]:
        """Return the notes about `plan`.

        `experiment` is the simulation of the plan; None if the plan was not simulated.
        """
        idle = self.idle_autoscaler(ADDS_NODES) if plan.lacks_room else ()
        idle = (*idle, *self.image_notes(plan))
        if experiment is None:
            return tuple(dict.fromkeys((*idle, *self.notes)))
        again = {move.pod for drain in plan.drains for move in drain.moves}
        unready = unready_pods(self.snapshot.manifests, again)
        assumed = [unready_note(unready)] if unready else []
        start = self.snapshot.taken_at
        end = start + max((run.took or 0 for run in plan.runs), default=0)
        due = due_cron_job_notes(self.snapshot.manifests, start, end, "During the drains")
        notes = self.notes_with(plan.runs, experiment)
        return tuple(dict.fromkeys((*idle, *notes, *assumed, *due)))

    def image_notes(self, plan: DrainPlan) -> tuple[str, ...]:
        """Return a note about moved pods whose images may not support the platform of the new node.

        The new nodes are the nodes on which the pods run again in `plan.best`, the fastest
        simulated drain that is safe. If no drain is safe, the new nodes are the targets of the
        moves in `plan`.
        """
        if plan.best is not None:
            return plan.best.image_notes
        return self.notes_of_moves(
            {move.pod: move.target for drain in plan.drains for move in drain.moves}
        )

    def notes_of_moves(self, moves: Mapping[str, str]) -> tuple[str, ...]:
        """Return a note about moved pods whose images may not support the platform of the new node.

        Returns () if there are no such pods. `moves` maps the key (`namespace/name`) of each moved
        pod to its new node.
        """
        pods = (one.pod for one in self.snapshot.manifests if one.kind is POD)
        return self.platform_notes((pod, moves[pod.key]) for pod in pods if pod.key in moves)

    def platform_notes(self, placed: Iterable[tuple[Pod, str]]) -> tuple[str, ...]:
        """Return a note about pods whose images may not support the platform of their node.

        Returns () if there are no such pods. `placed` contains pairs (pod, name of its node).
        """
        images = self.images
        if images.are_alike:
            return ()
        found = ((pod, self.model.find_node(node)) for pod, node in placed)
        # Surge nodes are not in the model; they have the platform of the nodes that they replace.
        return tuple(images.notes((pod, node.name, node.labels) for pod, node in found if node))

    @property
    def images(self) -> ImagePlatforms:
        """The platforms of the snapshot's nodes, and the platforms of its images."""
        return ImagePlatforms.of(self.snapshot.manifests)

    def instance_types(self, files: str | None) -> list[StatedType]:
        """Return the instance types in the files of --instance-types. Raises InputError."""
        if files is None:
            return []
        return read_instance_types(files, sorted(self._nodes, key=name_of_node))

    @property
    def node_pools(self) -> list[NodePool]:
        """The NodePools of Karpenter in the snapshot. Raises InputError for an invalid one."""
        return node_pools(self.snapshot.manifests)

    def limit_lines(self, planned: Sequence[tuple[Node, ResourceList]]) -> tuple[str, ...]:
        """Return a sentence for each limit that the nodes of a plan violate.

        `planned` are these nodes, each with its capacity. The limits are those of NodePools and
        node groups (`planner.pool_limit`). Raises InputError for an invalid NodePool.
        """
        return limit_lines(planned, self._nodes, self.node_pools, self.snapshot.manifests)

    def group_size_lines(self, removed: Collection[str]) -> tuple[str, ...]:
        """Return a sentence for each node group that is too small without the nodes `removed`."""
        staying = [one for one in self._nodes if one.metadata.name not in removed]
        return tuple(group_size_lines(staying, self._nodes, self.snapshot.manifests))

    def planner(self) -> DrainPlanner:
        """Place the pending pods in `model`, and return a planner of drains for `model`."""
        return DrainPlanner.at_rest(self.model)

    def autoscaler_rules(self, ignored: Iterable[str]) -> AutoscalerRules:
        """Return the rules of autoscalers, except the rules named in `ignored`."""
        rules = [IgnoredRule(one) for one in ignored]
        return installed_rules(self.model, self.snapshot.manifests, rules)

    @property
    def _nodes(self) -> list[Node]:
        return [one.node for one in self.snapshot.manifests if one.kind is NODE]

    @property
    def experiment(self) -> Experiment:
        """The simulation of the snapshot without any change. Raises InputError."""
        return baseline_experiment(
            self.snapshot, self.scheduler, self.release, self.seed, self.startup, self.stages
        )

    def nodes(self, option: str, texts: Iterable[str]) -> list[str]:
        """Return the names of the nodes that `texts` (names or selectors) match.

        `option` is the name of the option that contains `texts`. Raises InputError, with `option`
        in its message, if one of `texts` matches no node or is malformed.
        """
        return list(
            dict.fromkeys(name for one in texts for name in self.inventory.nodes(option, one))
        )


def read_plan_input(
    source: str | None,
    connection: ConnectionOptions,
    present: PresentOptions,
    release: ReleaseOptions,
    progress: ProgressBar,
    autoscale: AutoscaleOptions = NO_AUTOSCALING,
    *,
    places_gangs: bool = False,
    removes_pods: bool = True,
    pod_file: PodFile | None = None,
    plans_nodes: bool = False,
    change: ClusterChange | None = None,
    pod_times: PodTimeOptions = NO_POD_TIMES,
) -> PlanInput:
    """Read the snapshot at `source`, or the cluster of `connection`. Raises InputError.

    `autoscale` says whether an autoscaler acts in the plan, and which one. `places_gangs` is set if
    the plan places the pods of the batch scheduler. `removes_pods` is set if the plan may remove
    pods from their nodes. The objects that the pods of `pod_file` need are added to the snapshot.
    The plan begins after `change`, which may apply files and scale workloads. `plans_nodes` is set
    if the plan chooses new nodes. In this case, the pods that are missing because the present nodes
    are full are also added (see `missing_pod`). `pod_times` apply to the simulation of the plan.
    """
    startup = field_duration("--startup-time", "", pod_times.startup_time or None)
    stages = tuple(read_stages(pod_times.kwok_stages))
    version = read_release(release.choice)
    plugins = UserPlugins(present.plugin)
    progress.begin("reading", 0)
    snapshot = snapshot_of(source, connection, present.max_input, progress)
    notes: tuple[str, ...] = ()
    if pod_file is not None and pod_file.others:
        known = snapshot.inventory()
        notes = tuple(pod_file.notes(known))
        added = pod_file.needed(known)
        snapshot = replace(snapshot, manifests=Manifests((*entries_of(snapshot.manifests), *added)))
    scheduler = read_scheduler_config(
        present.config and chosen_configuration("--config", present.config, snapshot.manifests),
        plugins,
        version,
        allow_extenders=present.allow_extenders,
    )
    conditions = Conditions(
        config=present.config,
        plugin=tuple(present.plugin),
        allow_extenders=present.allow_extenders,
        releases=Releases(version, version),
    )
    snapshot = with_scheduler_arguments(snapshot, conditions)
    changed = None
    if change is not None:
        # Imported only if it is needed, because it reads the schemas of all kinds.
        from fairlead.whatif.planner.changed_snapshot import changed_snapshot

        changed = changed_snapshot(snapshot, change, present.seed)
        snapshot = changed.snapshot
    progress.begin("loading", 0)
    base = read_baseline(
        snapshot,
        scheduler,
        release.choice,
        progress,
        seed=present.seed,
        autoscale=autoscale,
        places_gangs=places_gangs,
        lost=None if removes_pods else NO_LOST_PODS,
        about=lambda pod: removes_pods or plans_nodes or not pod.pod.spec.node_name,
    )
    pods = () if changed is None else changed.pods
    stateful_sets = frozenset() if changed is None else changed.stateful_sets
    if plans_nodes:
        pods = (*pods, *preempted_for_good(base, snapshot))
        stateful_sets = frozenset(
            one.ref.key for one in base.snapshot.manifests if one.kind is STATEFUL_SET
        )
    if pods or stateful_sets:
        base = with_missing_pods(base, pods, stateful_sets, scheduler, present.seed)
    about_change = () if changed is None else (*changed.notes, *refusal_notes(base, changed.others))
    return PlanInput(
        base.snapshot,
        base.snapshot.inventory(),
        base.model,
        scheduler,
        release.choice,
        present.seed,
        (*notes, *about_change, *base.notes),
        startup,
        stages,
    )
