"""what_if: runs a cluster with and without a change and compares the two runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from fairlead.api.json import Json
from fairlead.api.well_known_label import ZONE
from fairlead.apiserver.kind import NODE
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import WorkloadLoads
from fairlead.whatif.change.arrival import arriving_together, rearranged
from fairlead.whatif.change.cluster_change import ClusterChange, script_of_change
from fairlead.whatif.change.kubectl_drain import KubectlDrain
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    NO_AUTOSCALING,
    AutoscaleOptions,
    read_autoscalers,
)
from fairlead.whatif.configuration.autoscaling.provider_settings import (
    DEFAULT_PROVIDER,
    ProviderSettings,
    with_provider,
)
from fairlead.whatif.configuration.batch.options import DEFAULT_BATCH_OPTIONS, BatchOptions
from fairlead.whatif.configuration.controller_manager import DEFAULT
from fairlead.whatif.configuration.release import CURRENT_RELEASES, Releases
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.configuration.stored_configuration import (
    PREFIXES,
    configuration_note,
    stored_configuration,
)
from fairlead.whatif.configuration.user_plugin import UserPlugins
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.seeded_choice import shuffled
from fairlead.whatif.outcome.assessment.certainty import (
    CertaintyRow,
    SeedOutcome,
    certainty,
    order_matters,
    seed_outcome,
)
from fairlead.whatif.outcome.assessment.verdict import Verdict, verdict_of
from fairlead.whatif.outcome.comparison.difference import Difference
from fairlead.whatif.outcome.comparison.effect import Effect, effect_of
from fairlead.whatif.outcome.outage import OutageOutcome
from fairlead.whatif.outcome.packing import PackingRow, packing
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.outcome.start_time import StartTimes
from fairlead.whatif.run.allocation import nodes_in
from fairlead.whatif.run.experiment import HORIZON_DEFAULT, Experiment, with_batch
from fairlead.whatif.run.experiment_run import CommandLog, run_experiment
from fairlead.whatif.run.pod_timing.runtime import (
    Runtimes,
    StatedRuntime,
    coverage,
    runtimes_in,
    unmatched,
)
from fairlead.whatif.run.progress import NoProgress, Progress
from fairlead.whatif.run.run_pair import run_pair
from fairlead.whatif.run.simulated_kubelet import SimulatedKubelets, read_stages, simulated_kubelets
from fairlead.whatif.run.start_time import start_times
from fairlead.whatif.snapshot.dump_note import dump_notes
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.live_resource import unreadable_lines
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import pool_label
from fairlead.whatif.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from fairlead.worlds.decision_log import Logging


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Settings that both runs share.

    `horizon` is the longest virtual time (ns) after the last step. `config` is the current
    KubeSchedulerConfiguration, None for kube-scheduler's defaults, and `plugin` contains the
    current plugins. `batch` configures the batch scheduler. `autoscale` is the autoscaler that adds
    and removes nodes in both runs; `provider` describes the cloud's delivery of machines to the
    autoscaler. `instance_types` is the file with the types of new nodes, `load` the file with the
    loads of workloads. `seeds` is the number of runs that measure the certainty of the answer;
    their seeds count up from `seed`. `startup` is the time (ns) that every pod takes to start; with
    None, the times of each workload are taken from the dump. `kwok_stages` contains files of KWOK
    Stages in addition to the Stages in the snapshot. `runtimes` is the file with the runtimes of
    pods, in addition to the runtimes that the dump shows.
    """

    seed: int = 0
    seeds: int = 1
    horizon: DurationNs = HORIZON_DEFAULT
    node_lifecycle: NodeLifecycleConfig = DEFAULT
    releases: Releases = CURRENT_RELEASES
    config: str | None = None
    plugin: tuple[str, ...] = ()
    allow_extenders: bool = False
    batch: BatchOptions = DEFAULT_BATCH_OPTIONS
    instance_types: str | None = None
    startup: DurationNs | None = None
    kwok_stages: tuple[str, ...] = ()
    runtimes: str | None = None
    autoscale: AutoscaleOptions = NO_AUTOSCALING
    provider: ProviderSettings = DEFAULT_PROVIDER
    load: str | None = None


SEEDS_MAX: Final = 1_000
DRAWS_DEFAULT: Final = 20
_MANY_WAIT: Final = ("pods wait", "their start times")
UNCHANGED: Final = "without a change"
REVERSED: Final = "with the change, in reverse order"
_ARRIVAL: Final = 1 << 41  # differs from the purposes of node selection and scenario events
DEFAULT_CONDITIONS: Final = Conditions()
PODS_STAY: Final = (
    "Running pods stay where they are: a scheduler decides only about pods that wait. With "
    "--reschedule all, or --reschedule and a label selector, both runs place running pods anew."
)
IN_BOTH_RUNS: Final = (
    "--config, --plugin and --batch-config act in both runs; --new-config, --new-plugin and "
    "--new-batch-config act in the run with the change only."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfAnswer:
    """Both runs of a what-if, the effect of the change, and its verdict.

    `source` is the snapshot as the user named it; `releases` contains the versions of both runs.
    `scheduler_config` is the file of the run without the change, "" for kube-scheduler's defaults,
    and `scheduler_plugins` contains the user's plugins in that run.
    """

    source: str
    change: ClusterChange
    seed: int
    releases: Releases = CURRENT_RELEASES
    scheduler_config: str = ""
    scheduler_plugins: tuple[str, ...] = ()
    effect: Effect
    verdict: Verdict
    seeds: int = 1
    certainty: tuple[CertaintyRow, ...] = ()
    start_times: StartTimes | None = None

    @property
    def scheduler_words(self) -> str:
        """The scheduler configuration and plugins of the run without the change."""
        config = self.scheduler_config
        words = f"scheduler {config}" if config else "default scheduler"
        plugins = ", ".join(self.scheduler_plugins)
        return f"{words} with {plugins}" if plugins else words

    @property
    def pool_label(self) -> str:
        """The label key that divides the nodes into pools; "" if there is none.

        It is the label by which the change selects nodes, or else the label of managed node pools.
        If the cluster has no managed pools and loses a zone, it is the zone label.
        """
        nodes = (*self.changed.nodes, *self.without.nodes)
        managed = pool_label(node.labels for node in nodes)
        zone = ZONE if self.change.failures.fail_zone else ""
        return self.change.node_label or managed or zone

    @property
    def without(self) -> RunOutcome:
        """The run without the change."""
        return self.effect.without

    @property
    def changed(self) -> RunOutcome:
        """The run with the change."""
        return self.effect.changed

    @property
    def difference(self) -> Difference:
        """The differences between the pods of both runs."""
        return self.effect.difference

    @property
    def packing(self) -> tuple[PackingRow, ...]:
        """The placements that --reschedule compares."""
        return self.effect.packing

    @property
    def outage(self) -> OutageOutcome | None:
        """The outage in the run with the change; None if the other run has the same outage.

        Two outages are the same if their nodes and lost pods are equal; cordons and new pods are
        ignored.
        """
        changed, without = self.changed.outage, self.without.outage
        if changed is None or without is None:
            return changed
        is_same = (changed.nodes, changed.lost) == (without.nodes, without.lost)
        return None if is_same else changed


def what_if(
    snapshot: Snapshot,
    change: ClusterChange,
    conditions: Conditions = DEFAULT_CONDITIONS,
    *,
    progress: Progress | None = None,
    command_log: CommandLog | None = None,
    logging: Logging | None = None,
) -> WhatIfAnswer:
    """Run `snapshot` with and without `change` and compare the runs. Raises InputError.

    The run without the change comes first. It shows the time at which the cluster comes to rest;
    the other run makes the change at that time. `command_log` receives the commands of the run with
    the change. `logging` wraps the reporter of that run in a reporter that logs decisions.
    """
    check_seeds(conditions.seeds)
    stated = _stated_runtimes(conditions)
    pair = _experiments(snapshot, change, conditions)
    progress = progress or NoProgress()
    before, after = run_pair(pair.without, pair.changed, progress, command_log, logging)
    effect = _effect(pair, snapshot, conditions, before, after)
    notes = [*pair.notes, *_scheduler_notes(change, conditions, effect)]
    notes += _order_note(pair, effect, progress)
    known = _runtimes(snapshot, stated, after)
    starts = _start_times(snapshot, change, conditions, known, after, progress)
    notes += _runtime_notes(snapshot, known, after, starts)
    notes += _startup_note(pair, effect, conditions)
    if notes:
        effect = replace(effect, changed=replace(after, notes=(*notes, *after.notes)))
    verdict = verdict_of(effect)
    others = _other_seeds(snapshot, change, conditions, progress)
    outcomes = [seed_outcome(effect, verdict), *others]
    return WhatIfAnswer(
        source=snapshot.source,
        change=change,
        seed=conditions.seed,
        releases=pair.changed.followed,
        scheduler_config=conditions.config or "",
        scheduler_plugins=tuple(conditions.plugin),
        effect=effect,
        verdict=verdict,
        seeds=len(outcomes),
        certainty=certainty(outcomes) if len(outcomes) > 1 else (),
        start_times=starts,
    )


def _effect(
    pair: _Experiments,
    snapshot: Snapshot,
    conditions: Conditions,
    without: RunOutcome,
    changed: RunOutcome,
) -> Effect:
    """Return the effect; with --reschedule, it includes the packings. Raises InputError."""
    if not pair.is_rescheduled:
        return effect_of(without, changed, pair.drain)
    # Starts of rescheduled pods are not activity that was under way in the dump.
    under_way = tuple(one for one in without.rest.activities if one.created or one.deleted)
    without = replace(without, rest=replace(without.rest, activities=under_way))
    effect = effect_of(without, changed, pair.drain)
    return replace(effect, packing=_packing(snapshot, conditions, effect))


def _packing(snapshot: Snapshot, conditions: Conditions, effect: Effect) -> tuple[PackingRow, ...]:
    """Return measures of the placements in the dump and of both runs. Raises InputError."""
    from fairlead.whatif.configuration.autoscaling.instance_type_file import (  # noqa: PLC0415
        read_instance_types,
    )
    from fairlead.whatif.configuration.autoscaling.node_price import price_of_labels  # noqa: PLC0415

    file = conditions.instance_types
    known = {one.name: one for one in ([] if file is None else read_instance_types(file))}
    return packing(
        nodes_in(snapshot.manifests),
        effect.without.nodes,
        effect.changed.nodes,
        lambda node: price_of_labels(known, node.labels),
    )


def _scheduler_notes(
    change: ClusterChange, conditions: Conditions, effect: Effect
) -> Iterator[str]:
    """Yield the reasons why another scheduler configuration or plugin makes no difference."""
    if not effect.difference.is_empty:
        return
    is_named = bool(conditions.config or conditions.plugin or conditions.batch.source)
    if is_named and not replace(change, reschedule="").words:
        yield IN_BOTH_RUNS
    elif not change.changes_scheduler:
        return
    if not change.reschedule and effect.changed.placed():
        yield PODS_STAY


def waiting_starts(
    snapshot: Snapshot, conditions: Conditions, progress: Progress | None = None
) -> StartTimes | None:
    """Return the start times of the pods in `snapshot` that wait, if nothing changes.

    The times count from the snapshot. Return None if they are unknown. Raises InputError.
    """
    check_seeds(conditions.seeds)
    stated, progress = _stated_runtimes(conditions), progress or NoProgress()
    experiment = replace(_experiments(snapshot, ClusterChange(), conditions).without, steps_begin=0)
    outcome = run_experiment(experiment, UNCHANGED, progress).outcome
    known = _runtimes(snapshot, stated, outcome)
    return _start_times(snapshot, ClusterChange(), conditions, known, outcome, progress)


def check_seeds(seeds: int) -> None:
    """Raise InputError if `seeds` is not an allowed value of --seeds."""
    if not 1 <= seeds <= SEEDS_MAX:
        raise InputError("--seeds", f"{seeds} is not from 1 to {SEEDS_MAX}")


def _stated_runtimes(conditions: Conditions) -> tuple[StatedRuntime, ...]:
    """Return the runtimes in the file of --runtimes. Raises InputError."""
    if conditions.runtimes is None:
        return ()
    from fairlead.whatif.run.pod_timing.runtime_file import read_runtimes  # noqa: PLC0415

    return read_runtimes(conditions.runtimes)


def _runtimes(
    snapshot: Snapshot, stated: tuple[StatedRuntime, ...], outcome: RunOutcome
) -> Runtimes:
    """Return the runtimes `stated` and, if pods wait at the end of the run, the dump's runtimes."""
    if not any(one.until is None for one in outcome.waits):
        return Runtimes(stated)
    return runtimes_in(snapshot.manifests, stated)


def _start_times(
    snapshot: Snapshot,
    change: ClusterChange,
    conditions: Conditions,
    known: Runtimes,
    after: RunOutcome,
    progress: Progress,
) -> StartTimes | None:
    """Return the start times of the pods that wait at the end of `after`; None if they are unknown.

    The times are simulated with each of --seeds; with --runtimes alone, with `DRAWS_DEFAULT` seeds.
    """
    if not any(one.until is None for one in after.waits):
        return None
    if conditions.seeds == 1 and conditions.runtimes is None:
        return None
    covered = coverage(known, snapshot.manifests, snapshot.taken_at)
    if not covered.known:
        return None
    draws = conditions.seeds if conditions.seeds > 1 else DRAWS_DEFAULT
    experiments = [
        _rearranged(_experiments(snapshot, change, replace(conditions, seed=seed)).changed, number)
        for number, seed in enumerate(range(conditions.seed, conditions.seed + draws))
    ]
    return start_times(experiments, after, known, covered, progress)


def _runtime_notes(
    snapshot: Snapshot, known: Runtimes, after: RunOutcome, starts: StartTimes | None
) -> Iterator[str]:
    """Yield notes about the basis of the start times and about stated runtimes that match no pod.

    Without start times, the note says how to get them.
    """
    if starts is not None:
        yield starts.words
    elif (count := sum(one.until is None for one in after.waits)) and known.is_given:
        covered = coverage(known, snapshot.manifests, snapshot.taken_at)
        if covered.known:
            waits, its = ("pod waits", "its start time") if count == 1 else _MANY_WAIT
            yield (
                f"{count:,} {waits} at the end. --seeds 20 estimates {its}, because "
                f"{covered.known:,} of {covered.running:,} running pods have a known runtime."
            )
    if unused := unmatched(known, snapshot.manifests):
        more = f" and {len(unused) - 1:,} more" if len(unused) > 1 else ""
        yield f"No pod of the dump matches {unused[0].subject}{more} of --runtimes."


def _other_seeds(
    snapshot: Snapshot, change: ClusterChange, conditions: Conditions, progress: Progress
) -> Iterator[SeedOutcome]:
    """Yield the outcomes of all seeds except the first; each seed has its own order of arrival."""
    for number in range(1, conditions.seeds):
        seed = conditions.seed + number
        pair = _experiments(snapshot, change, replace(conditions, seed=seed))
        changed = _rearranged(pair.changed, number)
        runs = run_pair(pair.without, changed, progress)
        effect = _effect(pair, snapshot, conditions, *runs)
        yield seed_outcome(effect, verdict_of(effect))


def _rearranged(experiment: Experiment, number: int) -> Experiment:
    """Return `experiment` with the order of arrival of its seed; `number` 0 keeps the order."""
    if number == 0:
        return experiment
    order = partial(shuffled, seed=experiment.seed, purpose=_ARRIVAL)
    return replace(experiment, steps=rearranged(experiment.steps, order))


def _order_note(pair: _Experiments, effect: Effect, progress: Progress) -> Iterator[str]:
    """Yield a note if the order of objects that arrive at one instant changes the outcome.

    The reverse order is run only if pods compete, which means that some pods are preempted or stay
    pending.
    """
    groups = arriving_together(pair.changed.steps)
    if not groups or not (effect.difference.preempted or effect.difference.pending):
        return
    changed = replace(
        pair.changed,
        steps=rearranged(pair.changed.steps, lambda group: group[::-1]),
        steps_begin=effect.without.rest.after or 0,
    )
    other = effect_of(effect.without, run_experiment(changed, REVERSED, progress).outcome)
    first = seed_outcome(effect, verdict_of(effect))
    words = order_matters(first, seed_outcome(other, verdict_of(other)))
    if words:
        count = sum(map(len, groups))
        yield (
            f"{count} objects arrive at one instant, and their order decides: in reverse order "
            f"{words}. --seeds 20 tries other orders."
        )


def _startup_note(pair: _Experiments, effect: Effect, conditions: Conditions) -> Iterator[str]:
    """Yield a note about the time that pods take to become ready, if the change starts any pods."""
    found = effect.difference
    pods = (*found.displaced, *found.placed, *(one.pod for one in found.updated))
    if pods and conditions.startup is not None:
        after = for_readers(conditions.startup)
        yield f"Every pod becomes ready {after} after it is scheduled (--startup-time)."
    elif pods:
        started = {one.workload for one in pods}
        yield pair.kubelets.times.words_for(started, has_stages=pair.kubelets.has_stages)


@dataclass(frozen=True, slots=True)
class _Experiments:
    """The experiments without and with the change, and the `notes` about the change.

    `drain` contains the result of kubectl's checks of drained nodes, `kubelets` the startup times
    of pods. `is_rescheduled` means that both runs place running pods anew.
    """

    without: Experiment
    changed: Experiment
    drain: KubectlDrain
    notes: tuple[str, ...]
    kubelets: SimulatedKubelets
    is_rescheduled: bool


def _experiments(snapshot: Snapshot, change: ClusterChange, conditions: Conditions) -> _Experiments:
    """Return the experiments without and with the change. Raises InputError."""
    initial, order = snapshot.manifests, ""
    arrivals: tuple[ScriptedStep, ...] = ()
    if change.reschedule:
        from fairlead.whatif.change.descheduled_pod import deschedule  # noqa: PLC0415 - few ask it

        again = deschedule(initial, change.reschedule, change.namespace, change.reschedule_order)
        initial, arrivals, order = again.initial, again.arrivals, again.note
    autoscaling = with_provider(
        read_autoscalers(snapshot.source, initial, conditions.autoscale),
        conditions.provider,
    )
    kubelets = simulated_kubelets(
        snapshot.manifests,  # because rescheduled pods no longer show their times
        renews_leases=conditions.releases.nodes.node_leases,
        startup=conditions.startup,
        more_stages=_stages(conditions),
        seed=conditions.seed,
    )
    loads, unread = _loads(snapshot, conditions)
    without = Experiment(
        title=snapshot.source,
        source=snapshot.source,
        initial=initial,
        start=snapshot.taken_at,
        horizon=conditions.horizon,
        quiet=kubelets.quiet,
        seed=conditions.seed,
        kubelet=kubelets.config,
        scheduler=_scheduler(conditions, snapshot, conditions.config, conditions.plugin),
        node_lifecycle=conditions.node_lifecycle,
        releases=conditions.releases,
        steps_begin=None,
        autoscaler=autoscaling.config,
        karpenter=autoscaling.karpenter,
        loads=loads,
        notes=(
            *unreadable_lines(snapshot.unreadable),
            *configuration_note(snapshot.manifests, conditions.config or ""),
            *dump_notes(snapshot.manifests),
            *autoscaling.notes,
            *kubelets.notes,
            *unread,
        ),
    )
    templates = _new_nodes(change, conditions, snapshot)
    script = script_of_change(change, snapshot, conditions.seed, templates)
    if change.reschedule and not script.steps:
        # The starts of rescheduled pods are the subject of the question, so no rest precedes them.
        without = replace(without, steps=arrivals, steps_begin=0, compares_packings=True)
    elif arrivals:
        problem = "scheduled goes with another configuration or plugin, not with other changes"
        raise InputError("--reschedule-order", problem)
    changed = replace(without, steps=script.steps or arrivals)
    if change.new_config or change.new_plugin:
        plugins = (*conditions.plugin, *change.new_plugin)
        config = change.new_config or conditions.config
        changed = replace(changed, scheduler=_scheduler(conditions, snapshot, config, plugins))
    batch = conditions.batch
    new = replace(batch, source=change.new_batch_config or batch.source)
    is_same = new == batch and changed.scheduler is without.scheduler
    without = with_batch(without, batch, changed.steps)
    return _Experiments(
        without,
        replace(without, steps=changed.steps)
        if is_same
        else with_batch(changed, new, changed.steps),
        script.drain,
        (*script.notes, *([order] if order else [])),
        kubelets,
        is_rescheduled=bool(change.reschedule),
    )


def _loads(snapshot: Snapshot, conditions: Conditions) -> tuple[WorkloadLoads, tuple[str, ...]]:
    """Return (loads of the snapshot's workloads, notes). Raises InputError."""
    if conditions.load is None:
        return {}, ()
    # Imported only if it is needed: few what-ifs state a load.
    from fairlead.whatif.configuration.workload_load import (  # noqa: PLC0415
        read_loads,
        unread_loads,
    )

    inventory = Inventory(snapshot.manifests)
    loads = read_loads(conditions.load, inventory, snapshot.taken_at)
    return loads, tuple(unread_loads(loads, inventory))


def _stages(conditions: Conditions) -> list[Manifest]:
    """Return the KWOK Stages of the files of --kwok-stages. Raises InputError."""
    return [one for path in conditions.kwok_stages for one in read_stages("--kwok-stages", path)]


def _new_nodes(change: ClusterChange, conditions: Conditions, snapshot: Snapshot) -> list[Json]:
    """Return the templates of new nodes of an instance type; [] if no type is given.

    Raises InputError.
    """
    if not change.instance_type:
        return []
    if conditions.instance_types is None:
        raise InputError("--instance-type", "needs --instance-types FILE")
    from fairlead.whatif.configuration.autoscaling.instance_type_file import new_node_templates  # noqa: PLC0415

    labels = (node.labels for node in snapshot.manifests if node.kind is NODE)
    zones = sorted({one[ZONE] for one in labels if isinstance(one, dict) and ZONE in one})
    return new_node_templates(conditions.instance_types, change.instance_type, zones)


def _scheduler(
    conditions: Conditions, snapshot: Snapshot, config: str | None, plugins: tuple[str, ...]
) -> SchedulerConfig:
    file: str | Document | None = config
    if config is not None and config.startswith(PREFIXES):
        file = stored_configuration("--config", config, snapshot.manifests)
    return read_scheduler_config(
        file,
        UserPlugins(plugins),
        conditions.releases.general,
        allow_extenders=conditions.allow_extenders,
    )
