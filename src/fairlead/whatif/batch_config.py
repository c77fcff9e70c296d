"""Which configuration schedules whole jobs: one that Fairlead brings, a file's, or none.

Where nothing is said, pods that chose a scheduler of whole jobs (`kube-batch`, `volcano`,
`fairlead`) are scheduled by the recommended configuration; without any such pod there are no
sessions at all. `single-pods` is for comparison: the scheduler takes those pods one by one, as if
nobody knew of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from fairlead.engine.batch.compose import compose
from fairlead.engine.batch.configuration_file import (
    RECOMMENDED,
    SHIPPED,
    BatchConfig,
    BatchConfigurationError,
    read_configuration,
    shipped_configuration,
)
from fairlead.engine.batch.extension import Extensions
from fairlead.engine.batch.info.job_table import SCHEDULER_NAMES, Ownership
from fairlead.engine.core.command import CreateObject
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.state.cluster import Cluster
from fairlead.whatif.batch_extensions import OPTION, read_extensions, refuse_unused
from fairlead.whatif.documents import decode_text, read_bytes
from fairlead.whatif.experiment import Experiment, Step
from fairlead.whatif.input_error import InputError
from fairlead.whatif.manifest import Manifest

SINGLE_PODS: Final = "single-pods"


@dataclass(frozen=True, slots=True)
class Jobs:
    """How whole jobs are to be scheduled, as the user wrote it.

    `source` is a configuration by name or file, `plugins` are classes that it names.
    """

    source: str | None = None
    plugins: tuple[str, ...] = ()


AS_NEEDED: Final = Jobs()


def read_batch_config(source: str, plugins: Iterable[str] = ()) -> BatchConfig:
    """The configuration called `source`, else the one in the file `source`. Raises InputError."""
    extensions = read_extensions(plugins)
    config = _configuration(source, extensions)
    refuse_unused(config, extensions, source)
    return config


def _configuration(source: str, extensions: Extensions) -> BatchConfig:
    if source in SHIPPED:
        return shipped_configuration(source)
    path = Path(source)
    if not path.exists():
        known = ", ".join(sorted([*SHIPPED, SINGLE_PODS]))
        raise InputError(source, f"is no file, and none of the configurations {known}")
    try:
        config = read_configuration(decode_text(source, read_bytes(path)))
        config = replace(config, extensions=extensions)
        compose(config, Cluster())  # says whether all actions and plugins are known
    except BatchConfigurationError as cause:
        raise InputError(source, str(cause)) from None
    return config


def batch_config(
    jobs: Jobs,
    scheduler: SchedulerConfig,
    initial: Iterable[Manifest],
    steps: Iterable[Step] = (),
) -> BatchConfig | None:
    """What schedules whole jobs in a run of these objects: what `jobs` says, or its pods need.

    Raises InputError, also where pods would have two schedulers.
    """
    profiles = {profile.scheduler_name for profile in scheduler.profiles}
    if jobs.source is not None:
        config = read_batch_config(jobs.source, jobs.plugins)
        _refuse_two_schedulers(jobs.source, config, profiles)
        return config
    if jobs.plugins:
        raise InputError(OPTION, "needs a --batch-config that names it")
    ours = tuple(name for name in SCHEDULER_NAMES if name not in profiles)
    values: list[Mapping[str, Any]] = [manifest.value for manifest in initial]
    values += [c.manifest for s in steps for c in s.commands if isinstance(c, CreateObject)]
    if not any(_scheduler_name(value) in ours for value in values):
        return None
    return replace(shipped_configuration(RECOMMENDED), ownership=Ownership(ours))


def with_jobs(experiment: Experiment, jobs: Jobs, steps: Iterable[Step]) -> Experiment:
    """`experiment` with what schedules whole jobs in it; `steps` may bring some.

    Raises InputError.
    """
    if jobs.source == SINGLE_PODS:
        return replace(experiment, batch=None, scheduler=_for_all(experiment.scheduler))
    config = batch_config(jobs, experiment.scheduler, experiment.initial, steps)
    return replace(experiment, batch=config)


def _for_all(scheduler: SchedulerConfig) -> SchedulerConfig:
    """`scheduler`, with its first profile for pods that chose a scheduler of jobs."""
    known = {profile.scheduler_name for profile in scheduler.profiles}
    first = scheduler.profiles[0]
    more = [replace(first, scheduler_name=name) for name in SCHEDULER_NAMES if name not in known]
    return replace(scheduler, profiles=(*scheduler.profiles, *more))


def _refuse_two_schedulers(source: str, config: BatchConfig, profiles: Iterable[str]) -> None:
    """A profile that bears one of the names that only jobs use is meant to have its pods."""
    for name in config.ownership.scheduler_names:
        if name in profiles and name in SCHEDULER_NAMES:
            problem = f"{name} is a profile of the scheduler configuration, too"
            raise InputError(source, problem, field="schedulerNames")


def _scheduler_name(value: Mapping[str, Any]) -> str:
    """Whom a pod, or the template of a workload, has chosen; "" for the default and no pod."""
    spec = value.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if isinstance(template, dict):
        spec = template.get("spec")
    name = spec.get("schedulerName") if isinstance(spec, dict) else None
    return name if isinstance(name, str) else ""
