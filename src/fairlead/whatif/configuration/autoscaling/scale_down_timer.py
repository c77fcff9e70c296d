"""Reads from a dump for how long the cluster's Cluster Autoscaler has found nodes unneeded.

The simulated autoscaler continues the work of the cluster's autoscaler. Two of its timers are read
from the nodes:

    unneeded time            begins at the time in the soft taint of an unneeded node
    delay after a scale-up   begins when the newest node of a group was created

A process of Cluster Autoscaler loses its timers when it ends. So no timer begins before the start
of the process that was running when the dump was taken. But if --node-deletion-candidate-ttl is
set, a new process reads soft taints that are not older than this time. If the dump does not contain
a pod of the autoscaler, for example because the cloud provider runs it, its process is assumed to
be older than the timers.

upstream: cluster-autoscaler core/scaledown/unneeded/nodes.go, core/static_autoscaler.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec.structs import replace

from fairlead.api.objects import Node, Pod
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import NODE
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.timers import (
    LONG_AGO,
    ScaleDownTimers,
)
from fairlead.engine.autoscaling.cluster_autoscaler.taint import deletion_candidate_since
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.whatif.snapshot.installed_autoscaler import CLUSTER_AUTOSCALER
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import matching_pods, samples


def with_timers(
    config: ClusterAutoscalerConfig, manifests: Iterable[Manifest]
) -> ClusterAutoscalerConfig:
    """Return `config` with the scale-down timers of the cluster's autoscaler. Raises InputError.

    The timers are read from the objects `manifests` of a dump.
    """
    nodes = [one.node for one in samples(manifests) if one.kind is NODE]
    started = _process_start(manifests)
    ttl = config.options.node_deletion_candidate_ttl
    unneeded = {
        node.metadata.name: _known_since(since, started, ttl)
        for node in nodes
        if (since := deletion_candidate_since(node)) is not None
    }
    ups = {group.id: _newest(group, nodes) for group in config.groups}
    scale_ups = {group: at for group, at in ups.items() if at > started}
    return replace(config, timers=ScaleDownTimers(unneeded, scale_ups))


def _known_since(tainted: Instant, started: Instant, ttl: DurationNs) -> Instant:
    """Return the time since which the autoscaler's process has known that a node is unneeded.

    The node was tainted at `tainted`, and the process was started at `started`.
    """
    return tainted if tainted + ttl >= started else started


def _newest(group: NodeGroupSpec, nodes: Iterable[Node]) -> Instant:
    """Return when the newest node of `group` was created; LONG_AGO if that is unknown."""
    created = (node.metadata.creation_timestamp for node in nodes if group.owns(node))
    return max((at for text in created for at in _instants(text)), default=LONG_AGO)


def _process_start(manifests: Iterable[Manifest]) -> Instant:
    """Return when the Cluster Autoscaler of the dump was started; LONG_AGO if that is unknown.

    If there are several pods, the pod that runs longest is assumed to be the leader.
    """
    starts = (at for one in matching_pods(manifests, _is_autoscaler) for at in _starts(one))
    return min(starts, default=LONG_AGO)


def _is_autoscaler(pod: Pod) -> bool:
    return any(CLUSTER_AUTOSCALER in container.image for container in pod.spec.containers)


def _starts(manifest: Manifest) -> Iterator[Instant]:
    """Yield when each running container of Cluster Autoscaler in the pod was started."""
    containers = manifest.pod.spec.containers
    names = {one.name for one in containers if CLUSTER_AUTOSCALER in one.image}
    for status in (manifest.value.get("status") or {}).get("containerStatuses") or ():
        match status:
            case {"name": name, "state": {"running": {"startedAt": str(started)}}} if name in names:
                yield from _instants(started)


def _instants(text: str) -> Iterator[Instant]:
    """Yield the time that `text` states; nothing if it is not a timestamp."""
    with suppress(ValueError):
        yield parse_timestamp(text)
