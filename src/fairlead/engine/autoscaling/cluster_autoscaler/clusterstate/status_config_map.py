"""The status ConfigMap `cluster-autoscaler-status`: the state of all node groups as YAML.

Upstream writes the ConfigMap in every loop. Here, the ConfigMap is not written if only the probe
times would change.

upstream: clusterstate/clusterstate.go:GetStatus, clusterstate/utils/status.go:WriteStatusConfigMap,
clusterstate/api/types.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import yaml

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_timestamp
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    CloudProvider,
    NodeGroup,
)
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.registry import (
    AcceptableRange,
    ClusterStateRegistry,
    Readiness,
)
from fairlead.engine.core.command import Command, CreateObject, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant

LAST_UPDATED: Final = "cluster-autoscaler.kubernetes.io/last-updated"
_PROBED: Final = "lastProbeTime"
_CHANGED: Final = "lastTransitionTime"
_NO_NODES: Final = Readiness()


class StatusConfigMap:
    """Writes the status in a ClusterStateRegistry to a ConfigMap."""

    def __init__(
        self, provider: CloudProvider, registry: ClusterStateRegistry, namespace: str, name: str
    ) -> None:
        """Create a writer for the ConfigMap `name` in `namespace`.

        The ConfigMap is assumed not to exist yet.
        """
        self._provider = provider
        self._registry = registry
        self.ref = ObjectRef("ConfigMap", namespace, name)
        self.exists = False
        self._since: dict[tuple[str, str], tuple[str, str]] = {}  # (status, last transition time)
        self._written: Json | None = None

    def update_commands(self, unneeded: Mapping[str, Sequence[str]], now: Instant) -> list[Command]:
        """Return the commands that update the ConfigMap; none if only probe times have changed.

        `unneeded` are the names of unneeded nodes, by group.
        """
        status = self._status(unneeded, format_timestamp(now))
        essential = _without_probes(status)
        if self.exists and essential == self._written:
            return []
        self._written = essential
        at = _update_time(now)
        stated = {"time": at, **status}
        text = yaml.dump(stated, Dumper=yaml.CSafeDumper, sort_keys=False, default_flow_style=False)
        content: Json = {"metadata": {"annotations": {LAST_UPDATED: at}}, "data": {"status": text}}
        if self.exists:
            return [PatchObject(self.ref, content)]
        self.exists = True
        metadata = {
            **content["metadata"],
            "name": self.ref.name,
            "namespace": self.ref.namespace,
        }
        manifest = {**content, "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        return [CreateObject(manifest)]

    def forget_written(self, *, exists: bool) -> None:
        """After a failed write, make the next loop write the ConfigMap again.

        If `exists` is set, the loop patches the ConfigMap; otherwise it creates the ConfigMap.
        """
        self.exists = exists
        self._written = None

    # --- content -----------------------------------------------------------------------------

    def _status(self, unneeded: Mapping[str, Sequence[str]], now: str) -> Json:
        registry = self._registry
        groups = [self._group(one, unneeded, now) for one in self._provider.node_groups()]
        is_growing = any(one["scaleUp"]["status"] == "InProgress" for one in groups)
        cluster: Json = {
            "health": self._timed(
                "",
                "health",
                {
                    "status": _health(is_healthy=registry.is_cluster_healthy()),
                    "nodeCounts": _counts(registry.total),
                },
                now,
            ),
            "scaleUp": self._timed(
                "", "scaleUp", {"status": "InProgress" if is_growing else "NoActivity"}, now
            ),
            "scaleDown": self._scale_down("", sum(map(len, unneeded.values())), now),
        }
        found: Json = {"autoscalerStatus": "Running", "clusterWide": cluster}
        return {**found, "nodeGroups": groups} if groups else found

    def _group(self, group: NodeGroup, unneeded: Mapping[str, Sequence[str]], now: str) -> Json:
        registry = self._registry
        acceptable = registry.ranges.get(group.id, AcceptableRange(0, 0))
        health = {
            "status": _health(is_healthy=registry.is_group_healthy(group.id)),
            "nodeCounts": _counts(registry.readiness.get(group.id, _NO_NODES)),
            "cloudProviderTarget": acceptable.target,
            "minSize": group.min_size,
            "maxSize": group.max_size,
        }
        return {
            "name": group.id,
            "health": self._timed(group.id, "health", health, now),
            "scaleUp": self._timed(group.id, "scaleUp", self._scale_up(group.id), now),
            "scaleDown": self._scale_down(group.id, len(unneeded.get(group.id, ())), now),
        }

    def _scale_up(self, group: str) -> Json:
        registry = self._registry
        if registry.is_scaling_up(group):
            return {"status": "InProgress", "backoffInfo": {}}
        if not registry.is_group_healthy(group):
            return {"status": "Unhealthy", "backoffInfo": {}}
        if registry.is_backed_off(group, registry.updated_at):
            code, message = registry.backoff.error(group)
            stated = {"errorCode": code, "errorMessage": message}
            info = {name: text for name, text in stated.items() if text}
            return {"status": "Backoff", "backoffInfo": info}
        return {"status": "NoActivity", "backoffInfo": {}}

    def _scale_down(self, group: str, candidates: int, now: str) -> Json:
        found: Json = {"status": "CandidatesPresent" if candidates else "NoCandidates"}
        if candidates:
            found["candidates"] = candidates
        return self._timed(group, "scaleDown", found, now)

    def _timed(self, group: str, part: str, found: Json, now: str) -> Json:
        """Return a copy of the condition `found` with lastProbeTime and lastTransitionTime added.

        `part` is the name of the condition. `group` is "" for the whole cluster.
        """
        status, since = self._since.get((group, part), ("", now))
        if status != found["status"]:
            since = now
        self._since[group, part] = (found["status"], since)
        return {**found, _PROBED: now, _CHANGED: since}


def _health(*, is_healthy: bool) -> str:
    return "Healthy" if is_healthy else "Unhealthy"


def _counts(readiness: Readiness) -> Json:
    registered: Json = {
        "total": len(readiness.registered),
        "ready": len(readiness.ready),
        "notStarted": len(readiness.not_started),
    }
    if readiness.deleted:
        registered["beingDeleted"] = len(readiness.deleted)
    registered["unready"] = {"total": len(readiness.unready), "resourceUnready": 0}
    return {
        "registered": registered,
        "longUnregistered": len(readiness.long_unregistered),
        "unregistered": len(readiness.unregistered),
    }


def _without_probes(status: Json) -> Json:
    """Return `status` without the probe times, which differ in every loop."""
    return {
        name: [_without_probes(one) for one in part]
        if isinstance(part, list)
        else _without_probes(part)
        if isinstance(part, dict)
        else part
        for name, part in status.items()
        if name != _PROBED
    }


def _update_time(now: Instant) -> str:
    """Return `now` in upstream's format: 2026-01-01 00:00:10.5 +0000 UTC."""
    text = format_timestamp(now).replace("T", " ").removesuffix("Z")
    nanoseconds = now % NANOSECONDS_PER_SECOND
    fraction = f".{nanoseconds:09}".rstrip("0") if nanoseconds else ""
    return f"{text}{fraction} +0000 UTC"
