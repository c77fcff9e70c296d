"""ExperimentPair: the two experiments of a what-if, without its change and with its change.

Both experiments start from the same snapshot under the same conditions. Only the experiment with
the change has the steps of the change, and the scheduler configuration, plugins and batch
configuration that the change states.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import Node
from fairlead.api.text.name_list import joined
from fairlead.apiserver.kind import CRON_JOB, HORIZONTAL_POD_AUTOSCALER, NODE, POD
from fairlead.engine.configuration.default_config import default_config
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import WorkloadLoads
from fairlead.whatif.change.change_script import ChangeScript, script_of_change
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.kubectl_drain import KubectlDrain
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    Autoscaling,
    read_autoscalers,
    refuse_invalid_karpenter_objects,
)
from fairlead.whatif.configuration.autoscaling.provider_settings import (
    with_provider,
)
from fairlead.whatif.configuration.batch.batch_config import batch_notes
from fairlead.whatif.configuration.controller_manager import flag_notes
from fairlead.whatif.configuration.kwok_stage import read_stages
from fairlead.whatif.configuration.other_scheduler import other_schedulers
from fairlead.whatif.configuration.stored_configuration import chosen_configuration
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.experiment import Experiment, with_batch
from fairlead.whatif.run.simulated_kubelet import SimulatedKubelets, simulated_kubelets
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.node_lifecycle.starting_node import nodes_of, valid_node
from fairlead.whatif.snapshot.node_pool import name_of_node
from fairlead.whatif.snapshot.samples import samples
from fairlead.whatif.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from fairlead.whatif.run.tried_workload import TriedWorkloads


class ExperimentPair(Struct, frozen=True):
    """The experiments without and with the change, and the `notes` about the change."""

    without: Experiment
    changed: Experiment
    drain: KubectlDrain
    notes: tuple[str, ...]
    kubelets: SimulatedKubelets
    is_rescheduled: bool  # whether both runs schedule running pods again
    kept_nodes: Sequence[str]  # no autoscaler removes these nodes before the change
    # Nodes that were out of service when the dump was taken, and that return to service in the run
    # without the change.
    failed_nodes: Sequence[str]
    cron_jobs: Sequence[Manifest]  # the CronJobs after the change
    awaited: Sequence[ObjectRef]  # the unready pods for which rollouts of the change wait
    written: Sequence[ObjectRef]  # the objects that manifests and edits of the change write
    # Names the part of the change that has no effect because nothing simulates it; "" if there is
    # none.
    unsimulated: str = ""


def experiments_of(
    snapshot: Snapshot, change: ClusterChange, conditions: Conditions
) -> ExperimentPair:
    """Return the experiments without and with the change. Raises InputError."""
    initial: Sequence[Manifest] = snapshot.manifests
    order = ""
    arrivals: tuple[ScriptedStep, ...] = ()
    if change.reschedule:
        from fairlead.whatif.change.descheduled_pod import deschedule  # noqa: PLC0415

        again = deschedule(initial, change.reschedule, change.namespace, change.reschedule_order)
        initial, arrivals, order = again.initial, again.arrivals, again.note
    kubelets = simulated_kubelets(
        snapshot.manifests,  # not `initial`: pods that become pending lose their start times
        renews_leases=conditions.releases.nodes.node_leases,
        taken_at=snapshot.taken_at,
        startup=conditions.startup,
        more_stages=read_stages(conditions.kwok_stages),
        seed=conditions.seed,
    )
    templates, about_new_nodes = _new_nodes(change, conditions, snapshot)
    script = script_of_change(change, snapshot, conditions.seed, templates)
    without = _without_change(snapshot, conditions, initial, kubelets, script)
    if script.written:
        # Imported only if it is needed.
        from fairlead.whatif.change.active_deadline import (  # noqa: PLC0415
            sets_deadline,
            without_deadlines,
        )

        script, ignored = without_deadlines(script, kubelets.config.run_durations)
        without = replace(
            without,
            kubelet=replace(without.kubelet, ignores_deadline=ignored),
            awaits_job_deadlines=sets_deadline(script),
        )
    refuse_invalid_karpenter_objects(script.written, is_simulated=without.karpenter is not None)
    if change.reschedule and not script.steps:
        # The pods are placed at the start of the runs. So the runs do not wait until the cluster is
        # at rest.
        without = replace(without, steps=arrivals, steps_begin=0, compares_packings=True)
    elif arrivals:
        allowed = "--new-config, --new-plugin and --new-batch-config"
        problem = f"scheduled cannot be combined with a change other than {allowed}"
        raise InputError("--reschedule-order", problem)
    failed, returning, failed_notes = _failed_nodes(change, snapshot, conditions, without)
    if failed:
        without = replace(without, steps=returning, steps_begin=0)
    changed = replace(without, steps=script.steps or arrivals)
    kept_nodes: Sequence[str] = ()
    if without.autoscaler or without.karpenter:
        without, kept_nodes = _with_named_nodes_kept(without, change, script)
        made = _ScriptMaker(change, snapshot, conditions.seed, templates, kubelets)
        changed = replace(without, steps=changed.steps, steps_for=made.steps)
    if change.new_config or change.new_plugin:
        changed = replace(changed, scheduler=_scheduler(conditions, snapshot, change))
    batch = conditions.batch
    new = replace(batch, source=change.new_batch_config or batch.source)
    about_karpenter, unsimulated = _without_effect(script, snapshot, without)
    without = with_batch(without, batch, changed.steps)
    with_change = (
        replace(without, steps=changed.steps, steps_for=changed.steps_for)
        if new == batch and changed.scheduler is without.scheduler
        else with_batch(changed, new, changed.steps)
    )
    return ExperimentPair(
        without,
        with_change,
        script.drain,
        (
            *batch_notes(new, without.batch, snapshot.manifests, without.scheduler, changed.steps),
            *script.notes,
            *failed_notes,
            *about_new_nodes,
            *([order] if order else []),
            *_comparison_notes(change, script),
            *_notes_of_new_batch(change, with_change),
            *_zone_notes(script, without),
            *about_karpenter,
        ),
        kubelets,
        is_rescheduled=bool(change.reschedule),
        kept_nodes=kept_nodes,
        failed_nodes=failed,
        cron_jobs=_cron_jobs(snapshot, script),
        awaited=script.awaited,
        written=[one.ref for one in script.written],
        unsimulated=unsimulated,
    )


def _cron_jobs(snapshot: Snapshot, script: ChangeScript) -> list[Manifest]:
    """Return the CronJobs that exist after the change `script`."""
    present, deleted, written = (
        {one.ref.key: one for one in objects if one.kind is CRON_JOB}
        for objects in (samples(snapshot.manifests), script.deleted, script.written)
    )
    kept = {key: one for key, one in present.items() if key not in deleted}
    return list((kept | written).values())


def _failed_nodes(
    change: ClusterChange, snapshot: Snapshot, conditions: Conditions, without: Experiment
) -> tuple[Sequence[str], tuple[ScriptedStep, ...], tuple[str, ...]]:
    """Return (names, steps, notes) for the nodes of `change.failures` that are already down.

    The steps return these nodes to service. All three results are empty if `without` has an
    autoscaler, because an autoscaler may replace the nodes. Raises InputError.
    """
    failures = change.failures
    if not failures.is_any or without.autoscaler or without.karpenter:
        return (), (), ()
    # Imported only if it is needed.
    from fairlead.whatif.change.node_outage.failed_node import (  # noqa: PLC0415
        failed_nodes,
        failed_note,
        return_to_service,
    )

    outages = failures.outages(snapshot.inventory(), conditions.seed, change.lasts)
    names = failed_nodes(outages, snapshot.manifests)
    return (names, (return_to_service(names),), (failed_note(names),)) if names else ((), (), ())


class _ScriptMaker(Struct, frozen=True):
    """Makes the script of `change` again after an autoscaler has changed the nodes.

    `change`, `snapshot`, `seed` and `new_node` are the arguments of `script_of_change`. `kubelets`
    contains the known run durations of pods.
    """

    change: ClusterChange
    snapshot: Snapshot
    seed: int
    new_node: Sequence[Json]
    kubelets: SimulatedKubelets

    def steps(self, present: Sequence[Json]) -> tuple[ScriptedStep, ...]:
        """Return the steps for the nodes and pods in `present`. Raises InputError."""
        source = self.snapshot.source
        kept = [one for one in self.snapshot.manifests if one.kind not in (NODE, POD)]
        found = [*manifests([Document(source, present)]), *kept]
        snapshot = replace(self.snapshot, manifests=found)
        script = script_of_change(self.change, snapshot, self.seed, self.new_node)
        if script.written:
            # Imported only if it is needed.
            from fairlead.whatif.change.active_deadline import without_deadlines  # noqa: PLC0415

            script, _ = without_deadlines(script, self.kubelets.config.run_durations)
        return script.steps


def _with_named_nodes_kept(
    without: Experiment, change: ClusterChange, script: ChangeScript
) -> tuple[Experiment, Sequence[str]]:
    """Prevent the autoscaler from removing the nodes that `change` names.

    Returns (the experiment in which these nodes are protected, the names of the nodes). The
    protection ends when the change is made.

    In two cases, the question is what the autoscaler does from now on: if there is no change, and
    if the change decides which nodes the autoscaler may remove. The experiment then does not wait
    until the cluster is at rest, because the autoscaler would have removed the nodes by then.
    """
    if not change.words:
        return replace(without, steps_begin=0), ()
    # Imported only if it is needed.
    from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.eligibility import (  # noqa: PLC0415
        SCALE_DOWN_DISABLED,
    )
    from fairlead.engine.autoscaling.karpenter.labels import DO_NOT_DISRUPT  # noqa: PLC0415
    from fairlead.whatif.change.kept_node import (  # noqa: PLC0415
        changes_removal,
        keep_nodes,
        named_nodes,
    )

    if changes_removal(script.written, script.deleted, without.initial):
        return replace(without, steps_begin=0), ()
    names = named_nodes(change, script, without.initial)
    if not names:
        return without, ()
    annotation = SCALE_DOWN_DISABLED if without.karpenter is None else DO_NOT_DISRUPT
    initial, releases = keep_nodes(without.initial, names, annotation)
    return replace(without, initial=initial, commands_before_steps=releases), names


def _comparison_notes(change: ClusterChange, script: ChangeScript) -> Iterator[str]:
    """Yield a note if only the run with the new configuration has the pods of the change."""
    options = {
        "--new-config": change.new_config,
        "--new-plugin": change.new_plugin,
        "--new-batch-config": change.new_batch_config,
    }
    new = [option for option, value in options.items() if value]
    if new and script.steps and not change.reschedule:
        yield (
            f"The rest of the change happens only in the run with {joined(new)}. To compare where "
            f"both configurations place its pods, ask again without {joined(new)}. --reschedule "
            "all compares where they place the running pods."
        )


def _notes_of_new_batch(change: ClusterChange, with_change: Experiment) -> Iterator[str]:
    """Yield the notes about arguments in the file of --new-batch-config."""
    if change.new_batch_config and with_change.batch is not None:
        # Imported only if it is needed.
        from fairlead.whatif.configuration.batch.argument_note import argument_notes  # noqa: PLC0415

        yield from argument_notes(with_change.batch)


def _without_effect(
    script: ChangeScript, snapshot: Snapshot, without: Experiment
) -> tuple[Iterable[str], str]:
    """Return (notes, `unsimulated` of an ExperimentPair).

    The notes are about objects of Karpenter and node classes that have no effect.
    """
    if not (script.written or script.deleted):
        return (), ""
    # Imported only if it is needed.
    from fairlead.whatif.change.note.unsimulated_node_pool import (  # noqa: PLC0415
        karpenter_change,
        unsimulated_change,
    )

    found = karpenter_change(script.written, script.deleted, samples(snapshot.manifests))
    by_karpenter = without.karpenter is not None
    written, deleted = found.unsimulated(by_karpenter=by_karpenter)
    unsimulated = unsimulated_change((*script.unsimulated, *written), deleted)
    return found.notes(by_karpenter=by_karpenter), unsimulated


def _zone_notes(script: ChangeScript, without: Experiment) -> Iterator[str]:
    """Yield a note about each zone in which `script` prevents an autoscaler from adding nodes."""
    if without.autoscaler is None and without.karpenter is None:
        return
    name = "Cluster Autoscaler" if without.karpenter is None else "Karpenter"
    for step in script.steps:
        if step.capacity_outage is not None:
            labels = ",".join(f"{k}={v}" for k, v in step.capacity_outage.labels.items())
            yield (
                f"While zone {step.what} is down, {name} gets no machines there; "
                f"--fail-node {labels} fails only the zone's present nodes."
            )


def _without_change(
    snapshot: Snapshot,
    conditions: Conditions,
    initial: Sequence[Manifest],
    kubelets: SimulatedKubelets,
    script: ChangeScript,
) -> Experiment:
    """Return the experiment without the change; it starts with `initial`. Raises InputError.

    `script` is the change, which matters in four ways. First, `conditions.load` may name a workload
    that the change creates. Second, the instance types are also for NodePools that the change
    creates. Third, the notes about nodes that were being removed say whether the change deletes
    these nodes. Fourth, the change may cause admission to refuse the next pods of some workloads,
    and both runs test the next pods of these workloads.
    """
    autoscaling = with_provider(
        read_autoscalers(snapshot.source, initial, conditions.autoscale, script.written),
        conditions.provider,
    )
    loads, unread = _loads(snapshot, conditions, script.written)
    scheduler = _scheduler(conditions, snapshot, ClusterChange())
    return Experiment(
        title=snapshot.source,
        source=snapshot.source,
        initial=initial,
        start=snapshot.taken_at,
        horizon=conditions.horizon,
        quiet=kubelets.quiet,
        seed=conditions.seed,
        kubelet=kubelets.config,
        scheduler=scheduler,
        node_lifecycle=conditions.node_lifecycle,
        releases=conditions.releases,
        steps_begin=None,
        autoscaler=autoscaling.config,
        karpenter=autoscaling.karpenter,
        loads=loads,
        other_schedulers=other_schedulers(scheduler, snapshot.manifests),
        tried=_tried(script, snapshot),
        notes=(
            *_leaving(snapshot, autoscaling, script.deleted),
            *autoscaling.notes,
            *kubelets.notes,
            *flag_notes(conditions.node_lifecycle),
            *unread,
        ),
    )


def _tried(script: ChangeScript, snapshot: Snapshot) -> TriedWorkloads | None:
    """Return the workloads whose next pods `script` may cause to be refused."""
    if not (script.written or script.deleted):
        return None
    # Imported only if it is needed.
    from fairlead.whatif.run.tried_workload import tried_workloads  # noqa: PLC0415

    return tried_workloads(script.written, script.deleted, samples(snapshot.manifests))


def _leaving(
    snapshot: Snapshot, autoscaling: Autoscaling, deleted: Iterable[Manifest]
) -> tuple[str, ...]:
    """Return notes about nodes that were being deleted, or that an autoscaler was removing.

    `deleted` are the objects that the change deletes. If the run simulates this autoscaler, there
    is no note about the nodes that it was removing.
    """
    nodes = filter(None, map(valid_node, nodes_of(snapshot.manifests)))
    if not any(node.spec.taints or node.metadata.deletion_timestamp for node in nodes):
        return ()
    # Imported only if it is needed.
    from fairlead.whatif.snapshot.node_lifecycle.leaving_node import leaving_notes  # noqa: PLC0415

    return leaving_notes(
        snapshot.manifests,
        snapshot.taken_at,
        by_cluster_autoscaler=autoscaling.config is None,
        by_karpenter=autoscaling.karpenter is None,
        deleted={one.ref.name for one in deleted if one.kind is NODE},
    )


def _loads(
    snapshot: Snapshot, conditions: Conditions, written: Sequence[Manifest]
) -> tuple[WorkloadLoads, tuple[str, ...]]:
    """Return (loads of workloads, notes). Raises InputError.

    The workloads come from the snapshot and from `written`, the objects that the change writes.
    """
    if conditions.load is None:
        return {}, ()
    # Imported only if it is needed: few what-ifs state a load.
    from fairlead.whatif.configuration.workload_load import (  # noqa: PLC0415
        read_loads,
        unread_loads,
    )

    inventory = snapshot.inventory()
    autoscalers = inventory.of_kind(HORIZONTAL_POD_AUTOSCALER)
    for one in written:
        inventory.add(one)
    loads = read_loads(conditions.load, inventory, snapshot.taken_at)
    return loads, tuple(unread_loads(loads, (*autoscalers, *written)))


def _new_nodes(
    change: ClusterChange, conditions: Conditions, snapshot: Snapshot
) -> tuple[list[Json], list[str]]:
    """Return (node templates of --instance-type, notes); both are empty if the option is not set.

    Raises InputError.
    """
    if not change.instance_type:
        return [], []
    if conditions.instance_types is None:
        raise InputError("--instance-type", "needs --instance-types FILE")
    # Imported only if they are needed.
    from fairlead.whatif.configuration.autoscaling.allocatable import (  # noqa: PLC0415
        SystemReservations,
        size_notes,
        with_allocatable,
    )
    from fairlead.whatif.configuration.autoscaling.instance_type_file import (  # noqa: PLC0415
        new_node_templates,
        read_instance_types,
        stated_type,
    )
    from fairlead.whatif.configuration.autoscaling.karpenter.provider_label import (  # noqa: PLC0415
        changed_labels,
        provider_groups,
        with_type_labels,
    )
    from fairlead.whatif.configuration.autoscaling.place_label import (  # noqa: PLC0415
        labels_of_zones,
        topology_keys,
    )

    # By name: a type has the size and the labels of its first node, a zone the region of its last.
    nodes = sorted((one.node for one in nodes_of(snapshot.manifests)), key=name_of_node)
    types = read_instance_types(conditions.instance_types, nodes)
    stated = stated_type(conditions.instance_types, change.instance_type, types)
    places = labels_of_zones(nodes, topology_keys(snapshot.manifests))
    reserved = SystemReservations(nodes, types)
    [one] = with_type_labels(with_allocatable([stated], reserved), provider_groups(nodes), nodes)
    copied = next((node for node in nodes if node.metadata.name == change.like), Node())
    like = copied.metadata.labels
    one = replace(one, labels=changed_labels(like, one.labels))
    notes = [*reserved.notes([stated]), *size_notes(nodes, [stated])]
    return new_node_templates(one, places, like), notes


def _scheduler(
    conditions: Conditions, snapshot: Snapshot, change: ClusterChange
) -> SchedulerConfig:
    """Return the scheduler configuration, with its plugins, of the run with `change`.

    The configuration of `change` replaces the configuration of `conditions`; the plugins of both
    are used.
    Raises InputError.
    """
    option, config = "--config", conditions.config
    if change.new_config is not None:
        option, config = "--new-config", change.new_config
    if config is None and not (conditions.plugin or change.new_plugin):
        return default_config(conditions.releases.general, {})
    # Most what-ifs have the default configuration, which is not read and checked.
    from fairlead.whatif.configuration.scheduler_config import (  # noqa: PLC0415
        read_scheduler_config,
    )
    from fairlead.whatif.configuration.user_plugin import UserPlugins  # noqa: PLC0415

    return read_scheduler_config(
        config and chosen_configuration(option, config, snapshot.manifests),
        UserPlugins(conditions.plugin, change.new_plugin),
        conditions.releases.general,
        allow_extenders=conditions.allow_extenders,
    )
