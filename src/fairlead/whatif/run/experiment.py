"""Experiment: the complete, validated input of one run. Equal experiments give equal runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from fairlead.engine.batch.configuration_file import BatchConfig
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.batch_config import (
    SINGLE_PODS,
    BatchOptions,
    batch_config,
    with_job_schedulers,
)
from fairlead.whatif.configuration.controller_manager import DEFAULT
from fairlead.whatif.configuration.release import CURRENT_RELEASES, Releases
from fairlead.whatif.snapshot.manifest import Manifest

HORIZON_DEFAULT: Final = seconds(3600)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A cluster, the steps that change it, and how long to run.

    With `duration` None the run ends when the cluster has settled, at most `horizon` after the last
    step. The steps are counted from `steps_begin`, a delay after `start`, and so is the outcome;
    None counts the outcome from when the cluster was at rest. `notes` go into the outcome.
    """

    title: str
    source: str
    initial: tuple[Manifest, ...]
    start: Instant
    steps: tuple[ScriptedStep, ...] = ()
    steps_begin: DurationNs | None = 0
    duration: DurationNs | None = None
    horizon: DurationNs = HORIZON_DEFAULT
    seed: int = 0
    kubelet: KubeletConfig = field(default_factory=KubeletConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    batch: BatchConfig | None = None
    node_lifecycle: NodeLifecycleConfig = DEFAULT
    releases: Releases = CURRENT_RELEASES
    runs_cron_jobs: bool = False
    notes: tuple[str, ...] = ()


def with_batch(
    experiment: Experiment, options: BatchOptions, steps: Iterable[ScriptedStep]
) -> Experiment:
    """`experiment` with the batch scheduler that `options` ask for, or that its pods need.

    `steps` are searched for pods too. Raises InputError.
    """
    if options.source == SINGLE_PODS:
        return replace(experiment, batch=None, scheduler=with_job_schedulers(experiment.scheduler))
    config = batch_config(options, experiment.scheduler, experiment.initial, steps)
    return replace(experiment, batch=config)
