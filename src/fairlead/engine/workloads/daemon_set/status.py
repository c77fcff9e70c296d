"""Computes the status of a DaemonSet.

upstream: pkg/controller/daemon/daemon_controller.go:updateDaemonSetStatus
"""

from __future__ import annotations

from collections.abc import Collection

from fairlead.api.json import Json
from fairlead.api.objects import DaemonSet, Pod
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.daemon_set.rule import DaemonSetRule
from fairlead.engine.workloads.pod_control.controller_history import History
from fairlead.engine.workloads.pod_control.pod_set import ready_since


def daemon_status(
    owner: DaemonSet, rule: DaemonSetRule, pods: Collection[Pod], history: History, now: Instant
) -> Json:
    """Return the status of `owner`, computed from its `pods`."""
    desired = [name for name, is_wanted in rule.wanted.items() if is_wanted]
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        by_node.setdefault(rule.slot_of(pod), []).append(pod)
    first = [min(there, key=_created) for name in desired if (there := by_node.get(name))]
    misplaced = sum(name in rule.nodes and not rule.wanted.get(name, False) for name in by_node)
    ready = [since for pod in first if (since := ready_since(pod)) is not None]
    available = sum(since + rule.min_ready <= now for since in ready)
    status: Json = {
        "currentNumberScheduled": len(first),
        "numberMisscheduled": misplaced,
        "desiredNumberScheduled": len(desired),
        "numberReady": len(ready),
    }
    numbers = {
        "observedGeneration": owner.metadata.generation,
        "updatedNumberScheduled": sum(history.revision_of(pod) == history.update for pod in first),
        "numberAvailable": available,
        "numberUnavailable": len(desired) - available,
        "collisionCount": history.collisions,
    }
    return status | {key: number for key, number in numbers.items() if number}


def _created(pod: Pod) -> tuple[str, str]:
    return (pod.metadata.creation_timestamp, pod.metadata.name)
