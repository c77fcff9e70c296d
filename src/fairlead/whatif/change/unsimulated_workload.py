"""Finds applied objects whose controllers would create pods, but are not simulated.

Examples: a CronJob, an Argo Rollout, a Volcano Job, a Knative Service. A what-if stores such an
object and nothing follows, so its answer must say that the object's pods are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    POD,
    POD_TEMPLATE,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.whatif.snapshot.manifest import Manifest

_NAMES_MAX: Final = 2
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


def unsimulated_notes(applied: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note about the `applied` objects with pod specs from which no pods are created."""
    found = [
        f"{one.title} ({one.value['apiVersion']})"
        for one in applied
        if one.kind not in _COMPLETE and _has_containers(one.value)
    ]
    if found:
        more = f" and {len(found) - _NAMES_MAX:,} more" if len(found) > _NAMES_MAX else ""
        yield (
            f"What-ifs create no pods for {', '.join(found[:_NAMES_MAX])}{more}, because the "
            "controller is not simulated. To see where the pods would go, apply their template in "
            "a Deployment or Job."
        )


def _has_containers(value: object) -> bool:
    """Return whether `value` contains a list of named containers at any depth."""
    if isinstance(value, dict):
        return _are_containers(value.get("containers")) or any(map(_has_containers, value.values()))
    return isinstance(value, list) and any(map(_has_containers, value))


def _are_containers(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(one, dict) and "name" in one for one in value)
