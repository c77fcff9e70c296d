"""Finds objects in a change that have no effect because their controllers are not simulated.

For a CronJob, an Argo Rollout or a Knative Service, no pods are created. An object with an unknown
API group has no effect either. The missing effect may be harmless, or the API group may be wrong:
for example, `policy.k8s.io` instead of `policy` for a PodDisruptionBudget.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    KINDS,
    POD,
    POD_TEMPLATE,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    find_kind,
)
from fairlead.engine.core.command import ObjectRef
from fairlead.whatif.snapshot.kueue import KUEUE
from fairlead.whatif.snapshot.live.live_resource import LIVE_RESOURCES
from fairlead.whatif.snapshot.manifest import Manifest

_NAMES_MAX: Final = 2
# API groups of further kinds that commands read from a dump; KINDS and LIVE_RESOURCES lack them.
_DUMPED_GROUPS: Final = ("extensions", "kwok.x-k8s.io")
# The kinds whose pods are simulated; nothing creates pods from a PodTemplate.
_COMPLETE: Final = (
    POD,
    POD_TEMPLATE,
    REPLICATION_CONTROLLER,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    DAEMON_SET,
    JOB,
)


def unsimulated_notes(
    written: Iterable[Manifest], existing: Container[ObjectRef] = ()
) -> Iterator[str]:
    """Yield notes about those objects in `written` that nothing simulates.

    For a workload whose controller is not simulated, a note says that no pods are created; if the
    workload is in `existing`, the note says that its change has no effect on pods. For an object of
    an unknown API group, a note says that the object has no effect.
    """
    workloads: list[str] = []
    changed: list[str] = []
    unknown: list[str] = []
    for one in written:
        title, version = f"{one.kind.kind} {one.ref.key}", one.value["apiVersion"]
        if _is_workload(one):
            if not _is_suspended(one):
                (changed if one.ref in existing else workloads).append(f"{title} ({version})")
        elif one.kind.group not in _groups():
            near = find_kind(one.kind.kind)
            hint = f", not {near.api_version}" if near is not None else ""
            unknown.append(f"{title} ({version}{hint})")
    if workloads:
        yield (
            f"No pods are created for {_named(workloads)}, because the controller is not "
            "simulated. To see where the pods would go, apply their template in a Deployment or "
            "Job."
        )
    if changed:
        is_one = len(changed) == 1
        yield (
            f"The change of {_named(changed)} has no effect on pods, because the "
            f"{'controller is' if is_one else 'controllers are'} not simulated."
        )
    if unknown:
        kinds = {one.partition(" ")[0] for one in unknown}
        this = "This kind is not simulated, so it has"
        these = "These kinds are not simulated, so they have"
        yield f"{this if len(kinds) == 1 else these} no effect: {_named(unknown)}."


def is_unsimulated(one: Manifest) -> bool:
    """Return whether `one` has no effect on pods here, but may have an effect in the cluster.

    Such an object is a workload whose controller is not simulated, an object of an unknown API
    group, or a setting of Kueue.
    """
    if _is_workload(one):
        return not _is_suspended(one)
    return one.kind.group == KUEUE or one.kind.group not in _groups()


def _is_workload(one: Manifest) -> bool:
    """Return whether `one` is a workload whose controller is not simulated."""
    return one.kind not in _COMPLETE and _has_containers(one.value)


def _is_suspended(one: Manifest) -> bool:
    """Return whether `one` is a suspended CronJob, which would create no Jobs in a cluster."""
    spec = one.value.get("spec")
    return one.kind is CRON_JOB and isinstance(spec, dict) and spec.get("suspend") is True


@cache
def _groups() -> frozenset[str]:
    """Return the API groups whose objects can have an effect in the simulation."""
    found = (*KINDS, *(one.kind for one in LIVE_RESOURCES))
    return frozenset((*(one.group for one in found), *_DUMPED_GROUPS))


def _named(titles: Sequence[str]) -> str:
    return listed(titles, _NAMES_MAX)


def _has_containers(value: object) -> bool:
    """Return whether `value` contains a list of named containers at any depth."""
    if isinstance(value, dict):
        return _are_containers(value.get("containers")) or any(map(_has_containers, value.values()))
    return isinstance(value, list) and any(map(_has_containers, value))


def _are_containers(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(one, dict) and "name" in one for one in value)
