"""Experiment: the complete, validated input of one run. Equal experiments lead to equal runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.well_known_label import REGION, ZONE
from fairlead.apiserver.kind import NODE
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import WorkloadLoads, vary
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.batch.batch_config import (
    DEPLOYED_NOTE,
    batch_config,
    with_deployed_profile,
    with_job_schedulers,
)
from fairlead.whatif.configuration.batch.options import SINGLE_PODS, BatchOptions
from fairlead.whatif.configuration.controller_manager import DEFAULT
from fairlead.whatif.configuration.other_scheduler import with_other_schedulers
from fairlead.whatif.configuration.release import CURRENT_RELEASES, Releases
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.snapshot.manifest import Manifest, Manifests, ReplicaManifests, entries_of
from fairlead.whatif.snapshot.samples import samples

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
    from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
    from fairlead.engine.batch.configuration_file import BatchConfig
    from fairlead.whatif.run.tried_workload import TriedWorkloads
else:
    # These names must exist, because help() evaluates the annotations of a Struct. They are not
    # imported, because the imports take as long as a small run.
    ClusterAutoscalerConfig = KarpenterConfig = BatchConfig = TriedWorkloads = Any

HORIZON_DEFAULT: Final = seconds(3600)
# Pending pods are retried after at most five minutes (flushUnschedulablePodsLeftover). If one retry
# changes nothing, later retries will not change anything either.
QUIET: Final = seconds(6 * 60)

# Returns the steps for the given nodes and pods. Raises InputError.
StepsFor = Callable[[Sequence[Json]], tuple[ScriptedStep, ...]]


class Experiment(Struct, frozen=True, kw_only=True):
    """A cluster, the steps that change it, and the conditions that end the run.

    The run ends `duration` after `start`. If `duration` is None, the run ends when nothing has
    changed for `quiet` (the cluster has settled), but at most `horizon` after the last step. The
    conditions `ends_when_placed`, `ends_when_filled` and `recurrences_max` can end such a run
    earlier; a run with a `duration` ignores them.

    The times of the steps and the times of the outcome are measured from `start` plus
    `steps_begin`. If `steps_begin` is None, the times of the steps are measured from `start`. The
    times of the outcome are then measured from the time at which the cluster is at rest.
    """

    title: str
    source: str
    scheduler_words: str = ""  # names the configurations and plugins of the schedulers, for answers
    initial: Sequence[Manifest]
    start: Instant
    steps: tuple[ScriptedStep, ...] = ()
    steps_begin: DurationNs | None = 0
    # If nodes have come or gone before the steps begin, called with the present nodes and pods. The
    # steps that it returns replace `steps`. If it raises InputError because a named object is gone,
    # `steps` are kept.
    steps_for: StepsFor | None = None
    # If `steps_begin` is set, performed before the steps. If a command's object is gone by then,
    # the command is ignored.
    commands_before_steps: tuple[Command, ...] = ()
    duration: DurationNs | None = None
    horizon: DurationNs = HORIZON_DEFAULT
    quiet: DurationNs = QUIET
    # Keys of pods (`namespace/name`). The run ends when all these pods have a node.
    ends_when_placed: tuple[str, ...] = ()
    # Pairs (workload, number). The run ends when this number of new pods of each workload have a
    # node.
    ends_when_filled: tuple[tuple[WorkloadRef, int], ...] = ()
    # Whether a settled cluster ends the run only if no unfinished Job exceeds its deadline before
    # the end of the horizon.
    awaits_job_deadlines: bool = False
    # Whether pods that run in the cluster are made pending at the start. Such pods are not ready
    # until they are placed again, so ready pods are counted only at the end.
    compares_packings: bool = False
    # Names of nodes whose failures are not part of the outcome.
    known_failures: frozenset[str] = frozenset()
    # The run ends early if more repeated displacements than this number are reported. None means no
    # limit.
    recurrences_max: int | None = None
    seed: int = 0  # determines the random choices
    # Determines the uids and the generated names of new objects. If None, `seed` determines them.
    ids_seed: int | None = None
    kubelet: KubeletConfig = field(default_factory=KubeletConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    batch: BatchConfig | None = None
    autoscaler: ClusterAutoscalerConfig | None = None
    node_lifecycle: NodeLifecycleConfig = DEFAULT
    releases: Releases = CURRENT_RELEASES
    karpenter: KarpenterConfig | None = None
    # The curves begin at `start` plus `steps_begin`; their first amounts apply until then. If
    # `steps_begin` is None, the first amounts apply during the whole run.
    loads: WorkloadLoads = field(default_factory=dict)
    # The workloads whose next pods are tried at the end of the run; None if the steps cannot alter
    # which pods are admitted.
    tried: TriedWorkloads | None = None
    runs_cron_jobs: bool = False  # whether CronJobs create Jobs
    # Names of schedulers whose rules are unknown (`configuration.other_scheduler`).
    other_schedulers: tuple[str, ...] = ()
    # Those of `other_schedulers` that have a copy of another profile (`with_batch`).
    guessed_schedulers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # added to the outcome

    def __repr__(self) -> str:
        """Return the title and the source; a text with all objects would be very long."""
        return f"<Experiment: {self.title} ({self.source})>"

    @property
    def followed(self) -> Releases:
        """`releases` with the feature gates that the scheduler's configuration file sets."""
        return self.releases.with_gates(self.scheduler.gates)


def starts_alike(one: Experiment, other: Experiment) -> bool:
    """Return whether runs of `one` and `other` are the same until the first step.

    Only the fields that a run reads after its start may differ. If loads vary, `steps_begin` must
    also be the same, because the loads begin to vary at this time.
    """
    begin = one.steps_begin if vary(one.loads) else other.steps_begin
    same = replace(
        one,
        steps=other.steps,
        steps_begin=begin,
        steps_for=other.steps_for,
        known_failures=other.known_failures,
        recurrences_max=other.recurrences_max,
        tried=other.tried,
        notes=other.notes,
    )
    return same == other


def with_batch(
    experiment: Experiment, options: BatchOptions, steps: Iterable[ScriptedStep]
) -> Experiment:
    """Return `experiment` with the batch scheduler that `options` name or that its pods need.

    Pods that `steps` create can also need the batch scheduler. If `options.source` is SINGLE_PODS,
    no batch scheduler is added. In all cases, the Kubernetes scheduler gets profiles for
    `experiment.other_schedulers`. Raises InputError.
    """
    found = _with_batch(experiment, options, steps)
    owned = () if found.batch is None else found.batch.ownership.scheduler_names
    scheduler, guessed = with_other_schedulers(found.scheduler, found.other_schedulers, owned)
    return replace(found, scheduler=scheduler, guessed_schedulers=guessed) if guessed else found


def _with_batch(
    experiment: Experiment, options: BatchOptions, steps: Iterable[ScriptedStep]
) -> Experiment:
    if options.source == SINGLE_PODS:
        return replace(experiment, batch=None, scheduler=with_job_schedulers(experiment.scheduler))
    known, steps = experiment.scheduler, tuple(steps)
    initial = samples(experiment.initial)
    config = batch_config(options, known, initial, steps)
    scheduler = with_deployed_profile(known, config, initial, steps)
    notes: tuple[str, ...] = () if scheduler is known else (DEPLOYED_NOTE,)
    if options.plugins and config is not None:
        # Imported only if there are plugins of users.
        from fairlead.whatif.configuration.batch.batch_file import override_notes  # noqa: PLC0415

        notes += override_notes(config)
    return replace(experiment, batch=config, scheduler=scheduler, notes=(*experiment.notes, *notes))


def with_topology_labels(experiment: Experiment) -> Experiment:
    """Return `experiment` with the zone and region labels that its Kubernetes version reads.

    For Kubernetes 1.16, 1.19 and 1.21, the simulated node controllers are the controllers of 1.16.
    These controllers read the zone only from the label `failure-domain.beta.kubernetes.io/zone`.
    The nodes of current clusters lack this label.
    """
    profile = experiment.node_lifecycle.profile
    read = {ZONE: profile.zone_labels, REGION: profile.region_labels}
    if all(today in known for today, known in read.items()):
        return experiment
    before = entries_of(experiment.initial)
    initial = Manifests(
        one if isinstance(one, ReplicaManifests) else _with_labels(one, read) for one in before
    )
    count = sum(new is not old for new, old in zip(initial.entries, before, strict=True))
    if not count:
        return experiment
    names = " and ".join(labels[0] for labels in read.values())
    note = (
        f"Kubernetes {profile.version} knows zones and regions by {names}; derived from today's "
        f"labels for {count:,} {'node' if count == 1 else 'nodes'}."
    )
    return replace(experiment, initial=initial, notes=(*experiment.notes, note))


def _with_labels(manifest: Manifest, read: Mapping[str, tuple[str, ...]]) -> Manifest:
    """Return `manifest`; if it is a node, add the zone and region labels in their older forms.

    `read` maps each current label to its older forms, which the node controllers read. If a node
    has no label in an older form, the first older form is added with the value of the current
    label.
    """
    if manifest.kind is not NODE:
        return manifest
    labels = manifest.labels
    derived = {
        known[0]: labels[today]
        for today, known in read.items()
        if today in labels and not any(one in labels for one in known)
    }
    if not derived:
        return manifest
    value = manifest.value
    meta = {**value["metadata"], "labels": {**labels, **derived}}
    return replace(manifest, content={**value, "metadata": meta})
