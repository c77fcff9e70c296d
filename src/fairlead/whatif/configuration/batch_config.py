"""Chooses the configuration of the batch scheduler: a shipped one, a file, or none.

By default, the recommended configuration schedules pods whose schedulerName is one of
SCHEDULER_NAMES (`kube-batch`, `volcano`, `fairlead`); if there are no such pods, no batch scheduler
runs. `single-pods` is for comparison: kube-scheduler places those pods one by one and ignores
groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from fairlead.api.objects import Node, Pod
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
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.batch_extension import OPTION, read_extensions, refuse_unused
from fairlead.whatif.input.document import decode_text, read_bytes
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest

SINGLE_PODS: Final = "single-pods"


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """The batch scheduler's options, as the user wrote them.

    `source` is the name or file of a configuration; `plugins` are the classes of its plugins.
    """

    source: str | None = None
    plugins: tuple[str, ...] = ()


DEFAULT_BATCH_OPTIONS: Final = BatchOptions()


def read_batch_config(source: str, plugins: Iterable[str] = ()) -> BatchConfig:
    """Return the shipped configuration called `source`, else the one in that file.

    Raises InputError.
    """
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
        raise InputError(source, f"is neither a file nor a configuration; known: {known}")
    try:
        config = read_configuration(decode_text(source, read_bytes(path)))
        config = replace(config, extensions=extensions)
        compose(config, Cluster())  # raises for unknown actions and plugins
    except BatchConfigurationError as cause:
        raise InputError(source, str(cause)) from None
    return config


def batch_config(
    options: BatchOptions,
    scheduler: SchedulerConfig,
    initial: Iterable[Manifest],
    steps: Iterable[ScriptedStep] = (),
) -> BatchConfig | None:
    """Return the configuration that `options` name, else the one that pods need.

    None without such pods.

    `initial` and `steps` are searched for such pods. Raises InputError, also if two schedulers
    would claim the same pod.
    """
    profiles = {profile.scheduler_name for profile in scheduler.profiles}
    if options.source is not None:
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
    return replace(shipped_configuration(RECOMMENDED), ownership=Ownership(ours))


def with_job_schedulers(scheduler: SchedulerConfig) -> SchedulerConfig:
    """Return `scheduler` with a copy of its first profile for each name in SCHEDULER_NAMES."""
    known = {profile.scheduler_name for profile in scheduler.profiles}
    first = scheduler.profiles[0]
    more = [replace(first, scheduler_name=name) for name in SCHEDULER_NAMES if name not in known]
    return replace(scheduler, profiles=(*scheduler.profiles, *more))


def _refuse_two_schedulers(source: str, config: BatchConfig, profiles: Iterable[str]) -> None:
    """Raise InputError if a scheduler profile and `config` claim the same schedulerName."""
    for name in config.ownership.scheduler_names:
        if name in profiles and name in SCHEDULER_NAMES:
            problem = f"{name} is also a profile of the scheduler configuration"
            raise InputError(source, problem, field="schedulerNames")


def _scheduler_name_of(manifest: Manifest) -> str:
    if isinstance(manifest.view, Pod):
        return manifest.view.spec.scheduler_name
    return "" if isinstance(manifest.view, Node) else _scheduler_name(manifest.value)


def _scheduler_name(value: Mapping[str, Any]) -> str:
    """Return the schedulerName of a pod or of a workload's pod template; "" if it has none."""
    spec = value.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if isinstance(template, dict):
        spec = template.get("spec")
    name = spec.get("schedulerName") if isinstance(spec, dict) else None
    return name if isinstance(name, str) else ""
