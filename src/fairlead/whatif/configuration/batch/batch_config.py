"""Chooses the configuration of the batch scheduler: a shipped configuration, a file, or none.

By default, the recommended configuration schedules pods whose schedulerName is one of
SCHEDULER_NAMES (`kube-batch`, `volcano`, `fairlead`); if there are no such pods, no batch scheduler
runs. `single-pods` is for comparison: kube-scheduler places those pods one by one and ignores
groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairlead.api.objects import Node, Pod
from fairlead.engine.batch.scheduler_name import SCHEDULER_NAMES
from fairlead.engine.core.command import CreateObject
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.batch.options import OPTION, BatchOptions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest

if TYPE_CHECKING:
    from fairlead.engine.batch.configuration_file import BatchConfig


def batch_config(
    options: BatchOptions,
    scheduler: SchedulerConfig,
    initial: Iterable[Manifest],
    steps: Iterable[ScriptedStep] = (),
) -> BatchConfig | None:
    """Return the batch scheduler's configuration, None if no batch scheduler runs.

    It is the configuration that `options` name, or the recommended one if a pod needs a batch
    scheduler. `initial` and `steps` are searched for such pods. Raises InputError, also if two
    schedulers would schedule the same pod.
    """
    profiles = {profile.scheduler_name for profile in scheduler.profiles}
    if options.source is not None:
        # Few runs have a batch scheduler, and its import takes as long as a small simulation.
        from fairlead.whatif.configuration.batch.batch_file import read_batch_config  # noqa: PLC0415

        config = read_batch_config(options.source, options.plugins)
        _refuse_two_schedulers(options.source, config, profiles)
        return config
    if options.plugins:
        raise InputError(OPTION, "needs a --batch-config that names it")
    ours = tuple(name for name in SCHEDULER_NAMES if name not in profiles)
    created = [c.manifest for s in steps for c in s.commands if isinstance(c, CreateObject)]
    names = {_scheduler_name_of(manifest) for manifest in initial}
    names.update(map(_scheduler_name, created))
    if names.isdisjoint(ours):
        return None
    from fairlead.whatif.configuration.batch.batch_file import recommended_config  # noqa: PLC0415

    return recommended_config(ours)


def with_job_schedulers(scheduler: SchedulerConfig) -> SchedulerConfig:
    """Return `scheduler` with a copy of its first profile for each new name in SCHEDULER_NAMES."""
    known = {profile.scheduler_name for profile in scheduler.profiles}
    first = scheduler.profiles[0]
    more = [replace(first, scheduler_name=name) for name in SCHEDULER_NAMES if name not in known]
    return replace(scheduler, profiles=(*scheduler.profiles, *more))


def _refuse_two_schedulers(source: str, config: BatchConfig, profiles: Iterable[str]) -> None:
    """Raise InputError if `profiles` and `config` share a name of SCHEDULER_NAMES."""
    for name in config.ownership.scheduler_names:
        if name in profiles and name in SCHEDULER_NAMES:
            problem = f"{name} is also a profile of the scheduler configuration"
            raise InputError(source, problem, field="schedulerNames")


def _scheduler_name_of(manifest: Manifest) -> str:
    match manifest.view:
        case Pod() as pod:
            return pod.spec.scheduler_name
        case Node():
            return ""
        case None:
            return _scheduler_name(manifest.value)
        case _:
            return _scheduler_name({"spec": {"template": manifest.pod_template}})


def _scheduler_name(value: Mapping[str, Any]) -> str:
    """Return the schedulerName of a pod or of a workload's pod template; "" if it has none."""
    spec = value.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if isinstance(template, dict):
        spec = template.get("spec")
    name = spec.get("schedulerName") if isinstance(spec, dict) else None
    return name if isinstance(name, str) else ""
