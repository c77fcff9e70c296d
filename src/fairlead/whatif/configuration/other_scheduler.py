"""Schedulers that have bound pods of a snapshot, but whose configuration is not known.

Pods with the schedulerName of such a scheduler are scheduled by the rules of kube-scheduler.

If no configuration contains a schedulerName and no bound pod has it, the name may be a mistake.
Pods with such a name stay pending; `no_scheduler` returns the reason, and `unknown_schedulers`
yields the notes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from fairlead.api.pods.facts import is_static
from fairlead.apiserver.kind import POD
from fairlead.engine.batch.scheduler_name import SCHEDULER_NAMES
from fairlead.engine.framework.profile import DEFAULT_SCHEDULER
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

NO_SCHEDULER: Final = "no scheduler has the name"
# https://docs.aws.amazon.com/eks/latest/userguide/fargate.html
_FARGATE: Final = "fargate-scheduler"
_NO_FARGATE: Final = (
    "EKS creates a Fargate node for each new pod of a Fargate profile; here, such pods go to "
    "other nodes."
)


def other_schedulers(scheduler: SchedulerConfig, manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Return the schedulerNames of bound pods, except names of profiles and batch schedulers.

    Static pods are ignored.
    """
    known = {*SCHEDULER_NAMES, *(profile.scheduler_name for profile in scheduler.profiles)}
    manifests = tuple(manifests) if not isinstance(manifests, Collection) else manifests
    # Replicas have the same schedulerName, but not all of them need to be bound.
    if all(one.pod.spec.scheduler_name in known for one in samples(manifests) if one.kind is POD):
        return ()
    found = {
        one.pod.spec.scheduler_name
        for one in manifests
        if one.kind is POD and one.pod.spec.node_name and not is_static(one.pod)
    }
    return tuple(sorted(found - known))


def with_other_schedulers(
    scheduler: SchedulerConfig, names: Collection[str], owned: Collection[str]
) -> tuple[SchedulerConfig, tuple[str, ...]]:
    """Return `scheduler` with new profiles for `names`, and the names of the new profiles.

    `names` are scheduler names, and `owned` are the scheduler names of the batch scheduler. A name
    gets a new profile if it has no profile and is not in `owned`. The new profile is a copy of the
    profile `default-scheduler`, or of the first profile if there is no `default-scheduler`.
    `rules_note` returns the note about the pods with these names.
    """
    profiles = {profile.scheduler_name: profile for profile in scheduler.profiles}
    missing = tuple(name for name in names if name not in profiles and name not in owned)
    if not missing:
        return scheduler, ()
    model = profiles.get(DEFAULT_SCHEDULER, scheduler.profiles[0])
    more = [replace(model, scheduler_name=name) for name in missing]
    profiles_of_all = (*scheduler.profiles, *more)
    return dataclasses.replace(scheduler, profiles=profiles_of_all), missing


def rules_note(names: Collection[str]) -> str:
    """Return the note that pods with the schedulerNames `names` follow kube-scheduler's rules."""
    note = f"Pods with schedulerName {', '.join(names)} follow kube-scheduler's rules here."
    return f"{note} {_NO_FARGATE}" if _FARGATE in names else note


def no_scheduler(name: str) -> str:
    """Return why pods with the schedulerName `name` stay pending: no scheduler has this name."""
    return f'{NO_SCHEDULER} "{name}"'


def unknown_schedulers(names: Iterable[str]) -> Iterator[str]:
    """Yield a note for each of the schedulerNames `names`, which no scheduler has.

    The note says how to let pods with this schedulerName follow a scheduler's rules.
    """
    for name in sorted(set(names)):
        yield (
            f"If the cluster has a scheduler with the name {name}, add a profile with this name to "
            "the file of --config."
        )
