"""Chooses the configuration of the batch scheduler: built-in, from a file, or none.

By default, a batch scheduler with the recommended configuration runs if the schedulerName of a pod
is in SCHEDULER_NAMES (`kube-batch`, `volcano`, `fairlead`). If the option is `--batch-config
single-pods`, kube-scheduler places the pods with these names one by one and ignores groups.

The schedulerName `fairlead` is an exception. The manifests of `fairlead run` also deploy a
kube-scheduler profile with this name, for pods that need no batch scheduler. If --batch-config is
set, the batch scheduler schedules these pods only if the configuration contains the name. If the
option is not set, the batch scheduler schedules these pods in two cases: the input contains a
PodGroup or a Queue, or one of these pods names a group. In all other cases, a profile of
kube-scheduler schedules these pods (`with_deployed_profile`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import Node, ObjectMeta, Pod
from fairlead.api.pods.facts import is_terminal
from fairlead.apiserver.kind import POD
from fairlead.engine.batch.info.group import GROUP_LABELS, GROUP_NAME_ANNOTATION, UPSTREAM_API
from fairlead.engine.batch.scheduler_name import FAIRLEAD, KUBE_BATCH, SCHEDULER_NAMES, VOLCANO
from fairlead.engine.core.command import CreateObject
from fairlead.engine.framework.user_plugin.plugin_factory import may_delay_binding
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.batch.group_note import group_notes
from fairlead.whatif.configuration.batch.options import OPTION, SINGLE_PODS, BatchOptions
from fairlead.whatif.configuration.stored_configuration import (
    BATCH,
    chosen_configuration,
    stored_configurations,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

if TYPE_CHECKING:
    from fairlead.engine.batch.configuration_file import BatchConfig

DEPLOYED_NOTE: Final = (
    f"Pods with schedulerName {FAIRLEAD} are scheduled one by one, as in a cluster where `fairlead "
    "run` is deployed. With --batch-config fairlead, a what-if schedules them in gangs."
)
_GROUP_KINDS: Final = ("PodGroup", "Queue")
_UPSTREAM: Final = {KUBE_BATCH: "kube-batch", VOLCANO: "Volcano"}


def batch_config(
    options: BatchOptions,
    scheduler: SchedulerConfig,
    initial: Iterable[Manifest],
    steps: Iterable[ScriptedStep] = (),
) -> BatchConfig | None:
    """Return the batch scheduler's configuration; None if no batch scheduler runs.

    If `options` name a configuration, the result is this configuration, which may be in a ConfigMap
    of `initial`. If `options` name no configuration, and a pod in `initial` or `steps` needs a
    batch scheduler, the result is the recommended configuration. Raises InputError, also if two
    schedulers would schedule the same pod.
    """
    profiles = {profile.scheduler_name for profile in scheduler.profiles}
    if options.source is not None:
        # Few runs have a batch scheduler, and its import takes as long as a small simulation.
        from fairlead.whatif.configuration.batch.batch_file import read_batch_config  # noqa: PLC0415

        source = chosen_configuration("--batch-config", options.source, initial, BATCH)
        config = read_batch_config(source, options.plugins)
        _refuse_two_schedulers(options.source, config, profiles)
        return config
    if options.plugins:
        raise InputError(OPTION, "needs a --batch-config that names it")
    ours = tuple(name for name in SCHEDULER_NAMES if name not in profiles)
    initial, created = samples(initial), _created(steps)
    names = _names(initial, created)
    if FAIRLEAD in names and not _has_groups(initial, created, scheduler):
        ours = tuple(name for name in ours if name != FAIRLEAD)
    if names.isdisjoint(ours):
        return None
    from fairlead.whatif.configuration.batch.batch_file import recommended_config  # noqa: PLC0415

    return recommended_config(ours)


def batch_notes(
    options: BatchOptions,
    config: BatchConfig | None,
    initial: Iterable[Manifest],
    scheduler: SchedulerConfig,
    steps: Iterable[ScriptedStep] = (),
    *,
    runs_cron_jobs: bool = False,
) -> Iterator[str]:
    """Yield notes about pods that the real cluster may schedule by rules that `config` lacks.

    Also yield the notes about PodGroups of Volcano (`group_notes`). Besides the pods in `initial`,
    these groups have the pods that `steps` create, and the pods of CronJobs if `runs_cron_jobs` is
    set. The last notes are about arguments in `config` that have no effect.
    """
    initial = tuple(initial) if not isinstance(initial, Collection) else initial
    if assumed := assumed_rules(options, config, initial):
        yield assumed.note
    if options.source != SINGLE_PODS:
        yield from _single_pod_notes(config, initial, scheduler)
        yield from group_notes(initial, _created(steps), runs_cron_jobs=runs_cron_jobs)
    if config is not None and options.source is not None:
        from fairlead.whatif.configuration.batch.argument_note import argument_notes  # noqa: PLC0415

        yield from argument_notes(config)


def _single_pod_notes(
    config: BatchConfig | None, initial: Iterable[Manifest], scheduler: SchedulerConfig
) -> Iterator[str]:
    """Yield a note about pods that name a PodGroup, but are scheduled one by one.

    In the real cluster, the plugin Coscheduling of scheduler-plugins may start these pods in gangs.
    There is no note about the pods of a profile with a user's plugin that has the method `permit`.
    Such a plugin may start the pods in gangs in the simulation, too.
    """
    gang_plugins = {
        name for name, factory in scheduler.out_of_tree.items() if may_delay_binding(factory)
    }
    owned = [
        *(() if config is None else config.ownership.scheduler_names),
        *(
            profile.scheduler_name
            for profile in scheduler.profiles
            if not gang_plugins.isdisjoint(dict(profile.all_plugins))
        ),
    ]
    names = {
        one.pod.spec.scheduler_name
        for one in samples(initial)
        if one.kind is POD and not is_terminal(one.pod) and _is_grouped(one.pod.metadata)
    }
    if found := sorted(names.difference(owned)):
        yield (
            f"Pods with schedulerName {' and '.join(found)} are scheduled one by one here, "
            "although they name PodGroups. If their scheduler starts them in gangs, name it under "
            "schedulerNames in a --batch-config file."
        )


def _is_grouped(meta: ObjectMeta) -> bool:
    named = meta.annotations.get(GROUP_NAME_ANNOTATION)
    return bool(named or any(meta.labels.get(label) for label in GROUP_LABELS))


class AssumedRules(Struct, frozen=True):
    """Pods that follow Fairlead's own batch configuration instead of the cluster's.

    `names` are their schedulerNames. `offers` are values of --batch-config, each with its meaning.
    """

    names: tuple[str, ...]
    offers: Mapping[str, str]

    @property
    def note(self) -> str:
        """A note about the assumption."""
        offers = [f"--batch-config {source} uses {what}" for source, what in self.offers.items()]
        return (
            f"Pods with schedulerName {' and '.join(self.names)} follow Fairlead's own batch "
            f"configuration here, not the cluster's; {', '.join(offers)}."
        )

    @property
    def sentence(self) -> str:
        """A sentence for the verdict of an answer in which these pods are scheduled or wait."""
        offers = " or ".join(f"--batch-config {source}" for source in self.offers)
        upstream = " and ".join(_UPSTREAM[name] for name in self.names)
        return f"This is by Fairlead's own batch rules; {upstream} may decide otherwise ({offers})."


def assumed_rules(
    options: BatchOptions, config: BatchConfig | None, initial: Collection[Manifest]
) -> AssumedRules | None:
    """Return for which schedulerNames Fairlead assumes its own batch configuration.

    The result is None if --batch-config is set, or if no bound pod in `initial` has the
    schedulerName `kube-batch` or `volcano`.
    """
    if options.source is not None or config is None:
        return None
    foreign = tuple(name for name in config.ownership.scheduler_names if name in _UPSTREAM)
    # Replicas have the same schedulerName, but not all of them need to be bound.
    if not any(_scheduler_name_of(one) in foreign for one in samples(initial) if one.kind is POD):
        return None
    bound = {
        one.pod.spec.scheduler_name for one in initial if one.kind is POD and one.pod.spec.node_name
    }
    names = tuple(name for name in foreign if name in bound)
    stored = [one.title for one in stored_configurations(initial, BATCH)]
    offers = dict.fromkeys(stored[:1], "that in the dump") or {
        name: f"{_UPSTREAM[name]}'s default" for name in names
    }
    return AssumedRules(names, offers) if names else None


def with_deployed_profile(
    scheduler: SchedulerConfig,
    batch: BatchConfig | None,
    initial: Iterable[Manifest],
    steps: Iterable[ScriptedStep] = (),
) -> SchedulerConfig:
    """Return `scheduler` with a profile `fairlead` if pods need a scheduler of this name.

    The profile is a copy of the first profile. The profile is added if a pod in `initial` or
    `steps` has the schedulerName `fairlead`. It is not added if a profile or the batch scheduler
    (`batch`) already has this name.
    """
    taken = () if batch is None else batch.ownership.scheduler_names
    if FAIRLEAD in taken or any(one.scheduler_name == FAIRLEAD for one in scheduler.profiles):
        return scheduler
    if FAIRLEAD not in _names(initial, _created(steps)):
        return scheduler
    deployed = replace(scheduler.profiles[0], scheduler_name=FAIRLEAD)
    return dataclasses.replace(scheduler, profiles=(*scheduler.profiles, deployed))


def _created(steps: Iterable[ScriptedStep]) -> list[Mapping[str, Any]]:
    return [c.manifest for s in steps for c in s.commands if isinstance(c, CreateObject)]


def _names(initial: Iterable[Manifest], created: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the schedulerNames of all pods and pod templates."""
    return {*map(_scheduler_name_of, samples(initial)), *map(_scheduler_name, created)}


def _has_groups(
    initial: Iterable[Manifest], created: Iterable[Mapping[str, Any]], scheduler: SchedulerConfig
) -> bool:
    """Return whether the pods with the schedulerName `fairlead` need the batch scheduler.

    The module's docstring states the rule. PodGroups of the API group scheduling.k8s.io do not
    count if kube-scheduler can schedule them itself with its version and feature gates.
    """
    concerned = (
        manifest.value
        for manifest in initial
        if manifest.kind.kind in _GROUP_KINDS or _scheduler_name_of(manifest) == FAIRLEAD
    )
    for value in (*created, *concerned):
        api = str(value.get("apiVersion")).partition("/")[0]
        is_upstream = scheduler.version.pod_groups and api == UPSTREAM_API
        if value.get("kind") in _GROUP_KINDS and not is_upstream:
            return True
        if _scheduler_name(value) == FAIRLEAD and _names_group(value, scheduler):
            return True
    return False


def _names_group(value: Mapping[str, Any], scheduler: SchedulerConfig) -> bool:
    """Return whether a pod, or a workload's pod template, names a group of the batch scheduler."""
    template = (value.get("spec") or {}).get("template")
    pod = template if isinstance(template, dict) else value
    meta = pod.get("metadata") or {}
    annotations, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    in_upstream_group = bool((pod.get("spec") or {}).get("schedulingGroup"))
    return (
        bool(annotations.get(GROUP_NAME_ANNOTATION))
        or any(labels.get(label) for label in GROUP_LABELS)
        or (in_upstream_group and not scheduler.version.pod_groups)
    )


def with_job_schedulers(scheduler: SchedulerConfig) -> SchedulerConfig:
    """Return `scheduler` with a profile for each of SCHEDULER_NAMES.

    A missing profile is added as a copy of the first profile.
    """
    known = {profile.scheduler_name for profile in scheduler.profiles}
    first = scheduler.profiles[0]
    more = [replace(first, scheduler_name=name) for name in SCHEDULER_NAMES if name not in known]
    return dataclasses.replace(scheduler, profiles=(*scheduler.profiles, *more))


def _refuse_two_schedulers(source: str, config: BatchConfig, profiles: Iterable[str]) -> None:
    """Raise InputError if a name of SCHEDULER_NAMES is in both `profiles` and `config`."""
    for name in config.ownership.scheduler_names:
        if name in profiles and name in SCHEDULER_NAMES:
            problem = f"{name} is also a profile of the scheduler configuration"
            raise InputError(source, problem, field="schedulerNames")


def _scheduler_name_of(manifest: Manifest) -> str:
    view = manifest.view
    if view is None:
        return _scheduler_name(manifest.value)
    if type(view) is Pod:
        return view.spec.scheduler_name
    if type(view) is Node:
        return ""
    return _scheduler_name({"spec": {"template": manifest.pod_template}})


def _scheduler_name(value: Mapping[str, Any]) -> str:
    """Return the schedulerName of a pod or of a workload's pod template; "" if it is not set."""
    spec = value.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if isinstance(template, dict):
        spec = template.get("spec")
    name = spec.get("schedulerName") if isinstance(spec, dict) else None
    return name if isinstance(name, str) else ""
